// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a program's text to a program.

use std::ops::Range as Place;

use crate::arithmetic;
use crate::emit::{TooMuch, emit};
use crate::fault::{Fault, Part, Wrong, wrong};
use crate::node::{Cond, Do, Node, Op};
use crate::parse;
use crate::program::{Column, INSNS_MAX, Program, ProgramText, STATE_MAX, Word};
use crate::range::Range;
use crate::rational::Rational;
use crate::tree::{Binary, Compare, Expr, Unary, What};
use crate::unit::Unit;
use crate::value::{self, Number};

mod cells;
mod functions;

use cells::State;

/// Columns of a row with a program, at most: an instruction reaches so many words.
const COLUMNS_MAX: usize = 4096;
/// What a row has beside its values: files have columns of these names.
const OF_ROWS: [&str; 5] = ["row", "trigger", "time", "status", "skipped"];

/// Makes a program for rows of these columns; those that it derives follow them.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn compile(text: &ProgramText, inputs: &[Column]) -> Result<Program, Fault> {
    check(text, inputs.len())?;
    let mut compiler = Compiler {
        inputs,
        derived: Vec::new(),
        of_groups: Vec::new(),
        state: State::new(text),
    };
    let mut columns = Vec::new();
    for (place, source) in text.derive.iter().enumerate() {
        let column = compiler
            .derive(source)
            .map_err(|wrong| wrong.in_part(Part::Derive(place), source))?;
        columns.push(column);
    }
    let mut keep = Vec::new();
    for (place, source) in text.keep.iter().enumerate() {
        let cond = compiler
            .keep(source)
            .map_err(|wrong| wrong.in_part(Part::Keep(place), source))?;
        keep.push(cond);
    }
    let (state, does) = compiler.state.finish(text, Cond::all(keep));
    if state > STATE_MAX {
        return Err(whole(
            text,
            format!(
                "the whole program keeps {state} words from row to row, and {STATE_MAX} are possible"
            ),
            "take means of fewer rows, or since emit",
        ));
    }
    let insns = emit(&does).map_err(|error| match error {
        TooMuch::Insns => too_long(text),
        TooMuch::Registers => whole(
            text,
            "an expression has more values at once than there are registers".to_owned(),
            "give a part of it a name, as a derived column",
        ),
    })?;
    Ok(Program {
        insns,
        state,
        inputs: inputs.len(),
        derived: columns,
        skips: text.skips(),
    })
}

/// What is known to be wrong, or too much, without a look at any part.
fn check(text: &ProgramText, inputs: usize) -> Result<(), Fault> {
    if (text.every).is_some_and(|every| !(1..=1 << 31).contains(&every)) {
        let reason = "it must be from 1 to 2147483648".to_owned();
        return Err(whole(text, reason, "name another number"));
    }
    let columns = inputs + text.derive.len();
    if columns > COLUMNS_MAX && !text.derive.is_empty() {
        let reason = format!("a row would have {columns} columns, and {COLUMNS_MAX} are possible");
        return Err(whole(text, reason, "leave some out"));
    }
    // Each condition has one at least.
    match text.keep.len() > INSNS_MAX {
        true => Err(too_long(text)),
        false => Ok(()),
    }
}

/// What is wrong with all of it is said at its last part.
fn whole(text: &ProgramText, reason: String, remedy: &str) -> Fault {
    let (part, source) = match (text.keep.last(), text.derive.last(), text.every) {
        (_, _, Some(every)) => (Part::Every, every.to_string()),
        (Some(keep), ..) => (Part::Keep(text.keep.len() - 1), keep.clone()),
        (_, Some(derive), _) => (Part::Derive(text.derive.len() - 1), derive.clone()),
        _ => (Part::Every, String::new()),
    };
    wrong(&(0..0), reason, remedy).in_part(part, &source)
}

fn too_long(text: &ProgramText) -> Fault {
    let reason = format!("the whole program has more than {INSNS_MAX} instructions");
    whole(text, reason, "leave something out")
}

pub(crate) struct Compiler<'c> {
    inputs: &'c [Column],
    derived: Vec<(String, Number)>,
    /// Derived columns that have their value only in rows that are kept.
    pub(crate) of_groups: Vec<String>,
    pub(crate) state: State,
}

/// What an expression comes to.
pub(crate) enum Value {
    Number(Number),
    Truth(Cond),
}

impl Compiler<'_> {
    fn derive(&mut self, source: &str) -> Result<Column, Wrong> {
        let derive = parse::derive(source)?;
        let names = || {
            self.inputs
                .iter()
                .map(|column| &column.name)
                .chain(self.derived.iter().map(|(name, _)| name))
        };
        if names().any(|name| *name == derive.name) {
            return Err(wrong(
                &derive.name_at,
                format!("there is a column {} already", derive.name),
                "give it another name",
            ));
        }
        let has_no_place = |c: char| c.is_control() || c.is_whitespace() || ",\"`".contains(c);
        if derive.name.is_empty() || derive.name.contains(has_no_place) {
            return Err(wrong(
                &derive.name_at,
                format!(
                    "`{}` cannot be the name of a column",
                    derive.name.escape_debug()
                ),
                "use letters, digits, `_`, `.` and `-`",
            ));
        }
        if OF_ROWS.contains(&derive.name.as_str()) {
            return Err(wrong(
                &derive.name_at,
                format!("each row has a {} of its own", derive.name),
                "give it another name",
            ));
        }
        let at = &derive.expr.at;
        let number = self.number(&derive.expr)?;
        let number = match &derive.unit {
            Some((unit, at)) => number.in_unit(at, unit)?,
            None => number,
        };
        let Number {
            node,
            range,
            scale,
            offset,
            unit,
        } = number.rising(at)?;
        let place = self.inputs.len() + self.derived.len();
        self.state.does.push(Do::Row(place, node));
        let column = Column {
            name: derive.name.clone(),
            unit: unit.text().to_owned(),
            word: if range.is_unsigned() {
                Word::Unsigned
            } else {
                Word::Signed
            },
            bits: range.bits(),
            scale: scale.to_f64(),
            offset: offset.to_f64(),
        };
        let node = if range == Range::ZERO {
            Node::Const(0)
        } else {
            Node::Row(place)
        };
        if self.is_of_groups(&derive.expr) {
            self.of_groups.push(derive.name.clone());
        }
        self.derived.push((
            derive.name,
            Number {
                node,
                range,
                scale,
                offset,
                unit,
            },
        ));
        Ok(column)
    }

    fn keep(&mut self, source: &str) -> Result<Cond, Wrong> {
        let expr = parse::expression(source)?;
        match self.truth(&expr)? {
            Cond::Const(is) => Err(wrong(
                &expr.at,
                format!(
                    "this is always {}",
                    if is {
                        "true: every row would be kept"
                    } else {
                        "false: no row would be kept"
                    }
                ),
                "compare with a number that the channel can be above and below",
            )),
            cond => Ok(cond),
        }
    }

    pub(crate) fn number(&mut self, expr: &Expr) -> Result<Number, Wrong> {
        Ok(match self.value(expr)? {
            Value::Number(number) => number,
            Value::Truth(Cond::Const(is)) => {
                Number::constant(Rational::whole(i128::from(is)), Unit::none())
            }
            Value::Truth(cond) => Number::plain(Node::Truth(cond.into()), Range::new(0, 1)),
        })
    }

    pub(crate) fn truth(&mut self, expr: &Expr) -> Result<Cond, Wrong> {
        match self.value(expr)? {
            Value::Truth(cond) => Ok(cond),
            Value::Number(number) => {
                let zero = Number::constant(Rational::ZERO, number.unit.clone());
                arithmetic::compare(&expr.at, Compare::NotEqual, number, zero)
            }
        }
    }

    fn word(&mut self, expr: &Expr) -> Result<(Node, Range), Wrong> {
        self.number(expr)?.word(&expr.at)
    }

    fn value(&mut self, expr: &Expr) -> Result<Value, Wrong> {
        let at = &expr.at;
        let number = match &expr.what {
            What::Number(number, unit) => Number::constant(*number, Unit::parse(unit)),
            What::Name(name) => self.name(at, name)?,
            What::Unary(Unary::Not, inner) => {
                return Ok(Value::Truth(self.truth(inner)?.negated()));
            }
            What::Unary(Unary::Minus, inner) => self.number(inner)?.negative(),
            What::Unary(Unary::Complement, inner) => {
                let (node, range) = self.word(inner)?;
                let range = Range::new(-1 - range.lo, -1 - range.hi);
                let (node, range) =
                    value::fit(at, Node::op(Op::Xor, node, Node::Const(-1)), range)?;
                Number::plain(node, range)
            }
            What::Binary(operator, a, b) => return self.binary(at, *operator, a, b),
            What::Quotient(a, b, instead) => {
                // Two differences make a rate. Before there are two rows it is 0.
                let is_diff =
                    |expr: &Expr| matches!(&expr.what, What::Call(call) if call.name == "diff");
                let is_rate = is_diff(a) && is_diff(b);
                let instead = match instead {
                    Some(expr) => Some(self.number(expr)?),
                    None => is_rate.then(|| Number::constant(Rational::ZERO, Unit::none())),
                };
                let (a, b) = (self.number(a)?, self.number(b)?);
                arithmetic::quotient(at, a, b, instead)?
            }
            What::Call(call) => self.call(at, call)?,
        };
        Ok(Value::Number(number))
    }

    pub(crate) fn name(&self, at: &Place<usize>, name: &str) -> Result<Number, Wrong> {
        if let Some((_, number)) = self.derived.iter().find(|(known, _)| known == name) {
            return Ok(number.clone());
        }
        let Some(place) = self.inputs.iter().position(|column| column.name == name) else {
            let names = self.inputs.iter().map(|column| column.name.as_str());
            let names: Vec<&str> = names
                .chain(self.derived.iter().map(|(name, _)| name.as_str()))
                .collect();
            let have = if names.is_empty() {
                "no column".to_owned()
            } else {
                names.join(", ")
            };
            return Err(wrong(
                at,
                format!("a row has no column {name}"),
                format!("read it, or use another; there are {have}"),
            ));
        };
        let column = &self.inputs[place];
        let signed = match column.word {
            Word::Unsigned => false,
            Word::Signed => true,
            Word::Real => {
                return Err(wrong(
                    at,
                    format!(
                        "{name} is a floating-point number, and programs compute with whole numbers only"
                    ),
                    "use a channel of type u64 or s64",
                ));
            }
        };
        let scale = Rational::of_f64(column.scale).filter(|scale| *scale != Rational::ZERO);
        let (Some(scale), Some(offset)) = (scale, Rational::of_f64(column.offset)) else {
            let (scale, offset) = (column.scale, column.offset);
            return Err(wrong(
                at,
                format!(
                    "the scale of {name} is {scale}, its offset {offset}: exact results are not possible"
                ),
                "change them in its board or driver",
            ));
        };
        Ok(Number {
            node: Node::Row(place),
            range: Range::of_bits(column.bits, signed),
            scale,
            offset,
            unit: Unit::parse(&column.unit),
        })
    }

    fn binary(
        &mut self,
        at: &Place<usize>,
        operator: Binary,
        a: &Expr,
        b: &Expr,
    ) -> Result<Value, Wrong> {
        let number = match operator {
            Binary::All | Binary::Any => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                return Ok(Value::Truth(if operator == Binary::All {
                    a.and(b)
                } else {
                    a.or(b)
                }));
            }
            Binary::Compare(compare) => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                return Ok(Value::Truth(arithmetic::compare(at, compare, a, b)?));
            }
            Binary::Plus => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                arithmetic::sum(at, a, b)?
            }
            Binary::Minus => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                arithmetic::sum(at, a, b.negative())?
            }
            Binary::Times => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                arithmetic::product(at, a, b)?
            }
            Binary::Left | Binary::Right => self.shift(at, operator == Binary::Left, a, b)?,
            Binary::Rest => self.rest(a, b)?,
            Binary::And | Binary::Or | Binary::Xor => {
                let (a, b) = (self.word(a)?, self.word(b)?);
                let (op, range) = match operator {
                    Binary::And => (Op::And, a.1.and(b.1)),
                    Binary::Or => (Op::Or, a.1.or(b.1)),
                    _ => (Op::Xor, a.1.or(b.1)),
                };
                let (node, range) = value::fit(at, Node::op(op, a.0, b.0), range)?;
                Number::plain(node, range)
            }
        };
        Ok(Value::Number(number))
    }

    fn shift(
        &mut self,
        at: &Place<usize>,
        is_left: bool,
        a: &Expr,
        b: &Expr,
    ) -> Result<Number, Wrong> {
        let (node, range) = self.word(a)?;
        let by = self
            .number(b)?
            .to_whole()
            .and_then(|by| u32::try_from(by).ok())
            .filter(|by| *by < 64);
        let by = by.ok_or_else(|| {
            wrong(
                &b.at,
                "the number of bits to shift is not from 0 to 63",
                "write one, as in << 4",
            )
        })?;
        let (op, range) = match is_left {
            true => (Op::Left, range.times(1 << by)),
            false if range.lo >= 0 => (Op::Right, Range::new(range.lo >> by, range.hi >> by)),
            false => (Op::RightSigned, Range::new(range.lo >> by, range.hi >> by)),
        };
        let (node, range) = value::fit(at, Node::op(op, node, Node::Const(i128::from(by))), range)?;
        Ok(Number::plain(node, range))
    }

    fn rest(&mut self, a: &Expr, b: &Expr) -> Result<Number, Wrong> {
        let (dividend, divisor) = (self.word(a)?, self.word(b)?);
        if divisor.1.lo <= 0 {
            return Err(wrong(
                &b.at,
                "the divisor may be 0, or negative",
                "divide by a value that is always greater, as in max(X, 1)",
            ));
        }
        if dividend.1.lo < 0 {
            return Err(wrong(
                &a.at,
                "the remainder of a value that may be negative",
                "use a value that never is, as in abs(X)",
            ));
        }
        let range = Range::new(0, dividend.1.hi.min(divisor.1.hi - 1));
        Ok(Number::plain(
            Node::op(Op::Rest, dividend.0, divisor.0),
            range,
        ))
    }
}
