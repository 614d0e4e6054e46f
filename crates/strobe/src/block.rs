// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that belong to who has got them, by columns.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use strobe_ring::layout::ROW_HEADER_WORDS;
use strobe_ring::{Row, RowShape, Rows};

use crate::channel::{Channel, column_names};
use crate::info::RunInfo;

/// Some rows of a run, and what is missing before and between them. A clone is cheap.
#[derive(Clone)]
pub struct Block {
    info: Arc<RunInfo>,
    shape: RowShape,
    words: Arc<Vec<u64>>,
    /// Those of the rows.
    part: Range<usize>,
    first: u64,
    lost: u64,
    missed: u64,
}

/// The last row that a reader has got, or lost: what is missing before the next one is reckoned from it.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    row: u64,
    trigger: u64,
    skipped: u64,
}

impl Place {
    /// Before the first row of a run.
    #[doc(hidden)]
    pub const START: Place = Place {
        row: u64::MAX,
        trigger: u64::MAX,
        skipped: 0,
    };

    fn of(row: &Row<'_>) -> Place {
        Place {
            row: row.row,
            trigger: row.trigger,
            skipped: row.skipped,
        }
    }

    /// Triggers from here to that row that should have made a row, and did not.
    fn missed_until(self, row: &Row<'_>) -> u64 {
        let triggers = row.trigger.wrapping_sub(self.trigger);
        let rows = row.row.wrapping_sub(self.row);
        let skipped = row.skipped.wrapping_sub(self.skipped);
        triggers.saturating_sub(rows).saturating_sub(skipped)
    }
}

impl Block {
    /// These rows of `words`, by their places there. `numbers` are that of the first one, should there be none, and how
    /// many were lost before it. `last` is the row before them, if it is known what was missed since; it is the last one
    /// of these rows then.
    #[doc(hidden)]
    pub fn new(
        info: Arc<RunInfo>,
        words: Arc<Vec<u64>>,
        rows: Range<usize>,
        numbers: (u64, u64),
        last: &mut Option<Place>,
    ) -> Block {
        let shape = info.shape();
        let width = shape.words() as usize;
        let part = rows.start * width..rows.end * width;
        Block::of_part(info, shape, words, part, numbers, last)
    }

    /// The rows of this shape in a part of `words`.
    pub(crate) fn of_part(
        info: Arc<RunInfo>,
        shape: RowShape,
        words: Arc<Vec<u64>>,
        part: Range<usize>,
        (first, lost): (u64, u64),
        last: &mut Option<Place>,
    ) -> Block {
        let mut block = Block {
            info,
            shape,
            words,
            part,
            first,
            lost,
            missed: 0,
        };
        let mut rows = block.rows();
        if let Some(first) = rows.next() {
            let end = rows.last().unwrap_or(first);
            let before = last.replace(Place::of(&end));
            let missed = before.unwrap_or(Place::of(&first)).missed_until(&end);
            (block.first, block.missed) = (first.row, missed);
        }
        block
    }

    /// Those of its rows that come from this one on, as who begins there gets them.
    #[doc(hidden)]
    #[must_use]
    pub fn since(&self, row: u64) -> Block {
        let before = self.rows().take_while(|each| each.row < row).count();
        if before == 0 {
            return Block {
                lost: self.lost.min(self.first.saturating_sub(row)),
                ..self.clone()
            };
        }
        let part = self.part.start + before * self.width()..self.part.end;
        let (info, words) = (Arc::clone(&self.info), Arc::clone(&self.words));
        Block::of_part(info, self.shape, words, part, (row, 0), &mut None)
    }

    /// The run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// Whether there is no row. There may be a loss nevertheless.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of the first row; without rows, of the next one.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Rows that were overwritten before they were read, right before the first one.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Triggers that should have made a row and did not, from the row before this block to its last one. Those among rows
    /// that were lost are counted, too.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Words of a row.
    pub fn width(&self) -> usize {
        self.shape.words() as usize
    }

    /// All words, row after row.
    pub fn words(&self) -> &[u64] {
        self.words.get(self.part.clone()).unwrap_or_default()
    }

    /// The rows, one after the other.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(self.words(), self.shape)
    }

    /// When each row was made, ns on the clock of the run.
    pub fn times(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.rows().map(|row| row.time)
    }

    /// The number of each row's trigger.
    pub fn triggers(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.rows().map(|row| row.trigger)
    }

    /// The values of a channel, by its name; one that a row has twice is called `name#2` the second time.
    ///
    /// # Errors
    /// The run does not have it; the error says which it has.
    pub fn column(&self, name: &str) -> Result<TypedColumn<'_>, NoColumn> {
        let names = column_names(&self.info.channels);
        let index = names.iter().position(|column| column == name);
        let column = index.and_then(|index| self.column_at(index));
        column.ok_or_else(|| NoColumn {
            name: name.to_owned(),
            names,
        })
    }

    /// The values of a channel, by its place in the row.
    pub fn column_at(&self, index: usize) -> Option<TypedColumn<'_>> {
        Some(TypedColumn {
            channel: self.info.channels.get(index)?,
            rows: self.rows(),
            index,
        })
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("first", &self.first)
            .field("rows", &self.len())
            .field("lost", &self.lost)
            .field("missed", &self.missed)
            .finish()
    }
}

/// A run does not have this column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {name}: the run has none of this name; it has {}", names.join(", "))]
pub struct NoColumn {
    /// The name that was asked for.
    pub name: String,
    /// Those that there are.
    pub names: Vec<String>,
}

/// The values of one channel, row after row.
#[derive(Clone, Copy)]
pub struct TypedColumn<'b> {
    channel: &'b Channel,
    rows: Rows<'b>,
    index: usize,
}

impl<'b> TypedColumn<'b> {
    /// What is known of the channel: its type, its unit, its scale.
    pub fn channel(&self) -> &'b Channel {
        self.channel
    }

    /// The values in the unit of the channel; NaN where it failed.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + 'b {
        let TypedColumn { channel, index, .. } = *self;
        self.rows.map(move |row| match row.faults.failed(index) {
            true => f64::NAN,
            false => channel.value(word(&row, index)),
        })
    }

    /// All [`values`](Self::values).
    pub fn to_vec(&self) -> Vec<f64> {
        self.values().collect()
    }

    /// The words as they were read: the values of a channel of type u64. That of a row in which the channel
    /// [failed](Self::failed) means nothing.
    pub fn raw(&self) -> impl ExactSizeIterator<Item = u64> + 'b {
        let index = self.index;
        self.rows.map(move |row| word(&row, index))
    }

    /// The same with a sign: the raw values of a channel of type s64.
    pub fn raw_signed(&self) -> impl ExactSizeIterator<Item = i64> + 'b {
        self.raw().map(|word| word as i64)
    }

    /// In which rows the channel failed.
    pub fn failed(&self) -> impl ExactSizeIterator<Item = bool> + 'b {
        let index = self.index;
        self.rows.map(move |row| row.faults.failed(index))
    }

    /// Whether the channel failed in any row.
    pub fn has_failed(&self) -> bool {
        self.failed().any(|failed| failed)
    }
}

/// Every row has a word for each channel.
fn word(row: &Row<'_>, index: usize) -> u64 {
    row.values.get(index).copied().unwrap_or_default()
}

/// Words of the rows that are read at once: enough that a system call for them does not count, few enough that they stay
/// in a cache.
pub(crate) const WORDS_AT_ONCE: usize = 32 * 1024;

/// Room for rows of this width, one at least.
pub(crate) fn room(width: usize) -> usize {
    (WORDS_AT_ONCE / width.max(ROW_HEADER_WORDS)).max(1) * width
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Type;
    use crate::samples::{channel, info};

    /// Row, trigger, time, status, and the values of an unsigned, a signed and scaled, and a real channel.
    const ROWS: [[u64; 7]; 3] = [
        [5, 7, 100, 0, 9, -3_i64 as u64, 0x3FF0_0000_0000_0000],
        [6, 9, 200, 0b10 << 32, 8, 77, 0x4000_0000_0000_0000],
        [7, 10, 300, 0, u64::MAX, 4, 0],
    ];

    fn block(last: &mut Option<Place>) -> Block {
        let mut scaled = channel("adc.u", Type::S64);
        (scaled.scale, scaled.offset) = (0.5, 1.0);
        let channels = vec![
            channel("sim.counter", Type::U64),
            scaled,
            channel("adc.f", Type::F64),
        ];
        let words = ROWS.concat();
        Block::new(
            Arc::new(info(channels)),
            Arc::new(words),
            0..3,
            (0, 2),
            last,
        )
    }

    #[test]
    fn columns_have_the_values_of_their_type_and_what_failed_is_no_number() {
        let block = block(&mut None);
        assert_eq!((block.len(), block.first(), block.lost()), (3, 5, 2));
        assert_eq!(block.times().collect::<Vec<_>>(), [100, 200, 300]);
        assert_eq!(block.triggers().collect::<Vec<_>>(), [7, 9, 10]);
        let counter = block.column("sim.counter").expect("a column");
        assert_eq!(counter.raw().collect::<Vec<_>>(), [9, 8, u64::MAX]);
        let scaled = block.column("adc.u").expect("a column");
        assert_eq!(scaled.raw_signed().collect::<Vec<_>>(), [-3, 77, 4]);
        let values = scaled.to_vec();
        assert_eq!((values[0], values[2]), (-0.5, 3.0));
        assert!(values[1].is_nan() && scaled.has_failed());
        assert_eq!(scaled.failed().collect::<Vec<_>>(), [false, true, false]);
        let real = block.column_at(2).expect("a column");
        assert_eq!(real.to_vec(), [1.0, 2.0, 0.0]);
        assert!(block.column_at(3).is_none());
        let error = block.column("adc.v").err().expect("no column").to_string();
        assert_eq!(
            error,
            "column adc.v: the run has none of this name; it has sim.counter, adc.u, adc.f"
        );
    }

    #[test]
    fn who_begins_at_a_row_gets_it_and_what_follows_and_has_lost_nothing_before() {
        // Rows 3 and 4 were lost, triggers 5 and 6 missed.
        let block = block(&mut Some(Place::START));
        let said = |row: u64| {
            let block = block.since(row);
            (block.len(), block.first(), block.lost(), block.missed())
        };
        assert_eq!(
            [said(0), said(4), said(5)],
            [(3, 5, 2, 3), (3, 5, 1, 3), (3, 5, 0, 3)]
        );
        assert_eq!(
            [said(6), said(7), said(8)],
            [(2, 6, 0, 0), (1, 7, 0, 0), (0, 8, 0, 0)]
        );
        assert_eq!(block.since(6).times().collect::<Vec<_>>(), [200, 300]);
    }

    #[test]
    fn what_was_missed_is_reckoned_from_the_row_before() {
        assert_eq!(block(&mut None).missed(), 1, "between these rows");
        // Rows 0 to 4 were lost or read; triggers 5 and 6 were missed before row 5.
        assert_eq!(block(&mut Some(Place::START)).missed(), 3);
        let mut last = Some(Place::START);
        let first = block(&mut last);
        let next = [8, 13, 400, 0, 0, 0, 0];
        let info = Arc::new(first.info().clone());
        let next = Block::new(info, Arc::new(next.to_vec()), 0..1, (0, 0), &mut last);
        assert_eq!((next.first(), next.missed()), (8, 2));
    }
}
