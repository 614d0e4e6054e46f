// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of two values: their units agree, their words get one scale, and nothing overflows.

use std::ops::Range as Place;

use crate::fault::{Wrong, wrong};
use crate::node::{Cond, Node, Op, Quotient};
use crate::range::Range;
use crate::rational::Rational;
use crate::tree::Compare;
use crate::unit::Unit;
use crate::value::{BOUND, Number, agree, digits, fit};

/// Bits behind the point that a quotient has at most, and at least.
const FRACTION: std::ops::RangeInclusive<u32> = 8..=32;

/// Two words of one scale, with the offset of the first value.
struct Common {
    a: (Node, Range),
    b: (Node, Range),
    scale: Rational,
    offset: Rational,
    unit: Unit,
}

fn common(at: &Place<usize>, a: Number, b: Number) -> Result<Common, Wrong> {
    let (a, b) = agree(at, a, b)?;
    let positive = |scale: Rational| if scale.sign() < 0 { scale.neg() } else { scale };
    let step = match (a.is_constant(), b.is_constant()) {
        (true, true) => Rational::ONE,
        (true, false) => positive(b.scale),
        (false, true) => positive(a.scale),
        (false, false) => digits(at, a.scale.common(b.scale))?,
    };
    let apart = digits(at, digits(at, b.offset.sub(a.offset))?.div(step))?;
    let scale = digits(at, step.div(Rational::whole(apart.den())))?;
    let factor = |number: &Number| match number.is_constant() {
        true => Ok(0),
        false => digits(at, number.scale.div(scale).and_then(Rational::to_whole)),
    };
    let sum = digits(
        at,
        apart
            .mul(Rational::whole(apart.den()))
            .and_then(Rational::to_whole),
    )?;
    let (offset, unit) = (a.offset, a.unit.clone());
    let (by_a, by_b) = (factor(&a)?, factor(&b)?);
    Ok(Common {
        a: a.words(at, by_a, 0)?,
        b: b.words(at, by_b, sum)?,
        scale,
        offset,
        unit,
    })
}

/// The lesser of two values, or the greater.
pub fn extreme(at: &Place<usize>, a: Number, b: Number, is_max: bool) -> Result<Number, Wrong> {
    let Common {
        a,
        b,
        scale,
        offset,
        unit,
    } = common(at, a, b)?;
    let signed = comparable(at, a.1, b.1)?;
    let (op, range) = match is_max {
        true => (Op::Max { signed }, a.1.max(b.1)),
        false => (Op::Min { signed }, a.1.min(b.1)),
    };
    let node = Node::op(op, a.0, b.0);
    Ok(Number {
        node,
        range,
        scale,
        offset,
        unit,
    })
}

pub fn abs(at: &Place<usize>, a: Number) -> Result<Number, Wrong> {
    let a = match a.is_constant() {
        true if a.offset.sign() < 0 => return Ok(a.negative()),
        true => return Ok(a),
        false => a.level(at)?.rising(at)?,
    };
    if a.range.lo >= 0 {
        return Ok(a);
    }
    let range = Range::new(0, a.range.magnitude());
    let (node, range) = fit(at, Node::Abs(a.node.into()), range)?;
    Ok(Number { node, range, ..a })
}

pub fn sum(at: &Place<usize>, a: Number, b: Number) -> Result<Number, Wrong> {
    let (a, b) = agree(at, a, b)?;
    let offset = digits(at, a.offset.add(b.offset))?;
    if b.is_constant() {
        return Ok(Number { offset, ..a });
    }
    if a.is_constant() {
        return Ok(Number { offset, ..b });
    }
    let scale = digits(at, a.scale.common(b.scale))?;
    let factor = |number: &Number| digits(at, number.scale.div(scale).and_then(Rational::to_whole));
    let (by_a, by_b) = (factor(&a)?, factor(&b)?);
    let unit = a.unit.clone();
    let (a, b) = (a.words(at, by_a.abs(), 0)?, b.words(at, by_b.abs(), 0)?);
    let (node, range) = match (by_a > 0, by_b > 0) {
        (true, true) => (Node::op(Op::Add, a.0, b.0), a.1.add(b.1)),
        (true, false) => (Node::op(Op::Sub, a.0, b.0), a.1.sub(b.1)),
        (false, true) => (Node::op(Op::Sub, b.0, a.0), b.1.sub(a.1)),
        (false, false) => {
            let sum = Node::op(Op::Add, a.0, b.0);
            let range = a.1.add(b.1);
            let (sum, range) = fit(at, sum, range)?;
            (Node::op(Op::Sub, Node::Const(0), sum), range.times(-1))
        }
    };
    let (node, range) = fit(at, node, range)?;
    Ok(Number {
        node,
        range,
        scale,
        offset,
        unit,
    })
}

pub fn product(at: &Place<usize>, a: Number, b: Number) -> Result<Number, Wrong> {
    let (unit, factor) = digits(at, a.unit.combine(&b.unit, false))?;
    let (a, b) = if a.is_constant() { (b, a) } else { (a, b) };
    if b.is_constant() {
        let by = digits(at, b.offset.mul(factor))?;
        return a.scaled(at, by, unit);
    }
    let (a, b) = (a.level(at)?, b.level(at)?);
    let scale = digits(at, digits(at, a.scale.mul(b.scale))?.mul(factor))?;
    let (node, range) = fit(at, Node::op(Op::Mul, a.node, b.node), a.range.mul(b.range))?;
    Ok(Number {
        node,
        range,
        scale,
        offset: Rational::ZERO,
        unit,
    })
}

/// What a quotient is where its divisor is 0: nothing, if that must not be; else this.
pub fn quotient(
    at: &Place<usize>,
    a: Number,
    b: Number,
    of_zero: Option<Number>,
) -> Result<Number, Wrong> {
    let (unit, factor) = digits(at, a.unit.combine(&b.unit, true))?;
    if b.is_constant() {
        let by = factor.div(b.offset);
        let by = by.ok_or_else(|| wrong(at, "the divisor is 0", "divide by another number"))?;
        return a.scaled(at, by, unit);
    }
    let (a, b) = (a.level(at)?, b.level(at)?);
    if of_zero.is_none() && b.range.has(0) {
        return Err(wrong(
            at,
            "the divisor may be 0",
            "say what the quotient is then, as in A / B else 0",
        ));
    }
    let room = 63_u32.saturating_sub(Range::new(0, a.range.magnitude()).bits());
    let bits = room.min(*FRACTION.end());
    if bits < *FRACTION.start() {
        return Err(wrong(
            at,
            format!("the dividend may be so large that {bits} bits are left for a fraction"),
            BOUND,
        ));
    }
    let shift = Rational::whole(1 << bits);
    let scale = digits(
        at,
        a.scale
            .div(b.scale)
            .and_then(|scale| scale.mul(factor)?.div(shift)),
    )?;
    let result = Number {
        node: Node::Const(0),
        range: Range::ZERO,
        scale,
        offset: Rational::ZERO,
        unit,
    };
    let of_zero = match of_zero {
        Some(value) if b.range.has(0) => {
            let (_, value) = agree(
                at,
                Number {
                    range: Range::only(1),
                    ..result.clone()
                },
                value,
            )?;
            let word = value
                .is_constant()
                .then(|| value.offset.div(scale)?.to_whole())
                .flatten();
            let word = word.filter(|word| Range::only(*word).is_signed());
            Some(word.ok_or_else(|| {
                wrong(
                    at,
                    "the number after `else` is not one that the quotient can have",
                    "write else 0",
                )
            })?)
        }
        _ => None,
    };
    let range = a.range.times(1 << bits).div(b.range);
    let range = of_zero.map_or(range, |word| range.with(Range::only(word)));
    let node = Node::Quotient(Box::new(Quotient {
        signed: (a.range.lo < 0, b.range.lo < 0),
        dividend: Node::op(Op::Left, a.node, Node::Const(i128::from(bits))),
        divisor: b.node,
        of_zero,
    }));
    let (node, range) = fit(at, node, range)?;
    Ok(Number {
        node,
        range,
        ..result
    })
}

/// How two words are compared.
fn comparable(at: &Place<usize>, a: Range, b: Range) -> Result<bool, Wrong> {
    match (
        a.is_signed() && b.is_signed(),
        a.is_unsigned() && b.is_unsigned(),
    ) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(wrong(
            at,
            "one side may be negative, and the other needs all 64 bits",
            BOUND,
        )),
    }
}

/// Numbers that were written become thresholds of words, rounded so that nothing changes.
pub fn compare(at: &Place<usize>, compare: Compare, a: Number, b: Number) -> Result<Cond, Wrong> {
    let (a, b) = agree(at, a, b)?;
    let (compare, a, b) = match a.is_constant() && !b.is_constant() {
        true => (compare.turned(), b, a),
        false => (compare, a, b),
    };
    let turned = |scale: Rational| {
        if scale.sign() < 0 {
            compare.turned()
        } else {
            compare
        }
    };
    let apart = digits(at, b.offset.sub(a.offset))?;
    if b.is_constant() {
        if a.is_constant() {
            return Ok(threshold(compare, Node::Const(0), Range::ZERO, apart));
        }
        let number = digits(at, apart.div(a.scale))?;
        return Ok(threshold(turned(a.scale), a.node, a.range, number));
    }
    if a.scale == b.scale && apart == Rational::ZERO {
        let signed = comparable(at, a.range, b.range)?;
        return Ok(Cond::Compare(turned(a.scale), signed, a.node, b.node));
    }
    let step = digits(at, a.scale.common(b.scale))?;
    let factor = |scale: Rational| digits(at, scale.div(step).and_then(Rational::to_whole));
    let (by_a, by_b) = (factor(a.scale)?, factor(b.scale)?);
    let (a, b) = (a.words(at, by_a, 0)?, b.words(at, by_b, 0)?);
    let (node, range) = fit(at, Node::op(Op::Sub, a.0, b.0), a.1.sub(b.1))?;
    Ok(threshold(
        compare,
        node,
        range,
        digits(at, apart.div(step))?,
    ))
}

fn threshold(compare: Compare, node: Node, range: Range, number: Rational) -> Cond {
    let whole = match (compare, number.to_whole()) {
        (_, Some(whole)) => whole,
        (Compare::Equal, None) => return Cond::Const(false),
        (Compare::NotEqual, None) => return Cond::Const(true),
        (Compare::Greater | Compare::LessOrEqual, None) => number.floor(),
        (Compare::Less | Compare::GreaterOrEqual, None) => number.ceil(),
    };
    Cond::threshold(compare, node, range, whole)
}
