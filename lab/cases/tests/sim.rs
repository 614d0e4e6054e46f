// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator of the kernel engine, and its faults one by one. What a fault
//! costs exactly is in icount_determinism.rs; here the machine may be late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::engine::Error;
use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until, until_rows};
use strobe_cases::machine::Sim;
use strobe_cases::ringfd::RingFd;
use strobe_cases::{Account, Engine, Kept, Kernel, Pace, plan};
use strobe_ring::{Missed, Snapshot, State};

const ENODEV: i32 = Errno::NODEV.raw_os_error();

fn create(event: &str, limit: Option<u64>, channels: &[&str]) -> KernelRun {
    Kernel::open().run(&Plan {
        limit,
        ..plan(event, channels)
    })
}

fn hundred_pulses(channels: &[&str]) -> (Account, Snapshot) {
    record(&create("sim.pulse", Some(100), channels))
}

/// The same of a machine that does not stand still in the midst of a row, for
/// which the budget would hold the next pulses back: what is missed is the
/// source's.
fn hundred_pulses_in_time(channels: &[&str]) -> (Account, Snapshot) {
    for _ in 0..10 {
        let (account, end) = hundred_pulses(channels);
        if cause(&end, Missed::Source) == end.missed() {
            return (account, end);
        }
        assert_eq!(
            cause(&end, Missed::Source) + cause(&end, Missed::Throttled),
            end.missed(),
            "{end:?}"
        );
    }
    panic!("each of 10 runs was throttled");
}

fn cause(end: &Snapshot, cause: Missed) -> u64 {
    end.missed_by[cause as usize]
}

/// Pulses are due on a grid that does not move, and the number of a row's
/// trigger is that of its pulse. Channel 0 is clock.late.
fn on_the_grid(account: &Account, period: u64) {
    let first = &account.rows[0];
    let due = |row: &Kept| row.time - row.values[0];
    for row in &account.rows {
        let pulses = row.trigger - first.trigger;
        assert_eq!(due(row) - due(first), pulses * period, "{row:?}");
    }
}

#[test]
fn late_pulses_are_late_rows_and_nothing_is_missed_for_it() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_late_ns", 400_000);
    let (account, _) = hundred_pulses_in_time(&["clock.late"]);
    // Pulses 10, 20, .. 100, counted from 1.
    for row in account.rows.iter().skip(9).step_by(10) {
        assert!(row.values[0] >= 400_000, "{row:?}");
    }
    on_the_grid(&account, 1_000_000);
}

#[test]
fn pulses_later_than_a_period_lose_those_after_them() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_late_ns", 2_500_000);
    let (account, end) = hundred_pulses_in_time(&["clock.late"]);
    // The source says with the next pulse what it has lost; there is none
    // after the last row.
    assert!(cause(&end, Missed::Source) >= 9 * 2, "{end:?}");
    on_the_grid(&account, 1_000_000);
    for i in (9..99).step_by(10) {
        assert!(account.rows[i].values[0] >= 2_500_000, "row {i}");
        let step = account.rows[i + 1].trigger - account.rows[i].trigger;
        assert!(step >= 3, "two are lost after row {i}: {step}");
    }
}

#[test]
fn slow_reads_hold_up_the_timer_that_is_counted() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_slow_ns", 2_300_000);
    let run = create(
        "timer:1ms",
        Some(100),
        &["clock.time", "sim.ramp", "clock.time"],
    );
    let (account, end) = record(&run);
    for row in account.rows.iter().skip(10).step_by(10) {
        assert!(row.values[2] - row.values[0] >= 2_300_000, "{row:?}");
    }
    // In each stall a grid point passes at least, before or after the next row.
    for i in (10..90).step_by(10) {
        let triggers = account.rows[i + 2].trigger - account.rows[i].trigger;
        assert!(triggers >= 3, "row {i}: {triggers}");
    }
    let known = cause(&end, Missed::Overrun) + cause(&end, Missed::Throttled);
    assert_eq!(known, end.missed(), "{end:?}");
}

#[test]
fn a_channel_that_fails_is_named_in_its_row_and_counted() {
    let sim = Sim::well();
    sim.set("sim_every", 10);
    let run = create(
        "soft",
        None,
        &["sim.counter", "sim.noise", "sim.ramp", "sim.noise"],
    );
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(100).expect("to trigger");
    sim.set("sim_fail", 1);
    run.trigger(100).expect("to trigger");
    sim.set("sim_fail", 0);
    run.trigger(100).expect("to trigger");
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    // Noise is read twice a row; reads 200, 210, .. 390 fail: in every fifth
    // row the first of both.
    assert_eq!((end.errors, end.head, end.state), (20, 300, State::Stopped));
    for row in &account.rows {
        let fails = (100..200).contains(&row.row) && row.row % 5 == 0;
        assert_eq!(row.faults, Vec::from_iter(fails.then_some(1)), "{row:?}");
        assert_eq!(
            (row.values[0], row.values[2]),
            (row.row, row.row),
            "{row:?}"
        );
    }

    // If several fail, all are named, and the row is one error.
    sim.set("sim_every", 1).set("sim_fail", 1);
    let run = create(
        "soft",
        None,
        &["sim.noise", "clock.time", "sim.noise", "sim.noise"],
    );
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(10).expect("to trigger");
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let faults: Vec<_> = account.rows.iter().map(|row| row.faults.clone()).collect();
    // Read 0 never fails.
    assert_eq!(faults[0], [2, 3]);
    assert_eq!(faults[1..], vec![vec![0, 2, 3]; 9]);
    assert_eq!(reader.snapshot().errors, 10);
}

#[test]
fn a_burst_is_as_many_rows_at_once() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_burst", 5);
    let (account, end) = hundred_pulses(&["clock.late", "sim.counter"]);
    assert_eq!(
        cause(&end, Missed::Overrun) + cause(&end, Missed::Busy),
        0,
        "{end:?}"
    );
    assert!(
        account.column(1).eq(0..100),
        "what is throttled is not read"
    );
    // All of a burst were due at the same moment.
    let due: Vec<u64> = account
        .rows
        .iter()
        .map(|row| row.time - row.values[0])
        .collect();
    let of_a_burst = due.windows(2).filter(|w| w[0] == w[1]).count() as u64;
    let throttled = cause(&end, Missed::Throttled);
    assert!(
        of_a_burst > 0 && of_a_burst + throttled >= 30,
        "{of_a_burst}, {end:?}"
    );
}

#[test]
fn what_the_source_drops_is_missed_where_it_was_dropped() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_drop", 3);
    let (account, end) = hundred_pulses_in_time(&["sim.counter"]);
    assert!(cause(&end, Missed::Source) >= 30, "{end:?}");
    for i in (9..100).step_by(10) {
        let step = account.rows[i].trigger - account.rows[i - 1].trigger;
        assert!(step >= 4, "row {i}: {step}");
    }
    assert!(account.column(0).eq(0..100), "what is dropped is not read");
}

/// The run has failed for want of its device, and all its rows are there.
fn failed_and_readable(run: &KernelRun, rows: u64) {
    let mut mapped = run.reader().expect("a reader, also after the end");
    let account = read_to_end(&mut mapped, Pace::FAST);
    let end = mapped.snapshot();
    assert_eq!((end.state, end.error), (State::Failed, -ENODEV));
    assert!(end.head >= rows && account.lost == 0, "{end:?}");
    let by_read = RingFd::open(run.info().run, run.info().channels.len(), 0, true);
    let again = by_read.read_to_end(Pace::FAST);
    assert_eq!(again.rows, account.rows);
    // Nobody uses the device any more, so it can come back, but not to this run.
    assert_eq!(strobe_cases::errno(run.start()), Some(Errno::SHUTDOWN));
}

#[test]
fn a_device_that_vanishes_fails_the_run_and_leaves_its_rows() {
    let sim = Sim::well();
    sim.set("sim_vanish", 50);
    let run = create("sim.pulse", None, &["sim.counter", "sim.ramp"]);
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until("the end", || reader.snapshot().state.is_final());
    failed_and_readable(&run, 50);
    until("the device to be gone", || !sim.is_plugged());
    let refused = Kernel::open().create(&plan("soft", &["sim.counter"]));
    assert!(
        matches!(refused, Err(Error::NotHere { .. })),
        "there is no simulator"
    );

    sim.set("sim_vanish", 0).plug(true);
    let (account, end) = hundred_pulses(&["sim.counter"]);
    assert_eq!((account.rows.len(), end.state), (100, State::Done));
}

#[test]
fn rows_of_an_event_that_cannot_be_enabled_stay_and_the_run_can_start_again() {
    let sim = Sim::well();
    for channel in ["sim.counter", "sim.async"] {
        sim.set("sim_refuse", 3);
        let run = create("sim.pulse", Some(100), &["clock.time", channel]);
        for _ in 0..2 {
            // The errno of the simulator, not that of the call.
            let refused = run.start().expect_err("refused");
            assert!(matches!(refused, Error::Provider { .. }), "{refused}");
            assert_eq!(strobe_cases::errno(Err(refused)), Some(Errno::IO));
        }
        let reader = run.reader().expect("a reader");
        let before = reader.snapshot();
        assert_eq!((before.state, before.triggers), (State::Ready, 6));
        assert_eq!(before.triggers, before.head + before.missed());
        assert!(before.head >= 2, "{before:?}");

        sim.set("sim_refuse", 0);
        let (account, end) = record(&run);
        let pauses = account.rows.iter().filter(|row| row.status.resumed());
        let pauses: Vec<u64> = pauses.map(|row| row.row).collect();
        // The first row of each start but the first one; a pulse may be missed as throttled.
        let first = |trigger| {
            let mut rows = account.rows.iter();
            rows.find(|row| row.trigger >= trigger).map(|row| row.row)
        };
        assert_eq!(
            pauses.iter().copied().map(Some).collect::<Vec<_>>(),
            [first(3), first(6)]
        );
        assert_eq!((end.state, account.rows.len()), (State::Done, 100));
        assert_eq!(end.triggers, end.head + end.missed());
    }
}

#[test]
fn a_run_that_is_complete_before_its_event_is_refused_has_come_to_its_end() {
    let sim = Sim::well();
    sim.set("sim_refuse", 3);
    let run = create("sim.pulse", Some(2), &["sim.counter"]);
    let mut reader = run.reader().expect("a reader");
    // A pulse may be missed as throttled; then there is one row, and the provider's refusal comes first.
    let mut refused = strobe_cases::errno(run.start());
    until("both rows", || {
        if refused == Some(Errno::IO) {
            refused = strobe_cases::errno(run.start());
        }
        refused != Some(Errno::IO)
    });
    assert_eq!(refused, Some(Errno::SHUTDOWN));
    let account = read_to_end(&mut reader, Pace::FAST);
    let end = reader.snapshot();
    assert_eq!((end.state, end.error), (State::Done, 0));
    assert_eq!(
        (account.rows.len(), cause(&end, Missed::Throttled)),
        (2, end.missed())
    );
    assert_eq!(end.triggers, 2 + end.missed());
    assert_eq!(strobe_cases::errno(run.start()), Some(Errno::SHUTDOWN));
}

#[test]
fn unplugging_fails_every_run_that_uses_the_device_and_no_other() {
    let sim = Sim::well();
    let by_event = create("sim.pulse", None, &["clock.time"]);
    let by_channel = create("timer:1ms", None, &["clock.time", "sim.counter"]);
    let paused = create("soft", None, &["sim.noise"]);
    let ready = create("timer:1ms", None, &["sim.ramp"]);
    let other = create("timer:1ms", None, &["clock.late"]);
    let readers: Vec<_> = [&by_event, &by_channel, &other]
        .map(|run| {
            run.start().expect("to start");
            run.reader().expect("a reader")
        })
        .into();
    paused.start().expect("to start");
    paused.trigger(7).expect("to trigger");
    paused.pause().expect("to pause");
    readers.iter().for_each(|reader| until_rows(reader, 20));

    sim.plug(false);
    // When the write returns, nothing uses the device any more.
    for (run, rows) in [
        (&by_event, 20),
        (&by_channel, 20),
        (&paused, 7),
        (&ready, 0),
    ] {
        failed_and_readable(run, rows);
    }
    let now = readers[2].snapshot();
    assert_eq!(now.state, State::Running);
    until_rows(&readers[2], now.head + 5);
    let names = Kernel::open().0.catalogue().expect("a catalogue");
    assert!(names.devices.iter().all(|device| device.name != "sim"));
    assert!(names.events.iter().all(|event| event.name != "sim.pulse"));

    sim.plug(true);
    let (account, _) = record(&create("timer:1ms", Some(10), &["sim.counter"]));
    assert!(account.column(0).eq(0..10));
    other.stop().expect("to stop");
    read_to_end(&mut other.reader().expect("a reader"), Pace::FAST);
}

#[test]
fn it_can_be_unplugged_and_plugged_in_while_runs_come_and_go() {
    let sim = Sim::well();
    let (whole, without) = (AtomicU64::new(0), AtomicU64::new(0));
    // It is plugged and unplugged when a run has noticed, however long that takes.
    let grows = |what: &str, count: &AtomicU64| {
        let before = count.load(Ordering::Relaxed);
        until(what, || count.load(Ordering::Relaxed) > before);
    };
    thread::scope(|scope| {
        let plugging = scope.spawn(|| {
            for round in 0..30 {
                grows("a run that is complete", &whole);
                // At another moment of a run each time.
                thread::sleep(Duration::from_micros(300 * round));
                sim.plug(false);
                grows("a run without its device", &without);
                sim.plug(true);
            }
        });
        while !plugging.is_finished() {
            match run_of_five_pulses() {
                true => whole.fetch_add(1, Ordering::Relaxed),
                false => without.fetch_add(1, Ordering::Relaxed),
            };
        }
    });
}

/// Whether it could be made, and came to its end; else it failed for want of its device.
fn run_of_five_pulses() -> bool {
    let asked = Plan {
        limit: Some(5),
        ..plan("sim.pulse", &["sim.counter"])
    };
    let run = match Kernel::open().create(&asked) {
        Ok(run) => run,
        Err(refused) => {
            assert!(matches!(refused, Error::NotHere { .. }), "{refused}");
            thread::sleep(Duration::from_millis(1));
            return false;
        }
    };
    let mut reader = run.reader().expect("a reader");
    if run.start().is_err() {
        // The event of a device that goes is refused at once. The run fails when its turn comes, a moment later.
        until("the end", || reader.snapshot().state.is_final());
    } else {
        read_to_end(&mut reader, Pace::FAST);
    }
    let end = reader.snapshot();
    match (end.state, end.error, end.head) {
        (State::Done, 0, 5) => true,
        (State::Failed, error, _) if error == -ENODEV => false,
        _ => panic!("{end:?}"),
    }
}

#[test]
fn noise_follows_its_seed() {
    let sim = Sim::well();
    let noise = |seed| {
        sim.set("sim_seed", seed);
        let run = create("soft", None, &["sim.noise"]);
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        run.trigger(500).expect("to trigger");
        read_now(&mut reader, &mut account);
        account.column(0).collect::<Vec<_>>()
    };
    let (one, two) = (noise(1), noise(2));
    assert_eq!(noise(1), one);
    let same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
    assert!(same < 10, "{same} of 500 values do not depend on the seed");
}

#[test]
fn the_pulse_has_the_period_that_is_set() {
    let sim = Sim::well();
    for period in [250_000, 3_000_000] {
        sim.set("sim_pulse_ns", period);
        let run = create("sim.pulse", Some(20), &["clock.late"]);
        let (account, _) = record(&run);
        on_the_grid(&account, period);
    }
}
