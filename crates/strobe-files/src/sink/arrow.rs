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

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use arrow_buffer::Buffer;
use arrow_ipc::writer::{StreamEncoder, StreamWriter};
use arrow_schema::{ArrowError, Schema};
use strobe::info::{RunInfo, Totals};
use strobe_ring::Rows;

mod batches;
mod stream;

pub use batches::{Batches, StreamError};
pub use stream::{ArrowStream, account};

use super::table::{Columns, schema};
use super::{Appender, Sink, SinkProgress};

/// Rows of one record batch, at most.
const BATCH_ROWS: usize = 8_192;

/// An Arrow IPC stream in a file, or a pipe.
pub struct ArrowFile {
    file: Appender,
    writing: Option<Writing>,
}

/// What there is between `begin` and `finish`.
struct Writing {
    info: RunInfo,
    /// Makes bytes: those of the columns stay where they are until they are appended.
    stream: StreamEncoder,
    /// Bytes of the schema message, the first of the stream.
    schema_bytes: usize,
    /// The same, until the stream has made them: they are in the file already.
    schema_left: usize,
    /// Rows that are in no batch yet.
    columns: Columns,
}

impl ArrowFile {
    /// Into this file, from where it is now.
    pub fn new(file: File) -> Self {
        ArrowFile {
            file: Appender::new(file),
            writing: None,
        }
    }
}

impl Sink for ArrowFile {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let columns = Columns::new(info);
        let bytes = encode_schema(columns.schema())?;
        self.writing = Some(Writing {
            info: info.clone(),
            stream: StreamEncoder::try_new(columns.schema()).map_err(io_error)?,
            schema_bytes: bytes.len(),
            schema_left: bytes.len(),
            columns,
        });
        self.file.append(&bytes, 0)
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        writing.columns.add(rows)?;
        if writing.columns.rows() >= BATCH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writing {
            Some(writing) => writing.append_batch(&mut self.file),
            None => Ok(()),
        }
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        self.flush()?;
        let Some(mut writing) = self.writing.take() else {
            return Ok(());
        };
        let mut end = writing.stream.finish().map_err(io_error)?;
        without_schema(&mut end, &mut writing.schema_left);
        append(&mut self.file, &end, 0)?;
        let last = encode_schema(&schema(&writing.info, totals))?;
        let fits = last.len() == writing.schema_bytes;
        if let Some(start) = self.file.start {
            if !fits {
                return Err(io::Error::other(
                    "the account of the run does not fit into the space reserved for it",
                ));
            }
            self.file.file.write_all_at(&last, start)?;
        }
        Ok(())
    }

    fn written(&self) -> SinkProgress {
        self.file.written
    }
}

impl Writing {
    /// Appends a batch of the rows that are in none yet.
    fn append_batch(&mut self, file: &mut Appender) -> io::Result<()> {
        let rows = self.columns.rows() as u64;
        if rows == 0 {
            return Ok(());
        }
        let batch = self.columns.take().map_err(io_error)?;
        let mut parts = self.stream.encode(&batch).map_err(io_error)?;
        without_schema(&mut parts, &mut self.schema_left);
        append(file, &parts, rows)?;
        // Then nobody else has the columns' memory.
        drop(batch);
        self.columns.give_back(parts);
        Ok(())
    }
}

/// Appends parts of the stream that complete so many rows.
fn append(file: &mut Appender, parts: &[Buffer], rows: u64) -> io::Result<()> {
    let parts: Vec<&[u8]> = parts.iter().map(Buffer::as_slice).collect();
    file.append_parts(&parts, rows)
}

/// The first parts that a stream makes are its schema, of which so many bytes are left.
fn without_schema(parts: &mut Vec<Buffer>, left: &mut usize) {
    parts.retain(|part| {
        let is_schema = *left > 0;
        *left = left.saturating_sub(part.len());
        !is_schema
    });
}

/// The bytes of a schema message.
fn encode_schema(schema: &Schema) -> io::Result<Vec<u8>> {
    let stream = StreamWriter::try_new(Vec::new(), schema).map_err(io_error)?;
    Ok(stream.get_ref().clone())
}

fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests;
