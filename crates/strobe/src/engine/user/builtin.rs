// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels that every run has: `clock`, `cpu`, and `event`, what the source says of the trigger.

use std::io;

use strobe_hw::cycles;

use super::provider::{ChannelOpener, Provider, ReadChannel, Row};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Device, Event};
use crate::channel::Channel;
use crate::clock::RunClock;
use crate::error::Error;

/// Provides `clock.*`, `cpu.*` and `event.*` to runs of one clock.
pub struct Builtin(pub RunClock);

/// Name, unit, rough cost, description.
const CHANNELS: [(&str, &str, u32, &str); 8] = [
    ("clock.time", "ns", 25, "the run's clock, read again"),
    (
        "clock.elapsed",
        "ns",
        1,
        "from the start of the run to the stamp of the row",
    ),
    (
        "clock.late",
        "ns",
        1,
        "from when the trigger was due to the stamp of the row",
    ),
    (
        "clock.waited",
        "ns",
        1,
        "from the stamp of the row to its first step; 0, because one thread does both",
    ),
    ("cpu.id", "", 10, "the processor that made the row"),
    ("cpu.cycles", "", 10, "cycle counter of that processor"),
    (
        "event.time",
        "ns",
        1,
        "when the trigger happened, as its source reports; 0 if it does not",
    ),
    (
        "event.count",
        "",
        1,
        "the source's own count of triggers; 0 if it has none",
    ),
];

fn about((name, unit, cost_ns, description): (&str, &str, u32, &str)) -> Channel {
    Channel::plain(name, description, unit, cost_ns)
}

impl Provider for Builtin {
    fn list(&self, catalogue: &mut Catalogue) {
        let devices = [
            ("clock", "clocks of the run"),
            ("cpu", "the processor"),
            ("event", "what the event's source reports about a trigger"),
        ];
        catalogue
            .devices
            .extend(devices.map(|(name, description)| Device {
                name: name.to_owned(),
                description: description.to_owned(),
                in_use: false,
            }));
        catalogue.channels.extend(CHANNELS.map(about));
        let events = [
            ("timer", "absolute timer", true),
            (
                "soft",
                "triggers by call, or by lines on standard input",
                false,
            ),
        ];
        catalogue
            .events
            .extend(events.map(|(name, description, periodic)| Event {
                name: name.to_owned(),
                description: description.to_owned(),
                periodic,
                accounting: Accounting::Exact,
                in_use: false,
            }));
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let known = CHANNELS.into_iter().find(|(known, ..)| *known == name)?;
        let clock = self.0;
        let reader: Box<dyn ReadChannel> = match name {
            "clock.time" => Box::new(Value(move |_: &Row| clock.now())),
            "clock.elapsed" => Box::new(Value(|row: &Row| row.time.wrapping_sub(row.start))),
            "clock.late" => Box::new(Value(|row: &Row| {
                row.time.saturating_sub(row.trigger.due.unwrap_or(row.time))
            })),
            "clock.waited" => Box::new(Value(|_: &Row| 0)),
            "cpu.id" => Box::new(Value(|_: &Row| rustix::thread::sched_getcpu() as u64)),
            "cpu.cycles" => match cycles::read() {
                Some(_) => Box::new(Value(|_: &Row| cycles::read().unwrap_or(0))),
                None => {
                    return Some(Err(Error::Unusable {
                        what: "channel",
                        name: name.to_owned(),
                        why: "programs cannot read this processor's cycle counter; use clock.time, or the kernel \
                        engine".to_owned(),
                    }))
                }
            },
            "event.time" => Box::new(Value(|row: &Row| row.trigger.time)),
            _ => Box::new(Value(|row: &Row| row.trigger.count)),
        };
        let about = about(known);
        Some(Ok(ChannelOpener::ready(about, reader)))
    }
}

/// A channel that cannot fail.
struct Value<F>(F);

impl<F: FnMut(&Row) -> u64 + Send> ReadChannel for Value<F> {
    fn read(&mut self, row: &Row) -> io::Result<u64> {
        Ok((self.0)(row))
    }
}
