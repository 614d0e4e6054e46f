// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a program's text to a program.

use std::ops::Range as Place;

use crate::arithmetic;
use crate::emit::{TooMuch, emit};
use crate::fault::{Fault, Part, Wrong, wrong};
use crate::node::{Cond, Do, Node};
use crate::parse;
use crate::program::{
    Column, INSNS_MAX, Program, ProgramText, RULES_MAX, STATE_MAX, TUNABLES_MAX, Word,
};
use crate::range::Range;
use crate::rational::Rational;
use crate::tree::{Compare, Expr, Unary, What};
use crate::unit::Unit;
use crate::value::Number;

mod cells;
mod functions;
mod operators;
mod rules;
mod tunables;
mod variable;

pub use tunables::word;

use cells::State;
use variable::Variable;

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
    let mut compiler = Compiler::new(text, inputs);
    compiler.variables(text)?;
    for (place, source) in text.derive.iter().enumerate() {
        let column = compiler
            .derive(source)
            .map_err(|wrong| wrong.in_part(Part::Derive(place), source))?;
        compiler.columns.push(column);
    }
    let mut keep = Vec::new();
    for (place, source) in text.keep.iter().enumerate() {
        let cond = compiler
            .keep(source)
            .map_err(|wrong| wrong.in_part(Part::Keep(place), source))?;
        keep.push(cond);
    }
    let (keep, met) = compiler.rules(text, Cond::all(keep))?;
    let (state, does) = compiler.state.finish(text, keep);
    if state > STATE_MAX {
        return Err(whole(
            text,
            format!(
                "the whole program keeps {state} words from row to row, and {STATE_MAX} are possible"
            ),
            "take means of fewer rows, or since emit",
        ));
    }
    let insns = emit(&does, met).map_err(|error| match error {
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
        derived: compiler.columns,
        first: compiler.first,
        skips: text.skips(),
        rules: text.rules.len(),
    })
}

/// What is known to be wrong, or too much, without a look at any part.
fn check(text: &ProgramText, inputs: usize) -> Result<(), Fault> {
    if (text.every).is_some_and(|every| !(1..=1 << 31).contains(&every)) {
        let reason = "it must be from 1 to 2147483648".to_owned();
        return Err(whole(text, reason, "name another number"));
    }
    if text.tunables.len() > TUNABLES_MAX {
        let reason = format!(
            "there are {} tunables, and {TUNABLES_MAX} are possible",
            text.tunables.len()
        );
        return Err(whole(text, reason, "let some be variables"));
    }
    let derived = text.tunables.len() + text.derive.len();
    let columns = inputs + derived;
    if columns > COLUMNS_MAX && derived > 0 {
        let reason = format!("a row would have {columns} columns, and {COLUMNS_MAX} are possible");
        return Err(whole(text, reason, "leave some out"));
    }
    if text.rules.len() > RULES_MAX {
        let reason = format!(
            "there are {} rules, and {RULES_MAX} are possible",
            text.rules.len()
        );
        return Err(whole(text, reason, "join conditions with && and ||"));
    }
    // Each condition has one at least.
    let changes: usize = text.rules.iter().map(|rule| rule.then.len()).sum();
    match text.keep.len() + text.variables.len() + changes > INSNS_MAX {
        true => Err(too_long(text)),
        false => Ok(()),
    }
}

/// What is wrong with all of it is said at its last part.
fn whole(text: &ProgramText, reason: String, remedy: &str) -> Fault {
    let last = |texts: &[String]| texts.last().map(|text| (texts.len() - 1, text.clone()));
    let rules = text.rules.len();
    let (part, source) = if let Some(rule) = text.rules.last() {
        (Part::When(rules - 1), rule.when.clone())
    } else if let Some(every) = text.every {
        (Part::Every, every.to_string())
    } else if let Some((place, keep)) = last(&text.keep) {
        (Part::Keep(place), keep)
    } else if let Some((place, derive)) = last(&text.derive) {
        (Part::Derive(place), derive)
    } else if let Some((place, variable)) = last(&text.variables) {
        (Part::Let(place), variable)
    } else if let Some((place, tunable)) = last(&text.tunables) {
        (Part::Tune(place), tunable)
    } else {
        (Part::Every, String::new())
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
    variables: Vec<Variable>,
    /// The derived columns.
    columns: Vec<Column>,
    /// What the words of the tunables are before the first row.
    first: Vec<u64>,
    /// Derived columns that have their value only in rows that are kept.
    pub(crate) of_groups: Vec<String>,
    pub(crate) state: State,
}

/// What an expression comes to.
pub(crate) enum Value {
    Number(Number),
    Truth(Cond),
}

impl<'c> Compiler<'c> {
    fn new(text: &ProgramText, inputs: &'c [Column]) -> Compiler<'c> {
        Compiler {
            inputs,
            derived: Vec::new(),
            variables: Vec::new(),
            columns: Vec::new(),
            first: Vec::new(),
            of_groups: Vec::new(),
            state: State::new(text),
        }
    }
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
            return Err(rules::taken(&derive.name_at, "column", &derive.name));
        }
        if self.variables.iter().any(|known| known.name == derive.name) {
            return Err(rules::taken(&derive.name_at, "variable", &derive.name));
        }
        can_be_column(&derive.name_at, &derive.name)?;
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
        Ok(self.value(expr)?.number())
    }

    pub(crate) fn truth(&mut self, expr: &Expr) -> Result<Cond, Wrong> {
        self.value(expr)?.truth(&expr.at)
    }

    /// What an expression comes to. The way to its first operand is a loop: a sum of many is a long way down, and the stack
    /// may be small.
    fn value(&mut self, expr: &Expr) -> Result<Value, Wrong> {
        let (mut first, mut operators) = (expr, Vec::new());
        while let What::Binary(_, left, _) | What::Quotient(left, ..) = &first.what {
            operators.push((first, left));
            first = left;
        }
        let mut value = self.part(first)?;
        while let Some((whole, left)) = operators.pop() {
            value = self.joined(whole, left, value)?;
        }
        Ok(value)
    }

    /// An operator with two sides, the left one of which comes to this.
    fn joined(&mut self, whole: &Expr, left: &Expr, value: Value) -> Result<Value, Wrong> {
        match &whole.what {
            What::Binary(operator, _, right) => {
                let sides = [(&left.at, value), (&right.at, self.value(right)?)];
                operators::join(&whole.at, *operator, sides)
            }
            What::Quotient(_, right, instead) => {
                let instead = match instead {
                    Some(expr) => Some(self.number(expr)?),
                    // Two differences make a rate. Before there are two rows it is 0.
                    None => (is_diff(left) && is_diff(right))
                        .then(|| Number::constant(Rational::ZERO, Unit::none())),
                };
                let (a, b) = (value.number(), self.number(right)?);
                arithmetic::quotient(&whole.at, a, b, instead).map(Value::Number)
            }
            _ => Ok(value),
        }
    }

    /// What has no operator with two sides.
    fn part(&mut self, expr: &Expr) -> Result<Value, Wrong> {
        let at = &expr.at;
        match &expr.what {
            What::Number(number, unit) => {
                let number = Number::constant(*number, Unit::parse(unit));
                Ok(Value::Number(number))
            }
            What::Name(name) => self.name(at, name).map(Value::Number),
            What::Unary(operator, inner) => self.unary(at, *operator, inner),
            What::Call(call) => self.call(at, call).map(Value::Number),
            What::Binary(..) | What::Quotient(..) => self.value(expr),
        }
    }

    fn unary(&mut self, at: &Place<usize>, operator: Unary, inner: &Expr) -> Result<Value, Wrong> {
        let value = self.value(inner)?;
        operators::unary(at, operator, (&inner.at, value))
    }

    pub(crate) fn name(&self, at: &Place<usize>, name: &str) -> Result<Number, Wrong> {
        if let Some((_, number)) = self.derived.iter().find(|(known, _)| known == name) {
            return Ok(number.clone());
        }
        if let Some(variable) = self.variables.iter().find(|known| known.name == name) {
            return Ok(variable.number());
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
}

impl Value {
    pub(crate) fn number(self) -> Number {
        match self {
            Value::Number(number) => number,
            Value::Truth(Cond::Const(is)) => {
                Number::constant(Rational::whole(i128::from(is)), Unit::none())
            }
            Value::Truth(cond) => Number::plain(Node::Truth(cond.into()), Range::new(0, 1)),
        }
    }

    /// Of the part of the text that is there.
    pub(crate) fn truth(self, at: &Place<usize>) -> Result<Cond, Wrong> {
        match self {
            Value::Truth(cond) => Ok(cond),
            Value::Number(number) => {
                let zero = Number::constant(Rational::ZERO, number.unit.clone());
                arithmetic::compare(at, Compare::NotEqual, number, zero)
            }
        }
    }
}

fn can_be_column(at: &Place<usize>, name: &str) -> Result<(), Wrong> {
    let has_no_place = |c: char| c.is_control() || c.is_whitespace() || ",\"`".contains(c);
    if !name.is_empty() && !name.contains(has_no_place) {
        return Ok(());
    }
    Err(wrong(
        at,
        format!("`{}` cannot be the name of a column", name.escape_debug()),
        "use letters, digits, `_`, `.` and `-`",
    ))
}

fn is_diff(expr: &Expr) -> bool {
    matches!(&expr.what, What::Call(call) if call.name == "diff")
}
