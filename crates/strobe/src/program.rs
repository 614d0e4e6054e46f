// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that run on each row: columns that are computed, and rows that are left out.

use strobe_expr::{Column, Program, Word};

pub use strobe_expr::{Fault, Part, ProgramText, Rule};

use crate::channel::{Channel, Class, Type, column_names};
use crate::error::Error;
use crate::info::RunInfo;

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

/// The place of this tunable, and the word that stands for a value of it.
///
/// # Errors
/// The run has no such tunable, or the text is no value of it.
pub(crate) fn tuned(info: &RunInfo, name: &str, value: &str) -> Result<(usize, u64), Error> {
    let place = info.tunables.iter().position(|known| known == name);
    // What is derived stands last: a channel before it may have this name.
    let channel = info.channels.iter().rfind(|channel| channel.name == name);
    let Some((place, channel)) = place.zip(channel) else {
        return Err(Error::NoTunable {
            name: name.to_owned(),
            event: info.event.clone(),
            instead: info.tunables.clone(),
        });
    };
    let word = strobe_expr::word(value, &column(name.to_owned(), channel));
    let word = word.map_err(|fault| Error::Program(Box::new(fault)))?;
    Ok((place, word))
}

/// What the tunables of a program are called.
pub(crate) fn tunables(program: &Program) -> Vec<String> {
    let shown = program.derived().iter().take(program.tunables().len());
    shown.map(|column| column.name.clone()).collect()
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
