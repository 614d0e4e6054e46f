// SPDX-License-Identifier: MIT OR Apache-2.0
//! The periodic interrupt of an HPET, as an event. Its driver counts the interrupts since the last read, so
//! none is lost without being missed.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use strobe_hw::hpet;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::provider::{EventOpener, Provider};
use super::settings::{Settings, WaitMode};
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Event as ListedEvent};
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::{Event, EventSpec};

const DEVICE: &str = "/dev/hpet";
const MAX_USER_FREQ: &str = "/proc/sys/dev/hpet/max-user-freq";

/// How often the first interrupt is set, before it is given up.
const TRIES: u32 = 8;

/// A timer of the HPET.
pub struct Hpet {
    file: File,
    period_ns: u64,
    spin: bool,
    on: bool,
    /// Interrupts since the start.
    count: u64,
}

/// More interrupts a second can take a machine down, and the driver would let root do that.
const HERTZ_MAX: u64 = 10_000;

/// Interrupts a second: a whole number, for the driver takes no other.
fn hertz(period_ns: u64) -> Result<usize, String> {
    const SECOND: u64 = 1_000_000_000;
    let hertz = SECOND.saturating_add(period_ns / 2) / period_ns.max(1);
    if hertz > HERTZ_MAX {
        return Err(format!(
            "an HPET can make at most {HERTZ_MAX} interrupts a second here; use a timer"
        ));
    }
    match SECOND.checked_div(hertz) {
        Some(period) if period.abs_diff(period_ns) <= 1 => {
            usize::try_from(hertz).map_err(|_| "it cannot be that fast".to_owned())
        }
        Some(_) => Err(format!(
            "an HPET makes a whole number of interrupts a second; use hpet:{hertz}Hz, or a timer"
        )),
        None => Err("an HPET makes at least one interrupt a second; use a timer".to_owned()),
    }
}

impl Hpet {
    /// A timer of the HPET that no other program uses.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub fn new(period_ns: u64, wait: WaitMode) -> Result<Hpet, String> {
        let hertz = hertz(period_ns)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(DEVICE, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => {
                format!("there is no {DEVICE}: this machine has no HPET, or its kernel has no driver for it; use a \
                timer")
            }
            Errno::ACCESS | Errno::PERM => {
                format!("{DEVICE}: no permission; add a udev rule that gives it to one of your groups, or be root")
            }
            Errno::BUSY => format!("{DEVICE}: other programs or the kernel use all its timers"),
            _ => format!("{DEVICE}: {errno}"),
        })?;
        let file = File::from(file);
        hpet::set_frequency(&file, hertz).map_err(|errno| match errno {
            Errno::ACCESS => format!(
                "{hertz} Hz is more than the {} Hz of {MAX_USER_FREQ}; raise that \
                 (sysctl dev.hpet.max-user-freq={hertz}), or be root",
                std::fs::read_to_string(MAX_USER_FREQ)
                    .unwrap_or_default()
                    .trim()
            ),
            _ => format!("{DEVICE} refuses {hertz} Hz ({errno})"),
        })?;
        let hpet = Hpet {
            file,
            period_ns,
            spin: wait == WaitMode::Spin,
            on: false,
            count: 0,
        };
        let periodic = hpet::set_periodic(&hpet.file);
        periodic.map_err(|error| {
            format!("{DEVICE}: its timer is not periodic ({error}); use a timer")
        })?;
        Ok(hpet)
    }

    /// Whether there is an interrupt by then. It is not taken.
    fn comes_within(&self, ns: u64) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let mut one = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut one, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Interrupts since the last time.
    fn take(&self) -> io::Result<u64> {
        // The driver's `unsigned long`.
        let mut bytes = [0; size_of::<usize>()];
        match rustix::io::read(&self.file, &mut bytes) {
            Ok(count) if count == bytes.len() => Ok(usize::from_ne_bytes(bytes) as u64),
            Ok(_) => Err(Errno::IO.into()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl EventSource for Hpet {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        self.end();
        self.take()?;
        // The driver sets the first interrupt a moment ahead of the counter. If it was held up, the counter is
        // past that, and has to go all the way round: 43 s or more. Then it is set again.
        let mut patience = self.period_ns.saturating_mul(2) + 20_000_000;
        for _ in 0..TRIES {
            hpet::enable(&self.file)?;
            self.on = true;
            if self.comes_within(patience)? {
                return Ok(None);
            }
            self.end();
            patience = patience.saturating_mul(2);
        }
        Err(Errno::TIMEDOUT.into())
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        while !wakeup.is_pending() {
            if !self.spin && !wakeup.sleep_for(self.file.as_fd(), PollFlags::IN)? {
                continue;
            }
            if let Some(missed) = self.take()?.checked_sub(1) {
                self.count += missed + 1;
                return Ok(WaitOutcome::Trigger(Trigger {
                    missed,
                    cause: Missed::Source,
                    count: self.count,
                    ..Trigger::PLAIN
                }));
            }
            if self.spin {
                std::hint::spin_loop();
            }
        }
        Ok(WaitOutcome::Wakeup)
    }

    fn unserved(&mut self) -> (Missed, u64) {
        // What cannot be read is not known.
        (Missed::Source, self.take().unwrap_or(0))
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.on) {
            // It can only be that the device has gone.
            let _ = hpet::disable(&self.file);
        }
    }
}

/// Provides `hpet:64Hz`.
pub struct Hpets;

impl Provider for Hpets {
    fn list(&self, catalogue: &mut Catalogue) {
        if std::path::Path::new(DEVICE).exists() {
            catalogue.events.push(ListedEvent {
                name: "hpet".to_owned(),
                description: "periodic interrupt of the HPET".to_owned(),
                periodic: true,
                accounting: Accounting::None,
                in_use: false,
            });
        }
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Hpet { period_ns } = event.event() else {
            return None;
        };
        // Its phase is not known on the run's clock, and its oscillator is another one.
        let cadence = Cadence {
            period_ns: Some(*period_ns),
            ..Cadence::default()
        };
        // A timer that is taken is not touched before it is begun.
        let found = Hpet::new(*period_ns, settings.wait);
        let found = found.map(|hpet| EventOpener::ready(cadence, Box::new(hpet)));
        Some(found.map_err(|why| Error::Unusable {
            what: "event",
            name: event.to_string(),
            why,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_hertz_are_taken() {
        for (period_ns, expected) in [
            (15_625_000, 64),
            (1_000_000, 1000),
            (333_333_333, 3),
            (1_000_000_000, 1),
        ] {
            assert_eq!(hertz(period_ns), Ok(expected), "{period_ns}");
        }
        let said = hertz(400_000_000).expect_err("2.5 Hz");
        assert!(said.contains("use hpet:3Hz"), "{said}");
        let said = hertz(3_600_000_000_000).expect_err("one an hour");
        assert!(said.contains("at least one"), "{said}");
        let said = hertz(99_000).expect_err("too fast");
        assert!(said.contains("at most 10000"), "{said}");
        assert!(hertz(0).is_err() && hertz(100_000).is_ok());
    }

    #[test]
    fn other_events_are_left_to_others() {
        let event: EventSpec = "timer:64Hz".parse().expect("an event");
        assert!(Hpets.event(&event, &Settings::default()).is_none());
    }
}
