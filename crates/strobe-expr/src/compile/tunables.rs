// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables that can be tuned while the run goes on, and the words that stand for their values.
//!
//! A tunable is the word of the state of its place, so that who tunes it needs to know no more. A column of the row shows
//! it, as it is before rules change it.

use std::ops::Range as Place;

use super::Compiler;
use super::variable::{Variable, variable};
use crate::fault::{Fault, Part, Wrong, wrong};
use crate::node::{Do, Node};
use crate::parse;
use crate::program::{Column, ProgramText, Word};
use crate::unit::Unit;
use crate::value::Number;

/// The word of a tunable that stands for this number: `1000`, in the unit of the column that shows the tunable, or `2.5 V`.
///
/// # Errors
/// It is not a number, has another unit, lies between two steps that people can write, or is beyond what the column can show.
pub fn word(text: &str, column: &Column) -> Result<u64, Fault> {
    let inputs = std::slice::from_ref(column);
    let mut compiler = Compiler::new(&ProgramText::default(), inputs);
    let mut word = || {
        let expr = parse::expression(text)?;
        let at = &expr.at;
        let mut value = compiler.number(&expr)?;
        let like = compiler.name(at, &column.name)?;
        if value.unit == Unit::none() {
            value.unit = like.unit.clone();
        }
        variable(column.name.clone(), 0, at, &value, Some(like))?.constant(at, value)
    };
    word().map_err(|wrong| wrong.in_part(Part::Tune(0), text))
}

impl Compiler<'_> {
    /// The column of a tunable, as it is before rules change it.
    pub(super) fn show(&mut self, variable: Variable) {
        let place = self.inputs.len() + self.derived.len();
        let number = variable.number();
        self.state.does.push(Do::Row(place, number.node.clone()));
        self.columns.push(variable.column());
        self.derived.push((
            variable.name.clone(),
            Number {
                node: Node::Row(place),
                ..number
            },
        ));
        self.variables.push(variable);
    }
}

impl Variable {
    /// A column that shows its word.
    fn column(&self) -> Column {
        Column {
            name: self.name.clone(),
            unit: self.like.unit.text().to_owned(),
            word: match self.range.is_unsigned() {
                true => Word::Unsigned,
                false => Word::Signed,
            },
            bits: self.range.bits(),
            scale: self.like.scale.to_f64(),
            offset: self.like.offset.to_f64(),
        }
    }

    /// The word that stands for this number, which is a constant.
    pub(super) fn constant(&self, at: &Place<usize>, number: Number) -> Result<u64, Wrong> {
        match self.word_of(at, number)? {
            Node::Const(word) => Ok(word as u64),
            _ => Err(wrong(at, "this is not a number", "write a number")),
        }
    }
}
