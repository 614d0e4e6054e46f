// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's place in the rows of a run.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use strobe::block::{Block, Place};
use strobe::info::RunInfo;
use strobe_files::journal::{Columns, Error, StoredBatch};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;

use crate::spool::{FileRows, Found, OnDisk, Piece, Progress, SegmentReader, Spool};

#[cfg(test)]
pub(crate) mod tests;

/// How often a file that cannot be read is tried again, before its rows count as lost, and how long that takes.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_millis(100);
/// Files that are read at once for all clients together. A disk may be slow, and what controls runs shares its threads with
/// these reads: it finds one free at any time.
const READS: usize = 8;
static READING: Semaphore = Semaphore::const_new(READS);

/// Where a client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// With this row.
    Row(u64),
    /// With the oldest row that is there.
    Oldest,
    /// With the next row that is made.
    Now,
}

/// Reads rows on, in their order. What it could not have is counted: rows + lost is all rows from where it began.
pub struct Cursor {
    spool: Arc<Spool>,
    watch: watch::Receiver<Progress>,
    /// Rows before this one were given, or are lost.
    next: u64,
    /// Rows before this one are not wanted, or cannot be read.
    skip: u64,
    /// Rows from the disk that were not given yet.
    held: Option<Piece>,
    /// A batch from the disk that was not given yet.
    stored: Option<StoredBatch>,
    /// Columns of such a batch, some rows of which were not given yet, and the number of its first row.
    columns: Option<(u64, Arc<Columns>)>,
    /// The file that they are from.
    reading: Option<SegmentReader>,
    /// A file is being read.
    pending: Option<Pending>,
    tries: u32,
    /// The last row that was given, if it was given as a block.
    last: Option<Place>,
    rows: u64,
    lost: u64,
}

/// A read that goes on, whether it is waited for or not.
struct Pending {
    read: JoinHandle<Result<Read, Error>>,
    /// The row after those that may be found.
    end: u64,
    form: Form,
}

/// What is wanted of a file. What cannot be had so is read as rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Rows,
    /// The next batch in which nothing failed.
    Columns,
    /// The next batch as it lies there, if it ends before this row.
    Batch(u64),
}

/// What was read.
enum Read {
    Rows(Option<(FileRows, SegmentReader)>),
    Batch(StoredBatch, SegmentReader),
}

impl Cursor {
    /// A new one.
    pub fn new(spool: Arc<Spool>, from: From) -> Self {
        let watch = spool.watch();
        let next = match from {
            From::Row(row) => row,
            From::Oldest => watch.borrow().oldest,
            From::Now => watch.borrow().next,
        };
        Cursor {
            spool,
            watch,
            next,
            skip: next,
            held: None,
            stored: None,
            columns: None,
            reading: None,
            pending: None,
            tries: 0,
            last: (next == 0).then_some(Place::START),
            rows: 0,
            lost: 0,
        }
    }

    /// What is known of the run, once it was started, or will not be any more.
    pub async fn info(&mut self) -> Arc<RunInfo> {
        // Fails when the spool has gone, which this keeps.
        let _ = self.watch.wait_for(Progress::has_started).await;
        self.spool.info()
    }

    /// The next rows, at most so many; waits for them. `None` after the last ones. A block without rows says that the
    /// last rows of the run were lost. May be dropped at any moment: nothing is skipped then, and the next call goes on
    /// with a file that is being read.
    pub async fn next(&mut self, at_most: usize) -> Option<Block> {
        loop {
            // Before the look: what comes after it is not overlooked.
            let progress = self.watch.borrow_and_update().clone();
            match self.find(at_most) {
                Found::Rows(piece) => return Some(self.give(piece)),
                Found::OnDisk(place) => self.read(place, Form::Rows).await,
                Found::Nothing if progress.is_over() => return self.rest(&progress),
                Found::Nothing => {
                    let _ = self.watch.changed().await;
                }
            }
        }
    }

    /// The next rows, at most so many, if they are in memory: for who puts together what is there already.
    pub fn ready(&mut self, at_most: usize) -> Option<Block> {
        match self.find(at_most) {
            Found::Rows(piece) => Some(self.give(piece)),
            Found::OnDisk(_) | Found::Nothing => None,
        }
    }

    /// The next batch as it lies on the disk, for who wants no other form of it: if it begins with the next row, which is not
    /// in memory, and ends before `to`. `None`: ask for the [`next`](Self::next) rows. May be dropped at any moment.
    pub async fn batch(&mut self, to: u64) -> Option<StoredBatch> {
        if self.stored.is_none() {
            self.fetch(Form::Batch(to)).await;
        }
        // A read that was begun before may be of other rows.
        let is_next =
            |stored: &StoredBatch| stored.rows.start == self.next && stored.rows.end <= to;
        let stored = self.stored.take().filter(is_next)?;
        self.pass(stored.rows.end).then_some(stored)
    }

    /// The next rows, at most so many, among the columns of a batch on the disk, for who wants no other form of them: if
    /// nothing failed in any row of this batch. `None`: ask for the [`next`](Self::next) rows. May be dropped at any moment.
    pub async fn columns(&mut self, at_most: usize) -> Option<(Arc<Columns>, Range<usize>)> {
        if self.in_columns().is_none() {
            self.fetch(Form::Columns).await;
        }
        let (columns, rows) = self.in_columns()?;
        let rows = rows.start..rows.end.min(rows.start.saturating_add(at_most));
        self.pass(self.next + rows.len() as u64)
            .then_some((columns, rows))
    }

    /// The columns that are there, and which of their rows are next, if one is.
    fn in_columns(&self) -> Option<(Arc<Columns>, Range<usize>)> {
        let (first, columns) = self.columns.as_ref()?;
        let given = usize::try_from(self.next.checked_sub(*first)?).ok()?;
        (given < columns.rows()).then(|| (Arc::clone(columns), given..columns.rows()))
    }

    /// Reads the next rows in this form, if they are on the disk only.
    async fn fetch(&mut self, form: Form) {
        if self.skip > self.next {
            return;
        }
        if let Found::OnDisk(place) = self.find(1) {
            self.read(place, form).await;
        }
    }

    /// Goes on after the rows before this one, which the client has from somebody else. Whether it does: not if it is to leave
    /// some of them out.
    pub fn pass(&mut self, end: u64) -> bool {
        let is_next = self.skip <= self.next && end > self.next;
        if is_next {
            self.rows += end - self.next;
            (self.next, self.last, self.stored) = (end, None, None);
            if self.in_columns().is_none() {
                self.columns = None;
            }
        }
        is_next
    }

    /// Rows before this one are not wanted any more: they count as lost, with the next block.
    pub fn skip_to(&mut self, row: u64) {
        self.skip = self.skip.max(row);
    }

    /// Only rows that come from now on are wanted: for who is too slow for all of them.
    pub fn skip_to_newest(&mut self) {
        let newest = self.progress().next;
        self.skip_to(newest);
    }

    /// Where the next rows are.
    fn find(&mut self, at_most: usize) -> Found {
        let row = self.next.max(self.skip);
        match &self.held {
            Some(held) if held.end() > row => Found::Rows(held.from(row, at_most)),
            _ => {
                self.held = None;
                self.spool.find(row, at_most)
            }
        }
    }

    /// Begins to read what follows the rows that were given, for who takes [`columns`](Self::columns) or not, if it is on the
    /// disk only: who wants it soon need not wait for it then. One read more than is waited for, at most.
    pub fn ahead(&mut self, by_columns: bool) {
        if self.rows == 0 || self.in_columns().is_some() || self.pending.is_some() {
            return;
        }
        // Files that are waited for come first.
        let (Found::OnDisk(place), Ok(turn)) = (self.find(1), READING.try_acquire()) else {
            return;
        };
        let form = if by_columns {
            Form::Columns
        } else {
            Form::Rows
        };
        self.begin(place, form, turn);
    }

    /// Begins to read a file.
    fn begin(&mut self, place: OnDisk, form: Form, turn: SemaphorePermit<'static>) {
        let row = self.next.max(self.skip);
        let (before, end) = (self.reading.take(), place.end());
        let read = tokio::task::spawn_blocking(move || {
            // Held by the read: who asks and goes away does not make room for one more.
            let _turn = turn;
            Ok(match form {
                Form::Rows => Read::Rows(place.read(before, row)?),
                Form::Columns => Read::Rows(place.columns(before, row)?),
                Form::Batch(to) => match place.stored(before, row, to)? {
                    (Some(stored), reading) => Read::Batch(stored, reading),
                    (None, reading) => Read::Rows(place.read(Some(reading), row)?),
                },
            })
        });
        self.pending = Some(Pending { read, end, form });
    }

    /// Reads a file, which takes its time.
    async fn read(&mut self, place: OnDisk, form: Form) {
        if self.pending.is_none() {
            // Nobody closes it.
            if let Ok(turn) = READING.acquire().await {
                self.begin(place, form, turn);
            }
        }
        let Some(pending) = &mut self.pending else {
            return;
        };
        let (read, end) = ((&mut pending.read).await, pending.end);
        let form = pending.form;
        self.pending = None;
        match read {
            Ok(Ok(Read::Rows(Some((rows, reading))))) => {
                match rows {
                    FileRows::Piece(piece) => self.held = Some(piece),
                    FileRows::Columns(first, columns) => {
                        self.columns = Some((first, Arc::new(columns)));
                    }
                }
                (self.reading, self.tries) = (Some(reading), 0);
            }
            Ok(Ok(Read::Batch(stored, reading))) => {
                (self.stored, self.reading) = (Some(stored), Some(reading));
                self.tries = 0;
            }
            // A gap, up to the next file.
            Ok(Ok(Read::Rows(None))) => self.skip_to(end),
            Ok(Err(_)) | Err(_) if form != Form::Rows => {}
            // It may have been given up in this moment, or there are too many open files.
            Ok(Err(_)) | Err(_) if self.tries < TRIES => {
                self.tries += 1;
                tokio::time::sleep(AGAIN).await;
            }
            Ok(Err(_)) | Err(_) => {
                self.tries = 0;
                self.skip_to(end);
            }
        }
    }

    fn give(&mut self, piece: Piece) -> Block {
        let lost = piece.first - self.next;
        (self.next, self.stored, self.columns) = (piece.end(), None, None);
        self.rows += piece.rows.len() as u64;
        self.lost += lost;
        let numbers = (piece.first, lost);
        Block::new(piece.info, piece.words, piece.rows, numbers, &mut self.last)
    }

    /// Rows of the run that come no more.
    fn rest(&mut self, progress: &Progress) -> Option<Block> {
        let rows = progress.totals.as_ref().map_or(progress.next, |t| t.rows);
        let lost = rows.checked_sub(self.next).filter(|lost| *lost > 0)?;
        self.next = rows;
        self.lost += lost;
        Some(Block::new(
            self.spool.info(),
            Arc::default(),
            0..0,
            (rows, lost),
            &mut self.last,
        ))
    }

    /// The row that comes next.
    pub fn next_row(&self) -> u64 {
        self.next
    }

    /// Rows that were given.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows that could not be given.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Where the run is.
    pub fn progress(&self) -> Progress {
        self.watch.borrow().clone()
    }
}
