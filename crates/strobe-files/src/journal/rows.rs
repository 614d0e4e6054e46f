// SPDX-License-Identifier: MIT OR Apache-2.0
//! From columns to rows as the ring had them.

use arrow_array::{Array, RecordBatch};
use strobe_ring::RowShape;
use strobe_ring::layout::{ROW_HEADER_WORDS, STATUS_FAULTS};

use super::columns::Columns;
use crate::sink::table::rows_at_once;

/// Columns into rows of words; `None` if they are not those of a recording.
pub(super) fn interleave(batch: &RecordBatch, shape: RowShape, words: &mut Vec<u64>) -> Option<()> {
    let (width, rows) = (shape.words() as usize, batch.num_rows());
    let columns = Columns::of(batch, shape)?;
    words.clear();
    words.reserve(width * rows);
    for begin in (0..rows).step_by(rows_at_once(width)) {
        let part = begin..rows.min(begin + rows_at_once(width));
        // Cleared part by part: what is near is written again at once.
        words.resize(width * part.end, 0);
        let (_, words) = words.split_at_mut(width * begin);
        for (place, column) in columns.all().enumerate() {
            let places = words.iter_mut().skip(place).step_by(width);
            let values = column.get(part.clone()).unwrap_or_default();
            places.zip(values).for_each(|(to, value)| *to = *value);
        }
    }
    let header = ROW_HEADER_WORDS + usize::from(shape.skipped);
    for (step, column) in batch.columns().iter().skip(header).enumerate() {
        // Nearly always nothing failed.
        if column.null_count() > 0 {
            for (number, row) in words.chunks_exact_mut(width).enumerate() {
                if column.is_null(number) {
                    fail(row, shape.channels as usize, step);
                }
            }
        }
    }
    Some(())
}

/// Says in the words of a row that this channel or output failed.
pub(super) fn fail(row: &mut [u64], channels: usize, step: usize) {
    let status = STATUS_FAULTS as usize;
    let (place, bit) = match step.checked_sub(status) {
        None => (ROW_HEADER_WORDS - 1, status + step),
        Some(beyond) => (ROW_HEADER_WORDS + channels + beyond / 64, beyond % 64),
    };
    if let Some(word) = row.get_mut(place) {
        *word |= 1 << bit;
    }
}
