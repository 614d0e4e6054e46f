// SPDX-License-Identifier: MIT OR Apache-2.0
//! An `.arrows` file that is read from any of its batches on, also while it grows.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow_ipc::reader::StreamReader;
use arrow_schema::ArrowError;
use strobe::info::{RunInfo, Totals};

use super::{Error, check_format, interleave, run, totals};

/// Part of a recording. What is known of the run is in each part of it, and the account in the last one.
pub struct Segment {
    path: String,
    stream: StreamReader<Part>,
    info: RunInfo,
    totals: Option<Totals>,
}

/// The bytes of a file up to some place: what is behind it may be half of something.
struct Part {
    file: BufReader<File>,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let (buffer, _) = buffer.split_at_mut(room);
        let count = self.file.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
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
        let stream = match StreamReader::try_new(Part { file, at: 0, end }, None) {
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
            stream,
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
        self.stream.get_ref().at
    }

    /// Goes on with the batch that begins there.
    ///
    /// # Errors
    /// Those of the file.
    pub fn seek(&mut self, offset: u64) -> Result<(), Error> {
        let part = self.stream.get_mut();
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

    /// The words of the next batch's rows; `None` if there is none before `end`. After an error nothing more is read.
    ///
    /// # Errors
    /// The file cannot be read, or what is there is no batch of the recording.
    pub fn read(&mut self, end: u64) -> Result<Option<Vec<u64>>, Error> {
        let part = self.stream.get_mut();
        if part.at >= end {
            return Ok(None);
        }
        part.end = end;
        let foreign = |why: String| Error::Foreign {
            path: self.path.clone(),
            why,
        };
        let batch = match self.stream.next() {
            None => return Ok(None),
            Some(Err(ArrowError::IoError(_, source)))
                if source.kind() != io::ErrorKind::UnexpectedEof =>
            {
                let path = self.path.clone();
                return Err(Error::File { path, source });
            }
            Some(batch) => batch.map_err(|error| foreign(error.to_string()))?,
        };
        let mut words = Vec::new();
        match interleave(&batch, self.info.shape(), &mut words) {
            Some(()) => Ok(Some(words)),
            None => Err(foreign("a column is not of its type".to_owned())),
        }
    }
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
