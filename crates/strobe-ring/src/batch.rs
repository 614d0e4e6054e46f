// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as a reader gets them.

use crate::layout::Status;
use crate::shape::{Faults, RowShape};

/// Rows, and how many were lost before them: one value, so that the loss cannot be overlooked.
#[derive(Clone, Copy, Debug)]
#[must_use = "it says how many rows were lost"]
pub struct Batch<'a> {
    /// Rows that were overwritten before this reader came to read them, or that are absent, right before `first`.
    pub lost: u64,
    /// Number of the first row of the batch; without rows, of the row that the next read begins with.
    pub first: u64,
    /// The rows.
    pub rows: Rows<'a>,
    /// Whether there were more to be read: there was no room for them, or rows between are absent.
    pub more: bool,
}

impl<'a> Batch<'a> {
    /// The rows, one after the other.
    pub fn rows(&self) -> Rows<'a> {
        self.rows
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row. There may be a loss nevertheless.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }
}

/// Rows in memory of the reader's own, without padding: also what `read` on a ring fd gives.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    words: &'a [u64],
    row_words: usize,
    channels: usize,
    skipped: bool,
}

impl<'a> Rows<'a> {
    /// Rows of this shape. Words at the end that are no whole row are left out.
    pub fn new(words: &'a [u64], shape: RowShape) -> Rows<'a> {
        let row_words = shape.words() as usize;
        let whole = words.len() - words.len() % row_words;
        Rows {
            words: &words[..whole],
            row_words,
            channels: shape.channels as usize,
            skipped: shape.skipped,
        }
    }

    /// Whether they are of this shape.
    pub fn fit(&self, shape: RowShape) -> bool {
        let words = shape.words() as usize;
        (self.row_words, self.channels, self.skipped)
            == (words, shape.channels as usize, shape.skipped)
    }

    /// All words, row after row.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        let (row, rest) = self.words.split_at_checked(self.row_words)?;
        self.words = rest;
        let &[row, trigger, time, status, ref words @ ..] = row else {
            return None;
        };
        let (values, behind) = words.split_at(self.channels);
        let (others, skipped) = match behind {
            [others @ .., skipped] if self.skipped => (others, *skipped),
            others => (others, 0),
        };
        let first = (status >> 32) as u32;
        Some(Row {
            row,
            trigger,
            time,
            status: Status(status),
            values,
            faults: Faults { first, others },
            skipped,
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let rows = self.words.len() / self.row_words;
        (rows, Some(rows))
    }

    /// Without a look at those before it.
    #[inline]
    fn last(mut self) -> Option<Row<'a>> {
        let before = self.len().checked_sub(1)? * self.row_words;
        self.words = self.words.get(before..)?;
        self.next()
    }
}

impl ExactSizeIterator for Rows<'_> {}

/// What was read on one trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Number of the row, from 0. A step of more than one between two rows: rows were lost.
    pub row: u64,
    /// Number of its trigger, from 0. Where it steps more than the row, triggers were missed or skipped.
    pub trigger: u64,
    /// Nanoseconds on the ring's clock.
    pub time: u64,
    /// Flags.
    pub status: Status,
    /// One word a channel. That of a channel that failed means nothing: see `faults`.
    pub values: &'a [u64],
    /// The channels and outputs that failed.
    pub faults: Faults<'a>,
    /// Triggers that were skipped before this row, since the start of the run.
    pub skipped: u64,
}
