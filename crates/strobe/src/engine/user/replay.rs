// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as a run of this machine: its rows, its gaps, its times and its account as they were.
//!
//! What a recording does not say is the cause of each single gap in its triggers: causes are counted in the order of their
//! numbers until those of the recording are used up. At the end each has the count that it had.

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::io::Errno;
use strobe_hw::mmap;
use strobe_hw::rt::{Policy, Step, Usage};
use strobe_hw::wakeup::Wakeup;
use strobe_ring::layout::{MISSED_CAUSES, NO_LIMIT, STRIDE_UNIT};
use strobe_ring::{End, Engine, Geometry, Header, Missed, Row, State, Writer};

use super::User;
use super::base::{self, Base};
use super::reader_waker::ReaderWaker;
use super::run::UserRun;
use super::service::{Order, Request};
use crate::block::Block;
use crate::clock::monotonic;
use crate::error::Error;
use crate::info::{self, RunInfo, Totals};
use crate::source::RowSource;

mod pace;

use pace::Pace;

/// Causes by their numbers; a recording of a later version may have others, which count as the last.
const CAUSES: [Missed; 5] = [
    Missed::Overrun,
    Missed::Busy,
    Missed::Throttled,
    Missed::Source,
    Missed::Suspended,
];

/// Bytes of a ring that is to hold a whole recording, at most.
const BYTES_MAX: u64 = 256 << 20;
/// Rows of a recording that does not say how many it has.
const ROWS: u64 = 1 << 16;

/// How fast a recording is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// So many times as fast as it was recorded; what is not positive counts as 1.
    Times(f64),
    /// As fast as it can be read.
    Max,
}

/// How a recording is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayOptions {
    /// How fast.
    pub speed: Speed,
    /// Rows the ring holds at least; `None`: all of the recording, as long as that is no more than 256 MiB.
    pub ring: Option<u64>,
    /// Other users may read it, too.
    pub shared: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            speed: Speed::Times(1.0),
            ring: None,
            shared: false,
        }
    }
}

impl User {
    /// Makes a recording a run of this machine; it waits for its start. The rows have the numbers, triggers, times and
    /// faults that they had. What the recorder had lost is lost to each reader, and the account is that of the recording.
    /// Readers that are slower than the replay lose rows besides, unless the ring holds all of it.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn replay(
        &self,
        source: Box<dyn RowSource>,
        options: &ReplayOptions,
    ) -> Result<UserRun, Error> {
        let info = source.info().clone();
        let totals = source.totals();
        let capacity = options.ring.unwrap_or_else(|| {
            let rows = totals.as_ref().map_or(ROWS, |totals| totals.rows);
            let stride = info
                .shape()
                .bytes()
                .next_multiple_of(u64::from(STRIDE_UNIT));
            // One is the guard.
            let whole = rows.saturating_add(1).checked_next_power_of_two();
            let most = (BYTES_MAX / stride).max(2).next_power_of_two() / 2;
            whole.unwrap_or(u64::MAX).min(most)
        });
        let capacity = capacity.max(2).checked_next_power_of_two();
        let geometry = capacity.and_then(|capacity| {
            let limit = info.limit.unwrap_or(NO_LIMIT);
            Geometry::new(info.shape(), capacity, limit).ok()
        });
        let geometry = geometry.ok_or(Error::Capacity(options.ring.unwrap_or(0)))?;
        base::fits(&geometry)?;
        let header = Header {
            absent: true,
            ..base::header(geometry, info.clock, info.period_ns)
        };
        let mut base = Base::new(header, &info.event, options.shared, self.settings.lock)?;
        base.set_up.push(Step {
            what: "replay".into(),
            ok: true,
            got: format!("of {}:{} ({})", info.engine.name(), info.run, info.kernel),
        });
        let info = RunInfo {
            engine: Engine::User,
            run: base.number,
            capacity: geometry.capacity(),
            tunables: Vec::new(),
            set_up: Vec::new(),
            doctor: Vec::new(),
            ..info
        };
        let pace = Pace::new(options.speed, info.start.time);
        let policy = self.settings.policy.unwrap_or(Policy::Other);
        base.run(info, &self.settings, policy, |tools, requests, usage| {
            let replay = Replay {
                ring: tools.ring,
                reader_waker: tools.reader_waker,
                wakeup: tools.wakeup,
                causes: Causes::of(totals.as_ref()),
                source,
                pace,
                requests,
                usage,
                usage_before: Usage::default(),
                woken: 0,
                block: None,
                made: 0,
            };
            || replay.run()
        })
    }
}

/// What the thread of a replay works with.
struct Replay {
    ring: Writer,
    reader_waker: Arc<ReaderWaker>,
    wakeup: Wakeup,
    causes: Causes,
    source: Box<dyn RowSource>,
    pace: Pace,
    requests: Receiver<Request>,
    usage: Arc<Mutex<Usage>>,
    /// What the thread had cost before the start.
    usage_before: Usage,
    /// Rows for which readers were woken.
    woken: u64,
    /// The rows at hand, and how many of them were made.
    block: Option<Block>,
    made: usize,
}

/// What is still to be missed, by cause.
struct Causes([u64; MISSED_CAUSES]);

impl Causes {
    /// Those of a recording, if they are known.
    fn of(totals: Option<&Totals>) -> Self {
        Causes(totals.map_or([0; MISSED_CAUSES], |totals| totals.missed_by))
    }

    /// Counts triggers that were missed.
    fn miss(&mut self, ring: &mut Writer, mut count: u64) {
        for (left, number) in self.0.iter_mut().zip(0..) {
            let cause = *CAUSES.get(number).unwrap_or(&Missed::Suspended);
            let of_this = count.min(*left);
            if of_this > 0 {
                ring.miss(cause, of_this);
                *left -= of_this;
                count -= of_this;
            }
        }
        if count > 0 {
            // Of a recording without an account.
            ring.miss(Missed::Source, count);
        }
    }
}

/// Why rows do not come any more.
enum Halt {
    /// The thread is woken: there is an order.
    Wakeup,
    /// The recording, or the machine.
    Error(io::Error),
}

impl Replay {
    /// Until the run has ended, and its owner has gone.
    fn run(mut self) {
        loop {
            self.wakeup.acknowledge();
            while let Ok((order, answer)) = self.requests.try_recv() {
                // Nobody is there to hear it if this fails.
                let _ = answer.send(self.obey(order));
                if order == Order::Abandon {
                    return;
                }
            }
            match self.play() {
                Ok(()) | Err(Halt::Wakeup) => {}
                Err(Halt::Error(error)) => {
                    self.finish(End::Failed(
                        error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
                    ));
                }
            }
        }
    }

    /// Makes rows until the thread is woken.
    fn play(&mut self) -> Result<(), Halt> {
        while self.ring.state() == State::Running {
            if self.wakeup.is_pending() {
                return Err(Halt::Wakeup);
            }
            let Some(block) = self.block.clone() else {
                match self.source.next(Duration::ZERO) {
                    Ok(Some(block)) => self.block = Some(block),
                    Ok(None) => self.end()?,
                    Err(error) => return Err(Halt::Error(io::Error::other(error))),
                }
                continue;
            };
            for row in block.rows().skip(self.made) {
                self.row(&row)?;
                self.made += 1;
            }
            (self.block, self.made) = (None, 0);
            mmap::wake(&mut self.ring);
        }
        while !self.wakeup.is_pending() {
            self.wakeup.sleep_until(None).map_err(Halt::Error)?;
        }
        Err(Halt::Wakeup)
    }

    /// What is between the rows before and this one, then the row. Nothing of it is done twice if the thread is woken.
    fn row(&mut self, row: &Row<'_>) -> Result<(), Halt> {
        let (row_number, trigger) = (row.row, row.trigger);
        // Each row has a trigger of its own; none goes back.
        if row_number < self.ring.head()
            || trigger < row_number
            || trigger < self.ring.triggers()
            || (self.skips() && row.skipped < self.ring.skipped())
        {
            return Err(Halt::Error(damaged()));
        }
        if self.ring.head() == 0 && row_number > 0 && self.pace.reached == self.pace.from {
            // The recorder may have joined a run that was old.
            self.pace.join(row.time, &self.source.info().start);
        }
        self.skip_to(row.row, row.time)?;
        self.wait_until(row.time)?;
        let skipped = row.skipped.saturating_sub(self.ring.skipped());
        if skipped > 0 && self.skips() {
            self.ring.skip(skipped);
        }
        let missed = row.trigger.saturating_sub(self.ring.triggers());
        self.causes.miss(&mut self.ring, missed);
        let Some(mut made) = self.ring.begin(row.time) else {
            return Err(Halt::Error(damaged()));
        };
        for (&word, index) in row.values.iter().zip(0..) {
            if row.faults.failed(index) {
                made.failed();
            } else {
                made.value(word);
            }
        }
        for failed in row.faults.iter() {
            if let Some(output) = failed.checked_sub(row.values.len()) {
                made.output_failed(output);
            }
        }
        made.commit(row.status.0);
        self.pace.reached = row.time;
        if self.reader_waker.has_subscribers() {
            self.reader_waker.wake();
            self.woken += 1;
        }
        Ok(())
    }

    /// Goes through the rows before this one that the recording lacks: in steps that readers can follow, if there is time.
    fn skip_to(&mut self, row: u64, time: u64) -> Result<(), Halt> {
        let step = (self.ring.geometry().capacity() / 8).max(1);
        let steps = row.saturating_sub(self.ring.head()).div_ceil(step);
        let (begun, mut done) = (self.pace.due(time).map(|due| (monotonic(), due)), 0_u64);
        while self.ring.head() < row {
            if self.wakeup.is_pending() {
                return Err(Halt::Wakeup);
            }
            if let Some((now, due)) = begun {
                done += 1;
                let ahead = u128::from(due.saturating_sub(now)) * u128::from(done);
                self.sleep_until(now + (ahead / (u128::from(steps) + 1)) as u64)?;
            }
            let before = self.ring.head();
            self.ring.absent(step.min(row - before));
            if self.ring.head() == before {
                return Err(Halt::Error(damaged()));
            }
        }
        Ok(())
    }

    /// Whether the event skips triggers.
    fn skips(&self) -> bool {
        self.ring.geometry().shape().skipped
    }

    /// Wakes all readers, however they sleep.
    fn wake(&mut self) {
        mmap::wake(&mut self.ring);
        self.reader_waker.wake();
    }

    fn wait_until(&mut self, time: u64) -> Result<(), Halt> {
        self.pace
            .due(time)
            .map_or(Ok(()), |due| self.sleep_until(due))
    }

    fn sleep_until(&self, due: u64) -> Result<(), Halt> {
        while monotonic() < due {
            if self.wakeup.is_pending() {
                return Err(Halt::Wakeup);
            }
            self.wakeup.sleep_until(Some(due)).map_err(Halt::Error)?;
        }
        Ok(())
    }

    /// After the last row: what was lost, missed and skipped after it, and how the run ended.
    fn end(&mut self) -> Result<(), Halt> {
        let Some(totals) = self.source.totals() else {
            // The recording was cut off, as if its owner had gone.
            return Err(Halt::Error(Errno::PIPE.into()));
        };
        if totals.rows < self.ring.head() || totals.triggers < totals.rows {
            return Err(Halt::Error(damaged()));
        }
        self.skip_to(totals.rows, totals.end_time_ns)?;
        self.wait_until(totals.end_time_ns)?;
        let skipped = totals.skipped.saturating_sub(self.ring.skipped());
        if skipped > 0 && self.skips() {
            self.ring.skip(skipped);
        }
        let missed = totals.triggers.saturating_sub(self.ring.triggers());
        self.causes.miss(&mut self.ring, missed);
        let errors = totals.errors.saturating_sub(self.ring.errors());
        self.ring.absent_errors(errors);
        let end = match totals.end {
            info::End::Complete => End::Done,
            info::End::Stopped => End::Stopped,
            // The recording has it as a text.
            info::End::Failed(_) => End::Failed(Errno::CANCELED.raw_os_error()),
        };
        self.finish_at(end, totals.end_time_ns);
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<(), Errno> {
        let state = self.ring.state();
        if state.is_final() {
            return match order {
                Order::Stop | Order::Abandon => Ok(()),
                _ => Err(Errno::SHUTDOWN),
            };
        }
        let done = match (order, state) {
            (Order::Stop, _) => {
                self.finish(End::Stopped);
                return Ok(());
            }
            (Order::Abandon, _) => {
                self.finish(End::Failed(Errno::PIPE.raw_os_error()));
                return Ok(());
            }
            (Order::Start, State::Ready) => {
                self.usage_before = Usage::of_this_thread();
                self.pace.go_on();
                self.ring.start(self.source.info().start)
            }
            (Order::Pause, State::Running) => self.ring.pause(),
            (Order::Resume, State::Paused) => {
                self.pace.go_on();
                self.ring.resume()
            }
            (Order::Start | Order::Resume, State::Running) | (Order::Pause, State::Paused) => {
                return Err(Errno::ALREADY);
            }
            (Order::Trigger(_), State::Running) => return Err(Errno::OPNOTSUPP),
            _ => return Err(Errno::BUSY),
        };
        self.wake();
        done.map_err(|_| Errno::BUSY)
    }

    fn finish(&mut self, end: End) {
        self.finish_at(end, self.pace.reached);
    }

    fn finish_at(&mut self, end: End, time: u64) {
        if let Ok(mut usage) = self.usage.lock() {
            *usage = Usage::of_this_thread().since(self.usage_before);
            usage.wakes = self.woken;
        }
        self.ring.finish(end, time);
        self.wake();
    }
}

/// A row that comes before the one that was made, or beyond the limit.
fn damaged() -> io::Error {
    Errno::BADMSG.into()
}

#[cfg(test)]
mod tests;
