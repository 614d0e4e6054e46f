// SPDX-License-Identifier: MIT OR Apache-2.0
//! A variable: what it is called, what its word may be, and which word stands for a number.

use std::ops::Range as Place;

use crate::fault::{Wrong, wrong};
use crate::node::{Node, Op};
use crate::parse;
use crate::range::Range;
use crate::rational::Rational;
use crate::tree::What;
use crate::value::{Number, agree, digits};

/// What a variable may be: 62 bits of its own, with room to compute with it; of one that is like a channel, no more than
/// that has.
const RANGE: Range = Range {
    lo: -(1 << 62),
    hi: (1 << 62) - 1,
};

/// Decimals of a step that people write.
const DECIMALS: u32 = 9;

/// A value that is kept from row to row.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(super) word: usize,
    /// Its word may be so, and stands for this.
    pub(super) range: Range,
    pub(super) like: Number,
}

impl Variable {
    /// Its value.
    pub(crate) fn number(&self) -> Number {
        Number {
            node: Node::State(self.word),
            range: self.range,
            ..self.like.clone()
        }
    }

    /// The step that a number of so many steps stands for; `None`: none does.
    fn step(&self, at: &Place<usize>, steps: Rational) -> Result<Option<i128>, Wrong> {
        if steps.to_whole().is_some() || self.is_written() {
            return Ok(steps.to_whole());
        }
        let below = steps.floor();
        let rest = digits(at, steps.sub(Rational::whole(below)))?;
        Ok(Some(below + digits(at, rest.add(rest))?.floor()))
    }

    /// Whether people can write its steps. Those of a converter, such as 10 V / 32767, have too many decimals.
    fn is_written(&self) -> bool {
        let parts = [self.like.scale, self.like.offset];
        parts
            .iter()
            .all(|part| 10_i128.pow(DECIMALS) % part.den() == 0)
    }

    /// The remedy for a number between this step and the next one.
    fn coarse(&self, below: Option<i128>) -> String {
        let finer = format!(
            "declare {} with such steps, as in 0.001, or like the channel",
            self.name
        );
        let value = |word: i128| self.value(word).filter(|_| self.range.has(word));
        let beside = below.and_then(|below| Some([below, below.checked_add(1)?]));
        let beside: Vec<_> = beside.into_iter().flatten().filter_map(value).collect();
        match beside.is_empty() {
            true => finer,
            false => format!("write {}, or {finer}", beside.join(" or ")),
        }
    }

    /// What is written for a word.
    fn value(&self, word: i128) -> Option<String> {
        let Number {
            scale,
            offset,
            unit,
            ..
        } = &self.like;
        let value = scale.mul(Rational::whole(word))?.add(*offset)?;
        let value = value.to_decimal(DECIMALS)?;
        let unit = unit.text();
        // Whatever else a unit is, it stands in quotes.
        let bare = parse::expression(&format!("1 {unit}"));
        let is_bare =
            bare.is_ok_and(|expr| matches!(expr.what, What::Number(_, read) if read == unit));
        match is_bare {
            _ if unit.contains('"') => None,
            true => Some(format!("{value} {unit}").trim_end().to_owned()),
            false => Some(format!("{value} \"{unit}\"")),
        }
    }

    /// The word that stands for this number; one beyond the range becomes the end of it.
    pub(super) fn word_of(&self, at: &Place<usize>, number: Number) -> Result<Node, Wrong> {
        let (own, number) = agree(at, self.number(), number)?;
        let shift = digits(at, number.offset.sub(own.offset))?;
        let shift = digits(at, shift.div(own.scale))?;
        let (below, shift) = match number.is_constant() {
            true => (Some(shift.floor()), self.step(at, shift)?),
            false => (None, shift.to_whole()),
        };
        let factor = match number.is_constant() {
            true => Some(0),
            false => digits(at, number.scale.div(own.scale))?.to_whole(),
        };
        let Some((factor, shift)) = factor.zip(shift) else {
            return Err(wrong(
                at,
                format!("this has finer steps than {} has", self.name),
                self.coarse(below),
            ));
        };
        let Range { lo, hi } = self.range;
        let all = number.range.times(factor).add(Range::only(shift));
        if factor == 0 && !self.range.has(shift) {
            return Err(wrong(
                at,
                format!(
                    "the word of {} would be {shift}, and it is from {lo} to {hi}",
                    self.name
                ),
                "use another number, or declare it like a channel with more bits",
            ));
        }
        if all.lo > hi || all.hi < lo {
            return Ok(Node::Const(if all.lo > hi { hi } else { lo }));
        }
        if all.fits() || factor.abs() != 1 {
            let (node, range) = number.words(at, factor, shift)?;
            return Ok(hold(node, range, self.range));
        }
        // The sum may not fit a word, but what is left of it does: held before it is added.
        let (lo, hi) = (
            digits(at, lo.checked_sub(shift))?,
            digits(at, hi.checked_sub(shift))?,
        );
        let within = Range::new(lo, hi).times(factor);
        let range = within
            .max(Range::only(number.range.lo))
            .min(Range::only(number.range.hi));
        let node = hold(number.node, number.range, range);
        let held = Number {
            node,
            range,
            ..number
        };
        Ok(held.words(at, factor, shift)?.0)
    }
}

/// Without a channel that it is like it has whole steps of the last decimal place of its number.
pub(super) fn variable(
    name: String,
    word: usize,
    at: &Place<usize>,
    value: &Number,
    like: Option<Number>,
) -> Result<Variable, Wrong> {
    let like = match like {
        Some(like) => like,
        None => Number {
            scale: digits(at, Rational::ONE.div(Rational::whole(value.offset.den())))?,
            unit: value.unit.clone(),
            ..Number::plain(Node::Const(0), RANGE)
        },
    };
    let range = Range {
        lo: like.range.lo.max(RANGE.lo),
        hi: like.range.hi.min(RANGE.hi),
    };
    Ok(Variable {
        name,
        word,
        range,
        like,
    })
}

/// The word, or the end of these that is next to it; some of them are in its range, and are compared as it is.
fn hold(node: Node, range: Range, within: Range) -> Node {
    let signed = range.is_signed();
    let mut node = node;
    if range.lo < within.lo {
        node = Node::op(Op::Max { signed }, node, Node::Const(within.lo));
    }
    if range.hi > within.hi {
        node = Node::op(Op::Min { signed }, node, Node::Const(within.hi));
    }
    node
}
