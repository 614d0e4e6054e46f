// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept from row to row: differences, means of some rows, and what was since the last row that was kept.
//!
//! All of it is brought up to date on each trigger, wherever in an expression it stands.

use std::ops::Range as Place;

use crate::fault::{Wrong, wrong};
use crate::node::{Cond, Do, Node, Op, Quotient, Window};
use crate::program::ProgramText;
use crate::range::Range;
use crate::rational::Rational;
use crate::tree::{Call, Compare, Expr, What};
use crate::value::{self, Number, digits};

use super::Compiler;
use super::functions::not_since;

/// So many rows are left out in sequence, at most, by a program that counts or adds them up: so it is known that sums
/// do not overflow.
const HELD_MAX: i128 = 1 << 31;
/// Rows of a mean or sum, at most.
const WINDOW_MAX: i128 = 1024;
/// Bits behind the point of a mean of rows whose number is not known before.
const FRACTION: i128 = 16;

/// The state of a program, and what is done in its course.
///
/// The first words are those of the tunables, in their order.
pub(crate) struct State {
    words: usize,
    /// The word that counts rows since the last one that was kept.
    held: usize,
    /// The word that is 1 from the second row on.
    pub(super) started: usize,
    pub(crate) does: Vec<Do>,
    /// Rows from one that is kept to the next, at most, and whether it is always as many.
    rows: (i128, bool),
    counts: bool,
    pub(super) has_started: bool,
}

impl State {
    pub(crate) fn new(text: &ProgramText) -> State {
        State {
            words: text.tunables.len() + 2,
            held: text.tunables.len(),
            started: text.tunables.len() + 1,
            does: Vec::new(),
            rows: match (text.keep.is_empty(), text.every) {
                (true, every) => (i128::from(every.unwrap_or(1)), true),
                (false, _) => (HELD_MAX, false),
            },
            counts: false,
            has_started: false,
        }
    }

    /// Rows since the last one that was kept, before this one.
    fn held(&self) -> Node {
        Node::State(self.held)
    }

    pub(super) fn take(&mut self, words: usize) -> usize {
        self.words += words;
        self.words - words
    }

    /// The state's words, and all that is done, with the decision at its end.
    pub(crate) fn finish(mut self, text: &ProgramText, keep: Cond) -> (usize, Vec<Do>) {
        if self.has_started {
            self.does.push(Do::State(self.started, Node::Const(1)));
        }
        if !text.skips() {
            self.does.push(Do::Answer(true));
            return (self.words, self.does);
        }
        let kept = vec![Do::State(self.held, Node::Const(0)), Do::Answer(true)];
        let at_least = |node, number: i128| {
            Cond::Compare(Compare::GreaterOrEqual, false, node, Node::Const(number))
        };
        let every = text.every.map(i128::from);
        match (text.keep.is_empty(), every) {
            (true, every) => {
                let is_nth = at_least(self.held(), every.unwrap_or(1) - 1);
                self.does.push(Do::If(is_nth, kept, Vec::new()));
            }
            (false, None) => self.does.push(Do::If(keep, kept, Vec::new())),
            (false, Some(every)) => {
                let good = self.take(1);
                let one_more = vec![Do::State(good, Node::State(good).add(1))];
                let mut nth = vec![Do::State(good, Node::Const(0))];
                nth.extend(kept);
                let is_nth = Do::If(at_least(Node::State(good), every - 1), nth, one_more);
                self.does.push(Do::If(keep, vec![is_nth], Vec::new()));
            }
        }
        if self.counts && !self.rows.1 {
            let kept = vec![Do::State(self.held, Node::Const(0)), Do::Answer(true)];
            self.does.push(Do::If(
                at_least(self.held(), HELD_MAX - 1),
                kept,
                Vec::new(),
            ));
        }
        if self.counts || text.keep.is_empty() {
            self.does.push(Do::State(self.held, self.held().add(1)));
        }
        self.does.push(Do::Answer(false));
        (self.words, self.does)
    }
}

/// Whether the word is that of the first row; or the first since one was kept.
pub(super) fn is_first(word: usize) -> Cond {
    Cond::Compare(Compare::Equal, false, Node::State(word), Node::Const(0))
}

impl Compiler<'_> {
    /// What is there on each trigger, and not only where a row is kept.
    pub(super) fn on_each(&self, of: &Expr) -> Result<(), Wrong> {
        match self.is_of_groups(of) {
            true => Err(wrong(
                &of.at,
                "a mean or sum since emit is complete only in kept rows, and this would use it in every row",
                "use the value that is averaged",
            )),
            false => Ok(()),
        }
    }

    /// Whether it contains a sum of all rows of a group, whose number is known: in the middle of it, it is not yet one.
    pub(crate) fn is_of_groups(&self, of: &Expr) -> bool {
        let (rows, is_always) = self.state.rows;
        is_always
            && rows > 1
            && of.any(&|part| match &part.what {
                What::Call(call) => call.since_emit && matches!(call.name.as_str(), "mean" | "sum"),
                What::Name(name) => self.of_groups.contains(name),
                _ => false,
            })
    }

    /// A value that a row changes.
    fn changing(&mut self, of: &Expr) -> Result<Number, Wrong> {
        self.on_each(of)?;
        let number = self.number(of)?;
        match number.is_constant() {
            true => Err(wrong(
                &of.at,
                "a number does not change from row to row",
                "name a channel, or compute with one",
            )),
            false => number.rising(&of.at),
        }
    }

    /// From the row before; 0 in the first one.
    pub(crate) fn diff(&mut self, of: &Expr) -> Result<Number, Wrong> {
        let number = self.changing(of)?;
        let (before, change) = (self.state.take(1), self.state.take(1));
        self.state.has_started = true;
        let range = number.range.sub(number.range);
        self.state.does.extend([
            Do::State(change, Node::op(Op::Sub, number.node, Node::State(before))),
            Do::State(
                before,
                Node::op(Op::Add, Node::State(before), Node::State(change)),
            ),
            Do::If(
                is_first(self.state.started),
                vec![Do::State(change, Node::Const(0))],
                Vec::new(),
            ),
        ]);
        Ok(Number {
            node: Node::State(change),
            // Words of 64 bits go round: right for changes of less than half of all numbers.
            range: if range.is_signed() {
                range
            } else {
                Range::SIGNED
            },
            offset: Rational::ZERO,
            ..number
        })
    }

    /// The mean or the sum of the last rows. Before there are so many, the first one stands for those that are not there.
    pub(crate) fn window(
        &mut self,
        of: &Expr,
        rows: &Expr,
        is_mean: bool,
    ) -> Result<Number, Wrong> {
        let count = self
            .number(rows)?
            .to_whole()
            .filter(|rows| (2..=WINDOW_MAX).contains(rows));
        let count = count.ok_or_else(|| {
            wrong(
                &rows.at,
                format!("the number of rows is not from 2 to {WINDOW_MAX}"),
                "write such a number; for more rows use since emit, with every",
            )
        })?;
        let number = self.changing(of)?;
        let total = number.range.times(count);
        value::fit(&of.at, Node::Const(0), total)?;
        let words = (count as usize).next_power_of_two();
        let (base, sum, index) = (self.state.take(1), self.state.take(1), self.state.take(1));
        let (word, first) = (self.state.take(1), self.state.take(words));
        let window = Window {
            index,
            first,
            words,
        };
        self.state.has_started = true;
        let add = |a, b| Node::op(Op::Add, a, b);
        let last = Cond::Compare(
            Compare::GreaterOrEqual,
            false,
            Node::State(index),
            Node::Const(count),
        );
        self.state.does.extend([
            Do::State(word, number.node),
            Do::If(
                is_first(self.state.started),
                vec![
                    Do::State(base, Node::State(word)),
                    Do::State(sum, Node::State(word).times(count)),
                ],
                Vec::new(),
            ),
            // The words that are kept are distances from the first one: 0 is that of each row that is not there.
            Do::State(
                word,
                Node::op(Op::Sub, Node::State(word), Node::State(base)),
            ),
            Do::State(
                sum,
                add(
                    Node::State(sum),
                    Node::op(Op::Sub, Node::State(word), Node::Element(window)),
                ),
            ),
            Do::Element(window, Node::State(word)),
            Do::State(index, Node::State(index).add(1)),
            Do::If(last, vec![Do::State(index, Node::Const(0))], Vec::new()),
        ]);
        self.of_sum(
            &of.at,
            Number {
                node: Node::State(sum),
                range: total,
                ..number
            },
            count,
            is_mean,
        )
    }

    /// The sum of so many words as a value; a mean has the same word in another scale, and so it is exact.
    fn of_sum(
        &self,
        at: &Place<usize>,
        sum: Number,
        count: i128,
        is_mean: bool,
    ) -> Result<Number, Wrong> {
        let rows = Rational::whole(count);
        Ok(match is_mean {
            true => Number {
                scale: digits(at, sum.scale.div(rows))?,
                ..sum
            },
            false => Number {
                offset: digits(at, sum.offset.mul(rows))?,
                ..sum
            },
        })
    }

    /// Of all rows since the last one that was kept, with this one.
    pub(crate) fn since_emit(&mut self, at: &Place<usize>, call: &Call) -> Result<Number, Wrong> {
        self.state.counts = true;
        match (call.name.as_str(), call.args.as_slice()) {
            ("count", []) => {
                let rows = self.state.rows.0;
                Ok(Number::plain(self.state.held().add(1), Range::new(1, rows)))
            }
            ("count", [of]) => self.count(at, of),
            (name @ ("sum" | "mean" | "last" | "first" | "min" | "max" | "spread"), [of]) => {
                let number = self.changing(of)?;
                self.of_group(at, name, number)
            }
            (name, _) => Err(not_since(at, name)),
        }
    }

    fn count(&mut self, at: &Place<usize>, of: &Expr) -> Result<Number, Wrong> {
        self.on_each(of)?;
        let cond = self.truth(of)?;
        let counted = Number::plain(Node::Truth(cond.into()), Range::new(0, 1));
        Ok(self.total(at, counted)?.0)
    }

    /// What this function makes of a value in all rows since the last one that was kept.
    fn of_group(&mut self, at: &Place<usize>, name: &str, number: Number) -> Result<Number, Wrong> {
        let is_always = self.state.rows.1;
        match name {
            "sum" => {
                if number.offset != Rational::ZERO && !is_always {
                    return Err(wrong(
                        at,
                        "these values have an offset, and the number of values in the sum is not known",
                        "use the mean",
                    ));
                }
                let (sum, rows) = self.total(at, number)?;
                self.of_sum(at, sum, rows, false)
            }
            "mean" => {
                let range = number.range;
                let (sum, rows) = self.total(at, number)?;
                match is_always {
                    true => self.of_sum(at, sum, rows, true),
                    false => self.mean(at, sum, range),
                }
            }
            "first" => {
                let first = self.state.take(1);
                let set = Do::State(first, number.node);
                self.state
                    .does
                    .push(Do::If(is_first(self.state.held), vec![set], Vec::new()));
                Ok(Number {
                    node: Node::State(first),
                    ..number
                })
            }
            "min" | "max" => {
                let node = self.extreme(number.node, number.range, name == "max");
                Ok(Number { node, ..number })
            }
            "spread" => {
                let word = self.state.take(1);
                self.state.does.push(Do::State(word, number.node));
                let least = self.extreme(Node::State(word), number.range, false);
                let most = self.extreme(Node::State(word), number.range, true);
                let range = Range::new(0, number.range.hi - number.range.lo);
                let node = Node::op(Op::Sub, most, least);
                Ok(Number {
                    node,
                    range,
                    offset: Rational::ZERO,
                    ..number
                })
            }
            // The last one is this one.
            _ => Ok(number),
        }
    }

    /// The sum, and of how many rows at most.
    fn total(&mut self, at: &Place<usize>, number: Number) -> Result<(Number, i128), Wrong> {
        let rows = self.state.rows.0;
        let range = number.range.times(rows).with(number.range);
        value::fit(at, Node::Const(0), range).map_err(|wrong| Wrong {
            remedy: match self.state.rows.1 {
                true => "keep rows more often, or bound a part of it, as in clamp(X, LOW, HIGH)".to_owned(),
                false => format!("at most {rows} rows are left out in sequence; bound a part of it, as in clamp(X, LOW, HIGH)"),
            },
            ..wrong
        })?;
        let sum = self.state.take(1);
        let add = Node::op(Op::Add, Node::State(sum), number.node.clone());
        self.state.does.push(Do::If(
            is_first(self.state.held),
            vec![Do::State(sum, number.node.clone())],
            vec![Do::State(sum, add)],
        ));
        Ok((
            Number {
                node: Node::State(sum),
                range,
                ..number
            },
            rows,
        ))
    }

    /// Of a number of rows that is not known before: whole part and fraction one after the other, so that both fit.
    fn mean(&mut self, at: &Place<usize>, sum: Number, range: Range) -> Result<Number, Wrong> {
        let signed = (sum.range.lo < 0, false);
        let rows = self.state.held().add(1);
        let by_count = |dividend| {
            Node::Quotient(Box::new(Quotient {
                dividend,
                divisor: rows.clone(),
                signed,
                of_zero: None,
            }))
        };
        let whole = self.state.take(1);
        self.state
            .does
            .push(Do::State(whole, by_count(sum.node.clone())));
        let rest = Node::op(
            Op::Sub,
            sum.node,
            Node::op(Op::Mul, Node::State(whole), rows.clone()),
        );
        let shift = Node::Const(FRACTION);
        let part = by_count(Node::op(Op::Left, rest, shift.clone()));
        let node = Node::op(Op::Add, Node::op(Op::Left, Node::State(whole), shift), part);
        let (node, range) = value::fit(at, node, range.times(1 << FRACTION))?;
        let scale = digits(at, sum.scale.div(Rational::whole(1 << FRACTION)))?;
        Ok(Number {
            node,
            range,
            scale,
            ..sum
        })
    }

    fn extreme(&mut self, node: Node, range: Range, is_max: bool) -> Node {
        let word = self.state.take(1);
        let signed = range.is_signed();
        let op = if is_max {
            Op::Max { signed }
        } else {
            Op::Min { signed }
        };
        let both = Node::op(op, Node::State(word), node.clone());
        self.state.does.push(Do::If(
            is_first(self.state.held),
            vec![Do::State(word, node)],
            vec![Do::State(word, both)],
        ));
        Node::State(word)
    }
}
