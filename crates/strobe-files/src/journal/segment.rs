// SPDX-License-Identifier: MIT OR Apache-2.0
//! An `.arrows` file that is read from any of its batches on, also while it grows.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow_ipc::reader::StreamReader;
use arrow_schema::ArrowError;
use strobe::info::{RunInfo, Totals};

use super::messages::{Batch, END, length};
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

impl Part {
    /// Goes there; what is in memory of the file is used again.
    fn go(&mut self, at: u64) -> io::Result<()> {
        let by = at.wrapping_sub(self.at) as i64;
        self.file.seek_relative(by)?;
        self.at = at;
        Ok(())
    }

    /// What is next, and where that ends; it is not read yet.
    fn look(&mut self) -> io::Result<Next> {
        let at = self.at;
        let next = self.head();
        self.go(at)?;
        match next {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Next::Nothing),
            next => next,
        }
    }

    fn head(&mut self) -> io::Result<Next> {
        let mut start = [0; 8];
        self.read_exact(&mut start)?;
        let left = self.end.saturating_sub(self.at);
        let Some(length) = length(start).filter(|length| *length <= left) else {
            return Ok(match start == END {
                true => Next::End,
                false => Next::Nothing,
            });
        };
        let mut head = vec![0; usize::try_from(length).unwrap_or(0)];
        self.read_exact(&mut head)?;
        let next = Batch::of_head(&head).filter(|next| next.bytes <= self.end - self.at);
        let at = self.at;
        Ok(next.map_or(Next::Nothing, |next| Next::Batch(next, at)))
    }

    /// See [`Segment::stored`].
    fn stored(&mut self, row: u64, to: u64, least: u64) -> io::Result<Option<StoredBatch>> {
        loop {
            let begin = self.at;
            let Next::Batch(batch, at) = self.look()? else {
                return Ok(None);
            };
            let (Some(words), Some(more)) = (batch.first, batch.rows.checked_sub(1)) else {
                return Ok(None);
            };
            let (first, last) = (self.word(at + words)?, self.word(at + words + 8 * more)?);
            let end = at + batch.bytes;
            if last < row && first <= last {
                self.go(end)?;
                continue;
            }
            let is_all = last.wrapping_sub(first) == more && batch.bytes >= least;
            if first != row || !is_all || last >= to {
                return Ok(None);
            }
            let mut bytes = Vec::with_capacity((end - begin) as usize);
            // Without what is in between, which would clear the memory first.
            self.file.seek(SeekFrom::Start(begin))?;
            let read = self.file.get_mut().take(end - begin);
            { read }.read_to_end(&mut bytes)?;
            self.at = begin + bytes.len() as u64;
            if self.at < end {
                self.go(begin)?;
                return Ok(None);
            }
            return Ok(Some(StoredBatch {
                rows: first..last + 1,
                bytes,
            }));
        }
    }

    /// The word at this place of the file.
    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file.get_ref().read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }
}

/// What comes next in a stream.
enum Next {
    /// A batch that is there as a whole, and where its columns begin.
    Batch(Batch, u64),
    /// The end of the stream.
    End,
    /// Half of something, or nothing that is known.
    Nothing,
}

/// A batch as it lies in a file: a message of the stream.
pub struct StoredBatch {
    /// Its rows.
    pub rows: Range<u64>,
    /// All of it.
    pub bytes: Vec<u8>,
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

    /// Goes past the next batch without reading its rows; whether there is one as a whole before `end`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn skip(&mut self, end: u64) -> Result<bool, Error> {
        let part = self.stream.get_mut();
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

    /// Whether the stream ends there, and with it what is before `end`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn is_end(&mut self, at: u64, end: u64) -> Result<bool, Error> {
        self.seek(at)?;
        let part = self.stream.get_mut();
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
        let part = self.stream.get_mut();
        part.end = end;
        part.stored(row, to, least).map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })
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
        let next = part.look().map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })?;
        if matches!(next, Next::Nothing) {
            return Err(foreign("a batch is torn or damaged".to_owned()));
        }
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
            None => Err(foreign("a column has the wrong type".to_owned())),
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
