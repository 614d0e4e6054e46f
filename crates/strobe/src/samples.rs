// SPDX-License-Identifier: MIT OR Apache-2.0
//! A channel, a run and its account, for tests.
#![allow(missing_docs)]

use std::time::Duration;

use strobe_ring::{Engine, StartTimes};

use crate::accounting::Accounting;
use crate::channel::{Channel, Class, Type};
use crate::engine::user::User;
use crate::figures::Figures;
use crate::info::{Clock, End, RunInfo, Totals};
use crate::note::{Note, State};
use crate::plan::{Plan, Step};
use crate::reader::RunReader;
use crate::run::{OwnedRun, Run};
use crate::source::RowSource;

pub fn channel(name: &str, kind: Type) -> Channel {
    Channel {
        name: name.to_owned(),
        description: format!("{name} of a test"),
        unit: "V".to_owned(),
        kind,
        class: Class::Hard,
        scale: 1.0,
        offset: 0.0,
        bits: 64,
        cost_ns: 10,
        in_use: false,
    }
}

pub fn info(channels: Vec<Channel>) -> RunInfo {
    RunInfo {
        engine: Engine::Kernel,
        kernel: "6.12.0".into(),
        event: "timer:10kHz".into(),
        run: 7,
        clock: Clock::Monotonic,
        period_ns: Some(100_000),
        capacity: 1024,
        limit: Some(5000),
        start: StartTimes {
            time: 1_000,
            realtime: 2_000,
            tai: 3_000,
            first_due: 1_500,
        },
        channels,
        outputs: Vec::new(),
        tunables: Vec::new(),
        skips: false,
        accounting: Accounting::Exact,
        set_up: Vec::new(),
        doctor: Vec::new(),
    }
}

/// A run with a channel of each type, an output, and triggers that are skipped.
pub fn every_type() -> RunInfo {
    let mut scaled = channel("adc.u", Type::S64);
    (scaled.scale, scaled.offset) = (0.25, -1.0);
    let mut run = info(vec![
        channel("sim.counter", Type::U64),
        scaled,
        channel("adc.f", Type::F64),
    ]);
    for channel in &mut run.channels {
        // Of the machine, not of the recording.
        channel.cost_ns = 0;
    }
    run.outputs = vec!["sim.latch".into()];
    run.skips = true;
    run.doctor.push(noted());
    run
}

/// Without what names a recording: a replay is a run of the user engine with a number, a ring and a set-up of its own, and how
/// the machine was is noted by who makes a run.
pub fn nameless(info: &RunInfo) -> RunInfo {
    RunInfo {
        engine: Engine::User,
        run: 0,
        capacity: 0,
        tunables: Vec::new(),
        set_up: Vec::new(),
        doctor: Vec::new(),
        ..info.clone()
    }
}

/// All that a recording has, but for what names it: what is known of the run, its account, and its rows.
pub fn all_of(mut recording: Box<dyn RowSource>) -> (RunInfo, Totals, Vec<u64>) {
    let mut words = Vec::new();
    while let Some(block) = recording.next(Duration::ZERO).expect("rows") {
        words.extend_from_slice(block.words());
    }
    let totals = recording.totals().expect("an account");
    (nameless(recording.info()), totals, words)
}

/// What a check may have found.
pub fn noted() -> Note {
    Note {
        check: "fifo".into(),
        state: State::Advice,
        evidence: "other; fifo:60 was refused (\"EPERM\")".into(),
    }
}

pub fn totals(rows: u64) -> Totals {
    Totals {
        rows,
        triggers: rows + 3,
        skipped: 0,
        missed_by: [1, 0, 2, 0, 0, 0, 0, 0],
        lost: 4,
        errors: 0,
        end_time_ns: 9_000,
        end: End::Complete,
    }
}

/// A run on software triggers, with this many rows.
pub fn watched_soft(channels: &[&str], rows: u32) -> (impl OwnedRun, RunReader, Figures) {
    let mut plan = Plan::new("soft".parse().expect("an event"));
    plan.ring = Some(64);
    plan.steps = channels
        .iter()
        .map(|name| Step::Read((*name).into()))
        .collect();
    let run = User::default().create(&plan).expect("a run");
    let reader = run.reader().expect("a reader");
    run.start().expect("a start");
    run.trigger(rows).expect("triggers");
    let figures = Figures::new("user:1".into(), run.info().clone());
    (run, reader, figures)
}
