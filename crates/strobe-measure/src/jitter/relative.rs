// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loop as it should not be: it sleeps for a period after each row. It never holds a rate, for what it does and what
//! the sleep takes beyond its time is added to each period.

use std::io;

use strobe::catalogue::Catalogue;
use strobe::clock::{RunClock, monotonic};
use strobe::engine::Error;
use strobe::engine::user::Settings;
use strobe::engine::user::provider::{FoundEvent, Provider};
use strobe::engine::user::trigger::{Cadence, EventSource, Trigger, Woken};
use strobe::event::EventSpec;
use strobe_hw::bell::Bell;

/// Has such an event, with this period in ns.
pub struct Relative(pub u64);

impl Relative {
    /// Its name.
    pub const EVENT: &str = "loop.relative";
}

impl Provider for Relative {
    fn list(&self, _: &mut Catalogue) {}

    fn event(&self, event: &EventSpec, _: &Settings) -> Option<Result<FoundEvent<'_>, Error>> {
        let source = Box::new(Sleep(self.0));
        let found = || Ok(FoundEvent::ready(Cadence::default(), source));
        (event.to_string() == Self::EVENT).then(found)
    }
}

struct Sleep(u64);

impl EventSource for Sleep {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, bell: &mut Bell) -> io::Result<Woken> {
        let end = monotonic() + self.0;
        while !bell.rang() && monotonic() < end {
            bell.sleep_until(Some(end))?;
        }
        Ok(match bell.rang() {
            true => Woken::Bell,
            false => Woken::Trigger(Trigger::PLAIN),
        })
    }
}
