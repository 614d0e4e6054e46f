// SPDX-License-Identifier: MIT OR Apache-2.0
//! Triggers by call, and by eventfd.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::trigger::{EventSource, Trigger, WaitOutcome};
use crate::clock::RunClock;

/// The event `soft`: the thread itself makes the rows of a call, so there is nothing to wait for.
pub struct Soft;

impl EventSource for Soft {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        wakeup.sleep_until(None)?;
        Ok(WaitOutcome::Wakeup)
    }
}

/// An eventfd that another program or thread writes to. What was added to it between two rows is one trigger;
/// the others are missed, by the source.
pub struct Eventfd {
    fd: OwnedFd,
    count: u64,
}

impl Eventfd {
    /// An eventfd.
    ///
    /// # Errors
    /// It cannot be set to return at once.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(Eventfd { fd, count: 0 })
    }

    /// What was added since the last time.
    fn take(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        match rustix::io::read(&self.fd, &mut bytes) {
            Ok(8) => Ok(u64::from_ne_bytes(bytes)),
            Ok(_) => Err(Errno::NODEV.into()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl EventSource for Eventfd {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        self.take().map(|_| None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        use std::os::fd::AsFd;
        loop {
            if !wakeup.sleep_for(self.fd.as_fd(), PollFlags::IN)? {
                if wakeup.is_pending() {
                    return Ok(WaitOutcome::Wakeup);
                }
                continue;
            }
            let added = self.take()?;
            if added > 0 {
                self.count = self.count.wrapping_add(added);
                return Ok(WaitOutcome::Trigger(Trigger {
                    missed: added - 1,
                    cause: Missed::Source,
                    count: self.count,
                    ..Trigger::PLAIN
                }));
            }
        }
    }

    fn unserved(&mut self) -> (Missed, u64) {
        // What cannot be read is not known.
        (Missed::Source, self.take().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Clock;
    use strobe_hw::wakeup::wakeup;

    #[test]
    fn what_was_added_between_two_rows_is_one_trigger_and_the_rest_missed() {
        let fd =
            rustix::event::eventfd(7, rustix::event::EventfdFlags::CLOEXEC).expect("an eventfd");
        let writer = fd.try_clone().expect("another");
        let mut source = Eventfd::new(fd).expect("a source");
        let clock = RunClock::new(Clock::Monotonic);
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        source.begin(&clock, 0).expect("to begin");
        for (added, count) in [(1_u64, 1), (5, 6)] {
            rustix::io::write(&writer, &added.to_ne_bytes()).expect("to add");
            let Ok(WaitOutcome::Trigger(trigger)) = source.wait(&clock, &mut wakeup) else {
                panic!("no trigger");
            };
            assert_eq!((trigger.missed, trigger.count), (added - 1, count));
        }
        waker.wake();
        rustix::io::write(&writer, &3_u64.to_ne_bytes()).expect("to add");
        assert_eq!(
            source.wait(&clock, &mut wakeup).ok(),
            Some(WaitOutcome::Wakeup)
        );
        assert_eq!(source.unserved(), (Missed::Source, 3));
        assert_eq!(source.unserved().1, 0, "told once");
    }
}
