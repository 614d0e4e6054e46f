// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of other runs, of either engine: `run:ID.row` is an event, at each row or at every Nth, and `run:ID.row`, `run:ID.time`
//! and `run:ID.CHANNEL` are channels. In a run that is triggered by them they are those of that row; else those of the last.
//!
//! This is a reader of the other run, as others are. Of several rows that have come since the last trigger the newest one is
//! it, and the others are missed.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::PollFlags;
use rustix::io::Errno;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::{Missed, RowShape, Rows, State};

use super::provider::{ChannelOpener, EventOpener, Provider, ReadChannel, Row};
use super::registry::{self, Registry};
use super::settings::{Settings, WaitMode};
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::block;
use crate::catalogue::Catalogue;
use crate::clock::RunClock;
use crate::engine::kernel::Control;
use crate::engine::run_part::{self, RunPart};
use crate::error::Error;
use crate::event::{Event, EventSpec, run_number};
use crate::info::RunInfo;
use crate::reader::{ReaderOptions, RunReader};
use crate::run::Run;
use crate::source::Live;

/// Rough time that a channel takes.
const COST_NS: u32 = 20;
/// How often it is looked whether the other run is still there, if none of its rows come.
const LOOK_NS: u64 = 100_000_000;
/// The same of who spins: after so many looks.
const SPINS: u32 = 1 << 16;

/// Provides them, to one run.
#[derive(Default)]
pub struct RunRows {
    /// By what stands between `run:` and the point.
    followed: Mutex<Vec<(String, Shared)>>,
}

/// The source of triggers and the channels have the same row. All of them are in the thread of the run.
type Shared = Arc<Mutex<FollowedRun>>;

/// Another run.
struct FollowedRun {
    reader: RunReader,
    /// Every how many rows one counts.
    every: u64,
    /// Rows are taken in by the source of triggers: a channel has its row.
    triggers: bool,
    buffer: Vec<u64>,
    /// The newest row that counts, if one has come.
    row: Vec<u64>,
    has_row: bool,
    /// Rows that count, since the last trigger: those that have come, or were overwritten before; and of these, those up to
    /// `row`, which are told with it.
    come: u64,
    told: u64,
    /// For channels that no event of this run comes with: the stamp of the row that looked last; when it was asked whether
    /// the owner is there; and whether nothing more can come.
    looked: Option<u64>,
    asked: u64,
    over: bool,
}

impl FollowedRun {
    fn new(run: &dyn Run) -> Result<FollowedRun, Error> {
        let reader = run.reader_with(ReaderOptions::default())?;
        let row_words = reader.ring().row_words();
        Ok(FollowedRun {
            reader,
            every: 1,
            triggers: false,
            // Not 0: that would be memory that nobody has touched yet.
            buffer: vec![u64::MAX; block::room(row_words)],
            row: vec![u64::MAX; row_words],
            has_row: false,
            come: 0,
            told: 0,
            looked: None,
            asked: 0,
            over: false,
        })
    }

    /// Takes in what has come.
    fn look(&mut self) {
        loop {
            let batch = self.reader.read(&mut self.buffer);
            let end = batch.first + batch.len() as u64;
            self.come += multiples(batch.first - batch.lost, end, self.every);
            let newest = end.saturating_sub(1) / self.every * self.every;
            // Of those that were copied.
            let index = newest.checked_sub(batch.first).map(|index| index as usize);
            let words = self.row.len();
            let mut rows = batch.rows.words().chunks_exact(words);
            if let Some(newest) = index.and_then(|index| rows.nth(index)) {
                self.row.copy_from_slice(newest);
                self.has_row = true;
                self.told = self.come;
            }
            if !batch.more {
                return;
            }
        }
    }

    /// A trigger, if a row that counts has come.
    fn trigger(&mut self, clock: &RunClock) -> Option<Trigger> {
        self.look();
        let told = std::mem::take(&mut self.told);
        self.come -= told;
        let missed = told.checked_sub(1)?;
        let row = Rows::new(&self.row, self.shape()).next()?;
        let its_clock = RunClock::new(self.info().clock);
        let time = match its_clock == *clock {
            true => row.time,
            false => clock.of_monotonic(its_clock.monotonic(row.time)),
        };
        Some(Trigger {
            missed,
            cause: Missed::Busy,
            time,
            count: row.row,
            ..Trigger::PLAIN
        })
    }

    /// The newest row, for the channels of the row with this stamp.
    fn look_for(&mut self, stamp: u64) {
        if self.looked == Some(stamp) {
            return;
        }
        self.looked = Some(stamp);
        let before = self.reader.ring().next_row();
        self.look();
        self.over = self.end().is_some();
        let is_silent = self.reader.ring().next_row() == before;
        if is_silent && stamp.wrapping_sub(self.asked) >= LOOK_NS {
            self.asked = stamp;
            self.over |= self.reader.gone().is_some();
        }
    }

    fn info(&self) -> &RunInfo {
        self.reader.info()
    }

    fn shape(&self) -> RowShape {
        self.reader.ring().geometry().shape()
    }

    /// Rows until the next one that counts, and that one.
    fn until_next(&self) -> u64 {
        let next = self.reader.ring().next_row();
        let left = (self.every - next % self.every) % self.every;
        left.saturating_add(1)
    }

    /// How the other run has ended, if it has and all of its rows were read.
    fn end(&self) -> Option<io::Result<WaitOutcome>> {
        if !self.reader.ring().ended() {
            return None;
        }
        let last = self.reader.snapshot();
        Some(match (last.state, last.error) {
            (State::Failed, 0) => Err(Errno::PIPE.into()),
            (State::Failed, error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
            _ => Ok(WaitOutcome::Over),
        })
    }
}

/// How many numbers from `first` on and before `end` are multiples of `every`.
fn multiples(first: u64, end: u64, every: u64) -> u64 {
    end.div_ceil(every) - first.div_ceil(every)
}

fn locked(followed: &Mutex<FollowedRun>) -> MutexGuard<'_, FollowedRun> {
    followed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of another run as triggers.
struct Source {
    followed: Shared,
    spin: bool,
}

impl EventSource for Source {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        let mut followed = locked(&self.followed);
        if !self.spin {
            // An owner of an older version does not do it; then it is looked for rows from time to time.
            let _ = followed.reader.wake_at_each_row();
            // What it makes for that, it makes now.
            followed.reader.arm(followed.until_next())?;
        }
        // Made before: of another time.
        followed.look();
        (followed.come, followed.told) = (0, 0);
        Ok(None)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        let mut followed = locked(&self.followed);
        let (mut read, mut turns) = (u64::MAX, 0_u32);
        while !wakeup.is_pending() {
            if let Some(trigger) = followed.trigger(clock) {
                return Ok(WaitOutcome::Trigger(trigger));
            }
            if let Some(end) = followed.end() {
                return end;
            }
            turns = turns.wrapping_add(1);
            if self.spin && turns % SPINS != 0 {
                std::hint::spin_loop();
                continue;
            }
            let before = std::mem::replace(&mut read, followed.reader.ring().next_row());
            if before == read && followed.reader.gone().is_some() {
                return Err(Errno::NODEV.into());
            }
            if self.spin {
                continue;
            }
            followed.reader.arm(followed.until_next())?;
            wakeup.sleep_at_most(LOOK_NS, followed.reader.as_fd(), PollFlags::IN)?;
        }
        Ok(WaitOutcome::Wakeup)
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let mut followed = locked(&self.followed);
        followed.look();
        followed.told = 0;
        (Missed::Busy, std::mem::take(&mut followed.come))
    }

    fn end(&mut self) {
        // The other run may have gone.
        let _ = locked(&self.followed).reader.disarm();
    }
}

/// A channel of another run.
struct Value {
    followed: Shared,
    part: RunPart,
}

impl ReadChannel for Value {
    fn read(&mut self, row: &Row) -> io::Result<u64> {
        let mut followed = locked(&self.followed);
        if !followed.triggers {
            followed.look_for(row.time);
            // Of what is over, the last row is no news.
            if followed.over {
                return Err(Errno::NODEV.into());
            }
        }
        if !followed.has_row {
            return Err(Errno::NODATA.into());
        }
        let found = Rows::new(&followed.row, followed.shape()).next();
        let found = found.ok_or(Errno::NODATA)?;
        match self.part {
            RunPart::Number => Ok(found.row),
            RunPart::Time => Ok(found.time),
            RunPart::Value(index) if found.faults.failed(index) => Err(Errno::IO.into()),
            RunPart::Value(index) => found.values.get(index).copied().ok_or(Errno::NODATA.into()),
        }
    }
}

impl RunRows {
    /// The run of this name; each has one reader.
    fn followed(&self, what: &'static str, name: &str, run: &str) -> Result<Shared, Error> {
        let mut all = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, followed)) = all.iter().find(|(known, _)| known == run) {
            return Ok(Arc::clone(followed));
        }
        let unusable = |why| Error::Unusable {
            what,
            name: name.to_owned(),
            why,
        };
        let found = attach(run).map_err(unusable)?;
        // It may have been asked for by another of its names.
        let is_it = |known: &Shared| {
            let known = locked(known);
            (known.info().engine, known.info().run) == (found.info().engine, found.info().run)
        };
        let known = all
            .iter()
            .map(|(_, followed)| followed)
            .find(|known| is_it(known));
        let followed = match known {
            Some(known) => Arc::clone(known),
            None => {
                let followed =
                    FollowedRun::new(&*found).map_err(|error| unusable(error.to_string()))?;
                Arc::new(Mutex::new(followed))
            }
        };
        all.push((run.to_owned(), Arc::clone(&followed)));
        Ok(followed)
    }
}

/// A run, by `3`, `user:3` or `kernel:3`.
fn attach(run: &str) -> Result<Box<dyn Run>, String> {
    let remedy = "`strobe status` shows the runs";
    let (engine, number) =
        run_number(run).ok_or_else(|| format!("`{run}` is not the name of a run; {remedy}"))?;
    let kernel = || Control::look().and_then(|control| control.attach(number));
    let user = || Registry::of_this_user().attach(number);
    match engine {
        Some("kernel") => Ok(Box::new(kernel().map_err(|error| error.to_string())?)),
        Some(_) => Ok(Box::new(user().map_err(|error| error.to_string())?)),
        None => match (kernel(), user()) {
            (Err(kernel), Ok(user)) if is_absent(&kernel) => Ok(Box::new(user)),
            (Ok(kernel), Err(registry::Error::NoRun(_))) => Ok(Box::new(kernel)),
            (Err(kernel), Err(registry::Error::NoRun(_))) if is_absent(&kernel) => {
                Err(format!("there is no run {number}; {remedy}"))
            }
            (Err(kernel), Err(user)) if is_absent(&kernel) => Err(user.to_string()),
            (Err(kernel), Err(_)) => Err(kernel.to_string()),
            _ => Err(format!(
                "both engines may have a run of this number; write kernel:{number} or user:{number}"
            )),
        },
    }
}

/// No run of the kernel engine that this program could follow has that number.
fn is_absent(error: &Error) -> bool {
    matches!(
        error,
        Error::NoModule { .. } | Error::NoPermission { .. } | Error::NoRun(_)
    )
}

impl Provider for RunRows {
    /// Runs are listed by `strobe status`: to ask all of them takes time.
    fn list(&self, _: &mut Catalogue) {}

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Run { run, every } = event.event() else {
            return None;
        };
        Some(
            self.followed("event", &event.to_string(), run)
                .map(|followed| {
                    {
                        let mut followed = locked(&followed);
                        (followed.every, followed.triggers) = (*every, true);
                    }
                    let spin = settings.wait == WaitMode::Spin;
                    EventOpener::ready(Cadence::exact(), Box::new(Source { followed, spin }))
                }),
        )
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let rest = name.strip_prefix("run:")?;
        let (run, part) = rest.split_once('.')?;
        Some(self.followed("channel", name, run).and_then(|followed| {
            let known = locked(&followed);
            let channels = &known.info().channels;
            let Some((about, part)) = run_part::channel(name, part, channels, COST_NS) else {
                return Err(Error::Unusable {
                    what: "channel",
                    name: name.to_owned(),
                    why: run_part::none(part, channels),
                });
            };
            drop(known);
            Ok(ChannelOpener::ready(
                about,
                Box::new(Value { followed, part }),
            ))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::multiples;

    #[test]
    fn multiples_of_a_range_are_counted_from_its_first_number_to_before_its_end() {
        for every in 1..5 {
            for first in 0..20 {
                for end in first..20 {
                    let counted = (first..end).filter(|n| n % every == 0).count();
                    assert_eq!(
                        multiples(first, end, every),
                        counted as u64,
                        "{first} {end}"
                    );
                }
            }
        }
    }
}
