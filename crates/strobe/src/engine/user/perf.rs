// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters of the thread that makes the rows: what a row costs, and what disturbed it.
//! One read of a file descriptor each; what the machine does not count is not in the catalogue.

use std::io;

use strobe_hw::perf::{Counter as OpenCounter, HARDWARE, SOFTWARE};

use super::provider::{ChannelOpener, Provider, ReadChannel, Row};
use crate::catalogue::{Catalogue, Device};
use crate::channel::{Channel, Class};
use crate::error::Error;

/// Name, kind, number, unit, description.
const COUNTERS: [(&str, u32, u64, &str, &str); 8] = [
    ("perf.cycles", HARDWARE, 0, "", "cycles of the processor"),
    ("perf.instructions", HARDWARE, 1, "", "instructions"),
    (
        "perf.cache_misses",
        HARDWARE,
        3,
        "",
        "misses of the last-level cache",
    ),
    (
        "perf.branch_misses",
        HARDWARE,
        5,
        "",
        "mispredicted branches",
    ),
    ("perf.task_clock", SOFTWARE, 1, "ns", "time on a processor"),
    ("perf.page_faults", SOFTWARE, 2, "", "page faults"),
    (
        "perf.context_switches",
        SOFTWARE,
        3,
        "",
        "switches to another thread",
    ),
    (
        "perf.migrations",
        SOFTWARE,
        4,
        "",
        "moves to another processor",
    ),
];

/// Provides `perf.*`, as far as this machine counts it.
pub struct Perf;

impl Provider for Perf {
    fn list(&self, catalogue: &mut Catalogue) {
        let there = COUNTERS
            .iter()
            .filter(|(_, kind, number, ..)| OpenCounter::open(*kind, *number).is_ok());
        let channels: Vec<Channel> = there
            .map(|(name, _, _, unit, text)| about(name, unit, text))
            .collect();
        if !channels.is_empty() {
            catalogue.devices.push(Device {
                name: "perf".to_owned(),
                description: "counters of the thread that makes the rows".to_owned(),
                in_use: false,
            });
        }
        catalogue.channels.extend(channels);
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let known = COUNTERS.iter().find(|(known, ..)| *known == name)?;
        let (name, kind, number, unit, text) = *known;
        // Whether it can be counted is seen here; the thread opens its own.
        Some(match OpenCounter::open(kind, number) {
            Ok(_) => {
                let counter = Counter {
                    kind,
                    number,
                    open: None,
                };
                let about = about(name, unit, text);
                Ok(ChannelOpener::ready(about, Box::new(counter)))
            }
            Err(error) => Err(Error::Unusable {
                what: "channel",
                name: name.to_owned(),
                why: match error.kind() {
                    io::ErrorKind::PermissionDenied => format!(
                        "{error}; as root: sysctl kernel.perf_event_paranoid=2, or give the program CAP_PERFMON"
                    ),
                    io::ErrorKind::NotFound => {
                        "this machine cannot count that; `strobe list` shows what it can".to_owned()
                    }
                    _ => error.to_string(),
                },
            }),
        })
    }
}

fn about(name: &str, unit: &str, description: &str) -> Channel {
    Channel {
        class: Class::Sleep,
        ..Channel::plain(name, description, unit, 500)
    }
}

/// A counter, opened by the thread that it counts.
struct Counter {
    kind: u32,
    number: u64,
    open: Option<OpenCounter>,
}

impl ReadChannel for Counter {
    fn begin(&mut self) -> io::Result<()> {
        self.open = Some(OpenCounter::open(self.kind, self.number)?);
        Ok(())
    }

    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let open = self.open.as_ref().ok_or(io::ErrorKind::NotFound)?;
        open.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::user::trigger::Trigger;

    #[test]
    fn a_counter_counts_its_own_thread_and_what_cannot_be_counted_says_so() {
        let row = Row {
            time: 0,
            start: 0,
            trigger: Trigger::PLAIN,
        };
        let mut counted = 0;
        for (name, ..) in COUNTERS {
            match Perf.channel(name).expect("a counter") {
                Ok(found) => {
                    let mut reader = found.open().expect(name);
                    reader.begin().expect(name);
                    let before = reader.read(&row).expect(name);
                    let pages = vec![1_u8; 4 << 20];
                    std::hint::black_box(&pages);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    let after = reader.read(&row).expect(name);
                    assert!(
                        after > before || name.ends_with("migrations"),
                        "{name}: {before} {after}"
                    );
                    counted += 1;
                }
                Err(error) => assert!(
                    error.to_string().starts_with(&format!("channel {name}: ")),
                    "{error}"
                ),
            }
        }
        let mut catalogue = Catalogue::default();
        Perf.list(&mut catalogue);
        assert_eq!(catalogue.channels.len(), counted);
        assert!(Perf.channel("perf.nothing").is_none());
    }
}
