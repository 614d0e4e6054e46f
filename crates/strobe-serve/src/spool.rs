// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spool: the rows of one run, kept for clients that come late or are slow.
//!
//! One thread appends ([`crate::drain`]), one writes to the disk, any number of cursors read. Rows are found by their
//! number: the newest ones in memory, all others in files. What the ring lost before it was drained is missing here for
//! good; what could not be written, or is older or more than the bounds say, is given up. All these are steps from one row
//! to the next, which a cursor reports as lost.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::clock::RunClock;
use strobe::info::{RunInfo, Totals};
use strobe::ring::Snapshot;
use tokio::sync::watch;

mod bounds;
mod losses;
mod progress;
mod recent;
mod rows;
mod segment_reader;
mod segments;
mod writer;

pub use bounds::Bounds;
use losses::Losses;
pub use progress::Progress;
pub use recent::Piece;
use recent::Recent;
use rows::{Disk, Rows};
pub(crate) use segment_reader::{FileRows, OnDisk, SegmentReader};
use segments::{Found as Files, Segments};
use writer::{Work, Writer};

/// How often rows that are too old are looked for while no new ones come, at least.
const QUIET: Duration = Duration::from_secs(60);

/// The rows of one run.
pub struct Spool {
    bounds: Bounds,
    rows: Mutex<Rows>,
    /// There is work for the thread that writes, or it is done.
    work: Condvar,
    progress: watch::Sender<Progress>,
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
        found.may_go_on(&info)?;
        let losses = Losses::read(folder, found.segments.end());
        let progress = Progress::of_files(&found.segments, &losses);
        let spool = Arc::new(Spool::of(info, bounds, found.segments, progress));
        {
            let mut rows = spool.lock();
            (rows.disk, rows.is_for_disk) = (Disk::Writing, true);
            (rows.lost_before, rows.lost_to_disk) = (losses.lost, losses.unwritten);
            rows.touched = Some(Instant::now());
        }
        // It has the spool, too: who discards a spool and lets it go has its files removed.
        let (writer, of) = (
            Writer::new(folder.to_owned(), bounds, losses),
            Arc::clone(&spool),
        );
        Builder::new()
            .name("spool".to_owned())
            .spawn(move || writer.run(&of))?;
        Ok(spool)
    }

    /// The rows of a run that has ended, or whose daemon has. `None` if there are none, nor an account.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn past(bounds: Bounds, folder: &Path) -> io::Result<Option<Self>> {
        let Files {
            segments,
            info,
            totals,
            last_time,
        } = Segments::find(folder)?;
        let Some(info) = info else {
            return Ok(None);
        };
        let failed = "the daemon ended before the run; rows after the last one here are not known";
        let losses = Losses::read(folder, segments.end());
        let mut progress = Progress::of_files(&segments, &losses);
        match &totals {
            Some(totals) => progress.lost = totals.lost,
            None => progress.failed = Some(failed.to_owned()),
        }
        (progress.failed_at, progress.totals) = (last_time, totals);
        Ok(Some(Spool::of(info, bounds, segments, progress)))
    }

    /// Whether the account of the run is in this folder: it has ended, and all its rows are there.
    pub(crate) fn has_account(folder: &Path) -> bool {
        Segments::account(folder).is_some()
    }

    fn of(info: RunInfo, bounds: Bounds, segments: Segments, progress: Progress) -> Self {
        Spool {
            bounds,
            rows: Mutex::new(Rows::new(info, bounds.recent, segments)),
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
        self.bounds.age.is_some_and(|age| rows.are_old(age))
    }

    /// Its first row will be this one: who comes later than the run has not lost what was before. Only before the first
    /// rows come.
    pub fn begin_at(&self, row: u64) {
        self.progress.send_modify(|progress| {
            (progress.begun, progress.oldest, progress.next) = (row, row, row)
        });
    }

    /// The next rows of the run, and what was lost before them. Only the drain thread calls this. The counters are asked for
    /// while the rows are locked, so that nobody puts older ones there after newer ones.
    pub fn append(&self, block: &Block, run: impl FnOnce() -> Snapshot) {
        let mut rows = self.lock();
        let run = run();
        rows.learn(&run);
        if !block.is_empty() {
            rows.push(block);
        }
        if rows.disk == Disk::Writing && rows.unwritten() >= self.bounds.recent / 4 {
            self.work.notify_all();
        }
        let next = block.first() + block.len() as u64;
        let oldest = rows.oldest().unwrap_or(next);
        self.progress.send_modify(|progress| {
            progress.lost += block.lost();
            progress.run = Some(run);
            (progress.oldest, progress.next) = (oldest, next);
            progress.unwritten = rows.lost_to_disk;
        });
    }

    /// The state or the counters of the run may have changed, though no rows came. As of [`append`](Self::append), they are
    /// asked for here; `None`: they are not known.
    pub fn look(&self, run: impl FnOnce() -> Option<Snapshot>) {
        let mut rows = self.lock();
        let Some(run) = run() else { return };
        rows.learn(&run);
        self.progress.send_if_modified(|progress| {
            let before = progress.run.replace(run);
            before != progress.run
        });
    }

    /// All rows are here. The account is of all that there was to drain, also before this process.
    pub fn finish(&self, mut totals: Totals) {
        {
            let mut rows = self.lock();
            totals.lost += rows.lost_before;
            rows.end(Some(totals.clone()));
        }
        self.work.notify_all();
        self.progress
            .send_modify(|progress| progress.totals = Some(totals));
    }

    /// No more rows can be had.
    pub fn fail(&self, why: String) {
        let clock = {
            let mut rows = self.lock();
            rows.end(None);
            rows.info.clock
        };
        self.work.notify_all();
        self.progress.send_modify(|progress| {
            progress.failed = Some(why);
            progress.failed_at = RunClock::new(clock).now();
        });
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
                Found::OnDisk(OnDisk::at(place))
            }
            (Some(piece), _) => Found::Rows(piece.from(row, at_most)),
            (None, _) => Found::Nothing,
        }
    }

    /// Writes what is in memory, and nothing after that: the daemon ends. Returns when that is done, or after this time;
    /// whether the disk has all that it should.
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
        rows.is_whole
    }

    /// Rows that are not on the disk, and were meant for it: those that are in memory only, and those that are nowhere.
    pub fn unwritten(&self) -> u64 {
        let rows = self.lock();
        match rows.is_for_disk {
            true => rows.lost_to_disk + rows.in_memory_only(),
            false => 0,
        }
    }

    /// Gives up all rows; whether somebody writes, who removes the files soon.
    pub fn discard(&self) -> bool {
        self.turn(Disk::Discarding)
    }

    /// Nobody wants more rows, and the run does not end for that.
    pub fn abandon(&self) {
        self.lock().is_abandoned = true;
    }

    /// Whether nobody wants more rows.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
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

    /// What is to be written: after this time, or as soon as there is much of it. If rows may get too old, nothing after
    /// some time. Only the thread that writes calls this, and what follows.
    fn wait_for_work(&self, patience: Duration, at_once: usize) -> Work {
        let begun = Instant::now();
        let until = begun + patience;
        let at_most = self.bounds.time().map(|time| time.min(QUIET));
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
                return Work::Rows(rows.in_flight.clone(), rows.lost_to_disk);
            }
            if is_last {
                let totals = rows.over.clone().flatten();
                return Work::End(Arc::clone(&rows.info), totals);
            }
            if at_most.is_some_and(|at_most| begun.elapsed() >= at_most) {
                return Work::Nothing;
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
        rows.take_back();
        let unwritten = rows.lost_to_disk;
        self.progress
            .send_modify(|progress| progress.unwritten = unwritten);
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

    /// Why rows are not written to this folder, or that they are.
    fn report(&self, folder: &Path, error: Option<String>) {
        let folder = folder.display();
        let error = error.map(|error| format!("{folder}: {error}"));
        let is_news = self.progress.send_if_modified(|progress| {
            let is_other = progress.error != error;
            progress.error.clone_from(&error);
            is_other
        });
        match error {
            _ if !is_news => {}
            Some(error) => eprintln!("strobe serve: {error}; rows wait in memory"),
            None => {
                let missing = self.lock().lost_to_disk;
                eprintln!(
                    "strobe serve: {folder}: rows can be written again; {missing} are missing"
                );
            }
        }
    }

    /// Nothing more is written; whether all that was to be written is.
    fn is_written(&self, folder: &Path, is_whole: bool) {
        let is_discarded = {
            let mut rows = self.lock();
            let is_discarded = rows.disk == Disk::Discarding;
            if is_discarded {
                rows.segments = Segments::new();
            }
            if rows.unwritten() == 0 {
                // Who wants them finds them on the disk.
                rows.recent = Recent::new(self.bounds.recent);
            }
            (rows.disk, rows.is_whole) = (Disk::None, is_whole);
            is_discarded
        };
        self.work.notify_all();
        // Not while the lock is held: that takes a while, and there may be readers yet.
        if is_discarded {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    fn wait<'a>(&self, rows: MutexGuard<'a, Rows>, time: Duration) -> MutexGuard<'a, Rows> {
        let waited = self.work.wait_timeout(rows, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
