// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event `uio:NAME`: interrupts of a UIO device.

use std::io;
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use strobe_hw::uio::{self, Device, Roots, Uio};
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::provider::{EventOpener, Provider};
use super::settings::{Settings, WaitMode};
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Event as Listed};
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::{Event, EventSpec};

/// Provides `uio:NAME`, where NAME is what the device's driver calls it, or `uioN`.
#[derive(Default)]
pub struct UioEvents(pub Roots);

impl Provider for UioEvents {
    fn list(&self, catalogue: &mut Catalogue) {
        // Without them, the rest of the catalogue is still good.
        let all = Uio::list_in(&self.0).unwrap_or_default();
        for uio in &all {
            let namesakes = all.iter().filter(|other| other.name == uio.name).count();
            let name = match namesakes {
                1 => uio.name.clone(),
                _ => uio.node(),
            };
            catalogue.events.push(Listed {
                name: format!("uio:{name}"),
                description: format!("interrupt of {uio}"),
                periodic: false,
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
        let Event::Uio(name) = event.event() else {
            return None;
        };
        let unusable = {
            let name = event.to_string();
            move |error: uio::Error| Error::Unusable {
                what: "event",
                name,
                why: error.to_string(),
            }
        };
        let wait = settings.wait;
        Some(match Uio::find_in(&self.0, name) {
            Ok(uio) => Ok(EventOpener::new(Cadence::default(), move || {
                match opened(&uio) {
                    Ok(device) => Ok(Box::new(Source::new(device, wait))),
                    Err(error) => Err(unusable(error)),
                }
            })),
            Err(error) => Err(unusable(error)),
        })
    }
}

/// A device whose interrupts can be waited for.
pub(super) fn opened(uio: &Uio) -> Result<Device, uio::Error> {
    let mut device = uio.open()?;
    // One that has no interrupt says so here, and one that may not be enabled.
    device.forget()?;
    device.permitted()?;
    Ok(device)
}

/// Interrupts of a device. Those between two rows are one trigger, and the others are missed, by the source.
pub(super) struct Source {
    device: Device,
    wait: WaitMode,
    /// Whether the driver can enable interrupts: then some need it after each of them.
    has_control: bool,
    /// The device's count of interrupts; from its 32 bits when the run began, it goes on without wrapping.
    count: u64,
}

impl Source {
    pub(super) fn new(device: Device, wait: WaitMode) -> Self {
        let count = u64::from(device.count());
        Source {
            device,
            wait,
            has_control: true,
            count,
        }
    }

    fn read(&mut self) -> io::Result<Option<Trigger>> {
        let Some(interrupt) = self.device.read()? else {
            return Ok(None);
        };
        let missed = u64::from(interrupt.missed);
        self.count = self.count.wrapping_add(missed + 1);
        Ok(Some(Trigger {
            missed,
            cause: Missed::Source,
            count: self.count,
            ..Trigger::PLAIN
        }))
    }

    /// Lets the next interrupt come.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        if !self.has_control {
            return Ok(());
        }
        match self.device.enable() {
            Err(uio::Error::NoControl(_)) => {
                self.has_control = false;
                Ok(())
            }
            done => Ok(done?),
        }
    }
}

impl EventSource for Source {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        // What comes from its being enabled on counts; so first forget, then enable.
        self.read()?;
        self.enable()?;
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        loop {
            if self.wait == WaitMode::Spin {
                if wakeup.is_pending() {
                    return Ok(WaitOutcome::Wakeup);
                }
                std::hint::spin_loop();
            } else if !wakeup.sleep_for_device(self.device.as_fd(), PollFlags::IN)? {
                if wakeup.is_pending() {
                    return Ok(WaitOutcome::Wakeup);
                }
                continue;
            }
            if let Some(trigger) = self.read()? {
                return Ok(WaitOutcome::Trigger(trigger));
            }
        }
    }

    fn done(&mut self) -> io::Result<()> {
        self.enable()
    }

    fn unserved(&mut self) -> (Missed, u64) {
        // What cannot be read is not known.
        let last = self.read().ok().flatten();
        (Missed::Source, last.map_or(0, |last| last.missed + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Clock;
    use strobe_hw::uio::fake::Fake;
    use strobe_hw::wakeup::wakeup;

    fn source(
        fake: &Fake,
        event: &str,
        wait: WaitMode,
    ) -> Option<Result<Box<dyn EventSource>, Error>> {
        let settings = Settings {
            wait,
            ..Settings::default()
        };
        let event = event.parse().expect("an event");
        let events = UioEvents(fake.roots.clone());
        Some(events.event(&event, &settings)?.and_then(EventOpener::open))
    }

    #[test]
    fn each_row_is_one_interrupt_and_those_between_are_missed() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let fake = Fake::new();
            let mut node = fake.device(0, "card", u32::MAX - 1);
            let made = source(&fake, "uio:card", wait).expect("of this provider");
            let mut source = made.expect("a source");
            let clock = RunClock::new(Clock::Monotonic);
            let (waker, mut wakeup) = wakeup().expect("a wake-up");
            // Forgotten: it came before the start.
            node.interrupt(u32::MAX);
            source.begin(&clock, 0).expect("to begin");
            assert_eq!(node.written(), 1, "enabled before the first wait");
            let wrapped = u64::from(u32::MAX) + 1;
            for (count, missed, total) in [(0, 0, wrapped), (3, 2, wrapped + 3)] {
                node.interrupt(count);
                let Ok(WaitOutcome::Trigger(trigger)) = source.wait(&clock, &mut wakeup) else {
                    panic!("no trigger");
                };
                assert_eq!((trigger.missed, trigger.count), (missed, total));
                assert_eq!(trigger.cause, Missed::Source);
                source.done().expect("to enable");
                assert_eq!(node.written(), 1, "enabled after the row");
            }
            waker.wake();
            assert_eq!(
                source.wait(&clock, &mut wakeup).ok(),
                Some(WaitOutcome::Wakeup)
            );
        }
    }

    #[test]
    fn the_bell_is_heard_before_an_interrupt_that_is_there() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let fake = Fake::new();
            let mut node = fake.device(0, "card", 0);
            let made = source(&fake, "uio:uio0", wait).expect("of this provider");
            let mut source = made.expect("a source");
            let clock = RunClock::new(Clock::Monotonic);
            let (waker, mut wakeup) = wakeup().expect("a wake-up");
            waker.wake();
            node.interrupt(2);
            assert_eq!(
                source.wait(&clock, &mut wakeup).ok(),
                Some(WaitOutcome::Wakeup)
            );
            assert_eq!(source.unserved(), (Missed::Source, 2));
            assert_eq!(source.unserved().1, 0, "told once");
        }
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_those_that_are() {
        let fake = Fake::new();
        for (number, name) in [(0, "card"), (1, "twin"), (2, "twin")] {
            fake.device(number, name, 0);
        }
        let message = |event| match source(&fake, event, WaitMode::Block) {
            Some(Err(error)) => error.to_string(),
            _ => panic!("{event} is refused"),
        };
        assert_eq!(
            message("uio:foo"),
            "event uio:foo: UIO device foo: no such device; there are card (uio0), twin (uio1), twin (uio2)"
        );
        assert!(message("uio:twin").contains("choose one: uio1, uio2"));
        assert!(source(&fake, "soft", WaitMode::Block).is_none());
        let mut catalogue = Catalogue::default();
        UioEvents(fake.roots.clone()).list(&mut catalogue);
        let names: Vec<&str> = catalogue.events.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["uio:card", "uio:uio1", "uio:uio2"]);
    }
}
