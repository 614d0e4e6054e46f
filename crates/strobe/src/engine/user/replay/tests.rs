// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording that was never made, with all that one can have.

use std::collections::VecDeque;
use std::time::Instant;

use strobe_ring::{RowShape, Snapshot};

use super::*;
use crate::block::Place;
use crate::channel::Type;
use crate::engine::user::registry::{self, Registry};
use crate::engine::user::{Lock, Settings};
use crate::info::End as RunEnd;
use crate::reader::RunReader;
use crate::run::{OwnedRun, Run};
use crate::samples::{channel, info};

/// Of two channels and an output, on an event that skips triggers.
const SHAPE: RowShape = RowShape {
    channels: 2,
    outputs: 1,
    skipped: true,
};

/// What a file would give.
struct Recording {
    info: RunInfo,
    blocks: VecDeque<Vec<[u64; 7]>>,
    totals: Option<Totals>,
}

impl RowSource for Recording {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, _: Duration) -> Result<Option<Block>, Error> {
        Ok(self.blocks.pop_front().map(|rows| {
            let words = Arc::new(rows.concat());
            let info = Arc::new(self.info.clone());
            Block::new(info, words, 0..rows.len(), (0, 0), &mut None::<Place>)
        }))
    }

    fn totals(&self) -> Option<Totals> {
        self.totals.clone()
    }
}

/// A row: its number, its trigger, ms after the start, status, values, skipped.
fn row(row: u64, trigger: u64, ms: u64, status: u64, values: [u64; 2], skipped: u64) -> [u64; 7] {
    let [a, b] = values;
    [row, trigger, START + ms * 1_000_000, status, a, b, skipped]
}

const START: u64 = 5_000_000;

/// Rows 0, 4, 5, 7 of 9 are lost; row 3 is late, channel 1 of row 6 failed, and an output in row 8, the first after a pause.
fn recording() -> Recording {
    let mut info = info(vec![
        channel("sim.counter", Type::U64),
        channel("adc.u", Type::S64),
    ]);
    (info.outputs, info.skips) = (vec!["sim.latch".into()], true);
    (info.limit, info.start.time) = (None, START);
    let blocks = [
        vec![
            row(1, 1, 10, 0, [1, 2], 0),
            row(2, 5, 50, 0, [3, u64::MAX], 2),
            row(3, 6, 60, 0b10, [5, 6], 2),
        ],
        vec![row(6, 12, 120, 0b10 << 32, [7, 0], 3)],
        vec![row(8, 14, 140, 0b100 << 32 | 1, [8, 9], 3)],
    ];
    Recording {
        info,
        blocks: blocks.into(),
        totals: Some(Totals {
            rows: 10,
            triggers: 20,
            skipped: 5,
            missed_by: [2, 1, 0, 2, 0, 0, 0, 0],
            lost: 5,
            // One of them in a row that is lost.
            errors: 3,
            end_time_ns: START + 200_000_000,
            end: RunEnd::Stopped,
        }),
    }
}

fn replay(source: Recording, options: ReplayOptions) -> Result<UserRun, Error> {
    let settings = Settings {
        lock: Lock::None,
        ..Settings::default()
    };
    User::new(settings).replay(Box::new(source), &options)
}

fn at(speed: Speed) -> ReplayOptions {
    ReplayOptions {
        speed,
        ..ReplayOptions::default()
    }
}

/// All rows that a reader gets.
fn read(reader: &mut RunReader) -> Vec<[u64; 7]> {
    let mut rows = Vec::new();
    while let Some(block) = reader.next(Duration::from_secs(5)).expect("rows") {
        let (chunks, rest) = block.words().as_chunks();
        assert!(rest.is_empty());
        rows.extend_from_slice(chunks);
    }
    rows
}

#[test]
fn rows_gaps_times_and_account_are_those_of_the_recording() {
    for speed in [Speed::Max, Speed::Times(100.0)] {
        let Recording {
            info,
            blocks,
            totals,
        } = recording();
        let totals = totals.expect("an account");
        let run = replay(recording(), at(speed)).expect("a run");
        let mut reader = run.reader().expect("a reader");
        assert_eq!(reader.info().shape(), SHAPE);
        run.start().expect("to start");
        assert_eq!(read(&mut reader), Vec::from(blocks).concat());
        let last: Snapshot = reader.snapshot();
        assert_eq!(last.start, info.start);
        let got = RowSource::totals(&reader).expect("an account");
        assert_eq!(got, totals, "{speed:?}");
        assert_eq!(
            RunInfo {
                engine: info.engine,
                run: info.run,
                capacity: info.capacity,
                set_up: Vec::new(),
                ..reader.info().clone()
            },
            info
        );
    }
}

#[test]
fn a_reader_of_another_program_takes_it_like_a_live_run() {
    let run = replay(recording(), at(Speed::Times(20.0))).expect("a run");
    let begun = Instant::now();
    let there = loop {
        match Registry::of_this_user().attach(run.info().run) {
            // On a busy machine, its owner may be late for once.
            Err(registry::Error::Silent { .. }) if begun.elapsed() < Duration::from_secs(60) => {}
            there => break there.expect("it is seen"),
        }
    };
    let mut reader = there.reader().expect("a reader");
    run.start().expect("to start");
    assert_eq!(read(&mut reader).len(), 5);
    assert_eq!(reader.ring().lost(), 5);
}

#[test]
fn rows_come_when_they_came_and_a_pause_holds_them() {
    // 2 s: the pause comes before the end on a slow machine, too.
    let run = replay(recording(), at(Speed::Times(0.1))).expect("a run");
    let mut reader = run.reader().expect("a reader");
    let begun = Instant::now();
    run.start().expect("to start");
    run.pause().expect("to pause");
    assert_eq!(run.state().ok(), Some(State::Paused));
    let held = reader.snapshot().head;
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(reader.snapshot().head, held, "paused");
    run.resume().expect("to go on");
    let rows = read(&mut reader);
    assert_eq!(rows.len(), 5);
    // Never early; how late, the machine decides.
    assert!(begun.elapsed() >= Duration::from_millis(2050));
}

#[test]
fn a_stop_ends_it_and_a_trigger_is_refused() {
    let run = replay(recording(), at(Speed::Times(0.001))).expect("a run");
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    assert!(run.trigger(1).is_err());
    run.stop().expect("to stop");
    assert!(read(&mut reader).is_empty());
    assert_eq!(reader.snapshot().state, State::Stopped);
}

#[test]
fn a_recording_that_was_cut_off_ends_as_one() {
    let cut = Recording {
        totals: None,
        ..recording()
    };
    let run = replay(cut, at(Speed::Max)).expect("a run");
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    assert_eq!(read(&mut reader).len(), 5);
    let last = reader.snapshot();
    assert_eq!(
        (last.state, last.error),
        (State::Failed, -Errno::PIPE.raw_os_error())
    );
    assert_eq!(last.triggers, last.head + last.missed() + last.skipped);
}

#[test]
fn numbers_that_contradict_each_other_are_the_end_of_it() {
    let after = [
        ("a row goes back", row(2, 20, 150, 0, [0, 0], 3)),
        ("a trigger goes back", row(9, 13, 150, 0, [0, 0], 3)),
        (
            "a row without a trigger",
            row(u64::MAX - 1, 99, 150, 0, [0, 0], 3),
        ),
        ("what was skipped goes back", row(9, 20, 150, 0, [0, 0], 1)),
    ];
    for (what, row) in after {
        let mut damaged = recording();
        damaged.blocks.push_back(vec![row]);
        let run = replay(damaged, at(Speed::Max)).expect("a run");
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        assert_eq!(read(&mut reader).len(), 5, "{what}");
        let last = reader.snapshot();
        assert_eq!(
            (last.state, last.error),
            (State::Failed, -Errno::BADMSG.raw_os_error()),
            "{what}"
        );
        assert_eq!(last.triggers, last.head + last.missed() + last.skipped);
    }
}

#[test]
fn an_account_that_contradicts_the_rows_is_the_end_of_it() {
    for (rows, triggers) in [(3, 20), (10, 9), (u64::MAX, 20)] {
        let mut damaged = recording();
        let totals = damaged.totals.as_mut().expect("an account");
        (totals.rows, totals.triggers) = (rows, triggers);
        let options = ReplayOptions {
            ring: Some(16),
            ..at(Speed::Max)
        };
        let run = replay(damaged, options).expect("a run");
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        assert_eq!(read(&mut reader).len(), 5);
        assert_eq!(reader.snapshot().error, -Errno::BADMSG.raw_os_error());
    }
}

#[test]
fn a_stop_ends_a_gap_that_would_take_for_ever() {
    let mut endless = recording();
    let totals = endless.totals.as_mut().expect("an account");
    (totals.rows, totals.triggers) = (u64::MAX / 2, u64::MAX / 2 + 20);
    let options = ReplayOptions {
        ring: Some(2),
        ..at(Speed::Max)
    };
    let run = replay(endless, options).expect("a run");
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    while reader.snapshot().head < 10 {
        std::thread::yield_now();
    }
    run.stop().expect("to stop");
    assert_eq!(reader.snapshot().state, State::Stopped);
}

#[test]
fn a_recording_that_joined_an_old_run_begins_with_its_first_row() {
    let day = 86_400_000_000_000;
    let mut late = recording();
    late.info.start.time = 0;
    for row in late.blocks.iter_mut().flatten() {
        row[2] += day;
    }
    let totals = late.totals.as_mut().expect("an account");
    totals.end_time_ns += day;
    let run = replay(late, at(Speed::Times(10.0))).expect("a run");
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    assert_eq!(read(&mut reader).len(), 5);
}
