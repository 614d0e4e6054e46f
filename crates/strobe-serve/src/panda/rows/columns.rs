// SPDX-License-Identifier: MIT OR Apache-2.0
//! The quick way from rows to what goes out: for columns that depend on nothing but the words of their row, and its time.
//!
//! Words that lie side by side in the row and in what goes out are copied together. All that is done to a part of the rows is done
//! while it is in a CPU's nearest cache.

use std::ops::Range;

use strobe::channel::Type;
use strobe::ring::layout::ROW_HEADER_WORDS;
use strobe_files::journal;

use super::{Before, Cell, Encoder, Frame, NEAR, seconds};

/// Words of a row that are copied together, at most: what a loop whose length is known copies in one go.
const TOGETHER: usize = 8;
/// Places of words in a row.
const ROW: usize = 0;
const TRIGGER: usize = 1;
const TIME: usize = 2;

/// What is done to all rows, to get one or some of the columns: from a place of the row to one of what goes out, in words.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Copy(usize),
    Value(Type, f64, f64),
    Time,
    Duration,
}

/// All columns, each of 8 bytes.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    steps: Vec<(Step, usize, usize)>,
    /// What goes out of a row, in words.
    width: usize,
}

impl Columns {
    /// Of these cells; `None`: some of them depend on more.
    pub(super) fn new(cells: &[Cell]) -> Option<Columns> {
        let mut steps: Vec<(Step, usize, usize)> = Vec::new();
        for (to, cell) in cells.iter().enumerate() {
            let (step, from) = match *cell {
                Cell::Row => (Step::Copy(1), ROW),
                Cell::Trigger => (Step::Copy(1), TRIGGER),
                Cell::Word(index, _) => (Step::Copy(1), ROW_HEADER_WORDS.checked_add(index)?),
                Cell::Value(index, kind, scale, offset) => {
                    let from = ROW_HEADER_WORDS.checked_add(index)?;
                    (Step::Value(kind, scale, offset), from)
                }
                Cell::Time => (Step::Time, TIME),
                Cell::Duration => (Step::Duration, TIME),
                Cell::Sum(..) | Cell::Diff(..) | Cell::Bits => return None,
            };
            match (steps.last_mut(), step) {
                (Some((Step::Copy(words), begin, _)), Step::Copy(_))
                    if *words < TOGETHER && *begin + *words == from =>
                {
                    *words += 1;
                }
                _ => steps.push((step, from, to)),
            }
        }
        let width = cells.len();
        Some(Columns { steps, width })
    }

    /// Of rows of so many words, in none of which anything failed. The run began at that time; the row before them was made
    /// at `before`, if that is known.
    pub(super) fn put(
        &self,
        words: &[u64],
        width: usize,
        times: (u64, Option<u64>),
        out: &mut [u8],
    ) {
        for (step, from, to) in self.steps.iter().copied() {
            let rows = words.chunks_exact(width);
            let out = out.chunks_exact_mut(8 * self.width);
            match step {
                Step::Copy(1) => copy::<1>(rows, from, out, to),
                Step::Copy(2) => copy::<2>(rows, from, out, to),
                Step::Copy(3) => copy::<3>(rows, from, out, to),
                Step::Copy(4) => copy::<4>(rows, from, out, to),
                Step::Copy(5) => copy::<5>(rows, from, out, to),
                Step::Copy(6) => copy::<6>(rows, from, out, to),
                Step::Copy(7) => copy::<7>(rows, from, out, to),
                Step::Copy(_) => copy::<TOGETHER>(rows, from, out, to),
                _ => step.put(rows.filter_map(|row| row.get(from)), times, out, to),
            }
        }
    }

    /// The same of rows that are columns.
    fn put_columns(
        &self,
        of: &journal::Columns,
        rows: Range<usize>,
        (begun, mut before): (u64, Option<u64>),
        out: &mut [u8],
    ) {
        let at_once = (NEAR / (8 * self.width).max(1)).max(1);
        let parts = out.chunks_mut(8 * self.width * at_once);
        for (begin, out) in rows.clone().step_by(at_once).zip(parts) {
            let rows = begin..rows.end.min(begin + at_once);
            let words = |place: usize| of.at(place).get(rows.clone()).unwrap_or_default();
            for (step, from, to) in self.steps.iter().copied() {
                let together = match step {
                    Step::Copy(words) => words,
                    _ => 1,
                };
                for index in 0..together {
                    let out = out.chunks_exact_mut(8 * self.width);
                    let words = words(from + index).iter();
                    step.put(words, (begun, before), out, to + index);
                }
            }
            before = words(TIME).last().copied();
        }
    }
}

impl Step {
    /// Puts what becomes of one word of each row to this place of what goes out of it.
    fn put<'w, 'o>(
        self,
        words: impl Iterator<Item = &'w u64>,
        (begun, mut before): (u64, Option<u64>),
        out: impl Iterator<Item = &'o mut [u8]>,
        to: usize,
    ) {
        match self {
            Step::Copy(_) => make(words, out, to, |word| word),
            Step::Value(kind, scale, offset) => make(words, out, to, |word| {
                (kind.number(word) * scale + offset).to_bits()
            }),
            Step::Time => make(words, out, to, |time| {
                seconds(time.wrapping_sub(begun)).to_bits()
            }),
            Step::Duration => make(words, out, to, |now| {
                let before = before.replace(now);
                let since = before.map_or(f64::NAN, |then| seconds(now.wrapping_sub(then)));
                since.to_bits()
            }),
        }
    }
}

/// One word of each row.
fn make<'w, 'o>(
    words: impl Iterator<Item = &'w u64>,
    out: impl Iterator<Item = &'o mut [u8]>,
    to: usize,
    mut of: impl FnMut(u64) -> u64,
) {
    for (word, out) in words.zip(out) {
        if let Some(out) = out.get_mut(8 * to..8 * to + 8) {
            out.copy_from_slice(&of(*word).to_le_bytes());
        }
    }
}

/// So many words of each row that lie side by side.
fn copy<'r, 'o, const WORDS: usize>(
    rows: impl Iterator<Item = &'r [u64]>,
    from: usize,
    out: impl Iterator<Item = &'o mut [u8]>,
    to: usize,
) {
    for (row, out) in rows.zip(out) {
        let (Some(words), Some(out)) = (
            row.get(from..from + WORDS),
            out.get_mut(8 * to..8 * (to + WORDS)),
        ) else {
            return;
        };
        for (out, word) in out.chunks_exact_mut(8).zip(words) {
            out.copy_from_slice(&word.to_le_bytes());
        }
    }
}

impl Encoder {
    /// Whether rows can be given to it as columns.
    pub fn takes_columns(&self) -> bool {
        self.columns.is_some()
    }

    /// Appends these rows, in none of which anything failed. Nothing, if it takes no columns.
    pub fn encode_columns(&mut self, of: &journal::Columns, rows: Range<usize>, to: &mut Frame) {
        let (Some(columns), Some(last)) = (&self.columns, rows.clone().last()) else {
            return;
        };
        let before = self.time_before(of.at(ROW).get(rows.start).copied());
        let out = to.more(rows.len() * self.row_bytes);
        columns.put_columns(of, rows, (self.begun, before), out);
        let word = |words: &[u64]| words.get(last).copied().unwrap_or_default();
        self.has_lost = false;
        self.before = Some(Before {
            row: word(of.at(ROW)),
            trigger: word(of.at(TRIGGER)),
            skipped: word(of.skipped()),
            time: word(of.at(TIME)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[Cell], words: &[u64], width: usize) -> Vec<u64> {
        let columns = Columns::new(cells).expect("columns");
        let mut out = vec![0; 8 * cells.len() * (words.len() / width)];
        columns.put(words, width, (100, Some(150)), &mut out);
        let words = out.chunks_exact(8).map(|word| word.try_into().expect("8"));
        words.map(u64::from_le_bytes).collect()
    }

    #[test]
    fn what_lies_side_by_side_in_both_is_copied_together() {
        let word = |index| Cell::Word(index, 0);
        let cells = [vec![Cell::Row, Cell::Trigger], (0..11).map(word).collect()].concat();
        let columns = Columns::new(&cells).expect("columns");
        let copies = [(2, 0, 0), (8, 4, 2), (3, 12, 10)];
        let copies = copies.map(|(words, from, to)| (Step::Copy(words), from, to));
        assert_eq!(columns.steps, copies);
        let words: Vec<u64> = (0..30).collect();
        let out = of(&cells, &words, 15);
        let row = |first: u64| [vec![first, first + 1], (first + 4..first + 15).collect()].concat();
        assert_eq!(out, [row(0), row(15)].concat());
    }

    #[test]
    fn the_order_of_columns_is_that_of_the_client() {
        let cells = [Cell::Word(1, 0), Cell::Row, Cell::Word(0, 0), Cell::Time];
        let words = [7, 8, 200, 0, 10, 11, 8, 9, 300, 0, 12, 13];
        let time = |ns: u64| (ns as f64 * 1e-9).to_bits();
        let rows = [11, 7, 10, time(100), 13, 8, 12, time(200)];
        assert_eq!(of(&cells, &words, 6), rows);
        let cells = [Cell::Duration, Cell::Duration];
        let rows = [time(50), time(50), time(100), time(100)];
        assert_eq!(of(&cells, &words, 6), rows);
    }

    #[test]
    fn what_depends_on_more_than_a_row_and_its_time_is_not_made_here() {
        assert!(Columns::new(&[Cell::Row, Cell::Bits]).is_none());
        let diff = Cell::Diff(0, Type::U64, 1.0, None);
        assert!(Columns::new(&[diff]).is_none());
    }
}
