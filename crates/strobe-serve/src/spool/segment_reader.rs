// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows from the disk, for one cursor: it keeps its file open, so that reading on is cheap, and rows that are given up
//! meanwhile are read to their end.

use std::path::PathBuf;
use std::sync::Arc;

use strobe::info::RunInfo;
use strobe_files::journal::{Columns, Error, ReadBatch, Segment, StoredBatch};

use super::recent::Piece;
use super::segments::Place;

/// Words that are read at once, about: 128 KiB.
const WORDS: usize = 16 << 10;

/// Bytes of a batch that is worth to be sent as it lies, at least. Those of slow runs have a row or a few: rows of many of
/// them are put together.
const LEAST: u64 = 64 << 10;

/// Where rows are on the disk.
pub(crate) struct OnDisk(Place);

impl OnDisk {
    pub(super) fn at(place: Place) -> Self {
        OnDisk(place)
    }

    /// The row after those that may be there.
    pub(crate) fn end(&self) -> u64 {
        self.0.rows.end
    }

    /// The rows from this one on, or the first ones after it, and what reads on from there; `None` if there are none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(
        &self,
        before: Option<SegmentReader>,
        row: u64,
    ) -> Result<Option<(FileRows, SegmentReader)>, Error> {
        let OnDisk(place) = self;
        let mut reading = SegmentReader::at(before, place, row)?;
        let piece = reading.rows(place.bytes, row)?;
        Ok(piece.map(|piece| (FileRows::Piece(piece), reading)))
    }

    /// The same, but the batch that begins with this row as its columns, if it is no small one and nothing failed in it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn columns(
        &self,
        before: Option<SegmentReader>,
        row: u64,
    ) -> Result<Option<(FileRows, SegmentReader)>, Error> {
        let (stored, reading) = self.stored(before, row, u64::MAX)?;
        let rows = match stored.and_then(StoredBatch::read) {
            Some(ReadBatch::Columns(columns)) => FileRows::Columns(row, columns),
            Some(ReadBatch::Words(words)) => {
                FileRows::Piece(Piece::new(Arc::clone(&reading.info), words, row))
            }
            None => return self.read(Some(reading), row),
        };
        Ok(Some((rows, reading)))
    }

    /// The batch that begins with this row, as it lies there, if there is one, and ends before `to`, and is no small one; and
    /// what reads on.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn stored(
        &self,
        before: Option<SegmentReader>,
        row: u64,
        to: u64,
    ) -> Result<(Option<StoredBatch>, SegmentReader), Error> {
        let OnDisk(place) = self;
        let mut reading = SegmentReader::at(before, place, row)?;
        let stored = reading.segment.stored(row, to, LEAST, place.bytes)?;
        reading.next = Some(stored.as_ref().map_or(row, |stored| stored.rows.end));
        Ok((stored, reading))
    }
}

/// Rows of a file.
pub(crate) enum FileRows {
    Piece(Piece),
    /// A batch in which nothing failed, and the number of its first row.
    Columns(u64, Columns),
}

/// A file of the spool, open.
pub(crate) struct SegmentReader {
    path: PathBuf,
    segment: Segment,
    info: Arc<RunInfo>,
    /// All rows from this one on are behind the place where it is, if that is known.
    next: Option<u64>,
}

impl SegmentReader {
    /// The file, at a batch that does not begin behind this row.
    fn at(before: Option<SegmentReader>, place: &Place, row: u64) -> Result<SegmentReader, Error> {
        let mut reading = match before {
            Some(reading) if reading.path == place.path => reading,
            _ => SegmentReader::open(place)?,
        };
        let at = reading.segment.offset();
        let is_before = match reading.next {
            Some(next) => next <= row && place.offset <= at,
            None => place.offset == 0,
        };
        if !is_before && place.offset > 0 {
            reading.segment.seek(place.offset)?;
        } else if !is_before {
            reading = SegmentReader::open(place)?;
        }
        Ok(reading)
    }

    fn open(place: &Place) -> Result<SegmentReader, Error> {
        let segment = Segment::open(&place.path, place.bytes)?;
        Ok(SegmentReader {
            path: place.path.clone(),
            info: Arc::new(segment.info().clone()),
            segment,
            next: None,
        })
    }

    /// Batches of rows with consecutive numbers, from this one on.
    fn rows(&mut self, bytes: u64, row: u64) -> Result<Option<Piece>, Error> {
        let width = self.info.shape().words() as usize;
        let mut found: Vec<u64> = Vec::new();
        let mut first = 0;
        // Who was given rows by others, or comes late, does not read them to get to the next ones.
        self.segment.pass(row, bytes)?;
        loop {
            let offset = self.segment.offset();
            let words = match self.segment.read(bytes) {
                Ok(Some(words)) => words,
                // What is torn is the end.
                Ok(None) | Err(Error::Foreign { .. }) => break,
                Err(error) => return Err(error),
            };
            // A batch may have a step in it.
            let skip = words.chunks_exact(width).take_while(|w| number(w) < row);
            let skip = skip.count();
            let mut rows = words.chunks_exact(width).skip(skip);
            let Some(begin) = rows.next().map(number) else {
                continue;
            };
            let mut end = begin + 1;
            let following = rows.take_while(|w| {
                let is_next = number(w) == end;
                end += u64::from(is_next);
                is_next
            });
            let count = 1 + following.count();
            let is_all = skip + count == words.len() / width;
            let is_next = found.is_empty() || begin == first + (found.len() / width) as u64;
            if found.is_empty() {
                first = begin;
            }
            if found.is_empty() && is_all && skip == 0 {
                found = words;
            } else if is_next {
                let part = skip * width..(skip + count) * width;
                found.extend_from_slice(words.get(part).unwrap_or_default());
            }
            if !is_all || !is_next {
                // The rest of it is for the next time.
                self.segment.seek(offset)?;
                break;
            }
            if found.len() >= WORDS {
                break;
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        let piece = Piece::new(Arc::clone(&self.info), found, first);
        self.next = Some(piece.end());
        Ok(Some(piece))
    }
}

fn number(row: &[u64]) -> u64 {
    row.first().copied().unwrap_or_default()
}
