// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pause and resume.

use std::thread;
use std::time::Duration;

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, until_rows};
use strobe_cases::{Engine, Pace, plan};
use strobe_ring::{Missed, Snapshot, State};

const PERIOD: u64 = 1_000_000;

/// What may stand between a pause and the first row after it: nothing, unless
/// the engine had to spare the machine.
fn throttled(snapshot: &Snapshot) -> u64 {
    snapshot.missed_by[Missed::Throttled as usize]
}

/// With a ring that holds all its rows, for they are read at the end.
fn long(event: &str, channel: &str) -> Plan {
    Plan {
        ring: Some(1 << 16),
        ..plan(event, &[channel])
    }
}

pub fn while_paused_triggers_are_not_counted<E: Engine>(engine: &E) {
    for event in ["timer:1ms", "sim.pulse"] {
        let run = engine.run(&long(event, "sim.counter"));
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        until_rows(&reader, 5);
        run.pause().expect("to pause");
        let paused = reader.snapshot();
        assert_eq!(paused.state, State::Paused);
        assert_eq!(
            paused.triggers,
            paused.head + paused.missed(),
            "{event} {paused:?}"
        );
        thread::sleep(Duration::from_millis(50));
        assert_eq!(reader.snapshot(), paused, "{event}");

        run.resume().expect("to resume");
        until_rows(&reader, paused.head + 5);
        assert_eq!(reader.snapshot().state, State::Running);
        run.stop().expect("to stop");
        let account = read_to_end(&mut reader, Pace::FAST);
        let first = &account.rows[paused.head as usize];
        let between = first.trigger - paused.triggers;
        let spared = throttled(&reader.snapshot()) - throttled(&paused);
        assert!(
            between <= spared,
            "{event}: {between} triggers of the pause, {paused:?}"
        );
    }
}

pub fn the_first_row_after_a_pause_says_so_and_no_other<E: Engine>(engine: &E) {
    let run = engine.run(&plan("soft", &["sim.counter"]));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(3).expect("to trigger");
    for _ in 0..3 {
        run.pause().expect("to pause");
        run.resume().expect("to resume");
        run.trigger(4).expect("to trigger");
    }
    // Two pauses between two rows are one.
    run.pause().expect("to pause");
    run.resume().expect("to resume");
    run.pause().expect("to pause");
    run.resume().expect("to resume");
    run.trigger(2).expect("to trigger");
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    let resumed = account.rows.iter().filter(|row| row.status.resumed());
    let resumed: Vec<u64> = resumed.map(|row| row.row).collect();
    assert_eq!(resumed, [3, 7, 11, 15]);
    assert!(
        account.rows.iter().all(|row| row.trigger == row.row),
        "a pause is no trigger"
    );
}

pub fn the_grid_keeps_its_phase_over_a_pause<E: Engine>(engine: &E) {
    let run = engine.run(&long("timer:1ms", "clock.late"));
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    let mut heads = Vec::new();
    for pause_us in [300, 1700, 20_100] {
        until_rows(&reader, reader.snapshot().head + 3);
        run.pause().expect("to pause");
        heads.push(reader.snapshot().head as usize);
        thread::sleep(Duration::from_micros(pause_us));
        run.resume().expect("to resume");
    }
    until_rows(&reader, reader.snapshot().head + 3);
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    let first_due = reader.snapshot().start.first_due;
    // Grid points from the first one: each row lies on one of them.
    let points: Vec<u64> = account
        .rows
        .iter()
        .map(|row| {
            let after = row.time - row.values[0] - first_due;
            assert_eq!(after % PERIOD, 0, "{row:?} is off the grid");
            after / PERIOD
        })
        .collect();
    let resumed: Vec<usize> = (0..points.len())
        .filter(|i| account.rows[*i].status.resumed())
        .collect();
    assert_eq!(resumed, heads);
    for i in 1..points.len() {
        let passed = points[i] - points[i - 1];
        let triggers = account.rows[i].trigger - account.rows[i - 1].trigger;
        if resumed.contains(&i) {
            assert!(passed >= triggers, "row {i}");
        } else {
            assert_eq!(passed, triggers, "row {i}");
        }
    }
    let long = resumed[2];
    let [paused, triggers] = [
        points[long] - points[long - 1],
        account.rows[long].trigger - account.rows[long - 1].trigger,
    ];
    assert!(
        paused >= triggers + 18,
        "20 points of the pause, of which {triggers} are counted"
    );
}
