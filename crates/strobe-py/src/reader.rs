// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who reads rows, one block after the other, from a run, a recording or a server.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use strobe::block::Block as Rows;
use strobe::error::{Error, Words};
use strobe::info::{RunInfo, Totals};
use strobe::reader::RunReader;
use strobe::source::RowSource;
use strobe_remote::rows::RemoteRows;

use crate::block::Block;
use crate::error::Failure;
use crate::ours::Ours;
use crate::patient::LOOK;
use crate::text::totals_text;

/// Where the rows come from.
#[allow(
    clippy::large_enum_variant,
    reason = "each is in an object of Python, on the heap"
)]
enum Source {
    /// A ring, which has a descriptor to wait for.
    Ring(RunReader),
    /// Anything else.
    Other(Box<dyn RowSource>),
}

impl Source {
    fn rows(&mut self) -> &mut dyn RowSource {
        match self {
            Source::Ring(reader) => reader,
            Source::Other(rows) => rows.as_mut(),
        }
    }
}

/// Rows that the reader that read last, of those that say it here, has lost so far.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct LostRows(AtomicU64);

#[pymethods]
impl LostRows {
    #[new]
    fn new() -> LostRows {
        LostRows(AtomicU64::new(0))
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a reader does where rows are lost.
pub struct Losses {
    /// An error about this run, and what there is to be done, if that is not what an engine says; `None`: it is no error.
    pub fail: Option<(String, Option<&'static str>)>,
    /// Where it is said.
    pub said: Option<Py<LostRows>>,
}

impl Losses {
    fn say(&self, rows: u64) {
        if let Some(said) = &self.said {
            said.get().0.store(rows, Ordering::Relaxed);
        }
    }
}

/// A reader with a place of its own.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct Reader {
    source: Ours<Mutex<Source>>,
    /// What is ready when there is something to fetch.
    fd: Option<i32>,
    /// Whether a ring's rows are waited for.
    follow: bool,
    losses: Losses,
    /// Rows that it has lost so far.
    lost: AtomicU64,
}

impl Reader {
    /// Of a ring; `follow`: to the end of the run, else as far as there are rows.
    pub fn of_ring(reader: RunReader, follow: bool, losses: Losses) -> Reader {
        let fd = reader.as_fd().as_raw_fd();
        Reader::new(Source::Ring(reader), Some(fd), follow, losses)
    }

    /// Of a server, which knows itself how far.
    pub fn of_server(rows: RemoteRows, losses: Losses) -> Reader {
        let fd = rows.ready().map(|ready| ready.as_raw_fd());
        Reader::new(Source::Other(Box::new(rows)), fd, true, losses)
    }

    /// Of a recording.
    pub fn of_rows(rows: Box<dyn RowSource>, losses: Losses) -> Reader {
        Reader::new(Source::Other(rows), None, true, losses)
    }

    fn new(source: Source, fd: Option<i32>, follow: bool, losses: Losses) -> Reader {
        Reader {
            source: Ours::new(Mutex::new(source)),
            fd,
            follow,
            losses,
            lost: AtomicU64::new(0),
        }
    }

    /// The source, if nobody else reads from it.
    fn source(&self) -> PyResult<MutexGuard<'_, Source>> {
        match self.source.get("reader")?.try_lock() {
            Ok(source) => Ok(source),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                Ok(PoisonError::into_inner(poisoned))
            }
            Err(std::sync::TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "another thread is reading from this reader; give each thread a reader of its own",
            )),
        }
    }

    /// The source, if there is something to be had from it for this reader.
    fn whole(&self) -> PyResult<MutexGuard<'_, Source>> {
        let source = self.source()?;
        self.check().map_err(Failure::from)?;
        Ok(source)
    }

    /// An error if rows were lost and this reader is to fail then: also each time that it is asked again.
    fn check(&self) -> Result<(), Words> {
        let rows = self.lost.load(Ordering::Relaxed);
        match &self.losses.fail {
            Some((run, remedy)) if rows > 0 => {
                let run = run.clone();
                let words = Error::Lost { run, rows }.words();
                Err(match remedy {
                    Some(remedy) => words.mend(*remedy),
                    None => words,
                })
            }
            _ => Ok(()),
        }
    }

    /// These rows, if this reader may have them: what was lost before them is counted.
    fn counted(&self, rows: Rows) -> Result<Rows, Words> {
        let before = self.lost.fetch_add(rows.lost(), Ordering::Relaxed);
        self.losses.say(before + rows.lost());
        self.check().map(|()| rows)
    }
}

impl Reader {
    /// The next rows, once there are some; `None` after the last ones. Other threads run meanwhile, and Ctrl-C ends it.
    pub fn block(&self, py: Python<'_>) -> PyResult<Option<Rows>> {
        let mut source = self.whole()?;
        let next = match (&mut *source, self.follow) {
            (Source::Ring(reader), false) => match reader.poll_next().map_err(Failure::from)? {
                Poll::Ready(next) => next,
                Poll::Pending => None,
            },
            (source, _) => loop {
                let rows = source.rows();
                match py.detach(|| rows.next(LOOK)).map_err(Failure::from)? {
                    Some(block) if block.is_empty() && block.lost() == 0 => py.check_signals()?,
                    next => break next,
                }
            },
        };
        let counted = next.map(|rows| self.counted(rows)).transpose();
        Ok(counted.map_err(Failure::from)?)
    }

    /// Adds what comes within a short time, so many rows at most, up to the last ones.
    pub fn more(&self, py: Python<'_>, blocks: &mut Vec<Rows>, most: usize) -> PyResult<()> {
        let mut source = self.whole()?;
        let rows = source.rows();
        let until = Instant::now() + LOOK;
        let added: Result<(), Words> = py.detach(|| {
            let mut count: usize = blocks.iter().map(Rows::len).sum();
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if count >= most || left.is_zero() {
                    return Ok(());
                }
                match rows.next(left).map_err(|error| error.words())? {
                    Some(block) => {
                        count += block.len();
                        blocks.push(self.counted(block)?);
                    }
                    None => return Ok(()),
                }
            }
        });
        Ok(added.map_err(Failure::from)?)
    }

    /// What is known of the run by now.
    pub fn info(&self) -> PyResult<RunInfo> {
        Ok(match &*self.source()? {
            Source::Ring(reader) => RunInfo {
                start: reader.snapshot().start,
                ..reader.info().clone()
            },
            Source::Other(rows) => rows.info().clone(),
        })
    }
}

#[pymethods]
impl Reader {
    /// The next rows, once there are some; `None` after the last ones.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Block>> {
        Ok(self.block(py)?.map(Block))
    }

    /// The next rows if there are some: `(True, block)`, and `(True, None)` after the last ones. If not, `(False, None)`,
    /// and the descriptor becomes ready once it is time to ask again.
    fn poll(&self) -> PyResult<(bool, Option<Block>)> {
        let polled: Result<_, Error> = match &mut *self.whole()? {
            Source::Ring(reader) => reader.poll_next().map(|polled| match polled {
                Poll::Pending if !self.follow => Poll::Ready(None),
                polled => polled,
            }),
            Source::Other(rows) => rows.next(Duration::ZERO).map(|next| match next {
                Some(block) if block.is_empty() && block.lost() == 0 => Poll::Pending,
                next => Poll::Ready(next),
            }),
        };
        let Poll::Ready(next) = polled.map_err(Failure::from)? else {
            return Ok((false, None));
        };
        let counted = next.map(|rows| self.counted(rows)).transpose();
        Ok((true, counted.map_err(Failure::from)?.map(Block)))
    }

    /// What becomes ready when there are rows; -1: there is no such descriptor.
    fn fileno(&self) -> i32 {
        self.fd.unwrap_or(-1)
    }

    /// The account of the run, as JSON, once all rows were given, and whether the rows end in the middle of something.
    fn end(&self) -> PyResult<(Option<String>, bool)> {
        let mut source = self.source()?;
        let rows = source.rows();
        let totals: Option<Totals> = rows.totals();
        if let Some(totals) = &totals {
            self.losses.say(totals.lost);
        }
        Ok((totals.as_ref().map(totals_text), rows.is_torn()))
    }
}
