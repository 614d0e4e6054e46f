// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who reads rows, one block after the other, from a run, a recording or a server.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use strobe::block::Block as Rows;
use strobe::error::Error;
use strobe::info::{RunInfo, Totals};
use strobe::reader::RunReader;
use strobe::source::RowSource;
use strobe_remote::rows::RemoteRows;

use crate::block::Block;
use crate::error::Failure;
use crate::patient::LOOK;
use crate::text::totals_text;

/// Where the rows come from.
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

/// A reader with a place of its own.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct Reader {
    source: Mutex<Source>,
    /// What is ready when there is something to fetch.
    fd: Option<i32>,
    /// Whether a ring's rows are waited for.
    follow: bool,
    /// The process that it belongs to.
    process: u32,
}

impl Reader {
    /// Of a ring; `follow`: to the end of the run, else as far as there are rows.
    pub fn of_ring(reader: RunReader, follow: bool) -> Reader {
        let fd = reader.as_fd().as_raw_fd();
        Reader::new(Source::Ring(reader), Some(fd), follow)
    }

    /// Of a server, which knows itself how far.
    pub fn of_server(rows: RemoteRows) -> Reader {
        let fd = rows.ready().map(|ready| ready.as_raw_fd());
        Reader::new(Source::Other(Box::new(rows)), fd, true)
    }

    /// Of a recording.
    pub fn of_rows(rows: Box<dyn RowSource>) -> Reader {
        Reader::new(Source::Other(rows), None, true)
    }

    fn new(source: Source, fd: Option<i32>, follow: bool) -> Reader {
        Reader {
            source: Mutex::new(source),
            fd,
            follow,
            process: std::process::id(),
        }
    }

    /// The source, if nobody else reads from it.
    fn source(&self) -> PyResult<MutexGuard<'_, Source>> {
        if self.process != std::process::id() {
            let why = "the process has forked since; make a run and its readers in the process that uses them";
            return Err(Failure::of("reader", why).into());
        }
        match self.source.try_lock() {
            Ok(source) => Ok(source),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                Ok(PoisonError::into_inner(poisoned))
            }
            Err(std::sync::TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "another thread is reading from this reader; give each thread a reader of its own",
            )),
        }
    }
}

impl Reader {
    /// The next rows, once there are some; `None` after the last ones. Other threads run meanwhile, and Ctrl-C ends it.
    pub fn block(&self, py: Python<'_>) -> PyResult<Option<Rows>> {
        let mut source = self.source()?;
        if let (Source::Ring(reader), false) = (&mut *source, self.follow) {
            return Ok(match reader.poll_next().map_err(Failure::from)? {
                Poll::Ready(next) => next,
                Poll::Pending => None,
            });
        }
        let rows = source.rows();
        loop {
            match py.detach(|| rows.next(LOOK)).map_err(Failure::from)? {
                Some(block) if block.is_empty() && block.lost() == 0 => py.check_signals()?,
                next => return Ok(next),
            }
        }
    }

    /// Adds what comes within a short time, so many rows at most, up to the last ones.
    pub fn more(&self, py: Python<'_>, blocks: &mut Vec<Rows>, most: usize) -> PyResult<()> {
        let mut source = self.source()?;
        let rows = source.rows();
        let until = Instant::now() + LOOK;
        let added: Result<(), Error> = py.detach(|| {
            let mut count: usize = blocks.iter().map(Rows::len).sum();
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if count >= most || left.is_zero() {
                    return Ok(());
                }
                match rows.next(left)? {
                    Some(block) => {
                        count += block.len();
                        blocks.push(block);
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
        let polled: Result<_, Error> = match &mut *self.source()? {
            Source::Ring(reader) => reader.poll_next().map(|polled| match polled {
                Poll::Pending if !self.follow => Poll::Ready(None),
                polled => polled,
            }),
            Source::Other(rows) => rows.next(Duration::ZERO).map(|next| match next {
                Some(block) if block.is_empty() && block.lost() == 0 => Poll::Pending,
                next => Poll::Ready(next),
            }),
        };
        Ok(match polled.map_err(Failure::from)? {
            Poll::Ready(next) => (true, next.map(Block)),
            Poll::Pending => (false, None),
        })
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
        Ok((totals.as_ref().map(totals_text), rows.is_torn()))
    }
}
