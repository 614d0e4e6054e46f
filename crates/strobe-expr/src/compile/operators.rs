// SPDX-License-Identifier: MIT OR Apache-2.0
//! What operators make of the values of their sides.

use std::ops::Range as Place;

use crate::arithmetic;
use crate::fault::{Wrong, wrong};
use crate::node::{Node, Op};
use crate::range::Range;
use crate::tree::{Binary, Unary};
use crate::value::{self, Number};

use super::Value;

/// A value, and where it stands.
type Side<'e> = (&'e Place<usize>, Value);

pub(super) fn unary(at: &Place<usize>, operator: Unary, inner: Side<'_>) -> Result<Value, Wrong> {
    let number = match operator {
        Unary::Not => return Ok(Value::Truth(inner.1.truth(inner.0)?.negated())),
        Unary::Minus => inner.1.number().negative(),
        Unary::Complement => {
            let (node, range) = word(inner)?;
            let range = Range::new(-1 - range.lo, -1 - range.hi);
            let (node, range) = value::fit(at, Node::op(Op::Xor, node, Node::Const(-1)), range)?;
            Number::plain(node, range)
        }
    };
    Ok(Value::Number(number))
}

pub(super) fn join(
    at: &Place<usize>,
    operator: Binary,
    sides: [Side<'_>; 2],
) -> Result<Value, Wrong> {
    let [a, b] = sides;
    let number = match operator {
        Binary::All => return Ok(Value::Truth(a.1.truth(a.0)?.and(b.1.truth(b.0)?))),
        Binary::Any => return Ok(Value::Truth(a.1.truth(a.0)?.or(b.1.truth(b.0)?))),
        Binary::Compare(compare) => {
            let cond = arithmetic::compare(at, compare, a.1.number(), b.1.number())?;
            return Ok(Value::Truth(cond));
        }
        Binary::Plus => arithmetic::sum(at, a.1.number(), b.1.number())?,
        Binary::Minus => arithmetic::sum(at, a.1.number(), b.1.number().negative())?,
        Binary::Times => arithmetic::product(at, a.1.number(), b.1.number())?,
        Binary::Left | Binary::Right => shift(at, operator == Binary::Left, a, b)?,
        Binary::Rest => rest(a, b)?,
        Binary::And | Binary::Or | Binary::Xor => {
            let (a, b) = (word(a)?, word(b)?);
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

fn word((at, value): Side<'_>) -> Result<(Node, Range), Wrong> {
    value.number().word(at)
}

fn shift(at: &Place<usize>, is_left: bool, a: Side<'_>, b: Side<'_>) -> Result<Number, Wrong> {
    let (node, range) = word(a)?;
    let by = (b.1.number().to_whole())
        .and_then(|by| u32::try_from(by).ok())
        .filter(|by| *by < 64);
    let by = by.ok_or_else(|| {
        wrong(
            b.0,
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

fn rest(a: Side<'_>, b: Side<'_>) -> Result<Number, Wrong> {
    let (a_at, b_at) = (a.0, b.0);
    let (dividend, divisor) = (word(a)?, word(b)?);
    if divisor.1.lo <= 0 {
        return Err(wrong(
            b_at,
            "the divisor may be 0, or negative",
            "divide by a value that is always greater, as in max(X, 1)",
        ));
    }
    if dividend.1.lo < 0 {
        return Err(wrong(
            a_at,
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
