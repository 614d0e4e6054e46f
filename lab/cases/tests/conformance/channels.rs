// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels that every engine has.

use std::f64::consts::TAU;
use std::thread::{self, available_parallelism};
use std::time::Duration;

use strobe::channel::Class;
use strobe::info::Clock;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record};
use strobe_cases::{Account, Engine, Pace, plan};
use strobe_ring::Snapshot;

/// A short recording.
fn rows_of<E: Engine>(engine: &E, plan: &Plan) -> (Account, Snapshot) {
    record(&engine.run(plan))
}

/// Rows on `soft`, which are never missed.
fn soft<E: Engine>(engine: &E, rows: u32, channels: &[&str]) -> Account {
    let run = engine.run(&plan("soft", channels));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(rows).expect("to trigger");
    read_now(&mut reader, &mut account);
    assert_eq!(account.rows.len(), rows as usize);
    account
}

fn limited(event: &str, channels: &[&str]) -> Plan {
    Plan {
        limit: Some(50),
        ..plan(event, channels)
    }
}

pub fn a_row_without_channels_is_a_stamp<E: Engine>(engine: &E) {
    let (account, end) = rows_of(engine, &limited("timer:1ms", &[]));
    assert_eq!(account.rows.len(), 50);
    assert!(
        account
            .rows
            .iter()
            .all(|row| row.time >= end.start.first_due)
    );
}

pub fn elapsed_is_time_since_the_start<E: Engine>(engine: &E) {
    for clock in [Clock::Monotonic, Clock::Tai] {
        let plan = Plan {
            clock,
            ..limited("timer:1ms", &["clock.elapsed"])
        };
        let (account, end) = rows_of(engine, &plan);
        for row in &account.rows {
            assert_eq!(
                row.values[0],
                row.time - end.start.time,
                "{clock:?} {row:?}"
            );
        }
    }
}

pub fn time_read_again_is_not_before_the_stamp<E: Engine>(engine: &E) {
    for clock in [Clock::Monotonic, Clock::Tai] {
        let plan = Plan {
            clock,
            ..limited("timer:1ms", &["clock.time", "sim.ramp", "clock.time"])
        };
        let (account, end) = rows_of(engine, &plan);
        for row in &account.rows {
            assert!(row.values[0] >= row.time, "{clock:?} {row:?}");
            assert!(row.values[2] >= row.values[0], "{clock:?} {row:?}");
            // Clocks of a machine that knows the date are half a century apart.
            let spent = row.values[2] - row.time;
            assert!(
                spent < 600_000_000_000,
                "{clock:?}: not the same clock: {row:?}"
            );
        }
        assert!(
            account.rows.iter().any(|row| row.values[2] > row.time),
            "it is read again"
        );
        assert!(end.end_time >= account.rows[49].time);
    }
}

pub fn the_processor_is_one_of_this_machine<E: Engine>(engine: &E) {
    let cpus = available_parallelism().expect("processors").get() as u64;
    let (account, _) = rows_of(engine, &limited("timer:1ms", &["cpu.id", "cpu.cycles"]));
    assert!(account.column(0).all(|cpu| cpu < cpus), "{account:?}");
    let cycles: Vec<u64> = account.column(1).collect();
    assert!(
        cycles.windows(2).all(|w| w[0] < w[1]),
        "a counter of cycles goes up: {cycles:?}"
    );
}

pub fn a_run_on_atomic_time_has_its_times_on_it<E: Engine>(engine: &E) {
    let channels = ["clock.late", "clock.time"];
    let tai = Plan {
        clock: Clock::Tai,
        ..limited("timer:1ms", &channels)
    };
    let (account, end) = rows_of(engine, &tai);
    assert_eq!(end.start.time, end.start.tai);
    for row in &account.rows {
        let due = end.start.first_due + row.trigger * 1_000_000;
        assert_eq!(row.time - due, row.values[0], "{row:?}");
    }
    let (_, monotonic) = rows_of(engine, &limited("timer:1ms", &channels));
    // The clocks of a machine that knows the date are half a century apart.
    assert!(
        monotonic.start.tai - monotonic.start.time > 1 << 60,
        "{monotonic:?}"
    );
    let apart = end.start.tai.abs_diff(end.start.realtime);
    assert!(apart < 60_000_000_000, "whole leap seconds: {apart} ns");
    let passed = monotonic.start.tai - end.start.tai;
    assert!(
        passed < 600_000_000_000,
        "both runs have it from the same clock: {passed} ns"
    );
}

pub fn the_simulated_counter_counts_its_reads<E: Engine>(engine: &E) {
    let (account, _) = rows_of(
        engine,
        &limited("timer:1ms", &["sim.counter", "sim.counter"]),
    );
    assert!(account.column(0).eq((0..100).step_by(2)));
    assert!(account.column(1).eq((1..100).step_by(2)));
    // It starts anew when nobody has used it.
    assert_eq!(soft(engine, 1, &["sim.counter"]).rows[0].values, [0]);
}

pub fn the_simulated_ramp_and_sine_are_what_they_say<E: Engine>(engine: &E) {
    let run = engine.run(&plan("soft", &["sim.ramp", "sim.sine"]));
    let channels = run.info().channels.clone();
    drop(run);
    let account = soft(engine, 2500, &["sim.ramp", "sim.sine"]);
    assert!(account.column(0).eq((0..2500).map(|n| n % 1000)));
    for (n, word) in account.column(1).enumerate() {
        let sine = (TAU * n as f64 / 64.0).sin();
        assert_eq!(word as i64, (32767.0 * sine).round() as i64, "read {n}");
        assert!((channels[1].value(word) - sine).abs() < 1e-4, "read {n}");
    }
    assert_eq!(channels[0].value(999), 0.999);
}

pub fn the_simulated_noise_is_the_same_each_time<E: Engine>(engine: &E) {
    let noise = || -> Vec<i64> {
        let account = soft(engine, 4096, &["sim.noise"]);
        account.column(0).map(|word| word as i64).collect()
    };
    let once = noise();
    assert_eq!(noise(), once);
    // White: no bias, and no memory of the value before.
    let mean = once.iter().sum::<i64>() as f64 / 4096.0;
    assert!(mean.abs() < 32768.0 / 64.0 * 2.5, "mean {mean}");
    let power = |lag: usize| -> f64 {
        let pairs = once.iter().zip(&once[lag..]);
        pairs.map(|(a, b)| (a * b) as f64).sum()
    };
    assert!((power(1) / power(0)).abs() < 0.1, "{}", power(1) / power(0));
    assert!(
        once.iter()
            .all(|v| i64::from(i16::MIN) <= *v && *v <= i64::from(i16::MAX))
    );
}

pub fn an_output_is_written_before_the_channel_after_it_is_read<E: Engine>(engine: &E) {
    let write = |value| Step::Write {
        output: "sim.latch".into(),
        value,
    };
    let read = || Step::Read("sim.latch".into());
    let mut plan = plan("soft", &[]);
    plan.steps = vec![write(7), read(), write(u64::MAX), read(), read(), write(9)];
    let run = engine.run(&plan);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(3).expect("to trigger");
    read_now(&mut reader, &mut account);
    for row in &account.rows {
        assert_eq!(row.values, [7, u64::MAX, u64::MAX], "{row:?}");
    }
}

/// Between two channels of class `hard`, the value of each row is that row's.
fn in_its_own_row<E: Engine>(engine: &E, channel: &str, class: Class) {
    let run = engine.run(&limited("timer:5ms", &["sim.counter", channel, "sim.ramp"]));
    assert_eq!(run.info().channels[1].class, class, "{channel}");
    let (account, end) = record(&run);
    assert_eq!((account.rows.len(), end.errors), (50, 0));
    for row in &account.rows {
        assert_eq!(row.values, [row.row; 3], "{row:?}");
    }
}

pub fn a_channel_that_sleeps_has_its_value_in_its_own_row<E: Engine>(engine: &E) {
    in_its_own_row(engine, "sim.slow", Class::Sleep);
}

pub fn a_value_that_arrives_later_is_in_its_own_row<E: Engine>(engine: &E) {
    in_its_own_row(engine, "sim.async", Class::Async);
}

pub fn a_value_that_is_fetched_before_the_next_row_is_in_its_own_row<E: Engine>(engine: &E) {
    in_its_own_row(engine, "sim.next", Class::Async);
}

pub fn a_run_that_is_stopped_with_a_row_unfinished_has_counted_its_trigger<E: Engine>(engine: &E) {
    for channel in ["sim.slow", "sim.async", "sim.next"] {
        for pause in [0, 130, 470, 1010] {
            let run = engine.run(&plan("soft", &[channel]));
            let mut reader = run.reader().expect("a reader");
            run.start().expect("to start");
            for _ in 0..5 {
                run.trigger(1).expect("to trigger");
                thread::sleep(Duration::from_micros(pause));
            }
            run.stop().expect("to stop");
            let account = read_to_end(&mut reader, Pace::FAST);
            assert_eq!(reader.snapshot().triggers, 5, "{channel}");
            assert!(
                account.rows.iter().all(|row| row.values == [row.row]),
                "{channel}"
            );
        }
    }
}

pub fn channels_of_all_classes_make_whole_rows<E: Engine>(engine: &E) {
    let channels = [
        "sim.counter",
        "sim.slow",
        "sim.async",
        "sim.next",
        "clock.waited",
    ];
    let (account, _) = rows_of(engine, &limited("timer:5ms", &channels));
    for row in &account.rows {
        assert_eq!(row.values[..4], [row.row; 4], "{row:?}");
    }
}

pub fn a_row_that_takes_longer_than_its_period_makes_others_missed<E: Engine>(engine: &E) {
    let (account, end) = rows_of(engine, &limited("timer:10us", &["sim.slow"]));
    // Reading it alone takes five periods. A trigger that came late was due before the row was finished.
    for pair in account.rows.windows(2) {
        let late = pair[1].status.late();
        assert!(late || pair[1].trigger >= pair[0].trigger + 4, "{pair:?}");
    }
    assert!(end.missed() >= 49 * 3, "{end:?}");
}
