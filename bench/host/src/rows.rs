// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the user engine can make rows: spinning on an event that has always happened, ten mapped words a
//! row, each row stamped, and all of them read and checked by another process.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use strobe::catalogue::Catalogue;
use strobe::channel::{Channel, Class, Type};
use strobe::clock::RunClock;
use strobe::engine;
use strobe::engine::user::provider::{ChannelOpener, EventOpener, Provider, ReadChannel, Row};
use strobe::engine::user::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::event::EventSpec;
use strobe::map::Register;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe::wakeup::Wakeup;

use crate::consumer::Consumer;
use crate::words::{CHANNELS, Memory, RING_ROWS, values};

/// What was measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figure {
    /// Nanoseconds a row, of each round: from the run's start to its end.
    pub ns: Vec<f64>,
    /// Rows that the other process lost, for it was too slow.
    pub lost: u64,
    /// Rows of all rounds.
    pub rows: u64,
    /// Page faults of the engine's thread while it made them.
    pub faults: u64,
}

/// All rounds so far.
#[derive(Default)]
pub struct Measurement(Figure);

impl Measurement {
    /// Makes this many rows.
    pub fn round(&mut self, rows: u64, from: usize, to: usize) -> Result<(), Box<dyn Error>> {
        let memory = Memory::new()?;
        for (index, value) in values(0).into_iter().enumerate() {
            memory.word(index)?.write(value);
        }
        let mut plan = Plan::new("bench.always".parse()?);
        plan.steps = (0..CHANNELS)
            .map(|word| Step::Read(format!("bench.word{word}")))
            .collect();
        (plan.ring, plan.limit) = (Some(RING_ROWS), Some(rows));
        plan.priority = Some(50);
        let settings = Settings {
            wait: WaitMode::Spin,
            cpu: Some(from),
            ..Settings::default()
        };
        let engine = User::new(settings).with(Arc::new(Words(memory)));
        let run = engine.create(&plan)?;
        let consumer = Consumer::of_ring(run.ring(), to, 0)?;
        let reader = run.reader()?;
        run.start()?;
        while !reader.snapshot().state.is_final() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let end = reader.snapshot();
        let received = consumer.end()?;
        if received.rows + received.lost != rows || end.head != rows || end.missed() != 0 {
            return Err(format!("of {rows} rows {received:?}, {end:?}").into());
        }
        let usage = run.usage().unwrap_or_default();
        self.0
            .ns
            .push((end.end_time - end.start.time) as f64 / rows as f64);
        self.0.lost += received.lost;
        self.0.rows += rows;
        self.0.faults += usage.minor_faults + usage.major_faults;
        Ok(())
    }

    pub fn figure(self) -> Figure {
        self.0
    }
}

/// An event that has always happened, and ten words of memory.
struct Words(Memory);

impl Provider for Words {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, engine::Error>> {
        let index: usize = name.strip_prefix("bench.word")?.parse().ok()?;
        let about = Channel {
            name: name.to_owned(),
            description: String::new(),
            unit: String::new(),
            kind: Type::U64,
            class: Class::Hard,
            scale: 1.0,
            offset: 0.0,
            bits: 64,
            cost_ns: 1,
            in_use: false,
        };
        let register = self.0.word(index).ok()?;
        let reader = Box::new(Word(register));
        Some(Ok(ChannelOpener::ready(about, reader)))
    }

    fn event(
        &self,
        event: &EventSpec,
        _: &Settings,
    ) -> Option<Result<EventOpener<'_>, engine::Error>> {
        let found = || Ok(EventOpener::ready(Cadence::default(), Box::new(Always)));
        (event.to_string() == "bench.always").then(found)
    }
}

struct Word(Register);

impl ReadChannel for Word {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(self.0.read())
    }
}

struct Always;

impl EventSource for Always {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        Ok(match wakeup.is_pending() {
            true => WaitOutcome::Wakeup,
            false => WaitOutcome::Trigger(Trigger::PLAIN),
        })
    }
}
