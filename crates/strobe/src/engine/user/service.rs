// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of a run: waits for triggers and makes rows. Nothing is allocated in its loop, and the wait is
//! its only system call, unless a channel or output needs one.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use strobe_hw::mmap;
use strobe_hw::rt::Usage;
use strobe_hw::uapi::TRIGGER_MAX;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::layout::ROW_LATE;
use strobe_ring::{End, State, Writer};

use super::computer::Computer;
use super::instrument::AnswerRequest;
use super::provider::{ReadChannel, Row, WriteOutput};
use super::reader_waker::ReaderWaker;
use super::trigger::{EventSource, Trigger, WaitOutcome};
use crate::clock::RunClock;

/// What the owner of a run wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Start,
    Pause,
    Resume,
    Stop,
    /// So many software triggers.
    Trigger(u32),
    /// The owner goes away.
    Abandon,
}

/// An order, and where its answer goes.
pub type Request = (Order, SyncSender<Result<(), Errno>>);

/// One step of a row.
pub enum Action {
    /// Asks an instrument; a channel that follows waits for the answer.
    Ask(AnswerRequest),
    Read(Box<dyn ReadChannel>),
    Write(Box<dyn WriteOutput>, u64),
}

/// An output that a rule writes.
pub struct Act {
    pub output: Box<dyn WriteOutput>,
    pub value: u64,
    /// The place of the rule in the program.
    pub rule: usize,
}

/// What the thread of a run works with. Only that thread has it.
pub struct Service {
    pub ring: Writer,
    /// Wakes readers that want each row at once.
    pub reader_waker: Arc<ReaderWaker>,
    /// How often it did at a row.
    pub woken: u64,
    pub clock: RunClock,
    pub source: Box<dyn EventSource>,
    /// Triggers come by [`Order::Trigger`].
    pub is_soft: bool,
    pub actions: Vec<Action>,
    /// What rows do that meet the condition of a rule. In a row they stand behind the other outputs.
    pub acts: Vec<Act>,
    /// What computes columns of the row from the others, and says whether it is kept.
    pub computer: Option<Computer>,
    pub wakeup: Wakeup,
    pub requests: Receiver<Request>,
    /// When the run was started.
    pub start: u64,
    /// From this long after it was due, ns, a row is flagged as late: the period of the source, if it has one.
    pub late_after: u64,
    /// What the thread has cost from the start of the run to its end; written at its end.
    pub usage: Arc<Mutex<Usage>>,
    /// What it had cost before.
    pub usage_before: Usage,
}

impl Service {
    /// Until the run has ended, and its owner has gone.
    pub fn run(mut self) {
        loop {
            self.wakeup.acknowledge();
            while let Ok((order, answer)) = self.requests.try_recv() {
                // Nobody is there to hear it if this fails.
                let _ = answer.send(self.obey(order));
                if order == Order::Abandon {
                    return;
                }
            }
            if let Err(error) = self.serve() {
                self.finish(End::Failed(errno(&error)));
            }
        }
    }

    /// Makes rows until the thread is woken.
    fn serve(&mut self) -> io::Result<()> {
        while self.ring.state() == State::Running {
            // Looked at where it is: to move what was just written costs more than a channel.
            let woken = self.source.wait(&self.clock, &mut self.wakeup);
            match &woken {
                Ok(WaitOutcome::Wakeup) => return Ok(()),
                Ok(WaitOutcome::Over) => self.finish(End::Stopped),
                Ok(WaitOutcome::Trigger(trigger)) => {
                    let now = self.clock.now();
                    self.row(now, trigger)?;
                    let done = self.source.done();
                    if !self.end_if_full() {
                        done?;
                    }
                }
                Err(_) => return woken.map(|_| ()),
            }
        }
        while !self.wakeup.is_pending() {
            self.wakeup.sleep_until(None)?;
        }
        Ok(())
    }

    /// The row of one trigger.
    #[inline]
    fn row(&mut self, now: u64, trigger: &Trigger) -> io::Result<()> {
        if trigger.missed > 0 {
            self.ring.miss(trigger.cause, trigger.missed);
        }
        if trigger.skipped > 0 {
            self.ring.skip(trigger.skipped);
        }
        let about = Row {
            time: now,
            start: self.start,
            trigger: *trigger,
        };
        let (mut gone, mut output_number) = (None, 0);
        let Some(mut row) = self.ring.begin(now) else {
            return Ok(());
        };
        for action in &mut self.actions {
            let result = match action {
                Action::Ask(asking) => {
                    asking.ask();
                    Ok(())
                }
                Action::Read(channel) => match channel.read(&about) {
                    Ok(word) => {
                        row.value(word);
                        if let Some(computer) = &mut self.computer {
                            computer.value(word);
                        }
                        Ok(())
                    }
                    Err(error) => {
                        row.failed();
                        Err(error)
                    }
                },
                Action::Write(output, word) => {
                    let written = output.write(*word);
                    if written.is_err() {
                        row.output_failed(output_number);
                    }
                    output_number += 1;
                    written
                }
            };
            if let Err(error) = result {
                if let Some(computer) = &mut self.computer {
                    computer.failed();
                }
                if errno(&error) == Errno::NODEV.raw_os_error() {
                    gone = Some(error);
                }
            }
        }
        // What has no value has failed, too.
        if let Some((computer, answer)) = self
            .computer
            .as_mut()
            .and_then(|computer| computer.compute().map(|answer| (computer, answer)))
        {
            let mut has_failed = false;
            for (place, act) in self.acts.iter_mut().enumerate() {
                if !answer.meets(act.rule) {
                    continue;
                }
                if let Err(error) = act.output.write(act.value) {
                    has_failed = true;
                    row.output_failed(output_number + place);
                    if errno(&error) == Errno::NODEV.raw_os_error() {
                        gone = Some(error);
                    }
                }
            }
            // If an output failed the row is not left out, and what was computed for it has failed, too.
            if !has_failed {
                if !answer.is_kept() {
                    self.ring.skip(1);
                    return Ok(());
                }
                for word in computer.derived() {
                    row.value(*word);
                }
            }
        }
        let late = match trigger.due {
            Some(due) if now.saturating_sub(due) >= self.late_after => ROW_LATE,
            _ => 0,
        };
        row.commit(late);
        if self.reader_waker.has_subscribers() {
            self.reader_waker.wake();
            self.woken += 1;
        }
        if let Some(error) = gone {
            return Err(error);
        }
        Ok(())
    }

    /// Ends a run that has all its rows: whatever becomes of its source, nothing is missing.
    fn end_if_full(&mut self) -> bool {
        let is_full = self.ring.is_full();
        if is_full {
            self.finish(End::Done);
        }
        is_full
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
                Ok(())
            }
            (Order::Abandon, _) => {
                self.finish(End::Failed(Errno::PIPE.raw_os_error()));
                Ok(())
            }
            (Order::Start, State::Ready) => self.start(),
            (Order::Start, State::Running) => return Err(Errno::ALREADY),
            (Order::Pause, State::Running) => {
                self.silence();
                self.ring.pause().map_err(|_| wrong_state())
            }
            (Order::Pause, State::Paused) => return Err(Errno::ALREADY),
            (Order::Resume, State::Paused) => self.resume(),
            (Order::Resume, State::Running) => return Err(Errno::ALREADY),
            (Order::Trigger(_), State::Running) if !self.is_soft => return Err(Errno::OPNOTSUPP),
            (Order::Trigger(count), _) if !(1..=TRIGGER_MAX).contains(&count) => {
                return Err(Errno::INVAL);
            }
            (Order::Trigger(count), State::Running) => self.trigger(count),
            _ => return Err(Errno::BUSY),
        };
        self.wake();
        done.map_err(|error| {
            let number = errno(&error);
            self.finish(End::Failed(number));
            Errno::from_raw_os_error(number)
        })
    }

    fn start(&mut self) -> io::Result<()> {
        for action in &mut self.actions {
            if let Action::Read(channel) = action {
                channel.begin()?;
            }
        }
        self.usage_before = Usage::of_this_thread();
        let mut times = self.clock.start_times();
        self.start = times.time;
        times.first_due = self.begin(times.time)?.unwrap_or(0);
        self.ring.start(times).map_err(|_| wrong_state())
    }

    fn resume(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.begin(now)?;
        self.ring.resume().map_err(|_| wrong_state())
    }

    fn begin(&mut self, now: u64) -> io::Result<Option<u64>> {
        let begun = self.source.begin(&self.clock, now);
        if begun.is_err() {
            // What was done of it is undone.
            self.source.end();
        }
        begun
    }

    /// The source of a running run comes to rest; what it knows to have passed by then is missed or skipped.
    fn silence(&mut self) {
        let (cause, missed) = self.source.unserved();
        if missed > 0 {
            self.ring.miss(cause, missed);
        }
        let skipped = self.source.unserved_skipped();
        if skipped > 0 {
            self.ring.skip(skipped);
        }
        self.source.end();
    }

    fn trigger(&mut self, count: u32) -> io::Result<()> {
        for _ in 0..count {
            if self.ring.state() != State::Running {
                break;
            }
            let now = self.clock.now();
            self.row(now, &Trigger::PLAIN)?;
            self.end_if_full();
        }
        Ok(())
    }

    fn finish(&mut self, end: End) {
        let state = self.ring.state();
        if state.is_final() {
            return;
        }
        // Else it rests already, or has never begun: what it would touch may be another run's.
        match (state, end) {
            // Nothing is missed after the last row.
            (State::Running, End::Done) => self.source.end(),
            (State::Running, _) => self.silence(),
            _ => {}
        }
        if let Some(computer) = &self.computer {
            computer.tuning().end();
        }
        if let Ok(mut usage) = self.usage.lock() {
            *usage = Usage::of_this_thread().since(self.usage_before);
            usage.wakes = self.woken;
        }
        let now = self.clock.now();
        self.ring.finish(end, now);
        self.wake();
    }

    /// Wakes all readers, however they sleep.
    fn wake(&mut self) {
        mmap::wake(&mut self.ring);
        self.reader_waker.wake();
    }
}

/// Every one has been looked at before.
fn wrong_state() -> io::Error {
    Errno::BUSY.into()
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests;
