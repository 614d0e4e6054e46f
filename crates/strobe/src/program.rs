// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that run on each row: columns that are computed, and rows that are left out.

use strobe_expr::{Column, Program, Word};

pub use strobe_expr::{Fault, Part, ProgramText, Rule};

use crate::channel::{Channel, Class, Type, column_names};
use crate::error::Error;

/// The program for rows of these channels.
///
/// # Errors
/// What is wrong with it.
#[doc(hidden)]
pub fn compile(text: &ProgramText, channels: &[Channel]) -> Result<Program, Error> {
    let columns = column_names(channels).into_iter().zip(channels);
    let columns: Vec<Column> = columns
        .map(|(name, channel)| column(name, channel))
        .collect();
    strobe_expr::compile(text, &columns).map_err(|fault| Error::Program(Box::new(fault)))
}

fn column(name: String, channel: &Channel) -> Column {
    Column {
        name,
        unit: channel.unit.clone(),
        word: match channel.kind {
            Type::U64 => Word::Unsigned,
            Type::S64 => Word::Signed,
            Type::F64 => Word::Real,
        },
        bits: channel.bits,
        scale: channel.scale,
        offset: channel.offset,
    }
}

/// What the program computes, as channels of the row.
pub(crate) fn channels(program: &Program) -> impl Iterator<Item = Channel> + '_ {
    program.derived().iter().map(|column| Channel {
        name: column.name.clone(),
        description: "computed from the other values of the row".to_owned(),
        unit: column.unit.clone(),
        kind: match column.word {
            Word::Unsigned => Type::U64,
            Word::Signed => Type::S64,
            Word::Real => Type::F64,
        },
        class: Class::Hard,
        scale: column.scale,
        offset: column.offset,
        bits: column.bits,
        cost_ns: 0,
        in_use: false,
    })
}
