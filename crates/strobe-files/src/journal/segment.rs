// SPDX-License-Identifier: MIT OR Apache-2.0
//! An `.arrows` file that is read from any of its batches on, also while it grows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{StreamReader, read_record_batch};
use arrow_ipc::root_as_message;
use arrow_schema::{ArrowError, SchemaRef};
use strobe::info::{RunInfo, Totals};
use strobe_ring::RowShape;

use super::columns::Columns;
use super::messages::{Batch, END, length};
use super::part::{Next, Part, Stored};
use super::{Error, check_format, interleave, run, totals};

/// Part of a recording. What is known of the run is in each part of it, and the account in the last one.
pub struct Segment {
    path: String,
    part: Part,
    schema: SchemaRef,
    info: RunInfo,
    totals: Option<Totals>,
}

/// Whether a batch that is there as a whole begins in this file, at this place or behind it.
///
/// # Errors
/// The file cannot be read.
pub fn has_batch(path: &Path, from: u64) -> Result<bool, Error> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut rest = Vec::new();
        file.read_to_end(&mut rest)?;
        Ok(rest)
    };
    let rest: Vec<u8> = read().map_err(|source| Error::File {
        path: path.display().to_string(),
        source,
    })?;
    // All that is in a stream begins at a multiple of 8.
    let skip = (from.next_multiple_of(8) - from) as usize;
    let is_batch = |at: usize| {
        let (start, rest) = rest.get(at..)?.split_first_chunk::<8>()?;
        let length = usize::try_from(length(*start)?).ok()?;
        let (head, rest) = rest.split_at_checked(length)?;
        (Batch::of_head(head)?.bytes <= rest.len() as u64).then_some(())
    };
    Ok((skip..rest.len())
        .step_by(8)
        .any(|at| is_batch(at).is_some()))
}

impl Segment {
    /// Opens a file, of which so many bytes are written.
    ///
    /// # Errors
    /// It cannot be read, or is no recording.
    pub fn open(path: &Path, end: u64) -> Result<Self, Error> {
        let name = path.display().to_string();
        let failed = |source| Error::File {
            path: name.clone(),
            source,
        };
        let foreign = |why| Error::Foreign {
            path: name.clone(),
            why,
        };
        let file = BufReader::new(File::open(path).map_err(failed)?);
        let mut part = Part { file, at: 0, end };
        let stream = match StreamReader::try_new(&mut part, None) {
            Err(ArrowError::IoError(_, source))
                if source.kind() != io::ErrorKind::UnexpectedEof =>
            {
                return Err(failed(source));
            }
            stream => stream.map_err(|error| foreign(error.to_string()))?,
        };
        let schema = stream.schema();
        check_format(&name, schema.metadata())?;
        Ok(Segment {
            info: run(&schema).map_err(foreign)?,
            totals: totals(schema.metadata()).map_err(foreign)?,
            schema,
            part,
            path: name,
        })
    }

    /// The run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Its account, if this is the last part of a recording that came to its end.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_ref()
    }

    /// Where the next batch begins.
    pub fn offset(&self) -> u64 {
        self.part.at
    }

    /// Goes on with the batch that begins there.
    ///
    /// # Errors
    /// Those of the file.
    pub fn seek(&mut self, offset: u64) -> Result<(), Error> {
        let part = &mut self.part;
        let source = match part.file.seek(SeekFrom::Start(offset)) {
            Ok(_) => {
                part.at = offset;
                return Ok(());
            }
            Err(source) => source,
        };
        let path = self.path.clone();
        Err(Error::File { path, source })
    }

    /// Goes past the next batch without reading its rows; whether there is one as a whole before `end`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn skip(&mut self, end: u64) -> Result<bool, Error> {
        let part = &mut self.part;
        part.end = end;
        let skipped = part.look().and_then(|next| match next {
            Next::Batch(batch, at) => part.go(at + batch.bytes).map(|()| true),
            Next::End | Next::Nothing => Ok(false),
        });
        skipped.map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })
    }

    /// Goes past the batches that end before this row, without reading their rows.
    ///
    /// # Errors
    /// Those of the file.
    pub fn pass(&mut self, row: u64, end: u64) -> Result<(), Error> {
        let part = &mut self.part;
        part.end = end;
        let passed = part.pass(row).map(|_| ());
        passed.map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })
    }

    /// Whether the stream ends there, and with it what is before `end`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn is_end(&mut self, at: u64, end: u64) -> Result<bool, Error> {
        self.seek(at)?;
        let part = &mut self.part;
        part.end = end;
        let next = part.look().map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })?;
        Ok(at == end || (matches!(next, Next::End) && at + END.len() as u64 == end))
    }

    /// The batch that begins with this row, as it lies there, if it is one of those that follow, has so many bytes at
    /// `least`, and its rows are consecutive and end before `to`. Batches before it are gone past. `None`: the next one is
    /// another one. After an error nothing more is read.
    ///
    /// # Errors
    /// Those of the file.
    pub fn stored(
        &mut self,
        row: u64,
        to: u64,
        least: u64,
        end: u64,
    ) -> Result<Option<StoredBatch>, Error> {
        let part = &mut self.part;
        part.end = end;
        let stored = part.stored(row, to, least).map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })?;
        Ok(stored.map(|Stored { rows, bytes, head }| StoredBatch {
            rows,
            bytes,
            head,
            schema: SchemaRef::clone(&self.schema),
            shape: self.info.shape(),
        }))
    }

    /// The words of the next batch's rows; `None` if there is none before `end`. After an error nothing more is read.
    ///
    /// # Errors
    /// The file cannot be read, or what is there is no batch of the recording.
    pub fn read(&mut self, end: u64) -> Result<Option<Vec<u64>>, Error> {
        let part = &mut self.part;
        if part.at >= end {
            return Ok(None);
        }
        part.end = end;
        let failed = |source| Error::File {
            path: self.path.clone(),
            source,
        };
        let foreign = |why: String| Error::Foreign {
            path: self.path.clone(),
            why,
        };
        let torn = || foreign("a batch is torn or damaged".to_owned());
        let (batch, at) = match part.look().map_err(failed)? {
            Next::Batch(batch, at) => (batch, at),
            Next::End => return Ok(None),
            Next::Nothing => return Err(torn()),
        };
        let (head, end) = ((at - part.at) as usize, at + batch.bytes);
        let bytes = part.up_to(end).map_err(failed)?;
        if part.at != end {
            return Err(torn());
        }
        let batch = record_batch(bytes, head, &self.schema);
        let batch = batch.map_err(|error| foreign(error.to_string()))?;
        let mut words = Vec::new();
        match interleave(&batch, self.info.shape(), &mut words) {
            Some(()) => Ok(Some(words)),
            None => Err(foreign("a column has the wrong type".to_owned())),
        }
    }
}

/// A batch as it lies in a file: a message of the stream.
pub struct StoredBatch {
    /// Its rows.
    pub rows: Range<u64>,
    /// All of it.
    pub bytes: Vec<u8>,
    /// Bytes before its columns.
    head: usize,
    schema: SchemaRef,
    shape: RowShape,
}

impl StoredBatch {
    /// Its columns, if nothing failed in any of its rows. `None`: it is damaged.
    pub fn read(self) -> Option<ReadBatch> {
        let batch = record_batch(self.bytes, self.head, &self.schema).ok()?;
        let columns = Columns::of(&batch, self.shape)?;
        if columns.is_whole {
            return Some(ReadBatch::Columns(columns));
        }
        let mut words = Vec::new();
        interleave(&batch, self.shape, &mut words)?;
        Some(ReadBatch::Words(words))
    }
}

/// What is in a batch.
pub enum ReadBatch {
    /// All that there is.
    Columns(Columns),
    /// The words of its rows, with those that say what failed.
    Words(Vec<u64>),
}

/// A message of the stream as a batch, the columns of which stay where they are. So many bytes of it are its head.
fn record_batch(
    bytes: Vec<u8>,
    head: usize,
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let bytes = Buffer::from_vec(bytes);
    // Behind the mark and the length.
    let said = bytes.get(8..head).unwrap_or_default();
    let message = root_as_message(said).map_err(|error| ArrowError::IpcError(error.to_string()))?;
    let batch = message.header_as_record_batch();
    let batch = batch.ok_or_else(|| ArrowError::IpcError("no batch".to_owned()))?;
    let (columns, schema) = (bytes.slice(head), SchemaRef::clone(schema));
    let version = message.version();
    read_record_batch(&columns, batch, schema, &HashMap::new(), None, &version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{Sink, arrow::ArrowFile};
    use strobe::channel::Type;
    use strobe::samples::{channel, info};
    use strobe_ring::{RowShape, Rows};

    /// Four batches of one row each, and where each of them begins.
    fn write(file: &tempfile::NamedTempFile) -> Vec<u64> {
        let mut sink = ArrowFile::new(file.reopen().expect("a file"));
        let info = info(vec![channel("sim.counter", Type::U64)]);
        sink.begin(&info).expect("begin");
        let mut offsets = Vec::new();
        for row in 0..4 {
            offsets.push(sink.written().bytes);
            let words = [row, row, 100 * row, 0, 7];
            sink.write(Rows::new(&words, RowShape::of_channels(1)))
                .expect("write");
            sink.flush().expect("flush");
        }
        offsets.push(sink.written().bytes);
        offsets
    }

    #[test]
    fn it_is_read_from_any_batch_on_and_not_beyond_what_is_written() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let offsets = write(&file);
        let mut segment = Segment::open(file.path(), offsets[1]).expect("a segment");
        assert_eq!(segment.offset(), offsets[0]);
        let mut next = |end| segment.read(end).expect("rows").map(|words| words[0]);
        assert_eq!((next(offsets[1]), next(offsets[1])), (Some(0), None));
        assert_eq!((next(offsets[2]), next(offsets[2])), (Some(1), None));
        segment.seek(offsets[3]).expect("a place");
        let words = segment.read(offsets[4]).expect("rows");
        assert_eq!(words, Some(vec![3, 3, 300, 0, 7]));
        assert_eq!(segment.offset(), offsets[4]);
        segment.seek(offsets[0]).expect("a place");
        assert_eq!(segment.read(offsets[4]).expect("rows").expect("one")[0], 0);
    }

    #[test]
    fn a_batch_is_given_as_it_lies_there_only_if_it_has_just_the_rows_that_are_asked_for() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut sink = ArrowFile::new(file.reopen().expect("a file"));
        sink.begin(&info(vec![channel("sim.counter", Type::U64)]))
            .expect("begin");
        let mut offsets = Vec::new();
        // In the last one a row is missing.
        for numbers in [[0, 1, 2], [3, 4, 5], [8, 9, 10], [11, 13, 14]] {
            offsets.push(sink.written().bytes);
            let words = numbers.map(|row| [row, row, 100 * row, 0, 7]).concat();
            let rows = Rows::new(&words, RowShape::of_channels(1));
            sink.write(rows).expect("write");
            sink.flush().expect("flush");
        }
        let end = sink.written().bytes;
        let bytes = std::fs::read(file.path()).expect("bytes");
        let mut segment = Segment::open(file.path(), end).expect("a segment");
        let mut stored = |row, to, end| segment.stored(row, to, 1, end).expect("a file");
        assert!(stored(0, 2, end).is_none(), "it has more");
        assert!(stored(1, 9, end).is_none(), "it begins before");
        assert!(stored(0, 9, offsets[1] - 1).is_none(), "half of it");
        let first = stored(0, 3, end).expect("a batch");
        assert_eq!(first.rows, 0..3);
        let place = offsets[0] as usize..offsets[1] as usize;
        assert_eq!(first.bytes, bytes[place]);
        assert!(stored(6, 99, end).is_none(), "rows are missing before");
        let third = stored(8, 99, end).expect("the one after the next");
        assert_eq!((third.rows, third.bytes.len() % 8), (8..11, 0));
        assert!(stored(11, 99, end).is_none(), "rows are missing in it");
        // It is where it was: what is no such batch is read row by row.
        let words = segment.read(end).expect("rows").expect("a batch");
        assert_eq!(words[0], 11);
        assert!(segment.stored(15, 99, 1, end).expect("a file").is_none());
        segment.seek(offsets[0]).expect("a place");
        assert!(
            segment
                .stored(0, 99, 1 << 16, end)
                .expect("a file")
                .is_none()
        );
    }

    #[test]
    fn batches_before_a_row_are_gone_past_and_not_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let offsets = write(&file);
        let mut segment = Segment::open(file.path(), offsets[4]).expect("a segment");
        let mut pass = |row, end| {
            segment.pass(row, end).expect("a file");
            segment.offset()
        };
        assert_eq!(pass(0, offsets[4]), offsets[0]);
        assert_eq!(pass(2, offsets[4]), offsets[2]);
        assert_eq!(pass(1, offsets[4]), offsets[2], "never back");
        assert_eq!(pass(99, offsets[3]), offsets[3], "no further than asked");
        assert_eq!(pass(99, offsets[4]), offsets[4]);
        segment.seek(offsets[0]).expect("a place");
        segment.pass(3, offsets[4]).expect("a file");
        assert_eq!(segment.read(offsets[4]).expect("rows").expect("one")[0], 3);
    }

    #[test]
    fn half_a_batch_is_an_error_after_the_last_whole_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let offsets = write(&file);
        let end = offsets[2] + 9;
        let mut segment = Segment::open(file.path(), end).expect("a segment");
        for row in 0..2 {
            assert_eq!(segment.read(end).expect("rows").expect("one")[0], row);
        }
        assert_eq!(segment.offset(), offsets[2]);
        assert!(segment.read(end).is_err());
    }
}
