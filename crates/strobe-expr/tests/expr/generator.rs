// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expressions by chance: the text of each, and what it needs to be evaluated in another way.
#![allow(clippy::unwrap_used)]

use strobe_expr::Column;

/// An exact fraction; a result of `None` does not fit the test's arithmetic, and says nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fraction(pub i128, pub i128);

pub fn fraction(num: i128, den: i128) -> Option<Fraction> {
    let (mut a, mut b) = (num.unsigned_abs(), den.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let by = i128::try_from(a).ok()?.max(1) * den.signum();
    (den != 0).then(|| Fraction(num / by, den / by))
}

impl Fraction {
    pub fn add(self, o: Fraction) -> Option<Fraction> {
        let left = self.0.checked_mul(o.1)?;
        fraction(
            left.checked_add(o.0.checked_mul(self.1)?)?,
            self.1.checked_mul(o.1)?,
        )
    }
    pub fn mul(self, o: Fraction) -> Option<Fraction> {
        let (a, b) = (fraction(self.0, o.1)?, fraction(o.0, self.1)?);
        fraction(a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?)
    }
    pub fn less(self, o: Fraction) -> Option<bool> {
        Some(self.add(Fraction(-o.0, o.1))?.0 < 0)
    }
    pub fn float(self) -> f64 {
        self.0 as f64 / self.1 as f64
    }
}

/// Name, sign, bits, scale, offset; the scale and the offset once more as fractions.
pub type About = (&'static str, bool, u32, f64, f64, Fraction, Fraction);
pub const CHANNELS: [About; 7] = [
    ("a.i8", true, 8, 1.0, 0.0, Fraction(1, 1), Fraction(0, 1)),
    ("a.u12", false, 12, 1.0, 0.0, Fraction(1, 1), Fraction(0, 1)),
    ("a.i32", true, 32, 1.0, 0.0, Fraction(1, 1), Fraction(0, 1)),
    ("a.u64", false, 64, 1.0, 0.0, Fraction(1, 1), Fraction(0, 1)),
    (
        "b.volt",
        true,
        16,
        0.0025,
        -0.5,
        Fraction(1, 400),
        Fraction(-1, 2),
    ),
    (
        "b.falls",
        false,
        12,
        -0.5,
        1000.0,
        Fraction(-1, 2),
        Fraction(1000, 1),
    ),
    (
        "b.mm",
        true,
        24,
        0.001,
        0.0,
        Fraction(1, 1000),
        Fraction(0, 1),
    ),
];
pub const WHOLE: usize = 4;

/// An expression, with what it keeps from row to row.
#[derive(Debug, Clone)]
pub enum E {
    Channel(usize),
    Number(Fraction),
    Two(&'static str, Box<E>, Box<E>),
    One(&'static str, Box<E>),
    Call(&'static str, Vec<E>),
    Diff(Box<E>, Option<Fraction>),
    Window(&'static str, Box<E>, i128, Vec<Fraction>),
    Since(&'static str, Box<E>, Vec<Fraction>),
}

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Any number, or whole ones only.
    pub fn number(&mut self, depth: u32, whole: bool) -> E {
        if depth == 0 || self.below(8) == 0 {
            return match self.below(5) {
                0 if whole => E::Number(Fraction(self.below(300) as i128, 1)),
                0 => E::Number(fraction(self.below(4000) as i128, 8).unwrap()),
                // Seldom the one of 64 bits: with it, most of what is computed may overflow.
                _ => match self.below(if whole { WHOLE } else { CHANNELS.len() }) {
                    3 if self.below(6) != 0 => E::Channel(1),
                    n => E::Channel(n),
                },
            };
        }
        let depth = depth - 1;
        let other = |r: &mut Random| Box::new(r.number(depth, whole));
        match self.below(if whole { 14 } else { 9 }) {
            0 | 1 => E::Two(self.of(&["+", "-"]), other(self), other(self)),
            2 => E::Two("*", other(self), other(self)),
            3 => E::One("-", other(self)),
            4 => {
                let count = 2 + self.below(2);
                E::Call(
                    self.of(&["min", "max"]),
                    (0..count).map(|_| *other(self)).collect(),
                )
            }
            5 => E::Call("abs", vec![*other(self)]),
            6 => {
                let low = self.below(50) as i128;
                let bounds =
                    [low, low + 1 + self.below(500) as i128].map(|n| E::Number(Fraction(n, 1)));
                E::Call("clamp", [vec![*other(self)], bounds.into()].concat())
            }
            7 => match self.below(2) {
                0 => E::Diff(other(self), None),
                _ => E::Window(
                    self.of(&["sum", if whole { "sum" } else { "mean" }]),
                    other(self),
                    2 + self.below(5) as i128,
                    Vec::new(),
                ),
            },
            8 => {
                let known = ["min", "max", "first", "last", "spread", "sum"];
                E::Since(self.of(&known), other(self), Vec::new())
            }
            9 => E::One("~", other(self)),
            10 | 11 => E::Two(self.of(&["&", "|", "^"]), other(self), other(self)),
            12 => {
                let by = E::Number(Fraction(self.below(9) as i128, 1));
                E::Two(self.of(&["<<", ">>"]), other(self), by.into())
            }
            _ => E::Two(
                "%",
                E::Call("abs", vec![*other(self)]).into(),
                E::Number(Fraction(1 + self.below(99) as i128, 1)).into(),
            ),
        }
    }

    pub fn truth(&mut self, depth: u32) -> E {
        if depth == 0 || self.below(3) == 0 {
            let whole = self.below(2) == 0;
            let mut side = || Box::new(self.number(2, whole));
            let (a, b) = (side(), side());
            return E::Two(self.of(&["<", "<=", ">", ">=", "==", "!="]), a, b);
        }
        let mut side = || Box::new(self.truth(depth - 1));
        let (a, b) = (side(), side());
        match self.below(4) {
            0 => E::One("!", a),
            n => E::Two(["&&", "||", "&&"][n - 1], a, b),
        }
    }

    /// A word of a channel, often at an end of what it may be.
    pub fn word(&mut self, (_, signed, bits, ..): About) -> i128 {
        let (lo, hi) = match signed {
            true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            false => (0, (1_i128 << bits) - 1),
        };
        let random = lo + i128::from(self.next()) % (hi - lo + 1);
        self.of(&[lo, lo + 1, hi, hi - 1, 0, 1, random, random, random, random])
            .clamp(lo, hi)
    }
}

pub fn show(e: &E) -> String {
    match e {
        E::Channel(n) => CHANNELS[*n].0.to_owned(),
        E::Number(Fraction(n, 1)) => n.to_string(),
        E::Number(f) => f.float().to_string(),
        E::Two(sign, a, b) => format!("({} {sign} {})", show(a), show(b)),
        E::One(sign, a) => format!("{sign}({})", show(a)),
        E::Call(name, args) => format!(
            "{name}({})",
            args.iter().map(show).collect::<Vec<_>>().join(", ")
        ),
        E::Diff(a, _) => format!("diff({})", show(a)),
        E::Window(name, a, n, _) => format!("{name}({}, {n})", show(a)),
        E::Since(name, a, _) => format!("{name}({} since emit)", show(a)),
    }
}

pub fn columns() -> Vec<Column> {
    let column = |(name, signed, bits, scale, offset, ..): About| Column {
        bits,
        scale,
        offset,
        ..if signed {
            Column::signed(name)
        } else {
            Column::unsigned(name)
        }
    };
    CHANNELS.map(column).into()
}
