// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spool: the rows of one run, kept for clients that come late or are slow.
//!
//! One thread appends ([`crate::drain`]), one writes to the disk, any number of cursors read. Rows are found by their
//! number: the newest ones in memory, all others in files. What the ring lost before it was drained is missing here for
//! good; what could not be written, or is older or more than the bounds say, is given up. All these are steps from one row
//! to the next, which a cursor reports as lost.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::info::{RunInfo, Totals};
use strobe::ring::{Snapshot, State};
use tokio::sync::watch;

mod reading;
mod recent;
mod segments;
mod writer;

pub(crate) use reading::Reading;
pub use recent::Piece;
use recent::Recent;
use segments::{Place, Segments};
use writer::{Work, Writer};

/// How much of a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of rows that stay in memory.
    pub recent: usize,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Rows older than this are given up; `None`: they may get as old as they like.
    pub age: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            recent: 16 << 20,
            bytes: 4 << 30,
            age: None,
        }
    }
}

impl Bounds {
    /// Bytes of a file: little is given up at once.
    fn segment(&self) -> u64 {
        (self.bytes / 16).clamp(256 << 10, 64 << 20)
    }
}

/// Where a run and its spool are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The oldest row that can be read.
    pub oldest: u64,
    /// The row after the newest one.
    pub next: u64,
    /// Rows that the ring lost before they were drained.
    pub lost: u64,
    /// Counters of the run, as they were when rows came last, at most 100 ms old; `None` if it was not of this process.
    pub run: Option<Snapshot>,
    /// The account of the run, if it has ended and all its rows are here.
    pub totals: Option<Totals>,
    /// Why no more rows come, if that is not the end of the run.
    pub failed: Option<String>,
    /// The row after the newest one on the disk.
    pub written: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Why rows are not written to the disk, if they should be.
    pub error: Option<String>,
}

impl Progress {
    /// Whether no more rows will come.
    pub fn is_over(&self) -> bool {
        self.totals.is_some() || self.failed.is_some()
    }

    /// Whether the run was started.
    pub fn has_started(&self) -> bool {
        let is_waiting = |run: &Snapshot| matches!(run.state, State::Ready);
        self.run.as_ref().is_some_and(|run| !is_waiting(run)) || self.next > 0 || self.is_over()
    }
}

/// The rows of one run.
pub struct Spool {
    bounds: Bounds,
    rows: Mutex<Rows>,
    /// There is work for the thread that writes, or it is done.
    work: Condvar,
    progress: watch::Sender<Progress>,
}

struct Rows {
    info: Arc<RunInfo>,
    recent: Recent,
    /// What is being written: it may have left the memory, and is not on the disk yet.
    in_flight: Vec<Piece>,
    segments: Segments,
    /// Where rows are written to, if they are.
    disk: Disk,
    /// The account, or `None` if there is none; no more rows come.
    over: Option<Option<Totals>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    /// There is none, or nothing is written to it any more.
    None,
    /// A thread writes.
    Writing,
    /// It is to write what is there, and then to end.
    Closing,
    /// It is to remove all.
    Discarding,
}

/// Where the rows that a cursor wants are.
pub(crate) enum Found {
    /// Here.
    Rows(Piece),
    /// On the disk: [`Spool::read`] gets them, and takes its time.
    OnDisk(OnDisk),
    /// There are none yet.
    Nothing,
}

/// Where rows are on the disk.
pub(crate) struct OnDisk(Place);

impl OnDisk {
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
        before: Option<Reading>,
        row: u64,
    ) -> Result<Option<(Piece, Reading)>, strobe_files::journal::Error> {
        Reading::read(before, &self.0, row)
    }
}

impl Spool {
    /// For the rows of this run, in memory only.
    pub fn new(info: RunInfo, bounds: Bounds) -> Self {
        Spool::of(info, bounds, Segments::new(), Progress::default())
    }

    /// For the rows of this run, in this folder, which is made. If it has rows of the run already, it goes on after them.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn on_disk(info: RunInfo, bounds: Bounds, folder: &Path) -> io::Result<Arc<Self>> {
        std::fs::create_dir_all(folder)?;
        let found = Segments::find(folder)?;
        let progress = of_files(&found.segments);
        let spool = Arc::new(Spool::of(info, bounds, found.segments, progress));
        spool.lock().disk = Disk::Writing;
        let (writer, of) = (
            Writer::new(folder.to_owned(), bounds),
            Arc::downgrade(&spool),
        );
        Builder::new().name("spool".to_owned()).spawn(move || {
            if let Some(spool) = of.upgrade() {
                writer.run(&spool);
            }
        })?;
        Ok(spool)
    }

    /// The rows of a run that has ended, or whose daemon has. `None` if there are none, nor an account.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn past(bounds: Bounds, folder: &Path) -> io::Result<Option<Self>> {
        let found = Segments::find(folder)?;
        let Some(info) = found.info else {
            return Ok(None);
        };
        let failed = "the daemon ended before the run; rows after the last one here are not known";
        let progress = Progress {
            failed: found.totals.is_none().then(|| failed.to_owned()),
            totals: found.totals,
            ..of_files(&found.segments)
        };
        Ok(Some(Spool::of(info, bounds, found.segments, progress)))
    }

    fn of(info: RunInfo, bounds: Bounds, segments: Segments, progress: Progress) -> Self {
        let rows = Mutex::new(Rows {
            info: Arc::new(info),
            recent: Recent::new(bounds.recent),
            in_flight: Vec::new(),
            segments,
            disk: Disk::None,
            over: None,
        });
        Spool {
            bounds,
            rows,
            work: Condvar::new(),
            progress: watch::channel(progress).0,
        }
    }

    /// What is known of the run; its start as soon as it was started.
    pub fn info(&self) -> Arc<RunInfo> {
        Arc::clone(&self.lock().info)
    }

    /// Where it is, now and later.
    pub fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Where it is now.
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Who watches it: its readers, all together.
    pub fn readers(&self) -> usize {
        self.progress.receiver_count()
    }

    /// Bytes of rows that are kept: on the disk, or in memory, if they are nowhere else.
    pub fn bytes(&self) -> u64 {
        let rows = self.lock();
        match rows.segments.bytes() {
            0 => rows.recent.bytes_from(0) as u64,
            bytes => bytes,
        }
    }

    /// Whether all rows are older than the bounds say.
    pub fn is_old(&self) -> bool {
        let rows = self.lock();
        self.bounds.age.is_some_and(|age| rows.segments.is_old(age))
    }

    /// The next rows of the run, and what was lost before them. Only the drain thread calls this.
    pub fn append(&self, block: &Block, run: Snapshot) {
        let (oldest, next) = {
            let mut rows = self.lock();
            rows.learn(&run);
            if !block.is_empty() {
                let info = Arc::clone(&rows.info);
                rows.recent.push(&info, block);
            }
            if rows.disk == Disk::Writing && rows.unwritten() >= self.bounds.recent / 4 {
                self.work.notify_all();
            }
            let next = block.first() + block.len() as u64;
            (rows.oldest().unwrap_or(next), next)
        };
        self.progress.send_modify(|progress| {
            progress.lost += block.lost();
            progress.run = Some(run);
            (progress.oldest, progress.next) = (oldest, next);
        });
    }

    /// The counters of the run have changed, though no rows came. Only the drain thread calls this.
    pub fn look(&self, run: Snapshot) {
        self.lock().learn(&run);
        self.progress.send_if_modified(|progress| {
            let before = progress.run.replace(run);
            before != progress.run
        });
    }

    /// All rows are here.
    pub fn finish(&self, totals: Totals) {
        self.lock().over = Some(Some(totals.clone()));
        self.work.notify_all();
        self.progress
            .send_modify(|progress| progress.totals = Some(totals));
    }

    /// No more rows can be had.
    pub fn fail(&self, why: String) {
        self.lock().over = Some(None);
        self.work.notify_all();
        self.progress
            .send_modify(|progress| progress.failed = Some(why));
    }

    /// Rows from this number on, at most so many: the first ones that are in memory. `None`: there are none.
    pub fn read(&self, row: u64, at_most: usize) -> Option<Piece> {
        Some(self.lock().in_memory(row)?.from(row, at_most))
    }

    /// Where the rows from this number on are, at most so many; or the first ones after it.
    pub(crate) fn find(&self, row: u64, at_most: usize) -> Found {
        let rows = self.lock();
        let memory = rows.in_memory(row);
        let first = memory.map_or(u64::MAX, |piece| piece.first);
        let place = rows.segments.place(row).filter(|_| first > row);
        match (memory, place) {
            (_, Some(mut place)) if place.rows.start.max(row) < first => {
                place.rows.end = place.rows.end.min(first);
                Found::OnDisk(OnDisk(place))
            }
            (Some(piece), _) => Found::Rows(piece.from(row, at_most)),
            (None, _) => Found::Nothing,
        }
    }

    /// Writes what is in memory, and nothing after that: the daemon ends. Returns when that is done, or after this time;
    /// whether it is done.
    pub fn close(&self, patience: Duration) -> bool {
        self.turn(Disk::Closing);
        let until = Instant::now() + patience;
        let mut rows = self.lock();
        while rows.disk != Disk::None {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            rows = self.wait(rows, left);
        }
        true
    }

    /// Gives up all rows; whether somebody writes, who removes the files soon.
    pub fn discard(&self) -> bool {
        self.turn(Disk::Discarding)
    }

    fn turn(&self, disk: Disk) -> bool {
        let mut rows = self.lock();
        let is_written = rows.disk != Disk::None;
        if is_written {
            rows.disk = disk;
        }
        self.work.notify_all();
        is_written
    }

    /// What is to be written: after this time, or as soon as there is much of it. Only the thread that writes calls this,
    /// and what follows.
    fn wait_for_work(&self, patience: Duration, at_once: usize) -> Work {
        let until = Instant::now() + patience;
        let mut rows = self.lock();
        rows.in_flight.clear();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let unwritten = rows.unwritten();
            let is_last = rows.over.is_some() || rows.disk != Disk::Writing;
            let is_much = unwritten >= at_once.min(self.bounds.recent / 4);
            if unwritten > 0
                && rows.disk != Disk::Discarding
                && (is_last || is_much || left.is_zero())
            {
                let row = rows.segments.end();
                rows.in_flight = rows.recent.from(row, at_once);
                return Work::Rows(rows.in_flight.clone());
            }
            if is_last {
                let totals = rows.over.clone().flatten();
                return Work::End(Arc::clone(&rows.info), totals);
            }
            let left = match left.is_zero() {
                true => patience,
                false => left,
            };
            rows = self.wait(rows, left);
        }
    }

    /// Waits before the next try; whether there should be none.
    fn rest(&self, time: Duration) -> bool {
        let mut rows = self.lock();
        rows.in_flight.clear();
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || rows.disk != Disk::Writing {
                return rows.disk != Disk::Writing;
            }
            rows = self.wait(rows, left);
        }
    }

    /// Changes the index of the files.
    fn segments<T>(&self, change: impl FnOnce(&mut Segments) -> T) -> T {
        let (done, bytes, written, oldest) = {
            let mut rows = self.lock();
            let done = change(&mut rows.segments);
            let (bytes, written) = (rows.segments.bytes(), rows.segments.end());
            (done, bytes, written, rows.oldest())
        };
        self.progress.send_if_modified(|progress| {
            let of = |progress: &Progress| (progress.bytes, progress.written, progress.oldest);
            let before = of(progress);
            (progress.bytes, progress.written) = (bytes, written);
            progress.oldest = oldest.unwrap_or(progress.oldest);
            before != of(progress)
        });
        done
    }

    /// Why rows are not written, or that they are.
    fn report(&self, error: Option<String>) {
        self.progress.send_if_modified(|progress| {
            let is_other = progress.error != error;
            progress.error = error;
            is_other
        });
    }

    /// Nothing more is written.
    fn is_written(&self, folder: &PathBuf) {
        let mut rows = self.lock();
        if rows.disk == Disk::Discarding {
            rows.segments = Segments::new();
            let _ = std::fs::remove_dir_all(folder);
        }
        if rows.unwritten() == 0 {
            // Who wants them finds them on the disk.
            rows.recent = Recent::new(self.bounds.recent);
        }
        rows.disk = Disk::None;
        self.work.notify_all();
    }

    fn wait<'a>(&self, rows: MutexGuard<'a, Rows>, time: Duration) -> MutexGuard<'a, Rows> {
        let waited = self.work.wait_timeout(rows, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a run is of which there is nothing but files.
fn of_files(segments: &Segments) -> Progress {
    Progress {
        oldest: segments.first().unwrap_or(0),
        next: segments.end(),
        written: segments.end(),
        bytes: segments.bytes(),
        ..Progress::default()
    }
}

impl Rows {
    /// The start of the run is known now.
    fn learn(&mut self, run: &Snapshot) {
        if self.info.start != run.start {
            Arc::make_mut(&mut self.info).start = run.start;
        }
    }

    /// The piece with this row, or the first one after it.
    fn in_memory(&self, row: u64) -> Option<&Piece> {
        let in_flight = self.in_flight.iter().find(|piece| piece.end() > row);
        let recent = self.recent.find(row);
        in_flight.into_iter().chain(recent).min_by_key(|p| p.first)
    }

    /// Bytes in memory that are not on the disk.
    fn unwritten(&self) -> usize {
        self.recent.bytes_from(self.segments.end())
    }

    fn oldest(&self) -> Option<u64> {
        let in_flight = self.in_flight.first().map(|piece| piece.first);
        let all = [self.segments.first(), in_flight, self.recent.first()];
        all.into_iter().flatten().min()
    }
}
