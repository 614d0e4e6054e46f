// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as columns of Arrow: what `.arrows` and `.parquet` have in common.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use strobe::channel::{Channel, Type};
use strobe::info::{RunInfo, Totals, known_causes};
use strobe_ring::layout::{ROW_FAULTS, ROW_HEADER_WORDS};
use strobe_ring::{RowShape, Rows};

use super::check_shape;
use crate::fields;

/// What the columns and metadata mean; a reader refuses another number. 1, which was not written down, had 0
/// where a channel had failed.
pub(crate) const FORMAT: &str = "2";
/// The column that counts the triggers skipped before a row, of a run that can skip.
pub(crate) const SKIPPED: &str = "skipped";

/// Rows of so many words that are made columns of, or out of columns, at once: they stay in a CPU's nearest cache, where
/// one column after the other looks at all of them.
pub(crate) fn rows_at_once(width: usize) -> usize {
    const WORDS: usize = 2048;
    (WORDS / width.max(1)).max(1)
}

/// Rows that wait to become a record batch, column by column.
pub(super) struct Columns {
    schema: SchemaRef,
    shape: RowShape,
    /// What is in every row: `row`, `trigger`, `time`, `status`, and `skipped` if the run can skip.
    header: Vec<Column>,
    channels: Vec<Column>,
    /// Whether an output was written, row by row.
    outputs: Vec<NullBufferBuilder>,
}

/// A word of each row.
struct Column {
    /// Which word of the row.
    place: usize,
    kind: Type,
    words: Vec<u64>,
    /// Which words are values. Takes no memory before the first that is none.
    valid: NullBufferBuilder,
}

impl Columns {
    /// For the rows of this run.
    pub(super) fn new(info: &RunInfo) -> Self {
        let shape = info.shape();
        let last = shape.words() as usize - 1;
        let skipped = shape.skipped.then_some(last);
        let header = (0..ROW_HEADER_WORDS).chain(skipped);
        let channels = info.channels.iter().map(|c| c.kind);
        let places = ROW_HEADER_WORDS..;
        Columns {
            schema: Arc::new(schema(info, None)),
            shape,
            header: header.map(|place| Column::new(place, Type::U64)).collect(),
            channels: places
                .zip(channels)
                .map(|(place, kind)| Column::new(place, kind))
                .collect(),
            outputs: info
                .outputs
                .iter()
                .map(|_| NullBufferBuilder::new(0))
                .collect(),
        }
    }

    /// The schema of all batches: that of a run that is not over.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many columns each row has of its own, before its channels.
    pub(super) fn header(&self) -> usize {
        self.header.len()
    }

    pub(super) fn rows(&self) -> usize {
        self.header.first().map_or(0, |column| column.words.len())
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, rows: usize) {
        for column in self.header.iter_mut().chain(&mut self.channels) {
            column.words.reserve(rows);
        }
    }

    pub(super) fn add(&mut self, rows: Rows<'_>) -> io::Result<()> {
        check_shape(rows, self.shape)?;
        let before = self.rows();
        let width = self.shape.words() as usize;
        for part in rows.words().chunks(width * rows_at_once(width)) {
            for column in self.header.iter_mut().chain(&mut self.channels) {
                let word = |row: &[u64]| row.get(column.place).copied().unwrap_or_default();
                column.words.extend(part.chunks_exact(width).map(word));
            }
        }
        let mut faulty = false;
        if let Some(status) = self.header.get_mut(STATUS) {
            // What failed is null; the column has the flags.
            for word in status.words.iter_mut().skip(before) {
                faulty |= *word & ROW_FAULTS != 0;
                *word &= !ROW_FAULTS;
            }
        }
        if self.shape.fault_words() > 0 {
            // So many steps that the status has no room for all, which is seldom.
            let mut each = rows;
            faulty |= each.any(|row| !row.faults.is_empty());
        }
        let channels = self.channels.iter_mut().map(|column| &mut column.valid);
        for (index, valid) in channels.chain(&mut self.outputs).enumerate() {
            match faulty {
                false => valid.append_n_non_nulls(rows.len()),
                true => rows.for_each(|row| valid.append(!row.faults.failed(index))),
            }
        }
        Ok(())
    }

    /// Memory of a batch that is not needed any more: the next rows go there. Memory that is fresh each time costs a page
    /// fault for each 4 KiB.
    pub(super) fn give_back(&mut self, buffers: Vec<Buffer>) {
        let mut memory = buffers.into_iter().filter_map(|buffer| {
            // Only a column's own memory is that of words; and what one burst of rows has taken is not kept for ever.
            let words = buffer.into_vec::<u64>().ok()?;
            (words.capacity() <= 4 * words.len()).then_some(words)
        });
        for column in self.header.iter_mut().chain(&mut self.channels) {
            if column.words.capacity() == 0 {
                column.words = memory.next().unwrap_or_default();
                column.words.clear();
            }
        }
    }

    /// All rows as a batch; none are left.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows();
        let columns = self.header.iter_mut().chain(&mut self.channels);
        let columns = columns.map(Column::take);
        let outputs = self.outputs.iter_mut().map(|valid| -> ArrayRef {
            let written = BooleanBuffer::new_set(rows);
            Arc::new(BooleanArray::new(written, valid.finish()))
        });
        RecordBatch::try_new(Arc::clone(&self.schema), columns.chain(outputs).collect())
    }
}

/// The word of a row that has its flags.
pub(super) const STATUS: usize = 3;

impl Column {
    fn new(place: usize, kind: Type) -> Self {
        Column {
            place,
            kind,
            words: Vec::new(),
            valid: NullBufferBuilder::new(0),
        }
    }

    fn take(&mut self) -> ArrayRef {
        array(
            std::mem::take(&mut self.words),
            self.kind,
            self.valid.finish(),
        )
    }
}

/// A column of words, understood by type; the words stay where they are.
fn array(words: Vec<u64>, kind: Type, valid: Option<NullBuffer>) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(words: Vec<u64>, valid: Option<NullBuffer>) -> ArrayRef {
        let rows = words.len();
        let values = ScalarBuffer::new(Buffer::from_vec(words), 0, rows);
        Arc::new(PrimitiveArray::<T>::new(values, valid))
    }
    match kind {
        Type::U64 => of::<UInt64Type>(words, valid),
        Type::S64 => of::<Int64Type>(words, valid),
        Type::F64 => of::<Float64Type>(words, valid),
    }
}

/// What every row has: name, unit, description.
pub(super) const HEADER: [(&str, &str, &str); ROW_HEADER_WORDS] = [
    (
        "row",
        "",
        "number of the row; a step of more than 1 is rows lost",
    ),
    (
        "trigger",
        "",
        "number of the trigger; where it steps more than row and skipped, triggers were missed",
    ),
    (
        "time",
        "ns",
        "when the row was made, on the clock of the run",
    ),
    (
        "status",
        "",
        "bit 0: first after a pause or a suspend; bit 1: a period late",
    ),
];
/// What the rows of a run that can skip have too.
pub(super) const SKIPPED_COLUMN: (&str, &str, &str) = (
    SKIPPED,
    "",
    "triggers left out on purpose before this row, since the start of the run",
);

/// The schema of a run; of a fixed length, whatever the totals.
pub(super) fn schema(info: &RunInfo, totals: Option<&Totals>) -> Schema {
    let skipped = info.skips.then_some(SKIPPED_COLUMN);
    let header = HEADER.into_iter().chain(skipped);
    let header = header.map(|(name, unit, description)| {
        let metadata = [("unit", unit), ("description", description)];
        Field::new(name, DataType::UInt64, false).with_metadata(map(metadata))
    });
    let names = info.fault_names();
    let (channel_names, output_names) = names.split_at(info.channels.len());
    let channels = (info.channels.iter().zip(channel_names)).map(|(channel, name)| {
        let data_type = match channel.kind {
            Type::U64 => DataType::UInt64,
            Type::S64 => DataType::Int64,
            Type::F64 => DataType::Float64,
        };
        Field::new(name, data_type, true).with_metadata(metadata(channel))
    });
    let outputs = (info.outputs.iter().zip(output_names)).map(|(output, name)| {
        let description = "true where it was written, null where that failed";
        let metadata = [("output", output.as_str()), ("description", description)];
        Field::new(name, DataType::Boolean, true).with_metadata(map(metadata))
    });
    let fields: Vec<Field> = header.chain(channels).chain(outputs).collect();
    Schema::new_with_metadata(fields, run_metadata(info, totals))
}

fn metadata(of: &Channel) -> HashMap<String, String> {
    let fields = fields::of_channel(of);
    (fields.into_iter())
        .map(|(name, value)| (name, fields::text(&value)))
        .collect()
}

fn run_metadata(info: &RunInfo, totals: Option<&Totals>) -> HashMap<String, String> {
    // The length of these values never changes between begin and finish.
    let number = |value: Option<u64>| match value {
        Some(value) => format!("{value:020}"),
        None => " ".repeat(20),
    };
    let of = |part: fn(&Totals) -> u64| number(totals.map(part));
    let mut metadata = map([
        ("strobe.format", FORMAT),
        ("strobe.version", env!("CARGO_PKG_VERSION")),
        ("strobe.complete", if totals.is_some() { "1" } else { "0" }),
        (
            "strobe.end",
            &format!("{:8}", totals.map_or("", |t| t.end.word())),
        ),
        ("strobe.end_time_ns", &of(|t| t.end_time_ns)),
        ("strobe.rows", &of(|t| t.rows)),
        ("strobe.triggers", &of(|t| t.triggers)),
        ("strobe.missed", &of(Totals::missed)),
        ("strobe.skipped", &of(|t| t.skipped)),
        ("strobe.lost", &of(|t| t.lost)),
        ("strobe.errors", &of(|t| t.errors)),
    ]);
    let fields = fields::of_run(info).into_iter();
    metadata.extend(fields.map(|(name, value)| (format!("strobe.{name}"), fields::text(&value))));
    // Causes that a later module may know are in the sum only.
    for (cause, name) in known_causes().enumerate() {
        let count = totals.and_then(|t| t.missed_by.get(cause).copied());
        metadata.insert(format!("strobe.missed.{name}"), number(count));
    }
    metadata
}

fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> HashMap<String, String> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    pairs.into_iter().map(owned).collect()
}
