// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values: a word, what it may be, and what it stands for. Scale, offset and unit are exact, and cost nothing when rows are
//! made: a sum with a number, or a product, changes them and not the word.

use std::ops::Range as Place;

use crate::fault::{Wrong, wrong};
use crate::node::{Node, Op};
use crate::range::Range;
use crate::rational::Rational;
use crate::unit::Unit;

/// `word * scale + offset`, in a unit. A number that was written has the word 0: it is all offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    pub node: Node,
    pub range: Range,
    pub scale: Rational,
    pub offset: Rational,
    pub unit: Unit,
}

pub const BOUND: &str = "bound a part of it, as in clamp(X, LOW, HIGH)";

/// For what does not fit the arithmetic of this compiler.
pub fn digits<T>(at: &Place<usize>, result: Option<T>) -> Result<T, Wrong> {
    result.ok_or_else(|| {
        wrong(
            at,
            "scales and numbers here have too many digits",
            "round them",
        )
    })
}

/// If each of these numbers fits a word.
pub fn fit(at: &Place<usize>, node: Node, range: Range) -> Result<(Node, Range), Wrong> {
    match range.fits() {
        true => Ok((node, range)),
        false => Err(wrong(
            at,
            format!(
                "it may overflow: the word would be from {} to {}, and it has 64 bits",
                range.lo, range.hi
            ),
            BOUND,
        )),
    }
}

impl Number {
    pub fn constant(value: Rational, unit: Unit) -> Number {
        Number {
            node: Node::Const(0),
            range: Range::ZERO,
            scale: Rational::ONE,
            offset: value,
            unit,
        }
    }

    pub fn plain(node: Node, range: Range) -> Number {
        Number {
            node,
            range,
            scale: Rational::ONE,
            offset: Rational::ZERO,
            unit: Unit::none(),
        }
    }

    pub fn is_constant(&self) -> bool {
        self.range == Range::ZERO
    }

    fn is_zero(&self) -> bool {
        self.is_constant() && self.offset == Rational::ZERO
    }

    /// The number that was written, if it is a whole one without a unit.
    pub fn to_whole(&self) -> Option<i128> {
        (self.is_constant() && self.unit.is_none()).then(|| self.offset.to_whole())?
    }

    /// So many times as much, in this unit.
    pub fn scaled(self, at: &Place<usize>, by: Rational, unit: Unit) -> Result<Number, Wrong> {
        if by == Rational::ZERO {
            return Ok(Number::constant(Rational::ZERO, unit));
        }
        Ok(Number {
            scale: digits(at, self.scale.mul(by))?,
            offset: digits(at, self.offset.mul(by))?,
            unit,
            ..self
        })
    }

    /// With other words for the same: `word * factor + sum`.
    pub fn words(self, at: &Place<usize>, factor: i128, sum: i128) -> Result<(Node, Range), Wrong> {
        let range = self.range.times(factor).add(Range::only(sum));
        let (node, _) = fit(at, Node::Const(0), self.range.times(factor))
            .map(|_| (self.node.times(factor), ()))?;
        fit(at, node.add(sum), range)
    }

    /// In words that rise with the value.
    pub fn rising(self, at: &Place<usize>) -> Result<Number, Wrong> {
        if self.scale.sign() >= 0 {
            return Ok(self);
        }
        let (node, range) = fit(
            at,
            Node::op(Op::Sub, Node::Const(0), self.node),
            self.range.times(-1),
        )?;
        let scale = self.scale.neg();
        Ok(Number {
            node,
            range,
            scale,
            ..self
        })
    }

    /// In words without an offset.
    pub fn level(self, at: &Place<usize>) -> Result<Number, Wrong> {
        if self.offset == Rational::ZERO {
            return Ok(self);
        }
        if self.is_constant() {
            let (node, range) = (Node::Const(1), Range::only(1));
            return Ok(Number {
                node,
                range,
                scale: self.offset,
                offset: Rational::ZERO,
                ..self
            });
        }
        let ratio = digits(at, self.offset.div(self.scale))?;
        let den = Rational::whole(ratio.den());
        let scale = digits(at, self.scale.div(den))?;
        let sum = digits(at, digits(at, ratio.mul(den))?.to_whole())?;
        let unit = self.unit.clone();
        let (node, range) = self.words(at, ratio.den(), sum)?;
        Ok(Number {
            node,
            range,
            scale,
            offset: Rational::ZERO,
            unit,
        })
    }

    /// The value as a whole number.
    pub fn word(self, at: &Place<usize>) -> Result<(Node, Range), Wrong> {
        let scale = if self.is_constant() {
            Some(1)
        } else {
            self.scale.to_whole()
        };
        match scale.zip(self.offset.to_whole()) {
            Some((scale, offset)) => self.words(at, scale, offset),
            None => Err(wrong(
                at,
                "only whole numbers have bits, and this is not one",
                "write raw(CHANNEL): its word, before scale and offset",
            )),
        }
    }

    pub fn negative(self) -> Number {
        Number {
            scale: self.scale.neg(),
            offset: self.offset.neg(),
            ..self
        }
    }

    /// In this unit; a plain number gets it.
    pub fn in_unit(self, at: &Place<usize>, text: &str) -> Result<Number, Wrong> {
        let unit = Unit::parse(text);
        let factor = match self.unit.text().is_empty() {
            true => Some(Rational::ONE),
            false => self.unit.in_units_of(&unit),
        };
        match factor {
            Some(factor) => self.scaled(at, factor, unit),
            None => Err(wrong(
                at,
                format!("it is in {}, which cannot become {text}", self.unit.text()),
                "write a unit of the same kind",
            )),
        }
    }
}

/// Both in one unit. A 0 has any.
pub fn agree(at: &Place<usize>, a: Number, b: Number) -> Result<(Number, Number), Wrong> {
    if let Some(factor) = b.unit.in_units_of(&a.unit) {
        let b = b.scaled(at, factor, a.unit.clone())?;
        return Ok((a, b));
    }
    match (a.is_zero(), b.is_zero()) {
        (true, _) => Ok((
            Number {
                unit: b.unit.clone(),
                ..a
            },
            b,
        )),
        (_, true) => Ok((
            Number {
                unit: a.unit.clone(),
                ..a.clone()
            },
            Number { unit: a.unit, ..b },
        )),
        _ => {
            let show = |unit: &Unit| match unit.text() {
                "" => "has no unit".to_owned(),
                text => format!("is in {text}"),
            };
            let remedy = match (a.unit.text(), b.unit.text()) {
                (text, "") | ("", text) => format!(
                    "write the number with its unit, as in 2.5 {text}, or raw(CHANNEL) for a word without one"
                ),
                (text, _) => format!("write both in {text}, or in another unit of that kind"),
            };
            Err(wrong(
                at,
                format!("one side {}, the other {}", show(&a.unit), show(&b.unit)),
                remedy,
            ))
        }
    }
}
