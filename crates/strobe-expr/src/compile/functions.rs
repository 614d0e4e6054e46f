// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the language.

use std::ops::Range as Place;

use crate::arithmetic;
use crate::fault::{Wrong, wrong};
use crate::tree::{Call, Expr, What};
use crate::value::Number;

use super::Compiler;

/// How the functions are used.
const FUNCTIONS: [(&str, &str); 12] = [
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

/// Each function has a function of its own here: what is nested goes through all of them, and the stack may be small.
impl Compiler<'_> {
    pub(crate) fn call(&mut self, at: &Place<usize>, call: &Call) -> Result<Number, Wrong> {
        if call.since_emit {
            return self.since_emit(at, call);
        }
        match (call.name.as_str(), call.args.as_slice()) {
            ("diff", [of]) => self.diff(of),
            ("mean", [of, rows]) => self.window(of, rows, true),
            ("sum", [of, rows]) => self.window(of, rows, false),
            ("abs", [of]) => self.abs(at, of),
            ("raw", [of]) => self.raw(of),
            ("min", [first, others @ ..]) if !others.is_empty() => {
                self.least_or_most(at, first, others, false)
            }
            ("max", [first, others @ ..]) if !others.is_empty() => {
                self.least_or_most(at, first, others, true)
            }
            ("clamp", [of, low, high]) => self.clamp(at, of, low, high),
            (name, _) => Err(unknown(at, name)),
        }
    }

    fn abs(&mut self, at: &Place<usize>, of: &Expr) -> Result<Number, Wrong> {
        arithmetic::abs(at, self.number(of)?)
    }

    fn raw(&mut self, of: &Expr) -> Result<Number, Wrong> {
        match &of.what {
            What::Name(name) => {
                let number = self.name(&of.at, name)?;
                Ok(Number::plain(number.node, number.range))
            }
            _ => Err(wrong(
                &of.at,
                "only a column has a word",
                "write raw(CHANNEL)",
            )),
        }
    }

    fn least_or_most(
        &mut self,
        at: &Place<usize>,
        first: &Expr,
        others: &[Expr],
        is_most: bool,
    ) -> Result<Number, Wrong> {
        let mut number = self.number(first)?;
        for other in others {
            number = arithmetic::extreme(at, number, self.number(other)?, is_most)?;
        }
        Ok(number)
    }

    fn clamp(
        &mut self,
        at: &Place<usize>,
        of: &Expr,
        low: &Expr,
        high: &Expr,
    ) -> Result<Number, Wrong> {
        let (of, low, high) = (self.number(of)?, self.number(low)?, self.number(high)?);
        let number = arithmetic::extreme(at, of, low, true)?;
        arithmetic::extreme(at, number, high, false)
    }
}

fn unknown(at: &Place<usize>, name: &str) -> Wrong {
    let known = FUNCTIONS.iter().find(|(known, _)| *known == name);
    let reason = match known {
        Some(_) => format!("{name} has the wrong arguments"),
        None => format!("there is no function {name}"),
    };
    let remedy = match known {
        Some((_, usage)) => format!("write {usage}"),
        None => format!("use one of {}", FUNCTIONS.map(|(name, _)| name).join(", ")),
    };
    wrong(at, reason, remedy)
}

/// What is wrong with a function of all rows since the last one that was kept.
pub(super) fn not_since(at: &Place<usize>, name: &str) -> Wrong {
    let known = FUNCTIONS
        .iter()
        .find(|(known, usage)| *known == name && usage.contains("since"));
    let reason = match known {
        Some(_) => format!("{name} has the wrong arguments"),
        None => format!("there is no {name} since emit"),
    };
    let remedy = known.map_or(
        "use count, sum, mean, min, max, first, last or spread".to_owned(),
        |(_, usage)| format!("write {usage}"),
    );
    wrong(at, reason, remedy)
}
