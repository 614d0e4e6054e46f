// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run, whoever makes its rows: one's own, or another's.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use strobe_hw::rt::Usage;
use strobe_ring::{Begin, Snapshot, State};

use crate::error::Error;
use crate::info::RunInfo;
use crate::program;
use crate::reader::{ReaderOptions, RunReader};

/// A run that can be read: of this process, or of another.
pub trait Run: Send + Sync {
    /// What is known of the run; its start times are in the ring.
    fn info(&self) -> &RunInfo;

    /// A reader of its own.
    ///
    /// # Errors
    /// The engine's reason.
    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, Error>;

    /// A reader that begins with the oldest row there is, and reports what it loses.
    ///
    /// # Errors
    /// The engine's reason.
    fn reader(&self) -> Result<RunReader, Error> {
        self.reader_with(ReaderOptions::default())
    }

    /// State and counters of the run, now. Who wants them often asks a reader that is there.
    ///
    /// # Errors
    /// The engine's reason.
    fn snapshot(&self) -> Result<Snapshot, Error> {
        let options = ReaderOptions {
            begin: Begin::Now,
            ..ReaderOptions::default()
        };
        Ok(self.reader_with(options)?.snapshot())
    }

    /// Gives a tunable of the run's program a new value: `1000`, in the unit of the column that shows it, or `2.5 V`. The
    /// program of the next row that begins sees it, or that of the row after, if another value is being set at that moment;
    /// the column shows from which row on it was so.
    ///
    /// # Errors
    /// The run has no such tunable, has ended, or may not be tuned by this user; or the text is no such value.
    fn tune(&self, tunable: &str, value: &str) -> Result<(), Error> {
        let (place, word) = program::tuned(self.info(), tunable, value)?;
        self.tune_word(place, word)
    }

    /// The same by its place, and the word that stands for the value; a run without tunables refuses it.
    ///
    /// # Errors
    /// The engine's reason.
    #[doc(hidden)]
    fn tune_word(&self, _tunable: usize, _word: u64) -> Result<(), Error> {
        Err(Error::Run {
            event: self.info().event.clone(),
            doing: "the tuning",
            source: Errno::INVAL.into(),
        })
    }
}

/// A run of one's own. It ends when it is dropped.
pub trait OwnedRun: Run {
    /// Triggers make rows from now on.
    ///
    /// # Errors
    /// The engine's reason.
    fn start(&self) -> Result<(), Error>;

    /// Ends the run; nothing if it has ended.
    ///
    /// # Errors
    /// The engine's reason.
    fn stop(&self) -> Result<(), Error>;

    /// Triggers are not counted from now on, until the run goes on.
    ///
    /// # Errors
    /// It is not running.
    fn pause(&self) -> Result<(), Error>;

    /// A paused run goes on; its next row says that there was a pause.
    ///
    /// # Errors
    /// It is not paused.
    fn resume(&self) -> Result<(), Error>;

    /// Triggers of the event `soft`, one after the other.
    ///
    /// # Errors
    /// The engine's reason.
    fn trigger(&self, count: u32) -> Result<(), Error>;

    /// Where the run is.
    ///
    /// # Errors
    /// The engine's reason.
    fn state(&self) -> Result<State, Error> {
        Ok(self.snapshot()?.state)
    }

    /// What keeps the run alive for as long as anybody has it open, if it is a file: a run of the kernel engine.
    #[doc(hidden)]
    fn owner(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The thread that makes the rows, as the kernel numbers it, if it is one of this process.
    fn thread(&self) -> Option<u32> {
        None
    }

    /// What the thread that makes the rows has cost, once the run has ended; `None` if there is none.
    fn usage(&self) -> Option<Usage> {
        None
    }
}
