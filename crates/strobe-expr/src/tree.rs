// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was written, as a tree.

use std::ops::Range;

use crate::rational::Rational;

/// A part of an expression, and its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub at: Range<usize>,
    pub what: What,
    /// Parts on the longest way from here to what has no parts.
    pub height: usize,
}

impl Expr {
    /// What has no parts, or is a call.
    pub fn leaf(at: Range<usize>, what: What) -> Expr {
        let height = match &what {
            What::Call(call) => 1 + call.args.iter().map(|arg| arg.height).max().unwrap_or(0),
            _ => 0,
        };
        Expr { at, what, height }
    }

    pub fn unary(start: usize, operator: Unary, inner: Expr) -> Expr {
        Expr {
            at: start..inner.at.end,
            height: 1 + inner.height,
            what: What::Unary(operator, inner.into()),
        }
    }

    pub fn binary(operator: Binary, left: Expr, right: Expr) -> Expr {
        Expr {
            at: left.at.start..right.at.end,
            height: 1 + left.height.max(right.height),
            what: What::Binary(operator, left.into(), right.into()),
        }
    }

    pub fn quotient(left: Expr, right: Expr, instead: Option<Expr>) -> Expr {
        let last = instead.as_ref().unwrap_or(&right);
        Expr {
            at: left.at.start..last.at.end,
            height: 1 + left.height.max(right.height).max(last.height),
            what: What::Quotient(left.into(), right.into(), instead.map(Box::new)),
        }
    }

    /// Whether this is so of any part of it.
    pub fn any(&self, is: &dyn Fn(&Expr) -> bool) -> bool {
        is(self)
            || match &self.what {
                What::Number(..) | What::Name(_) => false,
                What::Unary(_, inner) => inner.any(is),
                What::Binary(_, a, b) => a.any(is) || b.any(is),
                What::Quotient(a, b, instead) => {
                    a.any(is) || b.any(is) || instead.iter().any(|expr| expr.any(is))
                }
                What::Call(call) => call.args.iter().any(|arg| arg.any(is)),
            }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A number, and the unit that follows it.
    Number(Rational, String),
    /// A channel, or a derived column.
    Name(String),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// A quotient, and what it is where the divisor is 0.
    Quotient(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    Call(Call),
}

/// `name(args)`, or `name(args since emit)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: Vec<Expr>,
    pub since_emit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    Minus,
    Not,
    Complement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Any,
    All,
    Compare(Compare),
    Or,
    Xor,
    And,
    Left,
    Right,
    Plus,
    Minus,
    Times,
    Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    /// The same with the sides exchanged.
    pub fn turned(self) -> Compare {
        match self {
            Compare::Less => Compare::Greater,
            Compare::LessOrEqual => Compare::GreaterOrEqual,
            Compare::Greater => Compare::Less,
            Compare::GreaterOrEqual => Compare::LessOrEqual,
            same => same,
        }
    }

    /// What is so if this is not.
    pub fn opposite(self) -> Compare {
        match self {
            Compare::Equal => Compare::NotEqual,
            Compare::NotEqual => Compare::Equal,
            Compare::Less => Compare::GreaterOrEqual,
            Compare::LessOrEqual => Compare::Greater,
            Compare::Greater => Compare::LessOrEqual,
            Compare::GreaterOrEqual => Compare::Less,
        }
    }
}

/// A derived column.
#[derive(Debug, Clone, PartialEq)]
pub struct Derive {
    pub name: String,
    pub name_at: Range<usize>,
    pub expr: Expr,
    /// The unit that it is wanted in.
    pub unit: Option<(String, Range<usize>)>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: String,
    pub name_at: Range<usize>,
    /// What it is at first.
    pub value: Expr,
    /// The channel whose unit, scale and range it has.
    pub like: Option<(String, Range<usize>)>,
}
