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

use arrow_ipc::writer::StreamWriter;
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
const BATCH_ROWS: usize = 65_536;

/// An Arrow IPC stream in a file, or a pipe.
pub struct ArrowFile {
    file: Appender,
    writing: Option<Writing>,
}

/// What there is between `begin` and `finish`.
struct Writing {
    info: RunInfo,
    /// Makes bytes; they are in its vector until they are appended.
    stream: StreamWriter<Vec<u8>>,
    /// Bytes of the schema message, the first of the stream.
    schema_bytes: usize,
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

    fn append_encoded(&mut self, rows: u64) -> io::Result<()> {
        if let Some(writing) = &mut self.writing {
            let bytes = writing.stream.get_mut();
            self.file.append(bytes, rows)?;
            bytes.clear();
        }
        Ok(())
    }
}

impl Sink for ArrowFile {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let columns = Columns::new(info);
        let stream = encode_schema(columns.schema())?;
        self.writing = Some(Writing {
            info: info.clone(),
            schema_bytes: stream.get_ref().len(),
            stream,
            columns,
        });
        self.append_encoded(0)
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
        let rows = match &mut self.writing {
            Some(writing) => writing.encode_batch()?,
            None => 0,
        };
        self.append_encoded(rows)
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        self.flush()?;
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        writing.stream.finish().map_err(io_error)?;
        let last = encode_schema(&schema(&writing.info, totals))?;
        let fits = last.get_ref().len() == writing.schema_bytes;
        self.append_encoded(0)?;
        if let Some(start) = self.file.start {
            if !fits {
                return Err(io::Error::other(
                    "the account of the run does not fit into the space reserved for it",
                ));
            }
            self.file.file.write_all_at(last.get_ref(), start)?;
        }
        Ok(())
    }

    fn written(&self) -> SinkProgress {
        self.file.written
    }
}

impl Writing {
    /// Makes a batch of the rows that are in none yet, and counts them.
    fn encode_batch(&mut self) -> io::Result<u64> {
        let rows = self.columns.rows() as u64;
        if rows > 0 {
            let batch = self.columns.take().map_err(io_error)?;
            self.stream.write(&batch).map_err(io_error)?;
        }
        Ok(rows)
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

#[cfg(test)]
mod tests;
