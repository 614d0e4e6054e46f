// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows from anywhere, with a program: what it would have made of them if it had been part of their run.

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use strobe_expr::{Machine, ProgramText};
use strobe_ring::layout::{ROW_FLAGS, ROW_RESUMED, STATUS_FAULTS};
use strobe_ring::{Row, RowShape};

use crate::block::{Block, Place};
use crate::error::Error;
use crate::info::{RunInfo, Totals};
use crate::program;
use crate::source::RowSource;

/// The rows of another source that a program keeps, with the columns that it derives.
///
/// Rows are numbered anew, triggers are not: those of the rows that are left out are skipped. Rows that were lost stay lost.
pub struct ComputedRows {
    source: Box<dyn RowSource>,
    info: Arc<RunInfo>,
    machine: Machine,
    /// The row that is worked on.
    row: Vec<u64>,
    /// Rows that were left out so far.
    left_out: u64,
    /// There was a pause since the last row that was kept.
    has_resumed: bool,
    last: Option<Place>,
}

impl ComputedRows {
    /// Runs this program on these rows.
    ///
    /// # Errors
    /// What is wrong with the program.
    pub fn new(source: Box<dyn RowSource>, text: &ProgramText) -> Result<ComputedRows, Error> {
        let mut info = source.info().clone();
        let program = program::compile(text, &info.channels)?;
        info.channels.extend(program::channels(&program));
        info.skips |= program.skips();
        Ok(ComputedRows {
            row: Vec::with_capacity(info.channels.len()),
            machine: Machine::new(Arc::new(program)),
            source,
            info: Arc::new(info),
            left_out: 0,
            has_resumed: false,
            last: Some(Place::START),
        })
    }

    /// Adds what becomes of the row to these words.
    fn add(&mut self, row: &Row<'_>, words: &mut Vec<u64>) {
        let inputs = row.values.len();
        let shape = self.info.shape();
        self.row.clear();
        self.row.extend(row.values);
        self.row.resize(shape.channels as usize, 0);
        let has_failed = !row.faults.is_empty();
        self.has_resumed |= row.status.resumed();
        if !has_failed && !self.machine.run(&mut self.row).is_kept() {
            self.left_out += 1;
            return;
        }
        let start = words.len();
        let mut flags = row.status.0 & ROW_FLAGS;
        if take(&mut self.has_resumed) {
            flags |= ROW_RESUMED;
        }
        words.extend([
            row.row.saturating_sub(self.left_out),
            row.trigger,
            row.time,
            flags,
        ]);
        words.extend(&self.row);
        words.resize(start + shape.words() as usize, 0);
        if has_failed {
            // What was computed failed with it, and stands before the outputs.
            let derived = inputs..self.row.len();
            let moved = |index| {
                if index < inputs {
                    index
                } else {
                    index + derived.len()
                }
            };
            for index in row.faults.iter().map(moved).chain(derived.clone()) {
                fail(&mut words[start..], shape, index);
            }
        }
        if let (true, Some(word)) = (shape.skipped, words.last_mut()) {
            *word = row.skipped.saturating_add(self.left_out);
        }
    }
}

/// Notes that this channel or output failed.
fn fail(row: &mut [u64], shape: RowShape, index: usize) {
    const STATUS: usize = 3;
    let faults = 1 + STATUS + shape.channels as usize;
    let (word, bit) = match index.checked_sub(STATUS_FAULTS as usize) {
        None => (STATUS, 32 + index),
        Some(other) => (faults + other / 64, other % 64),
    };
    if let Some(word) = row.get_mut(word) {
        *word |= 1 << bit;
    }
}

impl RowSource for ComputedRows {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        let Some(block) = self.source.next(wait)? else {
            return Ok(None);
        };
        // The start of a run is known with its first rows.
        let start = self.source.info().start;
        if self.info.start != start {
            Arc::make_mut(&mut self.info).start = start;
        }
        let first = block.first().saturating_sub(self.left_out);
        let mut words = Vec::with_capacity(block.len() * self.info.shape().words() as usize);
        for row in block.rows() {
            self.add(&row, &mut words);
        }
        let rows = words.len() / self.info.shape().words() as usize;
        let info = Arc::clone(&self.info);
        let numbers = (first, block.lost());
        Ok(Some(Block::new(
            info,
            Arc::new(words),
            0..rows,
            numbers,
            &mut self.last,
        )))
    }

    fn totals(&self) -> Option<Totals> {
        self.source.totals().map(|totals| Totals {
            rows: totals.rows.saturating_sub(self.left_out),
            skipped: totals.skipped.saturating_add(self.left_out),
            ..totals
        })
    }

    fn is_torn(&self) -> bool {
        self.source.is_torn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Type;
    use crate::samples;

    /// Blocks in memory, and an account.
    struct TestRows(RunInfo, Vec<Block>);

    impl RowSource for TestRows {
        fn info(&self) -> &RunInfo {
            &self.0
        }

        fn next(&mut self, _: Duration) -> Result<Option<Block>, Error> {
            Ok((!self.1.is_empty()).then(|| self.1.remove(0)))
        }

        fn totals(&self) -> Option<Totals> {
            Some(Totals {
                triggers: 7,
                missed_by: [0; 8],
                lost: 3,
                errors: 1,
                ..samples::totals(7)
            })
        }
    }

    /// 40 channels and two outputs: row 1 is to be left out, rows 2 to 4 are lost, in row 5 a channel and an output failed.
    fn given() -> TestRows {
        let channels = (0..40).map(|n| samples::channel(&format!("c.{n}"), Type::U64));
        let mut info = samples::info(channels.collect());
        info.outputs = vec!["o.a".into(), "o.b".into()];
        let row = |row: u64, first: u64, faults: u64| {
            let mut words = vec![row, row, 100 * row, 0, first, 10 * row];
            words.resize(4 + 40, 0);
            words.push(faults);
            words
        };
        let block = |rows: [Vec<u64>; 2], numbers| {
            let words = Arc::new(rows.concat());
            Block::new(Arc::new(info.clone()), words, 0..2, numbers, &mut None)
        };
        let blocks = vec![
            block([row(0, 1, 0), row(1, 0, 0)], (0, 0)),
            block(
                [row(5, 0, 1 << (35 - 32) | 1 << (41 - 32)), row(6, 1, 0)],
                (5, 3),
            ),
        ];
        TestRows(info, blocks)
    }

    #[test]
    fn rows_that_were_lost_and_what_has_failed_stay_so() {
        let text = ProgramText {
            derive: vec!["d = diff(c.1)".into()],
            keep: vec!["c.0 == 1 V".into()],
            ..ProgramText::default()
        };
        let mut rows = ComputedRows::new(Box::new(given()), &text).expect("a program");
        let names = rows.info().fault_names();
        assert_eq!(&names[39..], ["c.39", "d", "output o.a", "output o.b"]);
        let mut found = Vec::new();
        let mut lost = Vec::new();
        while let Some(block) = rows.next(Duration::ZERO).expect("rows") {
            lost.push((block.first(), block.lost(), block.missed()));
            for row in block.rows() {
                let faults: Vec<usize> = row.faults.iter().collect();
                found.push((row.row, row.trigger, row.skipped, row.values[40], faults));
            }
        }
        assert_eq!(lost, [(0, 0, 0), (4, 3, 0)]);
        assert_eq!(
            found,
            [
                (0, 0, 0, 0, vec![]),
                (4, 5, 1, 0, vec![35, 40, 42]),
                (5, 6, 1, 50, vec![])
            ]
        );
        let totals = rows.totals().expect("an account");
        assert_eq!((totals.rows, totals.skipped, totals.missed()), (6, 1, 0));
        assert_eq!((totals.lost, totals.errors), (3, 1));
    }

    #[test]
    fn a_pause_is_seen_at_the_next_row_that_is_kept() {
        let TestRows(info, _) = given();
        // Row 1 is the first one after a pause, and left out.
        let words = (0..4).map(|row| {
            let status = if row == 1 { ROW_RESUMED } else { 0 };
            let mut words = vec![row, row, 100 * row, status, u64::from(row != 1)];
            words.resize(info.shape().words() as usize, 0);
            words
        });
        let words = Arc::new(words.collect::<Vec<_>>().concat());
        let block = Block::new(Arc::new(info.clone()), words, 0..4, (0, 0), &mut None);
        let text = ProgramText {
            keep: vec!["c.0 == 1 V".into()],
            ..ProgramText::default()
        };
        let source = Box::new(TestRows(info, vec![block]));
        let mut rows = ComputedRows::new(source, &text).expect("a program");
        let block = rows.next(Duration::ZERO).expect("rows").expect("a block");
        let rows = block.rows();
        let found: Vec<_> = rows
            .map(|row| (row.trigger, row.status.resumed()))
            .collect();
        assert_eq!(found, [(0, false), (2, true), (3, false)]);
    }

    #[test]
    fn a_program_that_does_not_fit_the_rows_is_refused() {
        let text = ProgramText {
            keep: vec!["c.40 == 1".into()],
            ..ProgramText::default()
        };
        let error = ComputedRows::new(Box::new(given()), &text).err();
        let said = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            said.starts_with("keep 'c.40 == 1', column 1: a row has no column c.40; read it"),
            "{said}"
        );
    }
}
