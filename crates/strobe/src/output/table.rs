// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as columns of Arrow: what `.arrows` and `.parquet` have in common.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use serde::Serialize;
use strobe_ring::layout::ROW_HEADER_WORDS;
use strobe_ring::{Missed, Rows};

use crate::channel::{column_names, Channel, Type};
use crate::info::{RunInfo, Totals};

/// Rows that wait to become a record batch, column by column.
pub(super) struct Columns {
    schema: SchemaRef,
    kinds: Vec<Type>,
    words: Vec<Vec<u64>>,
}

impl Columns {
    /// For the rows of this run.
    pub(super) fn new(info: &RunInfo) -> Self {
        let kinds = info.channels.iter().map(|c| c.kind);
        let kinds: Vec<Type> = [Type::U64; ROW_HEADER_WORDS]
            .into_iter()
            .chain(kinds)
            .collect();
        Columns {
            schema: Arc::new(schema(info, None)),
            words: vec![Vec::new(); kinds.len()],
            kinds,
        }
    }

    /// The schema of all batches: that of a run that is not over.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> usize {
        self.words.first().map_or(0, Vec::len)
    }

    pub(super) fn add(&mut self, rows: Rows<'_>) {
        let width = self.words.len();
        for (index, column) in self.words.iter_mut().enumerate() {
            column.extend(rows.words().iter().skip(index).step_by(width));
        }
    }

    /// All rows as a batch; none are left.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.words.iter_mut().zip(&self.kinds);
        let arrays = columns
            .map(|(column, kind)| array(std::mem::take(column), *kind))
            .collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}

/// A column of words, understood by type; the words stay where they are.
fn array(words: Vec<u64>, kind: Type) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(words: Vec<u64>) -> ArrayRef {
        let rows = words.len();
        let values = ScalarBuffer::new(Buffer::from_vec(words), 0, rows);
        Arc::new(PrimitiveArray::<T>::new(values, None))
    }
    match kind {
        Type::U64 => of::<UInt64Type>(words),
        Type::S64 => of::<Int64Type>(words),
        Type::F64 => of::<Float64Type>(words),
    }
}

/// The schema of a run; of a fixed length, whatever the totals.
pub(super) fn schema(info: &RunInfo, totals: Option<&Totals>) -> Schema {
    let header = [
        ("row", "", "number of the row; a step of more than 1 is rows lost"),
        ("trigger", "", "number of the trigger; where it steps more than row, triggers were missed"),
        ("time", "ns", "when the row was made, on the clock of the run"),
        ("status", "", "bit 0: first after a pause; bit 1: a period late; from bit 32: 1 + index of a failed channel"),
    ];
    let header = header.into_iter().map(|(name, unit, description)| {
        let metadata = [("unit", unit), ("description", description)];
        Field::new(name, DataType::UInt64, false).with_metadata(map(metadata))
    });
    let names = column_names(&info.channels);
    let channels = info
        .channels
        .iter()
        .zip(names)
        .map(|(c, name)| field(c, name));
    let fields: Vec<Field> = header.chain(channels).collect();
    Schema::new_with_metadata(fields, run_metadata(info, totals))
}

fn field(channel: &Channel, name: String) -> Field {
    let data_type = match channel.kind {
        Type::U64 => DataType::UInt64,
        Type::S64 => DataType::Int64,
        Type::F64 => DataType::Float64,
    };
    Field::new(name, data_type, false).with_metadata(map([
        ("channel", channel.name.as_str()),
        ("unit", &channel.unit),
        ("scale", &channel.scale.to_string()),
        ("offset", &channel.offset.to_string()),
        ("type", channel.kind.name()),
        ("class", channel.class.name()),
        ("bits", &channel.bits.to_string()),
        ("description", &channel.description),
    ]))
}

/// A list of what was got of a real-time set-up, or seen of the machine, as JSON; empty if there is nothing in it.
pub(super) fn json<T: Serialize>(list: &[T]) -> String {
    match list {
        [] => String::new(),
        // Texts and flags only: it always can be written.
        list => serde_json::to_string(list).unwrap_or_default(),
    }
}

fn run_metadata(info: &RunInfo, totals: Option<&Totals>) -> HashMap<String, String> {
    // The length of these values never changes between begin and finish.
    let number = |value: Option<u64>| match value {
        Some(value) => format!("{value:020}"),
        None => " ".repeat(20),
    };
    let of = |part: fn(&Totals) -> u64| number(totals.map(part));
    let optional = |value: Option<u64>| value.map_or(String::new(), |v| v.to_string());
    let mut metadata = map([
        ("strobe.version", env!("CARGO_PKG_VERSION")),
        ("strobe.engine", info.engine.name()),
        ("strobe.kernel", &info.kernel),
        ("strobe.event", &info.event),
        ("strobe.run", &info.run.to_string()),
        ("strobe.clock", info.clock.name()),
        ("strobe.set_up", &json(&info.set_up)),
        ("strobe.doctor", &json(&info.doctor)),
        ("strobe.period_ns", &optional(info.period_ns)),
        ("strobe.capacity", &info.capacity.to_string()),
        ("strobe.limit", &optional(info.limit)),
        ("strobe.start_time_ns", &info.start.time.to_string()),
        ("strobe.start_realtime_ns", &info.start.realtime.to_string()),
        ("strobe.start_tai_ns", &info.start.tai.to_string()),
        ("strobe.first_due_ns", &optional(info.first_due_ns())),
        ("strobe.complete", if totals.is_some() { "1" } else { "0" }),
        (
            "strobe.end",
            &format!("{:8}", totals.map_or("", |t| t.end.word())),
        ),
        ("strobe.end_time_ns", &of(|t| t.end_time_ns)),
        ("strobe.rows", &of(|t| t.rows)),
        ("strobe.triggers", &of(|t| t.triggers)),
        ("strobe.missed", &of(Totals::missed)),
        ("strobe.lost", &of(|t| t.lost)),
        ("strobe.errors", &of(|t| t.errors)),
    ]);
    // Causes that a later module may know are in the sum only.
    for cause in [
        Missed::Overrun,
        Missed::Busy,
        Missed::Throttled,
        Missed::Source,
    ] {
        let count = totals.and_then(|t| t.missed_by.get(cause as usize).copied());
        metadata.insert(format!("strobe.missed.{}", cause.name()), number(count));
    }
    metadata
}

fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> HashMap<String, String> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    pairs.into_iter().map(owned).collect()
}
