// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which rows are in which file, and where: an index in memory, which can be made again from the files.
//!
//! Each file is an `.arrows` file of its own, and named by the number of its first row. So the index needs no file, and is
//! small: of each file that is being written, a mark every 256 KiB; of others none, for a reader gets along without.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use strobe::info::{RunInfo, Totals};
use strobe_files::journal::{self, Error as Unreadable, Segment as Reading};

/// Bytes from mark to mark.
const MARK: u64 = 256 << 10;

/// One file.
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// Its first row.
    first: u64,
    /// Bytes that can be read.
    bytes: u64,
    /// When rows were last written.
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
    /// When its last row was made, on its clock, if it has not come to its end.
    pub(super) last_time: u64,
}

impl Found {
    /// Whether more rows of this run may follow.
    ///
    /// # Errors
    /// They may not.
    pub(super) fn may_go_on(&self, run: &RunInfo) -> io::Result<()> {
        let is_other = |info: &RunInfo| info.shape() != run.shape();
        let why = match (&self.totals, self.info.as_ref().is_some_and(is_other)) {
            (Some(_), _) => "the stored run has ended",
            (None, true) => "the stored rows belong to another run",
            (None, false) => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
    }
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
        let mut segments = Segments::list(folder)?;
        let (mut info, mut totals, mut last_time) = (None, None, 0);
        while let Some(last) = segments.all.back_mut() {
            // Whatever is in it, it stays if it is not understood.
            match last.recover().map_err(io::Error::other)? {
                Recovered::Rows(segment, end, time) => {
                    segments.end = end;
                    totals = segment.totals().cloned();
                    info = Some(segment.info().clone());
                    last_time = time;
                    break;
                }
                // Its writer was killed before it had a batch: no row is lost with it, and the next file has its name.
                Recovered::Nothing => fs::remove_file(&last.path)?,
                Recovered::Damaged => last.set_aside()?,
            }
            segments.all.pop_back();
        }
        segments.bytes = segments.all.iter().map(|segment| segment.bytes).sum();
        Ok(Found {
            segments,
            info,
            totals,
            last_time,
        })
    }

    /// The account of the run, if it is in a folder. Nothing is changed there.
    pub(super) fn account(folder: &Path) -> Option<Totals> {
        let segments = Segments::list(folder).ok()?;
        let last = segments.all.back()?;
        let reading = Reading::open(&last.path, last.bytes).ok()?;
        reading.totals().cloned()
    }

    /// The files of a folder, in their order. What is in them is not known yet.
    fn list(folder: &Path) -> io::Result<Self> {
        let mut segments = Segments::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let is_segment = path.extension().is_some_and(|e| e == EXTENSION);
            let Some(first) = stem.and_then(|s| s.parse().ok()).filter(|_| is_segment) else {
                continue;
            };
            let about = fs::metadata(&path)?;
            segments.all.push_back(Segment {
                bytes: about.len(),
                written: when(about.modified()?),
                marks: Vec::new(),
                path,
                first,
            });
        }
        segments
            .all
            .make_contiguous()
            .sort_unstable_by_key(|segment| segment.first);
        Ok(segments)
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
    /// are too old.
    pub(super) fn give_up(&mut self, bytes: u64, age: Option<Duration>) -> Vec<Segment> {
        let mut old = Vec::new();
        while let [first, _, ..] = self.all.make_contiguous() {
            let is_old = age.is_some_and(|age| first.written.elapsed() > age);
            if self.bytes <= bytes && !is_old {
                break;
            }
            self.bytes -= first.bytes;
            old.extend(self.all.pop_front());
        }
        old
    }

    /// These of the files that were given up cannot be removed.
    pub(super) fn put_back(&mut self, stay: Vec<Segment>) {
        for segment in stay.into_iter().rev() {
            self.bytes += segment.bytes;
            self.all.push_front(segment);
        }
    }

    /// Whether there are no rows that are younger than this.
    pub(super) fn are_old(&self, age: Duration) -> bool {
        (self.all.back()).is_none_or(|segment| segment.written.elapsed() > age)
    }
}

const EXTENSION: &str = "arrows";
/// Of a file that is set aside.
const DAMAGED: &str = "damaged";

/// What the file is that was written last.
enum Recovered {
    /// It has rows, or an account: the row after the last one, and when that was made, if it has no account.
    Rows(Box<Reading>, u64, u64),
    /// There is neither in it.
    Nothing,
    /// What is in it cannot be read from its beginning on.
    Damaged,
}

impl Segment {
    /// Looks what the file has that was written last, and cuts off half a batch. Of its rows only the last ones are read:
    /// rings wait for this.
    fn recover(&mut self) -> Result<Recovered, Unreadable> {
        if self.has_no_head() {
            return Ok(match self.has_batch(0)? {
                true => Recovered::Damaged,
                false => Recovered::Nothing,
            });
        }
        let mut reading = Reading::open(&self.path, self.bytes)?;
        if let Some(totals) = reading.totals() {
            // What its writer has ended needs no look.
            let end = totals.rows.max(self.first);
            return Ok(Recovered::Rows(Box::new(reading), end, 0));
        }
        let mut begins = vec![reading.offset()];
        while reading.skip(self.bytes)? {
            begins.push(reading.offset());
        }
        let mut whole = begins.pop().unwrap_or_default();
        let mut last = None;
        while let Some(begin) = begins.pop() {
            last = self.last_row(begin)?;
            if last.is_some() {
                break;
            }
            whole = begin;
        }
        let is_end = reading.is_end(whole, self.bytes)?;
        // If more batches follow, it is no torn end: nothing is cut off then, and what cannot be read is a gap.
        let is_damaged = !is_end && self.has_batch(whole)?;
        match last {
            Some(_) if is_damaged => self.complain(whole),
            Some(_) if !is_end => self.cut(whole),
            _ => {}
        }
        Ok(match last {
            Some((row, time)) => Recovered::Rows(Box::new(reading), row + 1, time),
            None if is_damaged => Recovered::Damaged,
            None => Recovered::Nothing,
        })
    }

    /// The last row of the batch that begins there, and when it was made; `None` if it cannot be read.
    fn last_row(&self, begin: u64) -> Result<Option<(u64, u64)>, Unreadable> {
        let mut reading = Reading::open(&self.path, self.bytes)?;
        reading.seek(begin)?;
        let width = reading.info().shape().words() as usize;
        let words = match reading.read(self.bytes) {
            Err(error @ Unreadable::File { .. }) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
            Ok(Some(words)) => words,
        };
        let last = words.chunks_exact(width).next_back();
        Ok(last.and_then(|row| Some((*row.first()?, *row.get(2)?))))
    }

    /// Cuts off what is behind the last whole batch.
    fn cut(&mut self, whole: u64) {
        if let Ok(file) = File::options().write(true).open(&self.path) {
            let _ = file.set_len(whole);
        }
        self.bytes = whole;
    }

    /// Says what cannot be read any more.
    fn complain(&self, whole: u64) {
        let (path, rest) = (self.path.display(), self.bytes - whole);
        eprintln!(
            "strobe serve: {path}: damaged at byte {whole}; the {rest} bytes from there on are kept but cannot be read"
        );
    }

    /// Whether a batch begins behind this place that is there as a whole.
    fn has_batch(&self, behind: u64) -> Result<bool, Unreadable> {
        journal::has_batch(&self.path, behind + 8)
    }

    /// Another name, for the next file may have this one.
    fn set_aside(&self) -> io::Result<()> {
        let aside = self.path.with_extension(DAMAGED);
        let (path, name) = (self.path.display(), aside.display());
        eprintln!("strobe serve: {path}: damaged at its beginning; renamed to {name}");
        fs::rename(&self.path, &aside)
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

/// A time of a file, on the clock that is never set.
fn when(modified: SystemTime) -> Instant {
    let now = Instant::now();
    let age = modified.elapsed().unwrap_or_default();
    now.checked_sub(age).unwrap_or(now)
}
