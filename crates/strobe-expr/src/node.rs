// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed, in words: whole numbers that are known to fit.

use crate::range::Range;
use crate::tree::Compare;

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A number of 64 bits, with or without a sign.
    Const(i128),
    /// The value of this place in the row.
    Row(usize),
    /// A word of the state.
    State(usize),
    /// One of `length` words of the state, from `first` on: the one whose place another word of the state says.
    Element(Window),
    Op(Op, Box<Node>, Box<Node>),
    Abs(Box<Node>),
    /// A quotient cut off towards 0, and what it is where the divisor is 0.
    Quotient(Box<Quotient>),
    /// 1 if it is so, else 0.
    Truth(Box<Cond>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub index: usize,
    pub first: usize,
    /// A power of two, at least as many as the index counts.
    pub words: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Quotient {
    pub dividend: Node,
    pub divisor: Node,
    /// Whether the dividend, and the divisor, may be negative.
    pub signed: (bool, bool),
    /// `None`: the divisor is never 0.
    pub of_zero: Option<i128>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Add,
    Sub,
    Mul,
    /// Of a dividend and a divisor that are not negative; the divisor is not 0.
    Rest,
    And,
    Or,
    Xor,
    Left,
    Right,
    RightSigned,
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
}

/// Whether something is so.
#[derive(Debug, Clone, PartialEq)]
pub enum Cond {
    Const(bool),
    Compare(Compare, Signed, Node, Node),
    All(Box<Cond>, Box<Cond>),
    Any(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
}

/// How two words are compared.
pub type Signed = bool;

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Do {
    Row(usize, Node),
    State(usize, Node),
    Element(Window, Node),
    If(Cond, Vec<Do>, Vec<Do>),
    /// The end: whether the row is kept.
    Answer(bool),
}

impl Node {
    pub fn op(op: Op, left: Node, right: Node) -> Node {
        match (op, &left, &right) {
            (Op::Add, Node::Const(a), Node::Const(b)) => Node::Const(a + b),
            (Op::Mul, Node::Const(a), Node::Const(b)) => Node::Const(a * b),
            (Op::Add, Node::Const(0), _) | (Op::Mul, Node::Const(1), _) => right,
            (Op::Add | Op::Sub, _, Node::Const(0)) | (Op::Mul, _, Node::Const(1)) => left,
            (Op::Mul, Node::Const(0), _) | (Op::Mul, _, Node::Const(0)) => Node::Const(0),
            _ => Node::Op(op, left.into(), right.into()),
        }
    }

    /// Whether it depends on this word of the state.
    pub fn has_state(&self, word: usize) -> bool {
        match self {
            Node::Const(_) | Node::Row(_) => false,
            Node::State(place) => *place == word,
            Node::Element(window) => window.index == word,
            Node::Op(_, a, b) => a.has_state(word) || b.has_state(word),
            Node::Abs(inner) => inner.has_state(word),
            Node::Quotient(quotient) => {
                quotient.dividend.has_state(word) || quotient.divisor.has_state(word)
            }
            Node::Truth(cond) => cond.has_state(word),
        }
    }

    pub fn add(self, number: i128) -> Node {
        Node::op(Op::Add, self, Node::Const(number))
    }

    pub fn times(self, factor: i128) -> Node {
        Node::op(Op::Mul, self, Node::Const(factor))
    }
}

impl Cond {
    pub fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::Const(true), cond) | (cond, Cond::Const(true)) => cond,
            (Cond::Const(false), _) | (_, Cond::Const(false)) => Cond::Const(false),
            (a, b) => Cond::All(a.into(), b.into()),
        }
    }

    /// All of these, halved again and again: a tree of many is not deep.
    pub fn all(mut conds: Vec<Cond>) -> Cond {
        let more = conds.split_off(conds.len().div_ceil(2));
        match (conds.len(), more.len()) {
            (0, _) => Cond::Const(true),
            (1, 0) => conds.remove(0),
            _ => Cond::all(conds).and(Cond::all(more)),
        }
    }

    pub fn or(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::Const(false), cond) | (cond, Cond::Const(false)) => cond,
            (Cond::Const(true), _) | (_, Cond::Const(true)) => Cond::Const(true),
            (a, b) => Cond::Any(a.into(), b.into()),
        }
    }

    pub fn has_state(&self, word: usize) -> bool {
        match self {
            Cond::Const(_) => false,
            Cond::Compare(_, _, a, b) => a.has_state(word) || b.has_state(word),
            Cond::All(a, b) | Cond::Any(a, b) => a.has_state(word) || b.has_state(word),
            Cond::Not(inner) => inner.has_state(word),
        }
    }

    pub fn negated(self) -> Cond {
        match self {
            Cond::Const(is) => Cond::Const(!is),
            Cond::Compare(compare, signed, a, b) => Cond::Compare(compare.opposite(), signed, a, b),
            Cond::Not(cond) => *cond,
            cond => Cond::Not(cond.into()),
        }
    }

    /// A comparison of a word with a number; none if the word's range answers it.
    pub fn threshold(compare: Compare, node: Node, range: Range, number: i128) -> Cond {
        use Compare::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let known = match compare {
            Equal | NotEqual if !range.has(number) => Some(compare == NotEqual),
            Equal | NotEqual if range.lo == range.hi => Some(compare == Equal),
            GreaterOrEqual if number <= range.lo => Some(true),
            GreaterOrEqual if number > range.hi => Some(false),
            LessOrEqual if number >= range.hi => Some(true),
            LessOrEqual if number < range.lo => Some(false),
            Greater => {
                return Cond::threshold(GreaterOrEqual, node, range, number.saturating_add(1));
            }
            Less => return Cond::threshold(LessOrEqual, node, range, number.saturating_sub(1)),
            _ => None,
        };
        match known {
            Some(is) => Cond::Const(is),
            None => Cond::Compare(compare, range.is_signed(), node, Node::Const(number)),
        }
    }
}
