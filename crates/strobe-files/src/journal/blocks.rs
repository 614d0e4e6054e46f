// SPDX-License-Identifier: MIT OR Apache-2.0
//! From rows of a recording to blocks, each of which ends where rows are missing.

use std::ops::Range;
use std::sync::Arc;

use strobe::block::{Block, Place};
use strobe::info::RunInfo;
use strobe_ring::Rows;

/// The rows that were read, and which of them were given.
pub(super) struct Blocks {
    info: Arc<RunInfo>,
    words: Arc<Vec<u64>>,
    /// Rows of `words` that were not given yet.
    left: Range<usize>,
    /// The last row that was given.
    last: Option<Place>,
    /// The row after it.
    next: u64,
}

impl Blocks {
    /// Of this run, from this row on.
    pub(super) fn new(info: &RunInfo, from: u64) -> Self {
        Blocks {
            info: Arc::new(info.clone()),
            words: Arc::default(),
            left: 0..0,
            // What was missed before a row in the middle of the run is not known.
            last: (from == 0).then_some(Place::START),
            next: from,
        }
    }

    /// The next rows of the recording, all words of them.
    pub(super) fn fill(&mut self, words: Vec<u64>) {
        self.left = 0..words.len() / self.width();
        self.words = Arc::new(words);
    }

    /// The next block; `None` if all rows were given.
    pub(super) fn take(&mut self) -> Option<Block> {
        let width = self.width();
        let words = self
            .words
            .get(self.left.start * width..self.left.end * width)?;
        let mut numbers = Rows::new(words, self.info.shape()).map(|row| row.row);
        let first = numbers.next()?;
        let mut last = first;
        let following = numbers.take_while(|row| {
            // A file may say anything: no row follows the greatest number.
            let follows = last.checked_add(1) == Some(*row);
            last = *row;
            follows
        });
        let rows = self.left.start..self.left.start + 1 + following.count();
        // Numbers that step back are no loss, whatever they are.
        let lost = first.saturating_sub(self.next);
        self.next = first.saturating_add(rows.len() as u64);
        self.left.start = rows.end;
        Some(self.block(rows, lost))
    }

    fn block(&mut self, rows: Range<usize>, lost: u64) -> Block {
        let (info, words) = (Arc::clone(&self.info), Arc::clone(&self.words));
        Block::new(info, words, rows, (self.next, lost), &mut self.last)
    }

    fn width(&self) -> usize {
        self.info.shape().words() as usize
    }
}
