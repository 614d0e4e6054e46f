// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader of a run: its ring, and a way to sleep until there are rows.

use std::io;
use std::time::Duration;

use strobe_ring::{AttachError, Batch, Memory, Reader, Snapshot};

pub use strobe_ring::{AfterLoss, Begin};

/// Where a reader begins, and what it does about rows that were overwritten before it came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReaderOptions {
    /// The row it begins with.
    pub begin: Begin,
    /// Where it goes on after a loss.
    pub after_loss: AfterLoss,
}

impl ReaderOptions {
    /// Such a reader of the ring in this memory.
    pub(crate) fn attach(self, memory: Memory) -> Result<Reader, AttachError> {
        Ok(Reader::attach(memory, self.begin)?.after_loss(self.after_loss))
    }
}

/// How a reader sleeps; each engine has its way.
pub trait Wake: Send {
    /// Returns when `rows` rows were made in all, the run has ended, the time
    /// is over, or a signal came.
    ///
    /// # Errors
    /// Those of the system; the ring cannot be waited for any more.
    fn wait(&self, ring: &Reader, rows: u64, timeout: Duration) -> io::Result<()>;
}

/// A reader of a run with a cursor of its own.
pub struct RunReader {
    ring: Reader,
    wake: Box<dyn Wake>,
}

impl RunReader {
    /// A reader of `ring` that sleeps by `wake`.
    pub fn new(ring: Reader, wake: Box<dyn Wake>) -> Self {
        RunReader { ring, wake }
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
        self.wake.wait(&self.ring, rows, timeout)
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
