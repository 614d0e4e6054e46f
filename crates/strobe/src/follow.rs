// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is read to its end: in the loop of who wants its rows, or in a thread of its own that stamps when it has
//! seen each of them.

use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;
use strobe_hw::rt::{self, Policy};
use strobe_ring::{Row, Rows};

use crate::block;
use crate::clock::monotonic;
use crate::engine;
use crate::info::End;
use crate::reader::RunReader;
use crate::run::OwnedRun;
use crate::stop::Stop;

/// It looks for signals, and for the end of its time, at least this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of its stack, which are locked in memory.
const STACK: usize = 256 * 1024;

/// How the reader works.
pub struct FollowSettings {
    /// Its policy; `None`: the one it has.
    pub policy: Option<Policy>,
    /// The CPU it runs on.
    pub cpu: Option<usize>,
    /// It never sleeps.
    pub spin: bool,
    /// The longest time.
    pub duration: Duration,
}

/// What became of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// Rows made.
    pub rows: u64,
    /// Triggers that made none.
    pub missed: u64,
    /// Rows that were overwritten before they were seen.
    pub lost: u64,
    /// How it ended.
    pub end: End,
    /// When it was started, on its clock.
    #[serde(skip)]
    pub begun: u64,
    /// What was refused of the real-time set-up, of the run's thread and of the reader's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<rt::Step>,
}

/// Why a run could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The system's reason.
    #[error("the thread that reads its rows failed: {0}")]
    Thread(io::Error),
}

impl Account {
    /// Whether all that was asked for is there.
    pub fn is_whole(&self) -> bool {
        self.missed == 0 && self.lost == 0 && self.end == End::Complete
    }
}

/// Starts the run and follows it to its end, in a thread of its own; `each` gets every row, and when it was seen.
///
/// # Errors
/// The run cannot be started, or its rows not be waited for.
pub fn follow(
    run: &dyn OwnedRun,
    reading: &FollowSettings,
    stop: &Stop,
    mut each: impl FnMut(&Row<'_>, u64) + Send,
) -> Result<Account, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("strobe-reader".to_owned());
        let thread = thread.stack_size(STACK);
        let reader = thread.spawn_scoped(scope, || {
            let set_up = match reading.policy {
                Some(policy) => rt::set_up_thread(reading.cpu, policy),
                None => Vec::new(),
            };
            let account = read(run, reading, stop, &mut each)?;
            let steps = run.info().set_up.iter().cloned().chain(set_up);
            Ok(Account {
                refused: steps.filter(|step| !step.ok).collect(),
                ..account
            })
        });
        let locked = |error| Error::Thread(rt::lock_limit(error, STACK as u64));
        let reader = reader.map_err(locked)?;
        let dead = || Error::Thread(io::Error::other("it did not finish"));
        reader.join().map_err(|_| dead())?
    })
}

fn read(
    run: &dyn OwnedRun,
    reading: &FollowSettings,
    stop: &Stop,
    each: &mut impl FnMut(&Row<'_>, u64),
) -> Result<Account, Error> {
    let reader = run.reader()?;
    let buffer = buffer(&reader);
    run.start()?;
    let until = Until {
        stop,
        deadline: Instant::now().checked_add(reading.duration),
    };
    let sleep = (!reading.spin).then_some(1);
    let followed = to_end(run, reader, buffer, sleep, until, &mut Each(each));
    let last = followed.reader.snapshot();
    Ok(Account {
        rows: last.head,
        missed: last.missed(),
        lost: followed.reader.ring().lost(),
        end: End::of(&last, followed.reader.info().limit, followed.asked),
        begun: last.start.time,
        refused: Vec::new(),
    })
}

/// Who wants each row, and when it was seen.
struct Each<'e, F>(&'e mut F);

impl<F: FnMut(&Row<'_>, u64)> Follower for Each<'_, F> {
    fn rows(&mut self, rows: Rows<'_>, seen: u64) {
        rows.for_each(|row| (self.0)(&row, seen));
    }
}

/// Who gets the rows of a run that is followed to its end.
pub trait Follower {
    /// The next rows, and when they were seen, on CLOCK_MONOTONIC.
    fn rows(&mut self, rows: Rows<'_>, seen: u64);

    /// All rows that are there were seen. Called at least ten times a second, unless the reader never sleeps.
    fn idle(&mut self, _reader: &RunReader) {}

    /// Whether, and as what, the run is to end now, though nobody has said so and its time is not over.
    fn end(&self) -> Option<End> {
        None
    }
}

/// When a run is to end that does not end by itself.
pub struct Until<'s> {
    /// When it is asked for.
    pub stop: &'s Stop,
    /// When its time is over.
    pub deadline: Option<Instant>,
}

/// What has come of following a run.
pub struct FollowOutcome {
    /// The reader, which has read all.
    pub reader: RunReader,
    /// As what the run was asked to end, if it was.
    pub asked: Option<End>,
    /// The run goes on: it could neither be waited for nor be ended.
    pub is_abandoned: bool,
}

/// Room for the rows that are read at once. To be had before the run starts: a stock kernel that has to find so much memory
/// at once may do so with interrupts off, for longer than many a period.
pub fn buffer(reader: &RunReader) -> Vec<u64> {
    // Zeros would be a promise of memory. This is memory.
    vec![u64::MAX; block::room(reader.ring().row_words())]
}

/// Reads a run that was started to its end, and ends it when it is time. Sleeps until `sleep` rows are there; without a
/// number it never sleeps. `buffer` is what [`buffer`] has made before the start.
pub fn to_end(
    run: &dyn OwnedRun,
    mut reader: RunReader,
    mut buffer: Vec<u64>,
    sleep: Option<u64>,
    until: Until<'_>,
    follower: &mut dyn Follower,
) -> FollowOutcome {
    let mut asked = None;
    let mut is_abandoned = false;
    loop {
        let batch = reader.read(&mut buffer);
        let is_drained = !batch.more;
        follower.rows(batch.rows(), monotonic());
        if reader.ring().ended() {
            break;
        }
        if asked.is_none() {
            asked = until.end().or_else(|| follower.end());
            if asked.is_some() {
                end(run, &mut asked);
            }
        }
        if !is_drained {
            continue;
        }
        follower.idle(&reader);
        let Some(rows) = sleep else {
            continue;
        };
        if let Err(error) = reader.wait(rows, until.left().min(LOOK_EVERY)) {
            asked.get_or_insert(End::Failed(format!("cannot wait: {error}")));
            if !end(run, &mut asked) {
                is_abandoned = true;
                break;
            }
            // The rest is read without being woken.
            std::thread::sleep(LOOK_EVERY);
        }
    }
    FollowOutcome {
        reader,
        asked,
        is_abandoned,
    }
}

/// Ends the run; whether it will come to its end.
fn end(run: &dyn OwnedRun, asked: &mut Option<End>) -> bool {
    let ended = run.stop();
    if let Err(error) = &ended {
        *asked = Some(End::Failed(error.to_string()));
    }
    ended.is_ok()
}

impl Until<'_> {
    fn end(&self) -> Option<End> {
        if self.stop.is_interrupted() {
            return Some(End::Stopped);
        }
        let is_late = self.deadline.is_some_and(|d| Instant::now() >= d);
        (is_late || self.stop.is_over()).then_some(End::Complete)
    }

    /// After the deadline the run is ending, and wakes its reader when it has.
    fn left(&self) -> Duration {
        let left = self
            .deadline
            .map(|d| d.saturating_duration_since(Instant::now()));
        left.filter(|left| !left.is_zero()).unwrap_or(LOOK_EVERY)
    }
}
