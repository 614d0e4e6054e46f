// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scans beside each other, exactly: a monitoring run beside a fast one, two timers that know nothing of each other,
//! and one master whose output triggers two cards.

use std::thread;

use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::read_to_end;
use strobe_cases::machine::{slowness, timer};
use strobe_cases::{Account, Engine, Pace, pci, plan};
use strobe_ring::Snapshot;

/// All rows of each run, which are started in this order.
fn at_once<const N: usize>(runs: [&KernelRun; N]) -> [(Account, Snapshot); N] {
    let readers = runs.map(|run| run.reader().expect("a reader"));
    thread::scope(|scope| {
        let threads = readers.map(|mut reader| {
            scope.spawn(move || {
                let account = read_to_end(&mut reader, Pace::FAST);
                let end = reader.snapshot();
                (account, end)
            })
        });
        for run in runs {
            run.start().expect("to start");
        }
        threads.map(|thread| thread.join().expect("a whole account"))
    })
}

fn nothing_missed(account: &Account, end: &Snapshot, rows: u64) {
    account.settle(end);
    assert_eq!((end.triggers, end.head), (rows, rows));
    assert_eq!((end.missed(), account.lost, end.errors), (0, 0, 0));
}

#[test]
fn a_monitoring_run_and_a_fast_one_read_the_same_channels_and_miss_nothing() {
    let lab = pci::kernel(&["edu"]);
    let channels = ["edu.liveness", "edu.irq_status", "clock.late"];
    let limited = |event: &str, rows| {
        lab.engine.run(&Plan {
            limit: Some(rows),
            ..plan(event, &channels)
        })
    };
    let (fast, slow) = (
        limited(&timer(200_000), 5000),
        limited(&timer(100_000_000), 10),
    );
    let [fast, slow] = at_once([&fast, &slow]);
    nothing_missed(&fast.0, &fast.1, 5000);
    nothing_missed(&slow.0, &slow.1, 10);
    let latest = fast.0.column(2).chain(slow.0.column(2)).max();
    assert!(latest < Some(100_000 * slowness()), "{latest:?} ns late");
}

#[test]
fn two_timers_of_unlike_oscillators_meet_in_every_phase_and_miss_nothing() {
    const ROWS: u64 = 4000;
    let lab = pci::kernel(&["edu"]);
    let limited = |period: u64, channel: &str| {
        lab.engine.run(&Plan {
            limit: Some(ROWS),
            ..plan(&timer(period), &[channel, "clock.late"])
        })
    };
    // One gains a whole period on the other.
    let first = limited(500_000, "edu.liveness");
    let second = limited(500_125, "edu2.liveness");
    let [first, second] = at_once([&first, &second]);
    nothing_missed(&first.0, &first.1, ROWS);
    nothing_missed(&second.0, &second.1, ROWS);
    let dues = |scan: &Account| -> Vec<u64> {
        let rows = scan.rows.iter();
        rows.map(|row| row.time - row.values[1]).collect()
    };
    let apart: Vec<u64> = dues(&first.0)
        .iter()
        .zip(dues(&second.0))
        .map(|(first, second)| second.wrapping_sub(*first) % (500_000 * slowness()))
        .collect();
    let least = apart.iter().min().copied();
    let most = apart.iter().max().copied();
    // Coincidence and its contrary.
    assert!(least < Some(1000 * slowness()), "{least:?} ns at least");
    assert!(most > Some(499_000 * slowness()), "{most:?} ns at most");
}

#[test]
fn a_master_whose_outputs_trigger_two_cards_has_two_rows_for_each_of_its_own() {
    const ROWS: u64 = 2000;
    let lab = pci::kernel(&["edu"]);
    let run = |event: &str, writes: &[(&str, u64)], channels: &[&str]| {
        let plan = pci::steps(event, Some(ROWS), writes, channels);
        lab.engine.run(&plan)
    };
    let slave = |card: &str| {
        run(
            &format!("{card}.irq"),
            &[],
            &[&format!("{card}.irq_status")],
        )
    };
    let raise = [("edu.raise", 0x11), ("edu2.raise", 0x11)];
    let master = run(&timer(500_000), &raise, &["clock.late"]);
    let [first, second] = ["edu", "edu2"].map(slave);
    let scans = at_once([&first, &second, &master]);
    for (account, end) in &scans {
        nothing_missed(account, end, ROWS);
    }
    let [first, second, master] = scans.map(|(account, _)| account.rows);
    for ((first, second), master) in first.iter().zip(&second).zip(&master) {
        assert_eq!((first.values[0], second.values[0]), (0x11, 0x11));
        for slave in [first, second] {
            let after = slave.time - master.time;
            assert!(after < 250_000 * slowness(), "{after} ns: {slave:?}");
        }
    }
}
