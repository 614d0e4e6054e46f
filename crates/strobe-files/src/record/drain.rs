// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sink while it is in use: a reader and a thread of its own, so that it
//! can be slow or fail without anyone else noticing.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use strobe::info::{End, RunInfo, Totals};
use strobe::reader::RunReader;

use super::{FLUSH_EVERY, rows_at_once};
use crate::sink::{Last, Named, Sink};
use crate::summary::SinkSummary;

/// A sink and its reader, before they get a thread.
pub(super) struct Drain {
    name: String,
    sink: Box<dyn Sink>,
    reader: RunReader,
    /// For the rows that are read at once.
    buffer: Vec<u64>,
    /// Only so many rows are kept.
    last: Option<u64>,
}

/// What the recorder sees of a sink.
#[derive(Default)]
pub(super) struct View {
    state: AtomicU8,
    lost: AtomicU64,
    next_row: AtomicU64,
}

const FAILED: u8 = 1;
/// A pipe whose reader has gone: it has seen enough.
const CLOSED: u8 = 2;

impl View {
    pub(super) fn fail(&self) {
        self.state.store(FAILED, Ordering::Relaxed);
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.state.load(Ordering::Relaxed) == 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FAILED
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The row it reads next.
    pub(super) fn next_row(&self) -> u64 {
        self.next_row.load(Ordering::Relaxed)
    }
}

impl Drain {
    pub(super) fn new(
        (name, sink): Named,
        (reader, buffer): (RunReader, Vec<u64>),
        last: Option<u64>,
    ) -> Self {
        let sink = match last {
            Some(rows) => Box::new(Last::new(sink, rows)),
            None => sink,
        };
        Drain {
            name,
            sink,
            reader,
            buffer,
            last,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Brings all rows of the run into the sink. `abandoned`: the run will
    /// not come to its end. `totals` come when the run is over.
    pub(super) fn run(
        mut self,
        info: &RunInfo,
        view: &View,
        abandoned: &AtomicBool,
        totals: &Receiver<Totals>,
    ) -> SinkSummary {
        let mut error = None;
        let done = self
            .copy(info, view, abandoned)
            .and_then(|()| match totals.recv() {
                Ok(totals) => self.finish(totals),
                // The recorder is gone, and the account with it.
                Err(_) => Ok(()),
            });
        if let Err(why) = done {
            let is_closed = why.kind() == io::ErrorKind::BrokenPipe;
            error = (!is_closed).then(|| why.to_string());
            let state = if is_closed { CLOSED } else { FAILED };
            view.state.store(state, Ordering::Relaxed);
        }
        let written = self.sink.written();
        SinkSummary {
            path: self.name,
            rows: written.rows,
            bytes: written.bytes,
            lost: self.reader.ring().lost(),
            left_out: (self.last).map_or(0, |rows| {
                self.reader.ring().delivered().saturating_sub(rows)
            }),
            error,
        }
    }

    fn copy(&mut self, info: &RunInfo, view: &View, abandoned: &AtomicBool) -> io::Result<()> {
        let Drain {
            sink,
            reader,
            buffer,
            ..
        } = self;
        sink.begin(info)?;
        let fetch = rows_at_once(info);
        let mut flushed = Instant::now();
        loop {
            let batch = reader.read(buffer);
            let is_drained = !batch.more;
            if !batch.is_empty() {
                sink.write(batch.rows())?;
            }
            view.lost.store(reader.ring().lost(), Ordering::Relaxed);
            view.next_row
                .store(reader.ring().next_row(), Ordering::Relaxed);
            if reader.ring().ended() {
                return Ok(());
            }
            // Also if rows come as fast as they are written.
            if is_drained || flushed.elapsed() >= FLUSH_EVERY {
                sink.flush()?;
                flushed = Instant::now();
            }
            if is_drained {
                if abandoned.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if reader.wait(fetch, FLUSH_EVERY).is_err() {
                    // The recorder ends the run; the rest is read without being woken.
                    std::thread::sleep(FLUSH_EVERY);
                }
            }
        }
    }

    /// The account of the run is also this reader's, but for what it lost.
    fn finish(&mut self, mut totals: Totals) -> io::Result<()> {
        let ring = self.reader.ring();
        totals.lost = ring.lost();
        let read = ring.delivered() + ring.lost() + ring.begun_at();
        self.sink.finish(Some(&totals))?;
        if read != totals.rows && !matches!(totals.end, End::Failed(_)) {
            return Err(io::Error::other(format!(
                "the account does not add up: the run made {} rows, and {read} were read or lost",
                totals.rows
            )));
        }
        Ok(())
    }
}
