// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the generator's expressions are, in exact fractions; and programs of them, whose rows are so known.
#![allow(clippy::unwrap_used)]

use strobe_expr::ProgramText;

use super::generator::{CHANNELS, E, Fraction, Random, show};

/// Rows of a program.
pub const ROWS: usize = 8;

/// A program, the channels' words of some rows, and what is so in each of them.
pub struct Written {
    /// The number, whether the condition is true, and how the number compares with that of the last row.
    pub text: ProgramText,
    pub rows: Vec<Row>,
}

pub struct Row {
    pub words: [u64; CHANNELS.len()],
    pub number: Fraction,
    pub truth: bool,
    pub is_kept: bool,
}

impl Written {
    /// The program of this seed; `None` if it is beyond the fractions, which have an end and do not go round.
    pub fn new(seed: u64) -> Option<Written> {
        let mut random = Random(seed);
        let whole = random.below(2) == 0;
        let mut number = random.number(1 + (seed % 3) as u32, whole);
        let mut truth = random.truth(2);
        if has_wide_diff(&number) || has_wide_diff(&truth) {
            return None;
        }
        let every = [None, None, Some(2), Some(3)][random.below(4)];
        let has_keep = random.below(2) == 0;
        let words: Vec<_> = (0..ROWS)
            .map(|_| CHANNELS.map(|about| random.word(about)))
            .collect();
        let (mut rows, mut fresh, mut good) = (Vec::new(), true, 0);
        for words in words {
            // Both, for what they keep.
            let (number, truth) = (
                eval(&mut number, &words, fresh),
                eval(&mut truth, &words, fresh),
            );
            let (number, truth) = (number?, truth?.0 != 0);
            let passes = !has_keep || truth;
            good += u64::from(passes);
            fresh = passes && good % every.unwrap_or(1) == 0;
            rows.push(Row {
                words: words.map(|word| word as u64),
                number,
                truth,
                is_kept: fresh,
            });
        }
        let last = rows[ROWS - 1].number;
        // An exact value to be compared with.
        let exactly = format!("({} / {})", last.0, last.1);
        let text = ProgramText {
            derive: vec![
                format!("n = {}", show(&number)),
                format!("t = {}", show(&truth)),
                format!("e = n == {exactly}"),
                format!("g = n >= {exactly}"),
                format!("l = n < {exactly}"),
            ],
            keep: if has_keep { vec!["t".into()] } else { vec![] },
            every,
            ..ProgramText::default()
        };
        Some(Written { text, rows })
    }
}

/// Two sides, and the program of their quotient and of a mean of the first.
pub fn quotient(random: &mut Random) -> (E, E, ProgramText) {
    let (a, b) = (random.number(1, false), random.number(1, false));
    let text = ProgramText {
        derive: vec![
            format!("q = {} / {} else 0", show(&a), show(&b)),
            format!("m = mean({} since emit)", show(&a)),
        ],
        keep: vec!["a.i8 > 50".into()],
        ..ProgramText::default()
    };
    (a, b, text)
}

/// The value of a row. `fresh`: the row before was kept.
pub fn eval(e: &mut E, row: &[i128], fresh: bool) -> Option<Fraction> {
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
pub fn has_wide_diff(e: &E) -> bool {
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
