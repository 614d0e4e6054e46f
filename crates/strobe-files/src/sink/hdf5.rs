// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5 with NeXus names, readable while it is written (SWMR).
//!
//! ```text
//! /entry                 NXentry; title, start_time, program_name
//! /entry/data            NXdata, the default plot: channels over time
//!     time row trigger status          u64; `row` is the last one to grow
//!     skipped                          u64; of a run that can skip triggers
//!     one dataset a channel            u64, i64 or f64: raw words; attributes
//!                                      units, scale, offset, description, ...
//!     failed                           u8, a row each, a column for each
//!                                      channel and then each output: 1 where
//!                                      it failed; attribute columns: names
//! /entry/gaps            one element a gap: before `row` with `trigger`,
//!     row trigger missed lost          so many triggers and rows are not there
//! /entry/run             attributes: engine, kernel, event, period_ns, ...
//!     rows triggers missed skipped lost errors end_time_ns complete end missed_by/...
//! ```
//!
//! Where a channel failed, a f64 is NaN; an integer cannot be, and is the
//! greatest u64 or the least i64, which may be a value too: `failed` knows.
//!
//! SWMR forbids new objects and attributes, so all that is known later is a
//! dataset from the start. Until the end, `complete` is 0, and `rows`,
//! `triggers`, `missed`, `skipped` and `lost` are those up to the last row; the other
//! counters are 0.
//!
//! The file is flushed five times a second. If the recorder is killed, what
//! was flushed is read by opening the file for SWMR again, or, after
//! `h5clear -s FILE`, by any program.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ::hdf5::file::OpenMode;
use ::hdf5::types::FixedAscii;
use ::hdf5::{Dataset, Error, File, Group};
use ndarray::ArrayView2;
use strobe::channel::Type;
use strobe::info::{RunInfo, Totals};
use strobe_ring::layout::{ROW_FAULTS, ROW_HEADER_WORDS};
use strobe_ring::{Faults, Row, RowShape, Rows};

use super::table::{STATUS, rows_at_once};
use super::{Sink, SinkProgress, check_shape};

mod layout;
mod values;

use values::Values;

/// Time between two flushes.
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// Rows that are kept in memory between them, at most.
const ROWS_KEPT: usize = 64 * 1024;

/// `End::word`, filled up with zeros.
type Word = FixedAscii<8>;

/// An HDF5 file.
pub struct Hdf5File {
    // Before `file`, so that it goes first: the file is closed when nothing in
    // it is open.
    writing: Option<Writing>,
    file: Option<File>,
    written: SinkProgress,
    flush_every: Duration,
}

/// What there is between `begin` and `finish`.
struct Writing {
    shape: RowShape,
    /// A column for each word of a row but for those of faults, in the order of a row: `row` is first, `skipped` last.
    columns: Vec<Column>,
    failed: Option<Failed>,
    gaps: Gaps,
    account: Account,
    /// The row and trigger that come next if none is lost, missed or skipped.
    next: (u64, u64),
    /// Triggers that were skipped so far.
    skips: u64,
    rows: u64,
    lost: u64,
    flushed: Instant,
}

/// A dataset of one dimension that grows.
struct Column {
    dataset: Dataset,
    /// Elements of it that are in the file.
    length: usize,
    /// Those that are not.
    values: Values,
}

/// What failed, row by row. While nothing does, nothing is written: what is not there reads as 0.
struct Failed {
    dataset: Dataset,
    /// Channels and outputs.
    steps: usize,
    /// Rows of it that are in the file.
    length: usize,
    /// Those that are not.
    rows: usize,
    /// Of these; empty as long as nothing failed in them.
    marks: Vec<u8>,
}

/// Where triggers or rows are missing.
struct Gaps {
    row: Column,
    trigger: Column,
    missed: Column,
    lost: Column,
}

/// Scalars that change.
struct Account {
    rows: Dataset,
    triggers: Dataset,
    missed: Dataset,
    missed_by: Vec<(&'static str, Dataset)>,
    skipped: Dataset,
    lost: Dataset,
    errors: Dataset,
    end_time_ns: Dataset,
    complete: Dataset,
    end: Dataset,
}

impl Hdf5File {
    /// A new file of this name.
    ///
    /// # Errors
    /// Those of the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        // The library's own errors do not say why in the words of the system.
        drop(std::fs::File::create(path)?);
        Self::with(path, OpenMode::Create)
    }

    /// In place of an empty file that was made for it.
    ///
    /// The library would truncate that one, and ext4 allocates all blocks of a file that was truncated when it is closed:
    /// a third of the time of a recording.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn replace(path: &Path) -> io::Result<Self> {
        // Nobody else makes one of this name as long as the empty file is there.
        let part = format!(".strobe-{}.part", path.metadata()?.ino());
        let part = path.with_file_name(part);
        let file = Self::with(&part, OpenMode::CreateExcl)?;
        match std::fs::rename(&part, path) {
            Ok(()) => Ok(file),
            Err(error) => {
                // The error that made it useless is the one to report.
                let _ = std::fs::remove_file(&part);
                Err(error)
            }
        }
    }

    fn with(path: &Path, mode: OpenMode) -> io::Result<Self> {
        // Without a cache of chunks, what is appended goes into the file at once: the library would copy it into 1 MiB of
        // memory for each column.
        let file = File::with_options()
            .with_fapl(|access| access.libver_latest().chunk_cache(0, 0, 0.0))
            .open_as(path, mode)
            .map_err(io_error)?;
        Ok(Hdf5File {
            writing: None,
            file: Some(file),
            written: SinkProgress::default(),
            flush_every: FLUSH_EVERY,
        })
    }

    /// Every flush is done at once.
    #[cfg(test)]
    fn eager(mut self) -> Self {
        self.flush_every = Duration::ZERO;
        self
    }

    fn write_out(&mut self) -> io::Result<()> {
        if let Some(writing) = &mut self.writing {
            writing.write_out().map_err(io_error)?;
            self.written.rows = writing.rows;
        }
        if let Some(file) = &self.file {
            self.written.bytes = file.size();
        }
        Ok(())
    }
}

impl Sink for Hdf5File {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let writing = layout::create(file, info).map_err(io_error)?;
        file.start_swmr().map_err(io_error)?;
        self.writing = Some(writing);
        self.write_out()
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        check_shape(rows, writing.shape)?;
        writing.add(rows);
        if writing.rows_kept() >= ROWS_KEPT {
            self.write_out()?;
        }
        Ok(())
    }

    /// Only every 200 ms: HDF5 writes whole chunks.
    fn flush(&mut self) -> io::Result<()> {
        let every = self.flush_every;
        let is_due = |w: &Writing| w.flushed.elapsed() >= every;
        if self.writing.as_ref().is_some_and(is_due) {
            self.write_out()?;
        }
        Ok(())
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        self.write_out()?;
        let Some(writing) = self.writing.take() else {
            return Ok(());
        };
        if let Some(totals) = totals {
            writing.account.finish(totals).map_err(io_error)?;
        }
        drop(writing);
        if let Some(file) = self.file.take() {
            file.flush().map_err(io_error)?;
            self.written.bytes = file.size();
            file.close().map_err(io_error)?;
        }
        Ok(())
    }

    fn written(&self) -> SinkProgress {
        self.written
    }
}

impl Writing {
    fn add(&mut self, rows: Rows<'_>) {
        let before = self.rows_kept();
        let width = self.shape.words() as usize;
        // Words of faults are before that of what was skipped, and have no columns.
        let skipped = self.shape.skipped.then(|| self.columns.len() - 1);
        for part in rows.words().chunks(width * rows_at_once(width)) {
            for (index, column) in self.columns.iter_mut().enumerate() {
                let place = if Some(index) == skipped {
                    width - 1
                } else {
                    index
                };
                let word = |row: &[u64]| row.get(place).copied().unwrap_or_default();
                column.values.extend(part.chunks_exact(width).map(word));
            }
        }
        for (index, row) in (before..).zip(rows) {
            self.account_for(row);
            let is_faulty = !row.faults.is_empty();
            if is_faulty {
                self.no_values(index, row);
            }
            if let Some(failed) = &mut self.failed {
                failed.add(is_faulty.then_some(row.faults));
            }
        }
    }

    /// What is not there before a row.
    fn account_for(&mut self, row: Row<'_>) {
        let (next_row, next_trigger) = self.next;
        let lost = row.row.saturating_sub(next_row);
        let skipped = row.skipped.saturating_sub(self.skips);
        // Each row has its trigger; what goes beyond was missed, or skipped.
        let missed = row
            .trigger
            .saturating_sub(next_trigger)
            .saturating_sub(lost)
            .saturating_sub(skipped);
        if (lost, missed) != (0, 0) {
            self.gaps.add(row, missed, lost);
        }
        self.lost = self.lost.saturating_add(lost);
        self.next = (row.row.saturating_add(1), row.trigger.saturating_add(1));
        self.skips = row.skipped;
    }

    /// The row at this index of those that are kept, in which something failed: `failed` says what.
    fn no_values(&mut self, index: usize, row: Row<'_>) {
        if let Some(status) = self.columns.get_mut(STATUS) {
            status.values.set(index, row.status.0 & !ROW_FAULTS);
        }
        let channels = self.columns.iter_mut().skip(ROW_HEADER_WORDS);
        for (channel, column) in channels.take(row.values.len()).enumerate() {
            if row.faults.failed(channel) {
                column.values.set_failed(index);
            }
        }
    }

    /// Rows that are not in the file.
    fn rows_kept(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// `row` is the first column and goes last: where it is, all the others are.
    fn write_out(&mut self) -> Result<(), Error> {
        self.flushed = Instant::now();
        let rows = self.rows_kept();
        if rows == 0 {
            return Ok(());
        }
        self.gaps.write_out()?;
        if let Some(failed) = &mut self.failed {
            failed.write_out()?;
        }
        for column in self.columns.iter_mut().rev() {
            column.write_out()?;
        }
        self.rows += rows as u64;
        let (next_row, next_trigger) = self.next;
        let account = &self.account;
        set(&account.rows, next_row)?;
        set(&account.triggers, next_trigger)?;
        let made = next_row.saturating_add(self.skips);
        set(&account.missed, next_trigger.saturating_sub(made))?;
        set(&account.skipped, self.skips)?;
        set(&account.lost, self.lost)
    }
}

impl Column {
    fn write_out(&mut self) -> Result<(), Error> {
        let length = self.length + self.values.len();
        if length == self.length {
            return Ok(());
        }
        self.dataset.resize(length)?;
        self.values.write(&self.dataset, self.length..length)?;
        self.dataset.flush()?;
        self.length = length;
        self.values.clear();
        Ok(())
    }
}

impl Failed {
    /// The next row, and what failed in it if something did.
    fn add(&mut self, faults: Option<Faults<'_>>) {
        self.rows += 1;
        let Some(faults) = faults else {
            return;
        };
        // The rows before it, and this one.
        self.marks.resize(self.rows * self.steps, 0);
        let row = (self.rows - 1) * self.steps;
        for step in faults.iter() {
            if let Some(mark) = self.marks.get_mut(row + step) {
                *mark = 1;
            }
        }
    }

    fn write_out(&mut self) -> Result<(), Error> {
        let (length, steps) = (self.length + self.rows, self.steps);
        self.dataset.resize((length, steps))?;
        // Up to the last row in which something failed.
        let rows = self.marks.len() / steps;
        let marks = ArrayView2::from_shape((rows, steps), &self.marks);
        if let (1.., Ok(marks)) = (rows, marks) {
            let place = self.length..self.length + rows;
            self.dataset.write_slice(marks, (place, ..))?;
        }
        self.dataset.flush()?;
        (self.length, self.rows) = (length, 0);
        self.marks.clear();
        Ok(())
    }
}

impl Gaps {
    fn add(&mut self, row: Row<'_>, missed: u64, lost: u64) {
        self.row.values.extend([row.row]);
        self.trigger.values.extend([row.trigger]);
        self.missed.values.extend([missed]);
        self.lost.values.extend([lost]);
    }

    fn write_out(&mut self) -> Result<(), Error> {
        self.lost.write_out()?;
        self.missed.write_out()?;
        self.trigger.write_out()?;
        self.row.write_out()
    }
}

impl Account {
    /// `complete` comes last.
    fn finish(&self, totals: &Totals) -> Result<(), Error> {
        set(&self.rows, totals.rows)?;
        set(&self.triggers, totals.triggers)?;
        set(&self.missed, totals.missed())?;
        for (cause, dataset) in &self.missed_by {
            let mut known = totals.missed_by_name();
            let count = known.find(|(name, _)| name == cause);
            set(dataset, count.map_or(0, |(_, count)| count))?;
        }
        set(&self.skipped, totals.skipped)?;
        set(&self.lost, totals.lost)?;
        set(&self.errors, totals.errors)?;
        set(&self.end_time_ns, totals.end_time_ns)?;
        let word = Word::from_ascii(totals.end.word()).unwrap_or_default();
        self.end.write_scalar(&word)?;
        self.end.flush()?;
        set(&self.complete, 1)
    }
}

/// Changes a scalar, and sees to it that readers see it.
fn set(dataset: &Dataset, value: u64) -> Result<(), Error> {
    dataset.write_scalar(&value)?;
    dataset.flush()
}

/// The system's reason, if there is one in what the library says.
fn io_error(error: Error) -> io::Error {
    if let Error::HDF5(stack) = &error {
        let frames = stack.clone().expand().unwrap_or_default();
        let errno = frames.iter().find_map(|frame| {
            let (_, after) = frame.desc().split_once("errno = ")?;
            after.split(',').next()?.trim().parse::<i32>().ok()
        });
        if let Some(errno) = errno {
            return io::Error::from_raw_os_error(errno);
        }
    }
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests;
