// SPDX-License-Identifier: MIT OR Apache-2.0
//! From columns to rows as the ring had them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use strobe_ring::RowShape;
use strobe_ring::layout::{ROW_HEADER_WORDS, STATUS_FAULTS};

use crate::sink::table::rows_at_once;

/// Columns into rows of words; `None` if they are not those of a recording.
pub(super) fn interleave(batch: &RecordBatch, shape: RowShape, words: &mut Vec<u64>) -> Option<()> {
    let (width, rows) = (shape.words() as usize, batch.num_rows());
    words.clear();
    words.reserve(width * rows);
    for begin in (0..rows).step_by(rows_at_once(width)) {
        let part = batch.slice(begin, rows_at_once(width).min(rows - begin));
        let before = words.len();
        // Cleared part by part: what is near is written again at once.
        words.resize(before + width * part.num_rows(), 0);
        let (_, words) = words.split_at_mut(before);
        interleave_part(&part, shape, words)?;
    }
    Some(())
}

fn interleave_part(batch: &RecordBatch, shape: RowShape, words: &mut [u64]) -> Option<()> {
    let width = shape.words() as usize;
    let header = ROW_HEADER_WORDS + usize::from(shape.skipped);
    let channels = shape.channels as usize;
    for (index, column) in batch.columns().iter().enumerate() {
        let Some(step) = index.checked_sub(header) else {
            if column.null_count() > 0 {
                return None;
            }
            let place = match index {
                ROW_HEADER_WORDS => width - 1,
                index => index,
            };
            copy(column, words, place, width)?;
            continue;
        };
        if step < channels {
            copy(column, words, ROW_HEADER_WORDS + step, width)?;
        } else if column.data_type() != &DataType::Boolean {
            return None;
        }
        // Nearly always nothing failed.
        if column.null_count() > 0 {
            for (number, row) in words.chunks_exact_mut(width).enumerate() {
                if column.is_null(number) {
                    fail(row, channels, step);
                }
            }
        }
    }
    Some(())
}

/// The words of a column to their place in each row.
fn copy(column: &ArrayRef, words: &mut [u64], place: usize, width: usize) -> Option<()> {
    let places = words.iter_mut().skip(place).step_by(width);
    match column.data_type() {
        DataType::UInt64 => places
            .zip(column.as_primitive::<UInt64Type>().values())
            .for_each(|(to, value)| *to = *value),
        DataType::Int64 => places
            .zip(column.as_primitive::<Int64Type>().values())
            .for_each(|(to, value)| *to = *value as u64),
        DataType::Float64 => places
            .zip(column.as_primitive::<Float64Type>().values())
            .for_each(|(to, value)| *to = value.to_bits()),
        _ => return None,
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
