// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the language.

use std::ops::Range as Place;

use crate::arithmetic;
use crate::fault::{Wrong, wrong};
use crate::tree::{Call, What};
use crate::value::Number;

use super::Compiler;

/// How the functions are used.
pub(crate) const FUNCTIONS: [(&str, &str); 12] = [
    ("diff", "diff(X)"),
    ("mean", "mean(X, ROWS) or mean(X since emit)"),
    ("sum", "sum(X, ROWS) or sum(X since emit)"),
    ("min", "min(A, B) or min(X since emit)"),
    ("max", "max(A, B) or max(X since emit)"),
    ("abs", "abs(X)"),
    ("clamp", "clamp(X, LOW, HIGH)"),
    ("raw", "raw(CHANNEL)"),
    ("count", "count(since emit) or count(CONDITION since emit)"),
    ("first", "first(X since emit)"),
    ("last", "last(X since emit)"),
    ("spread", "spread(X since emit)"),
];

impl Compiler<'_> {
    pub(crate) fn call(&mut self, at: &Place<usize>, call: &Call) -> Result<Number, Wrong> {
        if call.since_emit {
            return self.since_emit(at, call);
        }
        match (call.name.as_str(), call.args.as_slice()) {
            ("diff", [of]) => self.diff(of),
            ("mean", [of, rows]) => self.window(of, rows, true),
            ("sum", [of, rows]) => self.window(of, rows, false),
            ("abs", [of]) => {
                let number = self.number(of)?;
                arithmetic::abs(at, number)
            }
            ("raw", [of]) => match &of.what {
                What::Name(name) => {
                    let number = self.name(&of.at, name)?;
                    Ok(Number::plain(number.node, number.range))
                }
                _ => Err(wrong(
                    &of.at,
                    "only a column has a word",
                    "write raw(CHANNEL)",
                )),
            },
            ("min" | "max", [first, others @ ..]) if !others.is_empty() => {
                let mut number = self.number(first)?;
                for other in others {
                    let other = self.number(other)?;
                    number = arithmetic::extreme(at, number, other, call.name == "max")?;
                }
                Ok(number)
            }
            ("clamp", [of, low, high]) => {
                let (of, low, high) = (self.number(of)?, self.number(low)?, self.number(high)?);
                let number = arithmetic::extreme(at, of, low, true)?;
                arithmetic::extreme(at, number, high, false)
            }
            (name, _) => {
                let known = FUNCTIONS.iter().find(|(known, _)| *known == name);
                let reason = match known {
                    Some(_) => format!("{name} has the wrong arguments"),
                    None => format!("there is no function {name}"),
                };
                let remedy = match known {
                    Some((_, usage)) => format!("write {usage}"),
                    None => format!("use one of {}", FUNCTIONS.map(|(name, _)| name).join(", ")),
                };
                Err(wrong(at, reason, remedy))
            }
        }
    }
}
