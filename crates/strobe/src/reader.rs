// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader of a run: its ring, and a way to sleep until there are rows.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use strobe_ring::{AttachError, Batch, Memory, Reader, Snapshot, StartTimes};

use crate::block::{self, Block, Place};
use crate::clock::RunClock;
use crate::error::Error;
use crate::info::{End, RunInfo, Totals};
use crate::source::{Live, RowSource};

pub use strobe_ring::{AfterLoss, Begin};

/// Where a reader begins, and what it does about rows that were overwritten before it came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReaderOptions {
    /// The row it begins with.
    pub begin: Begin,
    /// What it does when rows were lost.
    pub on_loss: OnLoss,
    /// Where it goes on after a loss.
    pub after_loss: AfterLoss,
}

/// What a reader does when rows were overwritten before it came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It goes on, and says how many: [`Block::lost`].
    #[default]
    Report,
    /// [`RunReader::next`] fails, for good.
    Fail,
}

impl ReaderOptions {
    /// Such a reader of the ring in this memory.
    pub(crate) fn attach(self, memory: Memory) -> Result<Reader, AttachError> {
        Ok(Reader::attach(memory, self.begin)?.after_loss(self.after_loss))
    }
}

/// How a reader sleeps; each engine has its way.
#[doc(hidden)]
pub trait Waiter: Send {
    /// Returns when `rows` rows were made in all, the run has ended, the time
    /// is over, or a signal came.
    ///
    /// # Errors
    /// Those of the system; the ring cannot be waited for any more.
    fn wait(&self, ring: &Reader, rows: u64, timeout: Duration) -> io::Result<()>;

    /// Whether more rows may come, without a wait, and whatever is armed stays so.
    ///
    /// # Errors
    /// None do: the owner has gone.
    fn look(&self, _: &Reader) -> io::Result<()> {
        Ok(())
    }

    /// What is ready to be read when it is time to look at the ring; see [`RunReader::arm`].
    fn fd(&self) -> BorrowedFd<'_>;

    /// Makes [`Waiter::fd`] ready when `rows` rows were made in all, or the run has ended.
    ///
    /// # Errors
    /// Those of the system.
    fn arm(&self, ring: &Reader, rows: u64) -> io::Result<()>;

    /// [`Waiter::fd`] does not become ready any more, but perhaps at the end of the run.
    ///
    /// # Errors
    /// Those of the system.
    fn disarm(&self) -> io::Result<()>;

    /// See [`RunReader::wake_at_each_row`].
    ///
    /// # Errors
    /// Those of the system.
    fn wake_at_each_row(&self) -> io::Result<()>;
}

/// A reader of a run with a cursor of its own.
pub struct RunReader {
    ring: Reader,
    waiter: Box<dyn Waiter>,
    info: Arc<RunInfo>,
    on_loss: OnLoss,
    /// Memory of the last blocks: each is used again as soon as its block is not needed any more. Two, for who asks for the
    /// next block may still hold the last one, as a `for` of Python does.
    words: [Arc<Vec<u64>>; 2],
    /// The row before the next block.
    last: Option<Place>,
}

impl RunReader {
    /// A reader of `ring`, of this run, that sleeps by `waiter`.
    #[doc(hidden)]
    pub fn new(
        ring: Reader,
        waiter: Box<dyn Waiter>,
        info: &RunInfo,
        options: ReaderOptions,
    ) -> Self {
        RunReader {
            waiter,
            info: Arc::new(info.clone()),
            on_loss: options.on_loss,
            words: <[_; 2]>::default(),
            last: (ring.begun_at() == 0).then_some(Place::START),
            ring,
        }
    }

    /// What is known of the run; its start as soon as a block was read.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// The next rows. If there are none yet, waits for the first one at most so long, and answers an empty block if none
    /// came; `None` when the run has ended and all rows were given.
    ///
    /// # Errors
    /// The run cannot be waited for any more; or rows were lost, and this reader is to fail then.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        if self.on_loss == OnLoss::Fail && self.ring.lost() > 0 {
            return Err(self.loss());
        }
        let mut block = self.block();
        if block.is_empty() && block.lost() == 0 && !self.ring.ended() {
            // Its memory is that of the next one, which would else need some of its own: 256 KiB, each time.
            drop(block);
            let waited = match wait.is_zero() {
                true => self.waiter.look(&self.ring),
                false => self.wait(1, wait),
            };
            waited.map_err(|source| self.no_wait(source))?;
            block = self.block();
        }
        if self.on_loss == OnLoss::Fail && block.lost() > 0 {
            return Err(self.loss());
        }
        let is_over = self.ring.ended() && block.is_empty() && block.lost() == 0;
        Ok((!is_over).then_some(block))
    }

    /// The next rows if there are some, as [`next`](Self::next) gives them. If not, the descriptor of this reader is
    /// [armed](Self::arm): once it is ready, it is time to ask again.
    ///
    /// # Errors
    /// As of [`next`](Self::next).
    pub fn poll_next(&mut self) -> Result<Poll<Option<Block>>, Error> {
        // First: what comes after the look makes it ready.
        let armed = self.arm(1).map_err(|source| self.no_wait(source));
        let next = self.next(Duration::ZERO)?;
        Ok(match next {
            Some(block) if block.is_empty() && block.lost() == 0 => {
                armed?;
                Poll::Pending
            }
            next => Poll::Ready(next),
        })
    }

    fn no_wait(&self, source: io::Error) -> Error {
        Error::Reader {
            run: self.name(),
            doing: "waiting for its rows",
            source,
        }
    }

    /// The rows that are there, as far as there is room.
    fn block(&mut self) -> Block {
        if self.info.start == StartTimes::default() {
            let start = self.ring.snapshot().start;
            if start != self.info.start {
                Arc::make_mut(&mut self.info).start = start;
            }
        }
        let room = block::room(self.ring.row_words());
        let free = |words: &mut Arc<Vec<u64>>| Arc::get_mut(words).is_some();
        let place = self.words.iter_mut().position(free).unwrap_or_else(|| {
            self.words[0] = Arc::default();
            0
        });
        // Nobody else has it: nothing is copied.
        let words = Arc::make_mut(&mut self.words[place]);
        words.resize(room, 0);
        let (begin, batch) = (words.as_ptr().addr(), self.ring.read(words));
        let rows = batch.rows.words();
        let start = (rows.as_ptr().addr() - begin) / size_of::<u64>();
        let part = start..start + rows.len();
        let numbers = (batch.first, batch.lost);
        let (info, words) = (Arc::clone(&self.info), Arc::clone(&self.words[place]));
        let shape = self.ring.geometry().shape();
        Block::of_part(info, shape, words, part, numbers, &mut self.last)
    }

    fn loss(&self) -> Error {
        Error::Lost {
            run: self.name(),
            rows: self.ring.lost(),
        }
    }

    fn name(&self) -> String {
        format!("run {}:{}", self.info.engine.name(), self.info.run)
    }

    /// The next rows, as many as are there and fit; see [`Reader::read`].
    pub fn read<'a>(&mut self, buffer: &'a mut [u64]) -> Batch<'a> {
        self.ring.read(buffer)
    }

    /// Sleeps until there are `rows` more rows to read than were read, the run
    /// has ended, the time is over, or a signal came.
    ///
    /// # Errors
    /// Those of the system; the ring cannot be waited for any more.
    pub fn wait(&self, rows: u64, timeout: Duration) -> io::Result<()> {
        let rows = self.ring.next_row().saturating_add(rows);
        self.waiter.wait(&self.ring, rows, timeout)
    }

    /// Makes the descriptor of this reader ready, for poll, epoll and what is built on them, when there are `rows` more
    /// rows to read than were read, or the run has ended. It may be ready early: then it is time to read, and to arm it
    /// again. It is to be armed again after each time that it was ready.
    ///
    /// # Errors
    /// Those of the system; the ring cannot be waited for any more.
    pub fn arm(&self, rows: u64) -> io::Result<()> {
        let rows = self.ring.next_row().saturating_add(rows);
        self.waiter.arm(&self.ring, rows)
    }

    /// The descriptor does not become ready any more, but perhaps at the end of the run.
    ///
    /// # Errors
    /// Those of the system.
    pub fn disarm(&self) -> io::Result<()> {
        self.waiter.disarm()
    }

    /// Makes a run of the user engine wake this reader at each row, instead of letting it look every 1 to 16 ms. It costs
    /// the thread that makes the rows one system call a row, however many readers want it, and is counted
    /// ([`Usage::wakes`](strobe_hw::rt::Usage::wakes)). The kernel engine wakes who has armed a reader in any case.
    ///
    /// # Errors
    /// The owner of the run, another process, does not do that.
    pub fn wake_at_each_row(&self) -> io::Result<()> {
        self.waiter.wake_at_each_row()
    }

    /// State and counters of the run, now.
    pub fn snapshot(&self) -> Snapshot {
        self.ring.snapshot()
    }

    /// The ring and the place in it.
    pub fn ring(&self) -> &Reader {
        &self.ring
    }
}

/// Ready when it is time to read, once it is [armed](RunReader::arm).
impl AsFd for RunReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.fd()
    }
}

impl AsRawFd for RunReader {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl RowSource for RunReader {
    fn info(&self) -> &RunInfo {
        RunReader::info(self)
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        RunReader::next(self, wait)
    }

    /// Complete, if the limit was reached; else stopped, or failed.
    fn totals(&self) -> Option<Totals> {
        self.ring.ended().then(|| {
            let last = self.snapshot();
            Totals {
                end: End::of(&last, self.info.limit, Some(End::Stopped)),
                ..Totals::of(&last, self.ring.lost())
            }
        })
    }
}

impl Live for RunReader {
    fn snapshot(&self) -> Snapshot {
        RunReader::snapshot(self)
    }

    fn now(&self) -> u64 {
        RunClock::new(self.info.clock).now()
    }

    /// Its owner has gone, for instance.
    fn gone(&self) -> Option<String> {
        // Not to sleep, but to be told.
        let told = self.wait(1, Duration::ZERO);
        told.err().map(|error| error.to_string())
    }
}
