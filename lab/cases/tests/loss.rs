// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss is exact, whatever its cause: what made no row, what was not read in
//! time, and what the program `strobe` then says.

use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{read_to_end, until_rows};
use strobe_cases::machine::{Counting, Sim, pin};
use strobe_cases::ringfd::RingFd;
use strobe_cases::{Account, Engine, Kernel, Pace, plan};
use strobe_ring::{Missed, Snapshot, State};

fn create(event: &str, ring: u64, limit: Option<u64>, channels: &[&str]) -> KernelRun {
    Kernel::open().run(&Plan {
        ring: Some(ring),
        limit,
        ..plan(event, channels)
    })
}

fn cause(end: &Snapshot, cause: Missed) -> u64 {
    end.missed_by[cause as usize]
}

/// Four readers from the start of the run to its end: mapped and by read(),
/// fast and slow. Meanwhile the caller does something; then the run is stopped.
fn watched(run: &KernelRun, meanwhile: impl FnOnce()) -> (Vec<Account>, Snapshot) {
    watched_from(0, run, meanwhile)
}

/// The same, but the slow ones read nothing until there are so many rows.
fn watched_from(late: u64, run: &KernelRun, meanwhile: impl FnOnce()) -> (Vec<Account>, Snapshot) {
    let end = run.reader().expect("a reader");
    let (id, channels) = (run.info().run, run.info().channels.len());
    let accounts = thread::scope(|scope| {
        let mapped = [(Pace::FAST, 0), (Pace::SLOW, late)].map(|(pace, late)| {
            let mut reader = run.reader().expect("a reader");
            scope.spawn(move || {
                until_rows(&reader, late);
                read_to_end(&mut reader, pace)
            })
        });
        let by_read = [(Pace::FAST, 0), (Pace::SLOW, late)].map(|(pace, late)| {
            let reader = RingFd::open(id, channels, 0, false);
            let looks = run.reader().expect("a reader");
            scope.spawn(move || {
                until_rows(&looks, late);
                reader.read_to_end(pace)
            })
        });
        run.start().expect("to start");
        meanwhile();
        run.stop().expect("to stop");
        let readers = mapped.into_iter().chain(by_read);
        let accounts = readers.map(|r| r.join().expect("a whole account"));
        accounts.collect::<Vec<_>>()
    });
    let end = end.snapshot();
    accounts.iter().for_each(|account| account.settle(&end));
    (accounts, end)
}

#[test]
fn bursts_of_a_source_are_rows_or_counted() {
    let sim = Sim::well();
    for (burst, rows) in [(1, 200), (50, 2000), (10_000, 300)] {
        sim.set("sim_every", 5).set("sim_burst", burst);
        let run = create("sim.pulse", 64, None, &["sim.counter", "clock.late"]);
        let (accounts, end) = watched(&run, || {
            until_rows(&run.reader().expect("a reader"), rows);
        });
        assert_eq!(
            cause(&end, Missed::Overrun) + cause(&end, Missed::Busy),
            0,
            "{end:?}"
        );
        // Ten thousand at once are more than any budget has room for.
        if burst == 10_000 {
            assert!(cause(&end, Missed::Throttled) > 5000, "{end:?}");
        }
        assert!(
            accounts
                .iter()
                .all(|a| a.rows.iter().all(|row| row.values[0] == row.row))
        );
    }
}

#[test]
fn what_a_source_lost_is_missed_by_those_who_listened_then() {
    // A machine that stands still in the row of one has no budget for the others' rows of that pulse.
    let untroubled = (0..10).any(|_| three_hear_what_a_source_lost());
    assert!(untroubled, "each of 10 times a run was throttled");
}

/// Whether none of the three runs was throttled; if so, what each has missed is right.
fn three_hear_what_a_source_lost() -> bool {
    let sim = Sim::well();
    sim.set("sim_pulse_ns", 5_000_000);
    // Each pulse says of three, and more if it was late, that they were lost before it.
    sim.set("sim_every", 1).set("sim_drop", 3);
    let runs = [0; 3].map(|_| create("sim.pulse", 1024, None, &["clock.late"]));
    let [listens, pauses, comes] = runs.each_ref();
    let mut readers = runs.each_ref().map(|run| run.reader().expect("a reader"));
    listens.start().expect("to start");
    pauses.start().expect("to start");
    until_rows(&readers[1], 3);
    pauses.pause().expect("to pause");
    until_rows(&readers[0], readers[0].snapshot().head + 2);
    comes.start().expect("to start");
    pauses.resume().expect("to go on");
    until_rows(&readers[2], 3);
    until_rows(&readers[1], 6);
    for run in [pauses, comes, listens] {
        run.stop().expect("to stop");
    }
    let accounts = readers
        .each_mut()
        .map(|reader| read_to_end(reader, Pace::FAST));
    let ends = readers.each_ref().map(|reader| reader.snapshot());
    if ends.iter().any(|end| cause(end, Missed::Throttled) > 0) {
        return false;
    }
    let all = &accounts[0].rows;
    // Who has listened all the time knows what was lost before each pulse. Runs have the same stamp of the same pulse.
    let lost_before = |nth: usize| match nth.checked_sub(1) {
        Some(before) => all[nth].trigger - all[before].trigger - 1,
        None => all[nth].trigger,
    };
    assert!((0..all.len()).all(|nth| lost_before(nth) >= 3), "{all:?}");
    for (run, (account, reader)) in accounts.iter().zip(&readers).enumerate() {
        let mut expected = 0;
        for (nth, row) in account.rows.iter().enumerate() {
            let pulse = all.iter().position(|pulse| pulse.time == row.time);
            let pulse = pulse.expect("a pulse that was heard by the first one, too");
            // What was lost before it came, or came back, is not its loss.
            let joins = run > 0 && nth == 0 || row.status.resumed();
            expected += if joins { 0 } else { lost_before(pulse) };
            assert_eq!(row.trigger, nth as u64 + expected, "{row:?}");
        }
        let end = reader.snapshot();
        assert_eq!(cause(&end, Missed::Source), end.missed(), "{end:?}");
        assert_eq!(end.missed(), expected, "{end:?}");
    }
    let resumed = accounts[1].rows.iter().filter(|row| row.status.resumed());
    assert_eq!(resumed.count(), 1);
    true
}

#[test]
fn stalls_of_a_channel_are_counted_where_they_are() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_slow_ns", 5_000_000);
    let run = create("timer:1ms", 64, Some(100), &["sim.ramp"]);
    let (accounts, end) = watched(&run, || {
        until_rows(&run.reader().expect("a reader"), 100);
    });
    assert_eq!((end.state, end.head), (State::Done, 100));
    let known = cause(&end, Missed::Overrun) + cause(&end, Missed::Throttled);
    assert!(known >= 9 * 4 && known == end.missed(), "{end:?}");
    // Reads 10, 20, .. 90 stall; in each stall four grid points pass at least,
    // before or after the next row.
    let account = &accounts[0];
    if account.lost == 0 {
        for i in (10..98).step_by(10) {
            let triggers = account.rows[i + 2].trigger - account.rows[i].trigger;
            assert!(triggers >= 2 + 4, "row {i}: {triggers}");
        }
    }
}

#[test]
fn a_short_ring_and_a_slow_reader_lose_a_known_number_of_rows() {
    let run = create("timer:100us", 64, None, &["sim.counter"]);
    // Longer than the ring, however slow this machine makes rows.
    let (accounts, end) = watched_from(200, &run, || {
        until_rows(&run.reader().expect("a reader"), 3000);
    });
    assert_eq!(end.state, State::Stopped);
    for account in &accounts {
        assert!(account.rows.iter().all(|row| row.values[0] == row.row));
        assert_eq!(account.rows.len() as u64 + account.lost, end.head);
    }
    assert!(accounts[1].lost > 0 && accounts[3].lost > 0, "two are late");
}

#[test]
fn a_timer_of_a_microsecond_leaves_the_machine_usable() {
    const SECOND: Duration = Duration::from_secs(1);
    // The timer stays on the CPU on which the run is started.
    let _pinned = pin(0);
    let run = create("timer:1us", 64, None, &["sim.counter", "cpu.id"]);
    let counting = Counting::on(0);
    thread::sleep(Duration::from_millis(100));
    let mut shell_works = false;
    let (mut count, mut stopped_after) = (0, 0);
    let (accounts, end) = watched(&run, || {
        let before = counting.count();
        thread::sleep(SECOND);
        count = counting.count() - before;
        let shell = Command::new("sh")
            .args(["-c", "test $((6 * 7)) = 42"])
            .status();
        shell_works = shell.is_ok_and(|status| status.success());
        stopped_after = monotonic_ns();
        run.stop().expect("to stop");
    });
    assert!(shell_works, "a shell on the same CPU");
    assert!(
        count > 0,
        "an ordinary thread on the same CPU has come no further"
    );
    // Every grid point is accounted for up to the stop.
    let points_until = |time| (time - end.start.first_due) / 1000 + 1;
    let points = points_until(stopped_after)..=points_until(end.end_time);
    assert!(*points.start() > 1_000_000, "{points:?}");
    assert!(points.contains(&end.triggers), "{points:?}, {end:?}");
    assert!(end.missed() > 0, "{end:?}");
    let known = cause(&end, Missed::Overrun) + cause(&end, Missed::Throttled);
    assert_eq!(known, end.missed());
    assert!(accounts.iter().all(|a| a.column(1).all(|cpu| cpu == 0)));
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The program, and the account it prints.
fn strobe(words: &[&str]) -> (Output, Value) {
    let output = Command::new("strobe").args(words).output().expect("strobe");
    let text = String::from_utf8_lossy(&output.stdout);
    let account = serde_json::from_str(&text)
        .unwrap_or_else(|why| panic!("{words:?}: {why}: {text}{output:?}"));
    (output, account)
}

fn number(account: &Value, key: &str) -> u64 {
    account[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {account}"))
}

#[test]
fn the_program_says_what_was_missed_and_exits_with_3() {
    const OVERLOAD: [&str; 8] = [
        "record",
        "--event",
        "timer:1us",
        "--read",
        "sim.counter",
        "--for",
        "300ms",
        "--json",
    ];
    let (output, account) = strobe(&OVERLOAD);
    assert_eq!(output.status.code(), Some(3), "{account}");
    let by_cause = account["missed_by"].as_object().expect("causes");
    let sum: u64 = by_cause.values().filter_map(Value::as_u64).sum();
    assert!(sum > 0, "{account}");
    assert_eq!(sum, number(&account, "missed"), "{account}");
    assert_eq!(account["end"], "complete");

    let (output, account) = strobe(&[&OVERLOAD[..], &["--allow-loss"]].concat());
    assert!(number(&account, "missed") > 0, "{account}");
    assert_eq!(output.status.code(), Some(0), "{account}");
}

#[test]
fn the_program_exits_with_3_for_each_fault_of_the_simulator() {
    let sim = Sim::well();
    let faults = [
        ("sim_drop", 3, "missed", "sim.pulse", "100"),
        ("sim_burst", 10_000, "missed", "sim.pulse", "5000"),
        ("sim_late_ns", 2_500_000, "missed", "sim.pulse", "100"),
        ("sim_slow_ns", 5_000_000, "missed", "timer:1ms", "100"),
        ("sim_fail", 1, "errors", "timer:1ms", "100"),
    ];
    for (parameter, value, counted, event, rows) in faults {
        sim.set("sim_every", 10).set(parameter, value);
        let (output, account) = strobe(&[
            "record",
            "--event",
            event,
            "--read",
            "sim.noise,sim.ramp",
            "--rows",
            rows,
            "--json",
        ]);
        sim.set(parameter, 0);
        assert_eq!(output.status.code(), Some(3), "{parameter}: {account}");
        assert!(number(&account, counted) > 0, "{parameter}: {account}");
        assert_eq!(account["rows"].to_string(), rows, "{parameter}: {account}");
        assert_eq!(number(&account, "lost"), 0, "{parameter}: {account}");
    }
    sim.set("sim_vanish", 20);
    let (output, account) = strobe(&[
        "record",
        "--event",
        "sim.pulse",
        "--read",
        "sim.noise",
        "--rows",
        "100000",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(3), "{account}");
    let end = account["end"].as_str().expect("an end");
    assert!(end.starts_with("failed: a device"), "{end}");
    assert!(number(&account, "rows") >= 20, "{account}");
}

#[test]
fn the_program_exits_with_0_if_all_is_there() {
    let (output, account) = strobe(&[
        "record",
        "--event",
        "timer:20ms",
        "--read",
        "sim.counter",
        "--rows",
        "20",
        "--json",
    ]);
    assert_eq!(
        (number(&account, "rows"), number(&account, "lost")),
        (20, 0),
        "{account}"
    );
    let whole = if number(&account, "missed") == 0 {
        0
    } else {
        3
    };
    assert_eq!(output.status.code(), Some(whole), "{account}");
}
