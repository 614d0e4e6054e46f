// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrow IPC stream: the journal that survives a crash.
//!
//! Columns are `row`, `trigger`, `time` (nanoseconds on the clock of the run)
//! and `status`, all u64, and one a channel of the channel's own type, holding
//! its raw words; `scale`, `offset`, `unit`, `type`, `class` and `description`
//! are metadata of the field. What is known of the run is metadata of the
//! schema, by keys that start with `strobe.`.
//!
//! The account of the run is only known at its end, but a stream begins with
//! its schema. So the schema is written with room for it: blanks where numbers
//! of fixed width will be, and `strobe.complete` "0". At the end the same
//! schema is written again in the same place, with the account and "1". A file
//! whose writer was killed, or that went into a pipe, says "0" and has blanks;
//! its losses are still in it, as steps of `row` and `trigger`.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use strobe_ring::layout::ROW_HEADER_WORDS;
use strobe_ring::{Missed, Rows};

use super::{Appender, Output, Written};
use crate::channel::{column_names, Channel, Type};
use crate::info::{RunInfo, Totals};

/// Rows of one record batch, at most.
const BATCH_ROWS: usize = 65_536;

/// An Arrow IPC stream in a file, or a pipe.
pub struct ArrowFile {
    file: Appender,
    writing: Option<Writing>,
}

/// What there is between `begin` and `finish`.
struct Writing {
    info: RunInfo,
    schema: SchemaRef,
    /// Makes bytes; they are in its vector until they are appended.
    stream: StreamWriter<Vec<u8>>,
    /// Bytes of the schema message, from the start of the file.
    schema_bytes: usize,
    /// Rows that are in no batch yet, column by column.
    columns: Vec<Vec<u64>>,
}

impl ArrowFile {
    /// Into this file, from its start.
    pub fn new(file: File) -> Self {
        ArrowFile {
            file: Appender::new(file),
            writing: None,
        }
    }

    fn append_encoded(&mut self, rows: u64) -> io::Result<()> {
        if let Some(writing) = &mut self.writing {
            let bytes = writing.stream.get_mut();
            self.file.append(bytes, rows)?;
            bytes.clear();
        }
        Ok(())
    }
}

impl Output for ArrowFile {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let schema = Arc::new(schema(info, None));
        let stream = encode_schema(&schema)?;
        self.writing = Some(Writing {
            info: info.clone(),
            schema,
            schema_bytes: stream.get_ref().len(),
            stream,
            columns: vec![Vec::new(); ROW_HEADER_WORDS + info.channels.len()],
        });
        self.append_encoded(0)
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        let width = writing.columns.len();
        for (index, column) in writing.columns.iter_mut().enumerate() {
            column.extend(rows.words().iter().skip(index).step_by(width));
        }
        if writing
            .columns
            .first()
            .is_some_and(|c| c.len() >= BATCH_ROWS)
        {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rows = match &mut self.writing {
            Some(writing) => writing.encode_batch()?,
            None => 0,
        };
        self.append_encoded(rows)
    }

    fn finish(&mut self, totals: &Totals) -> io::Result<()> {
        self.flush()?;
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        writing.stream.finish().map_err(io_error)?;
        let last = encode_schema(&schema(&writing.info, Some(totals)))?;
        let fits = last.get_ref().len() == writing.schema_bytes;
        self.append_encoded(0)?;
        if self.file.is_regular {
            if !fits {
                return Err(io::Error::other(
                    "the account of the run does not fit its place",
                ));
            }
            self.file.file.write_all_at(last.get_ref(), 0)?;
        }
        Ok(())
    }

    fn written(&self) -> Written {
        self.file.written
    }
}

impl Writing {
    /// Makes a batch of the rows that are in none yet, and counts them.
    fn encode_batch(&mut self) -> io::Result<u64> {
        let rows = self.columns.first().map_or(0, Vec::len) as u64;
        if rows == 0 {
            return Ok(0);
        }
        let kinds = self.info.channels.iter().map(|c| c.kind);
        let kinds = [Type::U64; ROW_HEADER_WORDS].into_iter().chain(kinds);
        let arrays = self
            .columns
            .iter_mut()
            .zip(kinds)
            .map(|(column, kind)| array(std::mem::take(column), kind))
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(io_error)?;
        self.stream.write(&batch).map_err(io_error)?;
        Ok(rows)
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

/// A stream that has written its schema, into memory.
fn encode_schema(schema: &Schema) -> io::Result<StreamWriter<Vec<u8>>> {
    StreamWriter::try_new(Vec::new(), schema).map_err(io_error)
}

fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}

/// The schema of a run; of a fixed length, whatever the totals.
fn schema(info: &RunInfo, totals: Option<&Totals>) -> Schema {
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

#[cfg(test)]
mod tests;
