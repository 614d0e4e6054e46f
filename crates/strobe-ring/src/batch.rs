// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as a reader gets them.

use crate::layout::{Status, ROW_HEADER_WORDS};

/// Rows, and how many were lost before them: one value, so that the loss cannot be overlooked.
#[derive(Clone, Copy, Debug)]
#[must_use = "it says how many rows were lost"]
pub struct Batch<'a> {
    /// Rows that were overwritten before this reader came to read them, right before `first`.
    pub lost: u64,
    /// Number of the first row of the batch; without rows, of the row that the next read begins with.
    pub first: u64,
    /// The rows.
    pub rows: Rows<'a>,
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
}

impl<'a> Rows<'a> {
    /// Rows of so many channels. Words at the end that are no whole row are left out.
    pub fn new(words: &'a [u64], channels: u32) -> Rows<'a> {
        let row_words = ROW_HEADER_WORDS + channels as usize;
        let whole = words.len() - words.len() % row_words;
        Rows {
            words: &words[..whole],
            row_words,
        }
    }

    /// All words, row after row.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let (row, rest) = self.words.split_at_checked(self.row_words)?;
        self.words = rest;
        match row {
            &[row, trigger, time, status, ref values @ ..] => Some(Row {
                row,
                trigger,
                time,
                status: Status(status),
                values,
            }),
            _ => None,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rows = self.words.len() / self.row_words;
        (rows, Some(rows))
    }
}

impl ExactSizeIterator for Rows<'_> {}

/// What was read on one trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Number of the row, from 0. A step of more than one between two rows: rows were lost.
    pub row: u64,
    /// Number of its trigger, from 0. Where it steps more than the row, triggers were missed.
    pub trigger: u64,
    /// Nanoseconds on the ring's clock.
    pub time: u64,
    /// Flags, and the first channel that failed.
    pub status: Status,
    /// One word a channel.
    pub values: &'a [u64],
}
