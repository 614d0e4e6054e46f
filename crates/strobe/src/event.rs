// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events as they are written on the command line.

use std::fmt;
use std::str::FromStr;

use crate::quantity;

/// Which edges of a line raise the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// From low to high.
    Rising,
    /// From high to low.
    Falling,
    /// Every change.
    Both,
}

/// What a counter tells of, each at the number that the kernel gives it.
const OF_COUNTERS: [&str; 7] = [
    "overflow",
    "underflow",
    "overflow-underflow",
    "threshold",
    "index",
    "change-of-state",
    "capture",
];

/// A source of triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A timer on an absolute grid.
    Timer {
        /// Distance of its triggers.
        period_ns: u64,
    },
    /// Triggers by call.
    Soft,
    /// An event of a device, `device.event`.
    Device(String),
    /// An edge of a GPIO line.
    Gpio {
        /// Name or number of the chip.
        chip: String,
        /// Name or offset of the line.
        line: String,
        /// Which edges.
        edge: Edge,
    },
    /// An interrupt of a UIO device.
    Uio(String),
    /// A scan of the buffer of an IIO device.
    Iio(String),
    /// An event of a counter.
    Counter {
        /// Its name, or that of its directory.
        name: String,
        /// Which of its channels of events.
        channel: u8,
        /// Which event, by the kernel's number.
        what: u8,
    },
    /// What is added to an eventfd that this process has inherited.
    Eventfd(i32),
    /// Rows of another run.
    Run {
        /// Which: `3`, `user:3` or `kernel:3`.
        run: String,
        /// Every how many rows.
        every: u64,
    },
    /// The periodic interrupt of an HPET.
    Hpet {
        /// Distance of its triggers.
        period_ns: u64,
    },
}

/// An [`Event`] together with the text it was written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    text: String,
    event: Event,
}

/// Why a text is not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The period or frequency is wrong.
    #[error("event `{text}`: {source}")]
    Period {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        source: quantity::Error,
    },
    /// A timer or an HPET without its period.
    #[error("event `{0}`: add the rate or period, as in {0}:1kHz or {0}:250us")]
    NoPeriod(String),
    /// Nothing that looks like an event.
    #[error(
        "event `{0}`: unknown event; write timer:1kHz, device.event, gpio:CHIP/LINE:rising, \
         uio:NAME, iio:NAME, counter:NAME/CHANNEL:EVENT, hpet:64Hz, run:ID.row, eventfd:N or soft"
    )]
    Form(String),
    /// An event of a counter that is not complete.
    #[error(
        "event `{0}`: write counter:NAME/CHANNEL:EVENT, as in counter:encoder/0:index; an EVENT is overflow, underflow, \
         overflow-underflow, threshold, index, change-of-state or capture"
    )]
    Counter(String),
    /// Rows of a run, of which it is not said which.
    #[error(
        "event `{0}`: write run:ID.row, or run:ID.row:100 for every hundredth row; an ID is 3, user:3 or kernel:3, as `strobe \
         status` shows it"
    )]
    Run(String),
    /// A GPIO event that is not complete.
    #[error("event `{0}`: write gpio:CHIP/LINE:rising, :falling or :both")]
    Gpio(String),
}

impl EventSpec {
    /// A timer with this distance of its triggers.
    pub fn timer(period_ns: u64) -> EventSpec {
        EventSpec {
            text: format!("timer:{period_ns}ns"),
            event: Event::Timer { period_ns },
        }
    }

    /// An event of a device: `device.event`.
    pub fn device(name: &str) -> EventSpec {
        EventSpec {
            text: name.to_owned(),
            event: Event::Device(name.to_owned()),
        }
    }

    /// Triggers by call.
    pub fn soft() -> EventSpec {
        EventSpec {
            text: "soft".to_owned(),
            event: Event::Soft,
        }
    }

    /// What it is.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Distance of its triggers, if it has one.
    pub fn period_ns(&self) -> Option<u64> {
        match self.event {
            Event::Timer { period_ns } | Event::Hpet { period_ns } => Some(period_ns),
            _ => None,
        }
    }
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for EventSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let event = match text.split_once(':') {
            Some(("timer", period)) => Event::Timer {
                period_ns: period_of(text, period)?,
            },
            Some(("hpet", period)) => Event::Hpet {
                period_ns: period_of(text, period)?,
            },
            Some(("uio", name)) if !name.is_empty() => Event::Uio(name.to_owned()),
            Some(("iio", name)) if !name.is_empty() && !name.contains(['/', ':']) => {
                Event::Iio(name.to_owned())
            }
            Some(("counter", rest)) => counter(text, rest)?,
            Some(("run", rest)) => run(rest).ok_or_else(|| Error::Run(text.to_owned()))?,
            Some(("gpio", line)) => gpio(text, line)?,
            Some(("eventfd", fd)) => match fd.parse() {
                Ok(fd @ 0..) => Event::Eventfd(fd),
                _ => return Err(Error::Form(text.to_owned())),
            },
            Some(_) => return Err(Error::Form(text.to_owned())),
            None => match text {
                "soft" => Event::Soft,
                "timer" | "hpet" => return Err(Error::NoPeriod(text.to_owned())),
                "gpio" => return Err(Error::Gpio(text.to_owned())),
                _ if is_name(text) => Event::Device(text.to_owned()),
                _ => return Err(Error::Form(text.to_owned())),
            },
        };
        Ok(EventSpec {
            text: text.to_owned(),
            event,
        })
    }
}

fn period_of(text: &str, period: &str) -> Result<u64, Error> {
    quantity::period_ns(period).map_err(|source| Error::Period {
        text: text.to_owned(),
        source,
    })
}

/// `NAME/CHANNEL:EVENT`.
fn counter(text: &str, rest: &str) -> Result<Event, Error> {
    let wrong = || Error::Counter(text.to_owned());
    let (place, what) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let (name, channel) = place.rsplit_once('/').ok_or_else(wrong)?;
    let what = OF_COUNTERS.iter().position(|known| *known == what);
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(Event::Counter {
        name: name.to_owned(),
        channel: channel.parse().map_err(|_| wrong())?,
        // One of seven.
        what: what.ok_or_else(wrong)? as u8,
    })
}

/// `ID.row` or `ID.row:EVERY`.
fn run(rest: &str) -> Option<Event> {
    let (run, what) = rest.split_once('.')?;
    run_number(run)?;
    let every = match what.strip_prefix("row")? {
        "" => 1,
        every => every
            .strip_prefix(':')?
            .parse()
            .ok()
            .filter(|&every| every > 0)?,
    };
    Some(Event::Run {
        run: run.to_owned(),
        every,
    })
}

/// The engine, if it is said, and the number of a run as people name it: `3`, `user:3` or `kernel:3`.
pub(crate) fn run_number(text: &str) -> Option<(Option<&'static str>, u32)> {
    let (engine, number) = match text.split_once(':') {
        Some(("kernel", number)) => (Some("kernel"), number),
        Some(("user", number)) => (Some("user"), number),
        Some(_) => return None,
        None => (None, text),
    };
    Some((engine, number.parse().ok()?))
}

/// `CHIP/LINE:EDGE`. The chip may be a path, so the line is what follows the
/// last slash.
fn gpio(text: &str, rest: &str) -> Result<Event, Error> {
    let wrong = || Error::Gpio(text.to_owned());
    let (place, edge) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let (chip, line) = place.rsplit_once('/').ok_or_else(wrong)?;
    let edge = match edge {
        "rising" => Edge::Rising,
        "falling" => Edge::Falling,
        "both" => Edge::Both,
        _ => return Err(wrong()),
    };
    if chip.is_empty() || line.is_empty() {
        return Err(wrong());
    }
    Ok(Event::Gpio {
        chip: chip.to_owned(),
        line: line.to_owned(),
        edge,
    })
}

/// Whether a text has the form `device.part`.
pub(crate) fn is_name(text: &str) -> bool {
    let part = |p: &str| {
        !p.is_empty()
            && p.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    text.split_once('.')
        .is_some_and(|(device, name)| part(device) && part(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Result<Event, Error> {
        text.parse::<EventSpec>().map(|spec| spec.event)
    }

    #[test]
    fn every_form_of_an_event_is_understood() {
        assert_eq!(
            event("timer:1kHz"),
            Ok(Event::Timer {
                period_ns: 1_000_000
            })
        );
        assert_eq!(
            event("timer:250us"),
            Ok(Event::Timer { period_ns: 250_000 })
        );
        assert_eq!(event("soft"), Ok(Event::Soft));
        assert_eq!(event("sim.pulse"), Ok(Event::Device("sim.pulse".into())));
        assert_eq!(event("eventfd:3"), Ok(Event::Eventfd(3)));
        assert_eq!(event("uio:edu"), Ok(Event::Uio("edu".into())));
        assert_eq!(event("iio:adc"), Ok(Event::Iio("adc".into())));
        let index = Event::Counter {
            name: "encoder".into(),
            channel: 1,
            what: 4,
        };
        assert_eq!(event("counter:encoder/1:index"), Ok(index));
        assert_eq!(
            event("hpet:64Hz"),
            Ok(Event::Hpet {
                period_ns: 15_625_000
            })
        );
        let rows = |run: &str, every| Event::Run {
            run: run.into(),
            every,
        };
        assert_eq!(event("run:3.row"), Ok(rows("3", 1)));
        assert_eq!(event("run:user:3.row:100"), Ok(rows("user:3", 100)));
        let gpio = |chip: &str, line: &str, edge| Event::Gpio {
            chip: chip.into(),
            line: line.into(),
            edge,
        };
        assert_eq!(
            event("gpio:gpiochip0/4:rising"),
            Ok(gpio("gpiochip0", "4", Edge::Rising))
        );
        assert_eq!(
            event("gpio:/dev/gpiochip1/reset:both"),
            Ok(gpio("/dev/gpiochip1", "reset", Edge::Both))
        );
    }

    #[test]
    fn an_event_is_shown_as_it_was_written() {
        for text in ["timer:10kHz", "timer:100us", "sim.pulse", "soft"] {
            assert_eq!(
                text.parse::<EventSpec>().map(|e| e.to_string()),
                Ok(text.into())
            );
        }
    }

    #[test]
    fn what_is_not_an_event_is_refused_with_the_remedy() {
        assert_eq!(event("timer"), Err(Error::NoPeriod("timer".into())));
        assert!(matches!(event("timer:fast"), Err(Error::Period { .. })));
        for text in [
            "run",
            "run:3",
            "run:.row",
            "run:x.row",
            "run:lab:3.row",
            "run:-1.row",
            "run:3.rows",
            "run:3.row:",
            "run:3.row:0",
            "run:3.row:-1",
            "run:3.time",
        ] {
            let told = event(text).expect_err(text).to_string();
            let said = if text == "run" {
                "run:ID.row"
            } else {
                "every hundredth"
            };
            assert!(told.contains(said), "{text}: {told}");
        }
        for text in [
            "",
            "pulse",
            "sim.",
            ".pulse",
            "sim.a b",
            "uio:",
            "iio:",
            "iio:adc/in_voltage0",
            "eventfd:",
            "eventfd:-1",
            "clock:1s",
            "a.b.c",
        ] {
            assert_eq!(event(text), Err(Error::Form(text.into())), "{text}");
        }
        for text in [
            "counter:",
            "counter:encoder",
            "counter:encoder/0",
            "counter:encoder/0:turn",
            "counter:encoder/256:index",
            "counter:/0:index",
        ] {
            assert_eq!(event(text), Err(Error::Counter(text.into())), "{text}");
        }
        for text in [
            "gpio:chip:rising",
            "gpio:chip/1",
            "gpio:/1:rising",
            "gpio:c/1:up",
            "gpio",
        ] {
            assert_eq!(event(text), Err(Error::Gpio(text.into())), "{text}");
        }
    }
}
