// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of a batch, as words.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use strobe_ring::RowShape;
use strobe_ring::layout::ROW_HEADER_WORDS;

/// The words of some rows, one column after the other. They stay where they were read to.
pub struct Columns {
    rows: usize,
    shape: RowShape,
    /// By their places in a row; those of words that say what failed are empty.
    words: Vec<ScalarBuffer<u64>>,
    /// Nothing failed in any row.
    pub(super) is_whole: bool,
}

impl Columns {
    /// `None`: a recording has others.
    pub(super) fn of(batch: &RecordBatch, shape: RowShape) -> Option<Columns> {
        let header = ROW_HEADER_WORDS + usize::from(shape.skipped);
        let channels = shape.channels as usize;
        let mut columns = Columns {
            rows: batch.num_rows(),
            shape,
            words: vec![ScalarBuffer::default(); shape.words() as usize],
            is_whole: true,
        };
        for (index, column) in batch.columns().iter().enumerate() {
            let has_failed = column.null_count() > 0;
            let place = match index.checked_sub(header) {
                None if has_failed => return None,
                None if index == ROW_HEADER_WORDS => last(shape),
                None => index,
                Some(step) if step < channels => ROW_HEADER_WORDS + step,
                // Whether an output was written.
                Some(_) if column.data_type() == &DataType::Boolean => {
                    columns.is_whole &= !has_failed;
                    continue;
                }
                Some(_) => return None,
            };
            columns.is_whole &= !has_failed;
            *columns.words.get_mut(place)? = words(column)?;
        }
        Some(columns)
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The words at this place of the rows; none, if they only say what failed.
    pub fn at(&self, place: usize) -> &[u64] {
        self.words.get(place).map_or(&[], |words| words)
    }

    /// Triggers that were skipped before each row; none, if the run cannot skip.
    pub fn skipped(&self) -> &[u64] {
        match self.shape.skipped {
            true => self.at(last(self.shape)),
            false => &[],
        }
    }

    /// All of them, by their places in a row.
    pub(super) fn all(&self) -> impl Iterator<Item = &[u64]> {
        self.words.iter().map(|words| &**words)
    }
}

/// The last word of a row.
fn last(shape: RowShape) -> usize {
    shape.words() as usize - 1
}

/// The words of a column, whatever they mean.
fn words(column: &ArrayRef) -> Option<ScalarBuffer<u64>> {
    let words = match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().values().inner(),
        DataType::Int64 => column.as_primitive::<Int64Type>().values().inner(),
        DataType::Float64 => column.as_primitive::<Float64Type>().values().inner(),
        _ => return None,
    };
    Some(ScalarBuffer::from(words.clone()))
}

#[cfg(test)]
mod tests {
    use crate::journal::{ReadBatch, Segment};
    use crate::sink::{Sink, arrow::ArrowFile};
    use strobe::samples::every_type;
    use strobe_ring::Rows;

    #[test]
    fn a_batch_in_which_nothing_failed_is_columns_with_the_words_of_its_rows_and_another_one_is_rows()
     {
        let info = every_type();
        let (shape, width) = (info.shape(), info.shape().words() as usize);
        let row = |number: u64| (0..width as u64).map(move |word| 100 * number + word);
        let rows = |numbers: [u64; 3], status: u64| {
            let mut words: Vec<u64> = numbers.into_iter().flat_map(row).collect();
            for (row, number) in words.chunks_exact_mut(width).zip(numbers) {
                (row[0], row[3]) = (number, 0);
            }
            words[width + 3] = status;
            words
        };
        let last_step = u64::from(shape.channels) + info.outputs.len() as u64 - 1;
        let all = [0, 1 << 32, 1 << (32 + last_step), 1];
        let batches: Vec<_> = (0..).step_by(3).zip(all).collect();
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut sink = ArrowFile::new(file.reopen().expect("a file"));
        sink.begin(&info).expect("begin");
        for (first, status) in &batches {
            let words = rows([*first, first + 1, first + 2], *status);
            sink.write(Rows::new(&words, shape)).expect("write");
            sink.flush().expect("flush");
        }
        let end = sink.written().bytes;
        let mut segment = Segment::open(file.path(), end).expect("a segment");
        for (first, status) in batches {
            let stored = segment.stored(first, u64::MAX, 1, end).expect("a file");
            let words = rows([first, first + 1, first + 2], status);
            let columns = match stored.expect("a batch").read().expect("rows") {
                ReadBatch::Columns(columns) if status < 1 << 32 => columns,
                ReadBatch::Words(read) if status >= 1 << 32 => {
                    assert_eq!(read, words);
                    continue;
                }
                _ => panic!("columns of what failed, or rows of what has not"),
            };
            assert_eq!(columns.rows(), 3);
            for place in (0..width).filter(|place| *place != 3) {
                let of_rows = words.iter().skip(place).step_by(width);
                assert!(columns.at(place).iter().eq(of_rows), "{place}");
            }
            assert_eq!(columns.skipped(), columns.at(width - 1));
            assert!(columns.at(width).is_empty());
        }
    }
}
