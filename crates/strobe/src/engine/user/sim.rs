// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator of the user engine: the same values as the kernel engine's. Each run has one of its own.

use std::f64::consts::TAU;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::provider::{
    ChannelOpener, EventOpener, OutputOpener, Provider, ReadChannel, Row, WriteOutput,
};
use super::settings::{Settings, WaitMode};
use super::timer::Timer;
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Device, Event as ListedEvent};
use crate::channel::{Channel, Class, Type};
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::{Event, EventSpec};

/// Period of `sim.pulse` and `sim.decimated`.
const PULSE_NS: u64 = 1_000_000;
/// One of so many pulses of `sim.decimated` makes a row.
const KEEP: u64 = 10;
const RAMP_LENGTH: u64 = 1000;
const SINE_LENGTH: u64 = 64;
const SINE_SCALE: f64 = 1.0 / 32767.0;

/// Provides `sim.*` to one run.
#[derive(Default)]
pub struct Sim {
    counter: Arc<AtomicU64>,
    ramp: Arc<AtomicU64>,
    sine: Arc<AtomicU64>,
    noise: Arc<AtomicU64>,
    latch: Arc<AtomicU64>,
    slow: Arc<AtomicU64>,
    later: Arc<AtomicU64>,
    next: Arc<AtomicU64>,
}

/// How long `sim.slow` sleeps, and how long the value of `sim.async` takes. The thread waits for both.
const SLOW_NS: u64 = 50_000;
const ASYNC_NS: u64 = 20_000;

const NAMES: [&str; 8] = [
    "sim.counter",
    "sim.ramp",
    "sim.sine",
    "sim.noise",
    "sim.latch",
    "sim.slow",
    "sim.async",
    "sim.next",
];

fn about(name: &str) -> Channel {
    let (unit, kind, scale, bits, description) = match name {
        "sim.ramp" => ("V", Type::U64, 0.001, 10, "sawtooth, 1000 reads a period"),
        "sim.sine" => ("V", Type::S64, SINE_SCALE, 16, "sine, 64 reads a period"),
        "sim.noise" => ("V", Type::S64, SINE_SCALE, 16, "seeded white noise"),
        "sim.latch" => (
            "",
            Type::U64,
            1.0,
            64,
            "what was last written to the output latch",
        ),
        "sim.slow" => (
            "",
            Type::U64,
            1.0,
            64,
            "one more at each read, which sleeps",
        ),
        "sim.async" => (
            "",
            Type::U64,
            1.0,
            64,
            "one more at each read, arrives later",
        ),
        _ => ("", Type::U64, 1.0, 64, "one more at each read"),
    };
    let (class, cost_ns) = match name {
        "sim.slow" => (Class::Sleep, SLOW_NS as u32),
        "sim.async" => (Class::Async, ASYNC_NS as u32),
        "sim.next" => (Class::Async, 5),
        _ => (Class::Hard, 5),
    };
    Channel {
        name: name.to_owned(),
        description: description.to_owned(),
        unit: unit.to_owned(),
        kind,
        class,
        scale,
        offset: 0.0,
        bits,
        cost_ns,
        in_use: false,
    }
}

fn latch_output() -> Channel {
    Channel {
        description: "a word to keep".to_owned(),
        ..about("sim.latch")
    }
}

impl Provider for Sim {
    fn list(&self, catalogue: &mut Catalogue) {
        catalogue.devices.push(Device {
            name: "sim".to_owned(),
            description: "simulator, one for each run".to_owned(),
            in_use: false,
        });
        catalogue.channels.extend(NAMES.map(about));
        catalogue.outputs.push(latch_output());
        let events = [
            ("sim.pulse", "every millisecond"),
            ("sim.decimated", "every millisecond, each tenth makes a row"),
        ];
        catalogue
            .events
            .extend(events.map(|(name, description)| ListedEvent {
                name: name.to_owned(),
                description: description.to_owned(),
                periodic: false,
                accounting: Accounting::Exact,
                in_use: false,
            }));
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let (reads, value): (_, fn(u64) -> u64) = match name {
            "sim.counter" => (&self.counter, |n| n),
            "sim.ramp" => (&self.ramp, |n| n % RAMP_LENGTH),
            "sim.sine" => (&self.sine, sine),
            "sim.noise" => (&self.noise, noise),
            "sim.slow" => (&self.slow, |n| n),
            "sim.async" => (&self.later, |n| n),
            "sim.next" => (&self.next, |n| n),
            "sim.latch" => {
                let reader = Box::new(Latch(Arc::clone(&self.latch)));
                let about = about(name);
                return Some(Ok(ChannelOpener::ready(about, reader)));
            }
            _ => return None,
        };
        let takes_ns = match name {
            "sim.slow" => SLOW_NS,
            "sim.async" => ASYNC_NS,
            _ => 0,
        };
        let reader = Box::new(Wave {
            reads: Arc::clone(reads),
            value,
            takes_ns,
        });
        let about = about(name);
        Some(Ok(ChannelOpener::ready(about, reader)))
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        (name == "sim.latch").then(|| {
            let writer = Box::new(Latch(Arc::clone(&self.latch)));
            let about = latch_output();
            Ok(OutputOpener::ready(about, writer))
        })
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Device(name) = event.event() else {
            return None;
        };
        let pulse = Pulse::new(settings.wait);
        match name.as_str() {
            "sim.pulse" => Some(Ok(EventOpener::ready(PULSE, Box::new(pulse)))),
            "sim.decimated" => {
                let cadence = Cadence {
                    skips: true,
                    ..PULSE
                };
                let source = Box::new(Decimated::new(pulse));
                Some(Ok(EventOpener::ready(cadence, source)))
            }
            _ => None,
        }
    }
}

/// A function of the number of the read. Channels that are read twice in a row share the number.
struct Wave {
    /// Written by the thread of the run only.
    reads: Arc<AtomicU64>,
    value: fn(u64) -> u64,
    takes_ns: u64,
}

impl ReadChannel for Wave {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        if self.takes_ns > 0 {
            let takes = Duration::from_nanos(self.takes_ns);
            // Cut short it is as good: it stands for a device that may answer earlier.
            let _ = rustix::thread::nanosleep(&takes.try_into().map_err(|_| Errno::INVAL)?);
        }
        let number = self.reads.load(Ordering::Relaxed);
        self.reads.store(number + 1, Ordering::Relaxed);
        Ok((self.value)(number))
    }
}

/// A word that an output writes and a channel reads.
struct Latch(Arc<AtomicU64>);

impl ReadChannel for Latch {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

impl WriteOutput for Latch {
    fn write(&mut self, word: u64) -> io::Result<()> {
        self.0.store(word, Ordering::Relaxed);
        Ok(())
    }
}

fn sine(number: u64) -> u64 {
    let turn = (number % SINE_LENGTH) as f64 / SINE_LENGTH as f64;
    (32767.0 * (TAU * turn).sin()).round() as i64 as u64
}

/// A hash of the number of the read, as the contract has it for seed 1.
fn noise(number: u64) -> u64 {
    let mut x = (number + 1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(1);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    i64::from((x >> 48) as u16 as i16) as u64
}

/// Pulses on a grid, but not a timer: the run does not know their period.
struct Pulse(Timer);

/// It has no period in the ring, as an event of a device.
const PULSE: Cadence = Cadence {
    period_ns: None,
    has_due: true,
    skips: false,
    accounting: Accounting::Exact,
};

impl Pulse {
    fn new(wait: WaitMode) -> Self {
        Pulse(Timer::new(PULSE_NS, wait))
    }
}

impl EventSource for Pulse {
    fn begin(&mut self, clock: &RunClock, now: u64) -> io::Result<Option<u64>> {
        self.0.begin(clock, now).map(|_| None)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        Ok(match self.0.wait(clock, wakeup)? {
            WaitOutcome::Trigger(trigger) => WaitOutcome::Trigger(Trigger {
                cause: Missed::Source,
                time: trigger.due.unwrap_or(0),
                ..trigger
            }),
            woken => woken,
        })
    }

    fn unserved(&mut self) -> (Missed, u64) {
        (Missed::Source, self.0.unserved().1)
    }
}

/// Pulses of which each tenth makes a row; the others are left out on purpose. A source behind a gate does the same.
/// Pulses that did not come are missed, and are not among the ten.
struct Decimated {
    pulse: Pulse,
    /// Since the last row: pulses that were left out, and those that did not come.
    skipped: u64,
    missed: u64,
}

impl Decimated {
    fn new(pulse: Pulse) -> Self {
        Decimated {
            pulse,
            skipped: 0,
            missed: 0,
        }
    }
}

impl EventSource for Decimated {
    fn begin(&mut self, clock: &RunClock, now: u64) -> io::Result<Option<u64>> {
        (self.skipped, self.missed) = (0, 0);
        self.pulse.begin(clock, now)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        loop {
            let WaitOutcome::Trigger(trigger) = self.pulse.wait(clock, wakeup)? else {
                return Ok(WaitOutcome::Wakeup);
            };
            self.missed += trigger.missed;
            if self.skipped + 1 == KEEP {
                return Ok(WaitOutcome::Trigger(Trigger {
                    missed: std::mem::take(&mut self.missed),
                    skipped: std::mem::take(&mut self.skipped),
                    ..trigger
                }));
            }
            self.skipped += 1;
        }
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let (cause, passed) = self.pulse.unserved();
        (cause, std::mem::take(&mut self.missed) + passed)
    }

    fn unserved_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    fn end(&mut self) {
        self.pulse.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Clock;
    use strobe_hw::wakeup::wakeup;

    #[test]
    fn each_tenth_pulse_makes_a_row_and_the_others_are_skipped_whatever_is_missed() {
        let clock = RunClock::new(Clock::Monotonic);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut source = Decimated::new(Pulse::new(WaitMode::Block));
        source.begin(&clock, clock.now()).expect("to begin");
        let mut missed = 0;
        for row in 0..6 {
            let woken = source.wait(&clock, &mut wakeup).expect("to wait");
            let WaitOutcome::Trigger(trigger) = woken else {
                panic!("nobody rang");
            };
            assert_eq!(trigger.skipped, 9, "row {row}");
            missed += trigger.missed;
            if row == 3 {
                // The thread is held up for longer than a row takes.
                std::thread::sleep(Duration::from_millis(25));
            }
        }
        assert!(missed >= 23, "{missed}");
        assert_eq!(source.unserved(), (Missed::Source, 0));
        assert_eq!(source.unserved_skipped(), 0);
    }
}
