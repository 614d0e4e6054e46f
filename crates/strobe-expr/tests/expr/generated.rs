// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a generator writes, against a direct evaluation of the same expressions in exact fractions. `STROBE_FUZZ`
//! says how many.
#![allow(clippy::unwrap_used)]

use crate::common::{Twice, text, value};
use strobe_expr::Column;

const ROWS: usize = 8;

/// An exact fraction; a result of `None` does not fit the test's arithmetic, and says nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fraction(i128, i128);

fn fraction(num: i128, den: i128) -> Option<Fraction> {
    let (mut a, mut b) = (num.unsigned_abs(), den.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let by = i128::try_from(a).ok()?.max(1) * den.signum();
    (den != 0).then(|| Fraction(num / by, den / by))
}

impl Fraction {
    fn add(self, o: Fraction) -> Option<Fraction> {
        let left = self.0.checked_mul(o.1)?;
        fraction(
            left.checked_add(o.0.checked_mul(self.1)?)?,
            self.1.checked_mul(o.1)?,
        )
    }
    fn mul(self, o: Fraction) -> Option<Fraction> {
        let (a, b) = (fraction(self.0, o.1)?, fraction(o.0, self.1)?);
        fraction(a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?)
    }
    fn less(self, o: Fraction) -> Option<bool> {
        Some(self.add(Fraction(-o.0, o.1))?.0 < 0)
    }
    fn float(self) -> f64 {
        self.0 as f64 / self.1 as f64
    }
}

/// Name, sign, bits, scale, offset; the scale and the offset once more as fractions.
type About = (&'static str, bool, u32, f64, f64, Fraction, Fraction);
const CHANNELS: [About; 7] = [
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
const WHOLE: usize = 4;

/// An expression, with what it keeps from row to row.
#[derive(Debug, Clone)]
enum E {
    Channel(usize),
    Number(Fraction),
    Two(&'static str, Box<E>, Box<E>),
    One(&'static str, Box<E>),
    Call(&'static str, Vec<E>),
    Diff(Box<E>, Option<Fraction>),
    Window(&'static str, Box<E>, i128, Vec<Fraction>),
    Since(&'static str, Box<E>, Vec<Fraction>),
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Any number, or whole ones only.
    fn number(&mut self, depth: u32, whole: bool) -> E {
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

    fn truth(&mut self, depth: u32) -> E {
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
    fn word(&mut self, (_, signed, bits, ..): About) -> i128 {
        let (lo, hi) = match signed {
            true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            false => (0, (1_i128 << bits) - 1),
        };
        let random = lo + i128::from(self.next()) % (hi - lo + 1);
        self.of(&[lo, lo + 1, hi, hi - 1, 0, 1, random, random, random, random])
            .clamp(lo, hi)
    }
}

fn show(e: &E) -> String {
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

/// The value of a row. `fresh`: the row before was kept.
fn eval(e: &mut E, row: &[i128], fresh: bool) -> Option<Fraction> {
    let truth = |is: bool| Fraction(i128::from(is), 1);
    let minus = |a: Fraction, b: Fraction| a.add(Fraction(-b.0, b.1));
    Some(match e {
        E::Channel(n) => {
            let (.., scale, offset) = CHANNELS[*n];
            Fraction(row[*n], 1).mul(scale)?.add(offset)?
        }
        E::Number(number) => *number,
        E::One(sign, a) => {
            let a = eval(a, row, fresh)?;
            match *sign {
                "-" => Fraction(-a.0, a.1),
                "~" => Fraction(-1 - a.0, 1),
                _ => truth(a.0 == 0),
            }
        }
        E::Two(sign, a, b) => {
            // Both sides, for what they keep.
            let (a, b) = (eval(a, row, fresh), eval(b, row, fresh));
            let (a, b) = (a?, b?);
            match *sign {
                "+" => a.add(b)?,
                "-" => minus(a, b)?,
                "*" => a.mul(b)?,
                "&" => Fraction(a.0 & b.0, 1),
                "|" => Fraction(a.0 | b.0, 1),
                "^" => Fraction(a.0 ^ b.0, 1),
                "<<" => Fraction(a.0 << b.0, 1),
                ">>" => Fraction(a.0 >> b.0, 1),
                "%" => Fraction(a.0 % b.0, 1),
                "<" => truth(a.less(b)?),
                "<=" => truth(!b.less(a)?),
                ">" => truth(b.less(a)?),
                ">=" => truth(!a.less(b)?),
                "==" => truth(a == b),
                "!=" => truth(a != b),
                "&&" => truth(a.0 != 0 && b.0 != 0),
                _ => truth(a.0 != 0 || b.0 != 0),
            }
        }
        E::Call(name, args) => {
            let args: Vec<_> = args.iter_mut().map(|arg| eval(arg, row, fresh)).collect();
            let args: Vec<Fraction> = args.into_iter().collect::<Option<_>>()?;
            let least = |a: Fraction, b: Fraction| Some(if a.less(b)? { a } else { b });
            let most = |a: Fraction, b: Fraction| Some(if a.less(b)? { b } else { a });
            match *name {
                "abs" => Fraction(args[0].0.abs(), args[0].1),
                "clamp" => least(most(args[0], args[1])?, args[2])?,
                "min" => args[1..].iter().try_fold(args[0], |a, b| least(a, *b))?,
                _ => args[1..].iter().try_fold(args[0], |a, b| most(a, *b))?,
            }
        }
        E::Diff(a, before) => {
            let now = eval(a, row, fresh)?;
            minus(now, before.replace(now).unwrap_or(now))?
        }
        E::Window(name, a, n, rows) => {
            let now = eval(a, row, fresh)?;
            if rows.is_empty() {
                rows.resize(*n as usize, now);
            }
            rows.remove(0);
            rows.push(now);
            let sum = rows.iter().try_fold(Fraction(0, 1), |a, b| a.add(*b))?;
            if *name == "mean" {
                sum.mul(Fraction(1, *n))?
            } else {
                sum
            }
        }
        E::Since(name, a, rows) => {
            let now = eval(a, row, fresh)?;
            if fresh {
                rows.clear();
            }
            rows.push(now);
            let mut sorted = rows.clone();
            sorted.sort_by(|a, b| {
                if a == b {
                    std::cmp::Ordering::Equal
                } else if a.less(*b).unwrap() {
                    std::cmp::Ordering::Less
                } else {
                    std::cmp::Ordering::Greater
                }
            });
            let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
            match *name {
                "min" => least,
                "max" => most,
                "first" => rows[0],
                "last" => now,
                "spread" => minus(most, least)?,
                _ => rows.iter().try_fold(Fraction(0, 1), |a, b| a.add(*b))?,
            }
        }
    })
}

/// What a `diff` goes round by, as its words do: the reference has no such thing.
fn has_wide_diff(e: &E) -> bool {
    fn any(e: &E, is: &dyn Fn(&E) -> bool) -> bool {
        is(e)
            || match e {
                E::Channel(_) | E::Number(_) => false,
                E::Two(_, a, b) => any(a, is) || any(b, is),
                E::One(_, a) | E::Diff(a, _) | E::Window(_, a, ..) | E::Since(_, a, _) => {
                    any(a, is)
                }
                E::Call(_, args) => args.iter().any(|arg| any(arg, is)),
            }
    }
    any(
        e,
        &|e| matches!(e, E::Diff(inner, _) if any(inner, &|e| matches!(e, E::Channel(2 | 3) | E::Two("*" | "<<", ..) | E::Window(..) | E::Since("sum", ..)))),
    )
}

fn columns() -> Vec<Column> {
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

#[derive(Debug, Default)]
struct Count {
    accepted: u64,
    refused: u64,
    exact: u64,
    rows: u64,
    kept: u64,
}

#[test]
fn a_program_does_what_its_expressions_say_or_is_refused() {
    let said = std::env::var("STROBE_FUZZ").ok();
    let programs = said.and_then(|said| said.parse().ok()).unwrap_or(20_000);
    let mut count = Count::default();
    for seed in 0..programs {
        one(seed, &mut count);
    }
    println!("{programs} programs: {count:?}");
    assert!(
        count.accepted > programs / 3 && count.refused > programs / 50,
        "{count:?}"
    );
    assert!(
        count.exact > programs && count.kept > count.rows / 20,
        "{count:?}"
    );
}

fn one(seed: u64, count: &mut Count) {
    let mut random = Random(seed);
    let whole = random.below(2) == 0;
    let mut number = random.number(1 + (seed % 3) as u32, whole);
    let mut truth = random.truth(2);
    if has_wide_diff(&number) || has_wide_diff(&truth) {
        return;
    }
    let every = [None, None, Some(2), Some(3)][random.below(4)];
    let has_keep = random.below(2) == 0;
    let rows: Vec<Vec<i128>> = (0..ROWS)
        .map(|_| CHANNELS.map(|about| random.word(about)).into())
        .collect();
    // What it should be, and with it the exact value of the last row for comparisons with it.
    let (mut expected, mut fresh, mut good) = (Vec::new(), true, 0);
    for row in &rows {
        let found = (eval(&mut number, row, fresh), eval(&mut truth, row, fresh));
        let (Some(number), Some(truth)) = found else {
            return;
        };
        let passes = !has_keep || truth.0 != 0;
        good += u64::from(passes);
        fresh = passes && good % every.unwrap_or(1) == 0;
        expected.push((number, truth.0 != 0, fresh));
    }
    let last = expected[ROWS - 1].0;
    let source = show(&number);
    let exactly = format!("({} / {})", last.0, last.1);
    let derive = [
        format!("n = {source}"),
        format!("t = {}", show(&truth)),
        format!("e = n == {exactly}"),
        format!("g = n >= {exactly}"),
        format!("l = n < {exactly}"),
    ];
    let derive: Vec<&str> = derive.iter().map(String::as_str).collect();
    let keep: &[&str] = if has_keep { &["t"] } else { &[] };
    let program = match Twice::new(&text(&derive, keep, every), &columns()) {
        Ok(program) => program,
        Err(fault) => {
            let known = [
                "may overflow",
                "does not change",
                "needs all 64 bits",
                "too many digits",
                "always",
                "number of values in the sum is not known",
                "more values at once",
                "is complete only in kept rows",
                "may be negative",
            ];
            assert!(
                known.iter().any(|known| fault.reason.contains(known)),
                "{seed}: {fault}"
            );
            count.refused += 1;
            return;
        }
    };
    count.accepted += 1;
    let mut program = program;
    for (row, (number, truth, kept)) in rows.iter().zip(expected) {
        let words: Vec<u64> = row.iter().map(|word| *word as u64).collect();
        let (words, is_kept) = program.run(&words);
        let about = || {
            format!("seed {seed}, {derive:?} keep {keep:?} every {every:?}, row {row:?}: {words:?}")
        };
        assert_eq!(is_kept, kept, "{}", about());
        count.rows += 1;
        if !is_kept && !has_keep {
            // In the middle of a group there is no mean of it.
            continue;
        }
        let derived = program.program.derived().iter().zip(&words);
        let values: Vec<f64> = derived.map(|(column, word)| value(column, *word)).collect();
        let found = values[0];
        let expected = number.float();
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{found} {expected} {}",
            about()
        );
        // Nothing is rounded: it compares as the exact value does.
        let is_less = number.less(last).unwrap();
        let truths = [truth, number == last, !is_less, is_less].map(|is| f64::from(u8::from(is)));
        assert_eq!(values[1..], truths, "{}", about());
        count.exact += 1;
        count.kept += u64::from(is_kept);
    }
}

#[test]
fn quotients_and_means_are_within_one_of_their_last_bit() {
    let mut checked = 0;
    for seed in 0..4000 {
        let mut random = Random(seed ^ 0x5EED);
        let mut side = || random.number(1, false);
        let (mut a, mut b) = (side(), side());
        if has_wide_diff(&a) || has_wide_diff(&b) {
            continue;
        }
        let derive = [
            format!("q = {} / {} else 0", show(&a), show(&b)),
            format!("m = mean({} since emit)", show(&a)),
        ];
        let derive: Vec<&str> = derive.iter().map(String::as_str).collect();
        let Ok(mut program) = Twice::new(&text(&derive, &["a.i8 > 50"], None), &columns()) else {
            continue;
        };
        let about = program.program.derived().to_vec();
        let (mut fresh, mut since) = (true, Vec::new());
        for _ in 0..ROWS {
            let row: Vec<i128> = CHANNELS.map(|about| random.word(about)).into();
            let (Some(a), Some(b)) = (eval(&mut a, &row, fresh), eval(&mut b, &row, fresh)) else {
                break;
            };
            if fresh {
                since.clear();
            }
            since.push(a);
            fresh = row[0] > 50;
            let words: Vec<u64> = row.iter().map(|word| *word as u64).collect();
            let (words, is_kept) = program.run(&words);
            assert_eq!(is_kept, fresh);
            let near = |column: usize, expected: f64| {
                let found = value(&about[column], words[column]);
                let off = (found - expected).abs();
                assert!(
                    off <= about[column].scale.abs() * 1.001 + 1e-9 * expected.abs(),
                    "seed {seed}: {derive:?}: {found} is not {expected}"
                );
            };
            near(0, if b.0 == 0 { 0.0 } else { a.float() / b.float() });
            let sum = since
                .iter()
                .try_fold(Fraction(0, 1), |a, b| a.add(*b))
                .unwrap();
            near(1, sum.float() / since.len() as f64);
            checked += 1;
        }
    }
    println!("{checked} rows");
    assert!(checked > 5000, "{checked}");
}
