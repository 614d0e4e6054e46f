// SPDX-License-Identifier: MIT OR Apache-2.0
//! From creation to the end.

use std::thread::{self, available_parallelism};
use std::time::Duration;

use rustix::io::Errno;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until, until_rows};
use strobe_cases::machine::Counting;
use strobe_cases::rounds::rounds;
use strobe_cases::{Engine, Pace, errno, plan};
use strobe_ring::{Snapshot, StartTimes, State};

const EPIPE: i32 = Errno::PIPE.raw_os_error();

pub fn a_run_waits_for_its_start<E: Engine>(engine: &E) {
    let run = engine.run(&plan("timer:1ms", &["sim.counter"]));
    let (mut reader, mut account) = begin(&run);
    thread::sleep(Duration::from_millis(20));
    read_now(&mut reader, &mut account);
    assert!(account.rows.is_empty(), "{account:?}");
    let waiting = reader.snapshot();
    assert_eq!((waiting.state, waiting.triggers), (State::Ready, 0));
    assert_eq!(waiting.start, StartTimes::default());

    run.start().expect("to start");
    until_rows(&reader, 3);
    let running = reader.snapshot();
    assert_eq!((running.state, running.end_time), (State::Running, 0));
    assert_ne!(running.start.time, 0);
    assert_eq!(reader.ring().header().engine, E::KIND);
}

pub fn a_run_with_a_limit_makes_exactly_its_rows_and_is_done<E: Engine>(engine: &E) {
    for limit in [1, 2, 100] {
        let run = engine.run(&Plan {
            limit: Some(limit),
            ..plan("timer:1ms", &["sim.counter"])
        });
        let (account, end) = record(&run);
        assert_eq!((end.state, end.error, end.head), (State::Done, 0, limit));
        assert_eq!((account.rows.len() as u64, account.lost), (limit, 0));
        assert_eq!(account.rows[0].row, 0);
    }
    let run = engine.run(&Plan {
        limit: Some(100),
        ..plan("soft", &[])
    });
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    // What comes after the last row does not belong to the run any more.
    run.trigger(99).expect("to trigger");
    run.trigger(50).expect("to trigger");
    let end = reader.snapshot();
    assert_eq!((end.state, end.head, end.triggers), (State::Done, 100, 100));
}

/// A run on `soft` with five rows (none if it is only ready), and a reader.
fn run_in<E: Engine>(engine: &E, state: State) -> E::Run {
    let limit = (state == State::Done).then_some(5);
    let run = engine.run(&Plan {
        limit,
        ..plan("soft", &["sim.counter"])
    });
    if state == State::Ready {
        return run;
    }
    run.start().expect("to start");
    run.trigger(5).expect("to trigger");
    match state {
        State::Paused => run.pause().expect("to pause"),
        State::Stopped => run.stop().expect("to stop"),
        _ => {}
    }
    let reader = run.reader().expect("a reader");
    assert_eq!(reader.snapshot().state, state);
    run
}

fn snapshot(run: &impl OwnedRun) -> Snapshot {
    run.reader().expect("a reader").snapshot()
}

pub fn a_run_can_be_stopped_in_every_state<E: Engine>(engine: &E) {
    for state in [
        State::Ready,
        State::Running,
        State::Paused,
        State::Done,
        State::Stopped,
    ] {
        let run = run_in(engine, state);
        run.stop().expect("to stop");
        let end = snapshot(&run);
        let expected = if state == State::Done {
            State::Done
        } else {
            State::Stopped
        };
        assert_eq!(
            (end.state, end.error),
            (expected, 0),
            "stopped when {state}"
        );
        assert_eq!(end.triggers, if state == State::Ready { 0 } else { 5 });
        assert_ne!(end.end_time, 0, "stopped when {state}");
        run.stop().expect("to stop what has ended");
        assert_eq!(snapshot(&run), end, "stopped again after {state}");
    }
}

pub fn what_a_state_forbids_is_refused_and_changes_nothing<E: Engine>(engine: &E) {
    let (busy, already, ended) = (
        Some(Errno::BUSY),
        Some(Errno::ALREADY),
        Some(Errno::SHUTDOWN),
    );
    // What start, pause, resume and a trigger are answered; None: it would be done.
    let table = [
        (State::Ready, [None, busy, busy, busy]),
        (State::Running, [already, None, already, None]),
        (State::Paused, [busy, already, None, busy]),
        (State::Done, [ended; 4]),
        (State::Stopped, [ended; 4]),
    ];
    for (state, answers) in table {
        let run = run_in(engine, state);
        let before = snapshot(&run);
        for (what, answer) in answers.into_iter().enumerate().filter(|(_, a)| a.is_some()) {
            let got = match what {
                0 => run.start(),
                1 => run.pause(),
                2 => run.resume(),
                _ => run.trigger(1),
            };
            assert_eq!(errno(got), answer, "call {what} when {state}");
            assert_eq!(snapshot(&run), before, "call {what} when {state}");
        }
    }
    let timer = engine.run(&plan("timer:1s", &[]));
    timer.start().expect("to start");
    assert_eq!(
        errno(timer.trigger(1)),
        Some(Errno::OPNOTSUPP),
        "a timer is no soft event"
    );
}

pub fn a_run_whose_owner_goes_has_failed_and_keeps_its_rows<E: Engine>(engine: &E) {
    for state in [
        State::Ready,
        State::Running,
        State::Paused,
        State::Done,
        State::Stopped,
    ] {
        let run = run_in(engine, state);
        let mut reader = run.reader().expect("a reader");
        drop(run);
        let account = read_to_end(&mut reader, Pace::FAST);
        let rows = if state == State::Ready { 0 } else { 5 };
        assert_eq!(account.rows.len(), rows, "dropped when {state}");
        assert_eq!(account.lost, 0, "dropped when {state}");
        let end = reader.snapshot();
        if state.is_final() {
            assert_eq!((end.state, end.error), (state, 0));
        } else {
            assert_eq!(
                (end.state, end.error),
                (State::Failed, -EPIPE),
                "dropped when {state}"
            );
        }
    }
    let run = engine.run(&plan("timer:200us", &["clock.late"]));
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until_rows(&reader, 10);
    drop(run);
    let account = read_to_end(&mut reader, Pace::FAST);
    assert!(account.rows.len() >= 10);
    assert_eq!(reader.snapshot().error, -EPIPE);
}

pub fn many_runs_start_and_stop_under_load<E: Engine>(engine: &E) {
    let cpus = available_parallelism().expect("processors").get();
    let _load: Vec<_> = (0..cpus).map(Counting::on).collect();
    let other = engine.run(&plan("timer:500us", &["sim.counter"]));
    other.start().expect("to start");
    for cycle in 0..rounds(20, 60) as usize {
        let event = ["timer:50us", "sim.pulse", "soft", "timer:1ms"][cycle % 4];
        let run = engine.run(&Plan {
            ring: Some(64),
            ..plan(event, &["sim.ramp", "clock.elapsed"])
        });
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        if event == "soft" {
            run.trigger(3).expect("to trigger");
        } else if cycle % 20 < 4 {
            until("a row", || reader.snapshot().head > 0);
        }
        run.stop().expect("to stop");
        let account = read_to_end(&mut reader, Pace::FAST);
        assert_eq!(reader.snapshot().state, State::Stopped, "cycle {cycle}");
        if event == "soft" {
            assert_eq!(account.rows.len(), 3, "cycle {cycle}");
        }
        drop(run);
        assert_eq!(reader.snapshot().state, State::Stopped, "cycle {cycle}");
    }
    let mut reader = other.reader().expect("a reader");
    assert_eq!(reader.snapshot().state, State::Running);
    other.stop().expect("to stop");
    read_to_end(&mut reader, Pace::FAST);
}
