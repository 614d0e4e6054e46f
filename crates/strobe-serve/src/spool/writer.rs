// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that writes rows to the disk. It takes them from those in memory: a disk that is slow, full or gone holds up
//! neither the run nor who reads the newest rows. What has left the memory before it could be written is a gap: a step
//! from one row on the disk to the next.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strobe::info::{RunInfo, Totals};
use strobe_files::sink::Sink;
use strobe_files::sink::arrow::ArrowFile;

use super::bounds::EVERY;
use super::losses::Losses;
use super::recent::Piece;
use super::segments::Segments;
use super::{Bounds, Spool};

/// After an error, before the next try.
const AGAIN: Duration = Duration::from_secs(1);
/// Bytes that are written at once, at most.
const AT_ONCE: usize = 1 << 20;

/// Where rows are written to.
pub(super) struct Writer {
    folder: PathBuf,
    bounds: Bounds,
    file: Option<Open>,
    /// What there was before the rows that come next.
    losses: Losses,
}

/// The file that is being written.
struct Open {
    sink: ArrowFile,
    path: PathBuf,
    file: File,
    /// Bytes of whole batches.
    whole: u64,
    rows: u64,
    begun: Instant,
}

/// What there is to do.
pub(super) enum Work {
    /// Rows to write, and how many were to be written before them, and are gone.
    Rows(Vec<Piece>, u64),
    /// No more rows come; the account, if the run has come to its end.
    End(Arc<RunInfo>, Option<Totals>),
    /// Nothing but to look after what is there.
    Nothing,
}

impl Writer {
    /// Into this folder.
    pub(super) fn new(folder: PathBuf, bounds: Bounds, losses: Losses) -> Self {
        Writer {
            folder,
            bounds,
            file: None,
            losses,
        }
    }

    /// Writes what comes, until the end.
    pub(super) fn run(mut self, spool: &Spool) {
        let is_whole = loop {
            let work = spool.wait_for_work(EVERY, AT_ONCE);
            let done = match &work {
                Work::Rows(pieces, unwritten) => self.write(spool, pieces, *unwritten),
                Work::End(info, totals) => self.end(spool, info, totals.as_ref()),
                Work::Nothing => self.look_after(spool),
            };
            if let Err(error) = &done {
                self.leave(spool);
                spool.report(&self.folder, Some(error.to_string()));
                // Once the daemon ends, nothing is tried again.
                if !spool.rest(AGAIN) {
                    continue;
                }
            } else {
                spool.report(&self.folder, None);
            }
            if done.is_err() || matches!(work, Work::End(..)) {
                break done.is_ok();
            }
        };
        spool.is_written(&self.folder, is_whole);
    }

    fn write(&mut self, spool: &Spool, pieces: &[Piece], unwritten: u64) -> io::Result<()> {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            return Ok(());
        };
        self.make_room(spool)?;
        let (begun, end) = (spool.progress().begun, spool.segments(|all| all.end()));
        let losses = self.losses.with(begun, end, pieces, unwritten);
        if losses != self.losses {
            losses.write(&self.folder)?;
        }
        let open = self.open(spool, &first.info, first.first)?;
        for piece in pieces {
            let rows = strobe::ring::Rows::new(piece.words(), piece.info.shape());
            open.sink.write(rows)?;
        }
        open.sink.flush()?;
        open.whole = open.sink.written().bytes;
        open.rows = open.sink.written().rows;
        let whole = open.whole;
        spool.segments(|segments| segments.grow(first.first..last.end(), whole));
        self.losses = losses.up_to(last.end());
        self.end_full()
    }

    /// Ends the file that is written, if it is large, or old, enough.
    fn end_full(&mut self) -> io::Result<()> {
        let (bytes, time) = (self.bounds.segment(), self.bounds.time());
        let is_old = |open: &Open| time.is_some_and(|time| open.begun.elapsed() >= time);
        let full = self
            .file
            .take_if(|open| open.whole >= bytes || (open.rows > 0 && is_old(open)));
        full.map_or(Ok(()), |mut full| full.sink.finish(None))
    }

    /// No rows have come for some time.
    fn look_after(&mut self, spool: &Spool) -> io::Result<()> {
        self.end_full()?;
        self.make_room(spool)
    }

    /// The file that is written, or a new one that begins with this row.
    fn open(&mut self, spool: &Spool, info: &RunInfo, row: u64) -> io::Result<&mut Open> {
        if self.file.is_none() {
            let path = Segments::path(&self.folder, row);
            let file = File::options().write(true).create_new(true).open(&path)?;
            let mut sink = ArrowFile::new(file.try_clone()?);
            if let Err(error) = sink.begin(info) {
                // There is nothing in it.
                let _ = fs::remove_file(&path);
                return Err(error);
            }
            let whole = sink.written().bytes;
            spool.segments(|segments| segments.begin(path.clone(), row, whole));
            self.file = Some(Open {
                sink,
                path,
                file,
                whole,
                rows: 0,
                begun: Instant::now(),
            });
        }
        (self.file.as_mut()).ok_or_else(|| io::Error::other("no file is open"))
    }

    /// After an error nothing more goes into the file: it ends with its last whole batch.
    fn leave(&mut self, spool: &Spool) {
        let Some(open) = self.file.take() else {
            return;
        };
        match open.rows {
            0 => {
                spool.segments(Segments::take_back);
                let _ = fs::remove_file(&open.path);
            }
            _ => {
                let _ = open.file.set_len(open.whole);
            }
        }
    }

    fn end(&mut self, spool: &Spool, info: &RunInfo, totals: Option<&Totals>) -> io::Result<()> {
        if self.file.is_none() && totals.is_some() {
            // The account has to be somewhere.
            let row = spool.segments(|segments| segments.end());
            self.open(spool, info, row)?;
        }
        if let Some(open) = &mut self.file {
            open.sink.finish(totals)?;
            self.file = None;
        }
        Ok(())
    }

    /// Gives up rows that are too old, or more than the bounds say.
    fn make_room(&self, spool: &Spool) -> io::Result<()> {
        let room = self.bounds.bytes.saturating_sub(AT_ONCE as u64);
        let age = self.bounds.age;
        let old = spool.segments(|segments| segments.give_up(room, age));
        let (mut done, mut stay) = (Ok(()), Vec::new());
        for old in old {
            match fs::remove_file(&old.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    stay.push(old);
                    done = done.and(Err(error));
                }
                _ => {}
            }
        }
        if !stay.is_empty() {
            spool.segments(|segments| segments.put_back(stay));
        }
        done
    }
}
