// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that writes rows to the disk. It takes them from those in memory: a disk that is slow, full or gone holds up
//! neither the run nor who reads the newest rows. What has left the memory before it could be written is a gap: a step
//! from one row on the disk to the next.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use strobe::info::{RunInfo, Totals};
use strobe_files::sink::Sink;
use strobe_files::sink::arrow::ArrowFile;

use super::recent::Piece;
use super::segments::Segments;
use super::{Bounds, Spool};

/// How old rows may get before they are on the disk. A ring that holds more than this loses nothing if the daemon is killed.
pub(super) const EVERY: Duration = Duration::from_millis(100);
/// After an error, before the next try.
const AGAIN: Duration = Duration::from_secs(1);
/// Bytes that are written at once, at most.
const AT_ONCE: usize = 1 << 20;

/// Where rows are written to.
pub(super) struct Writer {
    folder: PathBuf,
    bounds: Bounds,
    file: Option<Open>,
}

/// The file that is being written.
struct Open {
    sink: ArrowFile,
    path: PathBuf,
    file: File,
    /// Bytes of whole batches.
    whole: u64,
    rows: u64,
}

/// What there is to do.
pub(super) enum Work {
    /// Rows to write.
    Rows(Vec<Piece>),
    /// No more rows come; the account, if the run has come to its end.
    End(Arc<RunInfo>, Option<Totals>),
}

impl Writer {
    /// Into this folder.
    pub(super) fn new(folder: PathBuf, bounds: Bounds) -> Self {
        Writer {
            folder,
            bounds,
            file: None,
        }
    }

    /// Writes what comes, until the end.
    pub(super) fn run(mut self, spool: &Spool) {
        loop {
            let work = spool.wait_for_work(EVERY, AT_ONCE);
            let done = match &work {
                Work::Rows(pieces) => self.write(spool, pieces),
                Work::End(info, totals) => self.end(spool, info, totals.as_ref()),
            };
            if let Err(error) = &done {
                self.leave(spool);
                spool.report(Some(format!("{}: {error}", self.folder.display())));
                // Once the daemon ends, nothing is tried again.
                if !spool.rest(AGAIN) {
                    continue;
                }
            } else {
                spool.report(None);
            }
            if done.is_err() || matches!(work, Work::End(..)) {
                break;
            }
        }
        spool.is_written(&self.folder);
    }

    fn write(&mut self, spool: &Spool, pieces: &[Piece]) -> io::Result<()> {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            return Ok(());
        };
        self.make_room(spool)?;
        let open = self.open(spool, &first.info, first.first)?;
        for piece in pieces {
            let rows = strobe::ring::Rows::new(piece.words(), piece.info.shape());
            open.sink.write(rows)?;
        }
        open.sink.flush()?;
        open.whole = open.sink.written().bytes;
        open.rows = open.sink.written().rows;
        let (whole, is_full) = (open.whole, open.whole >= self.bounds.segment());
        spool.segments(|segments| segments.grow(first.first..last.end(), whole));
        match self.file.take_if(|_| is_full) {
            Some(mut full) => full.sink.finish(None),
            None => Ok(()),
        }
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
        remove(&old)
    }
}

fn remove(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
