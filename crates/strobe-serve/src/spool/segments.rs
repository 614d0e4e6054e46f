// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which rows are in which file, and where: an index in memory, which can be made again from the files.
//!
//! Each file is an `.arrows` file of its own, and named by the number of its first row. So the index needs no file, and is
//! small: of each file that is being written, a mark every 256 KiB; of others none, for a reader gets along without.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use strobe::info::{RunInfo, Totals};
use strobe_files::journal::{Error as Unreadable, Segment as Reading};

/// Bytes from mark to mark.
const MARK: u64 = 256 << 10;

/// One file.
struct Segment {
    path: PathBuf,
    /// Its first row.
    first: u64,
    /// Bytes that can be read.
    bytes: u64,
    /// When rows were last written, as far as this process knows.
    written: Instant,
    /// Rows at which batches begin, and where they are.
    marks: Vec<(u64, u64)>,
}

/// All files of a run.
pub(super) struct Segments {
    all: VecDeque<Segment>,
    /// The row after the last one.
    end: u64,
    /// Of all of them.
    bytes: u64,
}

/// Where rows are on the disk.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// Of a batch that does not begin behind the row.
    pub(super) offset: u64,
    /// Bytes of the file that can be read.
    pub(super) bytes: u64,
    /// The rows that may be here.
    pub(super) rows: std::ops::Range<u64>,
}

/// What is known of a run from its files.
pub(super) struct Found {
    pub(super) segments: Segments,
    /// The run, if there is a file.
    pub(super) info: Option<RunInfo>,
    /// Its account, if it has come to its end.
    pub(super) totals: Option<Totals>,
}

impl Segments {
    /// None yet.
    pub(super) fn new() -> Self {
        Segments {
            all: VecDeque::new(),
            end: 0,
            bytes: 0,
        }
    }

    /// Those of a folder, as somebody has left them. The last file may end in the middle of a batch, which is cut off.
    pub(super) fn find(folder: &Path) -> io::Result<Found> {
        let mut segments = Segments::new();
        let (mut info, mut totals) = (None, None);
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let is_segment = path.extension().is_some_and(|e| e == EXTENSION);
            let Some(first) = stem.and_then(|s| s.parse().ok()).filter(|_| is_segment) else {
                continue;
            };
            segments.all.push_back(Segment {
                bytes: fs::metadata(&path)?.len(),
                written: Instant::now(),
                marks: Vec::new(),
                path,
                first,
            });
        }
        segments
            .all
            .make_contiguous()
            .sort_unstable_by_key(|segment| segment.first);
        while let Some(last) = segments.all.back_mut() {
            match last.recover() {
                // Its writer was killed before it had a batch: no row is lost with it, and the next file has its name.
                Ok(None) => fs::remove_file(&last.path)?,
                Ok(Some((segment, end))) => {
                    segments.end = end;
                    totals = segment.totals().cloned();
                    info = Some(segment.info().clone());
                    break;
                }
                // Whatever is in it, it stays.
                Err(error) => return Err(io::Error::other(error)),
            }
            segments.all.pop_back();
        }
        segments.bytes = segments.all.iter().map(|segment| segment.bytes).sum();
        Ok(Found {
            segments,
            info,
            totals,
        })
    }

    /// The name of the file whose first row this is.
    pub(super) fn path(folder: &Path, first: u64) -> PathBuf {
        folder.join(format!("{first:020}.{EXTENSION}"))
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The row after the last one.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The oldest row.
    pub(super) fn first(&self) -> Option<u64> {
        self.all.front().map(|segment| segment.first)
    }

    /// There is a new file.
    pub(super) fn begin(&mut self, path: PathBuf, first: u64, bytes: u64) {
        self.bytes += bytes;
        self.all.push_back(Segment {
            path,
            first,
            bytes,
            written: Instant::now(),
            marks: Vec::new(),
        });
    }

    /// The last file, which had no rows, is not there any more.
    pub(super) fn take_back(&mut self) {
        if let Some(last) = self.all.pop_back() {
            self.bytes -= last.bytes;
        }
    }

    /// Rows were written to the last file, which is so long now.
    pub(super) fn grow(&mut self, rows: std::ops::Range<u64>, bytes: u64) {
        self.end = self.end.max(rows.end);
        let Some(last) = self.all.back_mut() else {
            return;
        };
        let (_, marked) = last.marks.last().copied().unwrap_or_default();
        if last.bytes >= marked + MARK {
            last.marks.push((rows.start, last.bytes));
        }
        self.bytes = self.bytes + bytes - last.bytes;
        (last.bytes, last.written) = (bytes, Instant::now());
    }

    /// Where this row is, or the first one after it that may be on the disk.
    pub(super) fn place(&self, row: u64) -> Option<Place> {
        if row >= self.end {
            return None;
        }
        let place = self.all.partition_point(|segment| segment.first <= row);
        let place = place.saturating_sub(1);
        let segment = self.all.get(place)?;
        let next = self.all.get(place + 1);
        let mark = segment.marks.partition_point(|(first, _)| *first <= row);
        let mark = mark.checked_sub(1).and_then(|mark| segment.marks.get(mark));
        Some(Place {
            path: segment.path.clone(),
            offset: mark.map_or(0, |(_, offset)| *offset),
            bytes: segment.bytes,
            rows: segment.first..next.map_or(self.end, |next| next.first),
        })
    }

    /// Gives up the oldest files, but never the last one, so that others have room for so many bytes; and those whose rows
    /// are too old. Their paths.
    pub(super) fn give_up(&mut self, bytes: u64, age: Option<Duration>) -> Vec<PathBuf> {
        let mut old = Vec::new();
        while let [first, _, ..] = self.all.make_contiguous() {
            let is_old = age.is_some_and(|age| first.written.elapsed() > age);
            if self.bytes <= bytes && !is_old {
                break;
            }
            self.bytes -= first.bytes;
            old.extend(self.all.pop_front().map(|segment| segment.path));
        }
        old
    }

    /// Whether all rows of the run are too old.
    pub(super) fn is_old(&self, age: Duration) -> bool {
        (self.all.back()).is_none_or(|segment| segment.written.elapsed() > age)
    }
}

const EXTENSION: &str = "arrows";

impl Segment {
    /// Reads the file that was written last: cuts off half a batch, and answers the row after the last one. `None` if there
    /// is neither a row nor an account in it.
    fn recover(&mut self) -> Result<Option<(Reading, u64)>, Unreadable> {
        if self.has_no_head() {
            return Ok(None);
        }
        let mut reading = Reading::open(&self.path, self.bytes)?;
        let width = reading.info().shape().words() as usize;
        let mut end = self.first;
        let mut whole = reading.offset();
        loop {
            let words = match reading.read(self.bytes) {
                Ok(Some(words)) => words,
                Err(error @ Unreadable::File { .. }) => return Err(error),
                // The end, or half a batch.
                Ok(None) | Err(_) => break,
            };
            if let Some(row) = words
                .chunks_exact(width)
                .next_back()
                .and_then(|r| r.first())
            {
                end = row + 1;
            }
            whole = reading.offset();
        }
        // Of a file that came to its end, what is left is its end.
        if whole < self.bytes && reading.totals().is_none() {
            if let Ok(file) = File::options().write(true).open(&self.path) {
                let _ = file.set_len(whole);
            }
        }
        self.bytes = whole;
        let is_empty = end == self.first && reading.totals().is_none();
        Ok((!is_empty).then_some((reading, end)))
    }

    /// Whether the file ends within its first message, which says what the columns are.
    fn has_no_head(&self) -> bool {
        let mut start = [0; 8];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut start));
        let [mark @ .., a, b, c, d] = start;
        let is_stream = mark == [0xFF; 4];
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        match read {
            Ok(()) => is_stream && self.bytes < 8 + length,
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        }
    }
}
