// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the thread of a run waits for.

use std::io;

use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use crate::accounting::Accounting;
use crate::clock::RunClock;

/// An occurrence of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    /// Triggers before this one that made no row, as the source knows.
    pub missed: u64,
    /// Why they made none.
    pub cause: Missed,
    /// Triggers before this one that were left out on purpose; only of a source that [skips](Cadence::skips).
    pub skipped: u64,
    /// When it was due, on the run's clock; only timers know that.
    pub due: Option<u64>,
    /// When the source says that it happened, on the run's clock; 0 if it does not say.
    pub time: u64,
    /// The source's own count, such as UIO's number of interrupts or a line's number of edges.
    pub count: u64,
}

impl Trigger {
    /// A trigger of which the source knows nothing more, and before which none was missed.
    pub const PLAIN: Trigger = Trigger {
        missed: 0,
        cause: Missed::Source,
        skipped: 0,
        due: None,
        time: 0,
        count: 0,
    };
}

/// When a source triggers, as far as that is known before it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cadence {
    /// Distance of the triggers, if they have one.
    pub period_ns: Option<u64>,
    /// Whether its triggers say when they were due.
    pub has_due: bool,
    /// Whether it leaves out triggers on purpose. Rows tell how many, then.
    pub skips: bool,
    /// How it accounts for what its source drops.
    pub accounting: Accounting,
}

impl Cadence {
    /// Of a source that can drop nothing, or counts each that it drops.
    pub fn exact() -> Cadence {
        Cadence {
            accounting: Accounting::Exact,
            ..Cadence::default()
        }
    }

    /// Of a timer.
    pub fn every(period_ns: u64) -> Cadence {
        Cadence {
            period_ns: Some(period_ns),
            has_due: true,
            skips: false,
            accounting: Accounting::Exact,
        }
    }
}

/// Why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The event has happened.
    Trigger(Trigger),
    /// The thread was woken: the run's owner wants something.
    Wakeup,
    /// There will be no trigger any more, as it should be: the run is stopped.
    Over,
}

/// A source of triggers. The thread of one run owns it, and calls it in this order: [`begin`] when the run
/// starts and when it goes on after a pause; then [`wait`], and [`done`] after each row; [`end`] before a
/// pause and at the end.
///
/// An error of any of them ends the run as failed, with its errno: ENODEV says that the device went away.
///
/// [`begin`]: EventSource::begin
/// [`wait`]: EventSource::wait
/// [`done`]: EventSource::done
/// [`end`]: EventSource::end
pub trait EventSource: Send {
    /// Triggers count from `now` on, on the run's clock; what happened before is forgotten. Answers when
    /// the first one is due, if that is known.
    ///
    /// # Errors
    /// Those of the source.
    fn begin(&mut self, clock: &RunClock, now: u64) -> io::Result<Option<u64>>;

    /// Waits for the next trigger, for a wake-up, or until it is known that there will be none. Nothing is allocated here, and no page is touched for
    /// the first time; returns as soon as the event has happened, for the stamp of the row is taken next.
    ///
    /// # Errors
    /// Those of the source.
    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome>;

    /// The row of the last trigger is made: now an interrupt may be enabled again.
    ///
    /// # Errors
    /// Those of the source.
    fn done(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Triggers that have happened since the last row and made none, and why; of a timer, those that had
    /// passed when the last wait began. Asked once before [`EventSource::end`], unless a last row has ended the
    /// run: there is no trigger any more that could tell of them.
    fn unserved(&mut self) -> (Missed, u64) {
        (Missed::Source, 0)
    }

    /// Triggers that were left out on purpose since the last row. Asked once before [`EventSource::end`], as
    /// [`EventSource::unserved`] and after it.
    fn unserved_skipped(&mut self) -> u64 {
        0
    }

    /// Triggers do not count any more. Called once for each [`EventSource::begin`], also for one that failed.
    fn end(&mut self) {}
}
