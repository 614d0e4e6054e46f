// SPDX-License-Identifier: MIT OR Apache-2.0
//! From rows to the bytes of a frame.
//!
//! Values go out as they mean something: a scaled channel as a double, any other with all its 64 bits. A client passes
//! them through then, whether it asked for raw values or for scaled ones. A channel that failed is NaN, or, where there
//! is no NaN, the number that no channel has: all ones, or the least; `PCAP.BITS0` says so as well.

mod columns;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use strobe::block::Block;
use strobe::channel::{Channel, Type};
use strobe::info::RunInfo;
use strobe::ring::{Row, Rows};

use super::capture::{Capture, How, Origin, SAMPLES};
use super::field::Extra;
use super::wire::Frame;
use columns::Columns;

/// `PCAP.BITS0`: a channel failed.
const FAILED: u32 = 1;
/// `PCAP.BITS0`: triggers were missed right before the row.
const MISSED: u32 = 2;
/// `PCAP.BITS0`: rows right before the row were lost to this client.
const LOST: u32 = 4;

/// Bytes of rows that are encoded at once: with what is made of them they stay in a CPU's nearest cache.
const NEAR: usize = 8 << 10;

/// Makes one column.
#[derive(Clone)]
enum Cell {
    /// The word as it is, and what is there if the channel failed.
    Word(usize, u64),
    /// The value.
    Value(usize, Type, f64, f64),
    /// The sum of so many values: of their words, and where it is said how many.
    Sum(usize, Type, f64, f64, usize),
    /// The difference from the row before, and the word there.
    Diff(usize, Type, f64, Option<u64>),
    Row,
    Trigger,
    Time,
    Duration,
    Bits,
}

/// A frame of rows, for all readers of the same columns.
#[derive(Clone)]
pub struct Made {
    pub bytes: Arc<[u8]>,
    /// What makes the rows that follow.
    pub after: Encoder,
}

/// The row before.
#[derive(Clone, Copy)]
struct Before {
    row: u64,
    trigger: u64,
    skipped: u64,
    time: u64,
}

/// Makes the columns of one reader.
#[derive(Clone)]
pub struct Encoder {
    /// When the run began.
    begun: u64,
    cells: Vec<Cell>,
    row_bytes: usize,
    /// The quick way for rows in which nothing failed, if there is one.
    columns: Option<Columns>,
    before: Option<Before>,
    /// Whether rows were lost since then.
    has_lost: bool,
}

impl Encoder {
    /// For these columns of the rows of a run that has begun.
    pub fn new(captures: &[Capture], of: &RunInfo) -> Self {
        let cells = captures.iter().map(|c| cell(c, &of.channels));
        let cells: Vec<Cell> = cells.collect();
        Encoder {
            begun: of.start.time,
            columns: Columns::new(&cells),
            cells,
            row_bytes: super::capture::row_bytes(captures),
            before: None,
            has_lost: false,
        }
    }

    /// Rows before the next one are not there.
    pub fn lose(&mut self) {
        self.before = None;
        self.has_lost = true;
        for cell in &mut self.cells {
            if let Cell::Diff(_, _, _, before) = cell {
                *before = None;
            }
        }
    }

    /// Rows that are not given, but stand right before the next one.
    pub fn remember(&mut self, block: &Block) {
        self.encode(block, &mut Frame::new(0));
        self.has_lost = false;
    }

    /// Whether all that is to be known of what is before this row is known: what is made of it is the same for every reader.
    pub fn knows_before(&self, row: u64) -> bool {
        let before = self.before.map_or(0, |before| before.row + 1);
        before == row && !self.has_lost
    }

    /// Appends the rows of this block.
    pub fn encode(&mut self, block: &Block, to: &mut Frame) {
        let out = to.more(block.len() * self.row_bytes);
        let (begun, width, shape) = (self.begun, block.width(), block.info().shape());
        let at_once = (NEAR / self.row_bytes.max(8 * width)).max(1);
        let parts = block.words().chunks(width * at_once);
        for (words, out) in parts.zip(out.chunks_mut((self.row_bytes * at_once).max(1))) {
            let rows = Rows::new(words, shape);
            let is_whole = |_: &&Columns| rows.into_iter().all(|row| row.faults.is_empty());
            match self.columns.as_ref().filter(is_whole) {
                Some(columns) => {
                    columns.put(
                        words,
                        width,
                        (begun, self.time_before(words.first().copied())),
                        out,
                    );
                    if let Some(last) = rows.last() {
                        self.follow(&last);
                    }
                }
                None => {
                    for (row, out) in rows.zip(out.chunks_exact_mut(self.row_bytes.max(1))) {
                        self.row(&row, begun, out);
                    }
                }
            }
        }
    }

    /// When the row before this one was made: before the first one of all there is the start.
    fn time_before(&self, first: Option<u64>) -> Option<u64> {
        match self.before {
            Some(before) => Some(before.time),
            None => (first == Some(0)).then_some(self.begun),
        }
    }

    /// The next row comes after this one.
    fn follow(&mut self, row: &Row<'_>) {
        self.has_lost = false;
        self.before = Some(Before {
            row: row.row,
            trigger: row.trigger,
            skipped: row.skipped,
            time: row.time,
        });
    }

    fn row(&mut self, row: &Row<'_>, begun: u64, mut out: &mut [u8]) {
        let missed = match self.before {
            Some(before) => missed_since(&before, row),
            None if row.row == 0 => row.trigger > row.skipped,
            None => false,
        };
        let mut put = |bytes: &[u8]| {
            let rest = std::mem::take(&mut out);
            if let Some((cell, rest)) = rest.split_at_mut_checked(bytes.len()) {
                cell.copy_from_slice(bytes);
                out = rest;
            }
        };
        for cell in &mut self.cells {
            match cell {
                Cell::Word(index, failed) => match row.faults.failed(*index) {
                    true => put(&failed.to_le_bytes()),
                    false => put(&word(row, *index).to_le_bytes()),
                },
                Cell::Value(index, kind, scale, offset) => {
                    let value = match row.faults.failed(*index) {
                        true => f64::NAN,
                        false => kind.number(word(row, *index)) * *scale + *offset,
                    };
                    put(&value.to_le_bytes());
                }
                Cell::Sum(index, kind, scale, offset, samples) => {
                    let value = match row.faults.failed(*index) {
                        true => f64::NAN,
                        false => {
                            let offsets = word(row, *samples) as f64 * *offset;
                            kind.number(word(row, *index)) * *scale + offsets
                        }
                    };
                    put(&value.to_le_bytes());
                }
                Cell::Diff(index, kind, scale, before) => {
                    let now = (!row.faults.failed(*index)).then(|| word(row, *index));
                    let value = match (*before, now) {
                        (Some(before), Some(now)) => difference(*kind, before, now) * *scale,
                        _ => f64::NAN,
                    };
                    *before = now;
                    put(&value.to_le_bytes());
                }
                Cell::Row => put(&row.row.to_le_bytes()),
                Cell::Trigger => put(&row.trigger.to_le_bytes()),
                Cell::Time => put(&seconds(row.time.wrapping_sub(begun)).to_le_bytes()),
                Cell::Duration => {
                    let since = match self.before {
                        Some(before) => seconds(row.time.wrapping_sub(before.time)),
                        None if row.row == 0 => seconds(row.time.wrapping_sub(begun)),
                        None => f64::NAN,
                    };
                    put(&since.to_le_bytes());
                }
                Cell::Bits => {
                    let bit = |is: bool, bit: u32| if is { bit } else { 0 };
                    let bits = bit(!row.faults.is_empty(), FAILED)
                        | bit(missed, MISSED)
                        | bit(self.has_lost, LOST);
                    put(&bits.to_le_bytes());
                }
            }
        }
        self.follow(row);
    }
}

fn cell(capture: &Capture, values: &[Channel]) -> Cell {
    match &capture.from {
        Origin::Extra(Extra::Time) => return Cell::Time,
        Origin::Extra(Extra::Row) => return Cell::Row,
        Origin::Extra(Extra::Trigger) => return Cell::Trigger,
        Origin::Extra(Extra::Duration) => return Cell::Duration,
        Origin::Extra(Extra::Bits) => return Cell::Bits,
        Origin::Extra(Extra::Samples) | Origin::Channel(_) => {}
    }
    let place = |name: &str| values.iter().position(|value| value.name == name);
    let index = capture.column().and_then(|name| place(&name));
    let index = index.unwrap_or(usize::MAX);
    let kind = values.get(index).map_or(Type::U64, |value| value.kind);
    // What was computed of words has a scale of its own: a mean is a sum and its divisor.
    let of_samples = || values.get(index).map_or(1.0, |value| value.scale);
    let scaling = &capture.scaling;
    let scale = match capture.is_of_samples() {
        true => scaling.scale * of_samples(),
        false => scaling.scale,
    };
    match capture.how {
        How::Diff => Cell::Diff(index, kind, scale, None),
        How::Sum if scaling.offset != 0.0 => {
            let samples = place(SAMPLES).unwrap_or(usize::MAX);
            Cell::Sum(index, kind, scale, scaling.offset, samples)
        }
        How::Mean => Cell::Value(index, kind, scale, scaling.offset),
        _ if capture.is_scaled() => Cell::Value(index, kind, scale, scaling.offset),
        _ => match kind {
            Type::F64 => Cell::Word(index, f64::NAN.to_bits()),
            Type::S64 => Cell::Word(index, i64::MIN as u64),
            Type::U64 => Cell::Word(index, u64::MAX),
        },
    }
}

fn word(row: &Row<'_>, index: usize) -> u64 {
    row.values.get(index).copied().unwrap_or_default()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Of whole numbers exact, as long as a double is.
fn difference(kind: Type, before: u64, now: u64) -> f64 {
    match kind {
        Type::F64 => f64::from_bits(now) - f64::from_bits(before),
        Type::U64 | Type::S64 => now.wrapping_sub(before) as i64 as f64,
    }
}

fn missed_since(before: &Before, row: &Row<'_>) -> bool {
    let triggers = row.trigger.wrapping_sub(before.trigger);
    let rows = row.row.wrapping_sub(before.row);
    let skipped = row.skipped.wrapping_sub(before.skipped);
    triggers > rows.saturating_add(skipped)
}
