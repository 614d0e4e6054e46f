// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loop as it should not be: it sleeps for a period after each row. It never holds a rate, for what it does and what
//! the sleep takes beyond its time is added to each period.

use std::io;

use strobe::catalogue::Catalogue;
use strobe::clock::{RunClock, monotonic};
use strobe::engine::Error;
use strobe::engine::user::Settings;
use strobe::engine::user::provider::{EventOpener, Provider};
use strobe::engine::user::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use strobe::event::EventSpec;
use strobe_hw::wakeup::Wakeup;

/// Has such an event, with this period in ns.
pub struct Relative(pub u64);

impl Relative {
    /// Its name.
    pub const EVENT: &str = "loop.relative";
}

impl Provider for Relative {
    fn list(&self, _: &mut Catalogue) {}

    fn event(&self, event: &EventSpec, _: &Settings) -> Option<Result<EventOpener<'_>, Error>> {
        let source = Box::new(Sleep(self.0));
        let found = || Ok(EventOpener::ready(Cadence::default(), source));
        (event.to_string() == Self::EVENT).then(found)
    }
}

struct Sleep(u64);

impl EventSource for Sleep {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        let end = monotonic() + self.0;
        while !wakeup.is_pending() && monotonic() < end {
            wakeup.sleep_until(Some(end))?;
        }
        Ok(match wakeup.is_pending() {
            true => WaitOutcome::Wakeup,
            false => WaitOutcome::Trigger(Trigger::PLAIN),
        })
    }
}
