// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact figures, on a machine whose time is made of instructions: one CPU that
//! nothing disturbs. That two recordings are the same byte for byte shows
//! lab/cases/determinism, which boots two machines.
//!
//! A kernel that looks for faults needs more instructions for the same: periods are as many times longer.

use std::thread;
use std::time::Duration;

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{read_to_end, record};
use strobe_cases::machine::{Counting, Sim, slowness, timer};
use strobe_cases::{Account, Engine, Kernel, Pace, plan};
use strobe_ring::{Missed, Snapshot};

fn recorded(event: &str, rows: u64, channels: &[&str]) -> (Account, Snapshot) {
    let run = Kernel::open().run(&Plan {
        limit: Some(rows),
        ..plan(event, channels)
    });
    let (account, end) = record(&run);
    assert_eq!(account.rows.len() as u64, rows);
    (account, end)
}

#[test]
fn ten_thousand_times_a_second_nothing_is_missed() {
    let channels = ["sim.counter", "sim.ramp", "clock.late"];
    let (account, end) = recorded(&timer(100_000), 10_000, &channels);
    assert_eq!((end.triggers, end.missed(), account.lost), (10_000, 0, 0));
    assert!(account.column(0).eq(0..10_000));
    assert!(account.column(1).eq((0..10_000).map(|n| n % 1000)));
    let latest = account.column(2).max();
    assert!(latest < Some(50_000 * slowness()), "{latest:?} ns late");
    assert_eq!(
        end.end_time - end.start.time,
        1_000_000_000 * slowness() + account.rows[9999].values[2]
    );
}

#[test]
fn nothing_is_missed_at_any_period_the_machine_can_serve() {
    for period in [20_000_u64, 50_000, 333_333, 1_000_000] {
        let (account, end) = recorded(&timer(period), 500, &["sim.ramp"]);
        assert_eq!((end.missed(), account.lost), (0, 0), "{period} ns: {end:?}");
        assert!(
            account.rows.iter().all(|row| !row.status.late()),
            "{period} ns"
        );
    }
}

/// Missed by cause in a hundred pulses with a fault of every tenth.
fn hundred(event: &str, parameter: &str, value: u64) -> ([u64; 4], Account) {
    let sim = Sim::well();
    sim.set("sim_every", 10).set(parameter, value);
    let (account, end) = recorded(event, 100, &["sim.ramp", "clock.late"]);
    let causes = [
        Missed::Overrun,
        Missed::Busy,
        Missed::Throttled,
        Missed::Source,
    ];
    (causes.map(|cause| end.missed_by[cause as usize]), account)
}

fn steps(account: &Account) -> Vec<(u64, u64)> {
    let pairs = account.rows.windows(2);
    let steps = pairs.map(|w| (w[1].row, w[1].trigger - w[0].trigger - 1));
    steps.filter(|(_, missed)| *missed > 0).collect()
}

/// The same before each of ten rows.
fn each(rows: impl Iterator<Item = u64>, missed: u64) -> Vec<(u64, u64)> {
    rows.map(|row| (row, missed)).collect()
}

#[test]
fn each_fault_of_the_simulator_costs_exactly_what_it_says() {
    let (missed, account) = hundred("sim.pulse", "sim_every", 10);
    assert_eq!((missed, steps(&account)), ([0; 4], vec![]));

    let (missed, account) = hundred("sim.pulse", "sim_late_ns", 700_000);
    assert_eq!((missed, steps(&account)), ([0; 4], vec![]));
    for row in &account.rows {
        let is_late = row.row % 10 == 9;
        assert_eq!(row.values[1] >= 700_000, is_late, "{row:?}");
    }

    let (missed, account) = hundred("sim.pulse", "sim_late_ns", 2_500_000);
    // The source says so with the next pulse; there is none after the last row.
    assert_eq!(missed, [0, 0, 0, 18]);
    assert_eq!(steps(&account), each((10..100).step_by(10), 2));

    let (missed, account) = hundred("sim.pulse", "sim_drop", 3);
    assert_eq!(missed, [0, 0, 0, 30]);
    assert_eq!(steps(&account), each((9..100).step_by(10), 3));

    // Reads 10, 20, .. 90 take five periods: five grid points pass meanwhile.
    // The budget is four fifths of the time, so the run then has to rest until
    // six and a quarter are over, which forbids a sixth.
    let (missed, account) = hundred("timer:1ms", "sim_slow_ns", 5_000_000);
    assert_eq!(missed, [9 * 5, 0, 9, 0]);
    assert_eq!(steps(&account), each((11..100).step_by(10), 6));
    assert!(account.rows.iter().all(|row| !row.status.late()));

    // Five more at once after every tenth pulse: six times fifteen rows, and
    // ten pulses of which the last is the last row.
    let (missed, account) = hundred("sim.pulse", "sim_burst", 5);
    assert_eq!((missed, steps(&account)), ([0; 4], vec![]));
    let due: Vec<u64> = account
        .rows
        .iter()
        .map(|row| row.time - row.values[1])
        .collect();
    let at_once = due.windows(2).filter(|w| w[0] == w[1]).count();
    assert_eq!(at_once, 30, "six bursts of five");
}

#[test]
fn a_timer_of_a_microsecond_leaves_a_tenth_of_its_processor_to_others() {
    const SECOND: Duration = Duration::from_secs(1);
    let counting = Counting::on(0);
    thread::sleep(Duration::from_millis(100));
    let before = counting.count();
    thread::sleep(SECOND);
    let alone = counting.count() - before;

    let run = Kernel::open().run(&Plan {
        ring: Some(64),
        ..plan("timer:1us", &["sim.counter"])
    });
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    let before = counting.count();
    thread::sleep(SECOND);
    let beside = counting.count() - before;
    run.stop().expect("to stop");
    drop(counting);

    read_to_end(&mut reader, Pace::FAST);
    let end = reader.snapshot();
    let percent = 100 * beside / alone;
    println!(
        "{percent} % left; {} rows, missed {:?}",
        end.head, end.missed_by
    );
    assert!(
        percent >= 10,
        "{percent} % of the processor is left to others, {end:?}"
    );
    assert!(end.missed_by[Missed::Throttled as usize] > 0, "{end:?}");
    // Once for the work of a row, and once for all around it.
    let rows = 100_000 / slowness().pow(2);
    assert!(end.head > rows, "the budget is used: {end:?}");
    let asked = (end.end_time - end.start.time) / 1000;
    // The clock goes on, a microsecond and more of a slow kernel, from the last look at it to the end's.
    assert!(
        end.triggers.abs_diff(asked) <= slowness().pow(2),
        "{asked} asked for, {end:?}"
    );
}
