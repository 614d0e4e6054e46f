// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row says besides its values, by the simulator of the kernel engine: all channels and outputs
//! that failed, and what was skipped before it.

use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_now, record};
use strobe_cases::machine::Sim;
use strobe_cases::{Engine, Kept, Kernel, plan};
use strobe_ring::Missed;

/// One row on the event "soft" while all of these fail.
fn one_row(steps: Vec<Step>, fails: u64) -> Kept {
    let sim = Sim::well();
    sim.set("sim_every", 1).set("sim_fail", fails);
    let run = Kernel::open().run(&Plan {
        steps,
        ..plan("soft", &[])
    });
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    // Read 0 never fails.
    run.trigger(2).expect("to trigger");
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    account.rows.pop().expect("two rows")
}

fn reads(names: &[&str]) -> Vec<Step> {
    names
        .iter()
        .map(|name| Step::Read((*name).into()))
        .collect()
}

#[test]
fn three_of_ten_channels_that_fail_are_all_named() {
    let row = one_row(
        reads(&[
            "clock.time",
            "sim.noise",
            "cpu.id",
            "sim.counter",
            "clock.time",
            "clock.elapsed",
            "sim.latch",
            "sim.sine",
            "cpu.id",
            "clock.time",
        ]),
        1 + 2 + 8,
    );
    assert_eq!(row.faults, [1, 3, 7]);
}

#[test]
fn channels_beyond_those_that_the_status_has_bits_for_are_named_too() {
    let mut names = vec!["clock.time"; 40];
    for at in [0, 31, 32, 39] {
        names[at] = "sim.noise";
    }
    let row = one_row(reads(&names), 1);
    assert_eq!(row.faults, [0, 31, 32, 39]);
    assert_eq!(row.values.len(), 40);
    // More than one word of them.
    let mut names = vec!["clock.time"; 200];
    names[95] = "sim.noise";
    names[96] = "sim.noise";
    names[199] = "sim.noise";
    assert_eq!(one_row(reads(&names), 1).faults, [95, 96, 199]);
}

#[test]
fn an_output_that_fails_is_named_behind_the_channels() {
    let write = |value| Step::Write {
        output: "sim.latch".into(),
        value,
    };
    let mut steps = reads(&["sim.latch", "sim.counter"]);
    steps.insert(1, write(7));
    assert_eq!(one_row(steps.clone(), 16).faults, [2]);
    assert_eq!(one_row(steps.clone(), 16 + 2).faults, [1, 2]);
    assert_eq!(one_row(steps, 0).faults, [0; 0]);
    // Two outputs among many channels: bits in a word behind the values.
    let mut steps = reads(&["clock.time"; 50]);
    steps.insert(20, write(1));
    steps.push(write(2));
    assert_eq!(one_row(steps, 16).faults, [50, 51]);
}

#[test]
fn all_faults_of_rows_are_of_that_row_and_of_no_older_one() {
    let sim = Sim::well();
    sim.set("sim_every", 3).set("sim_fail", 2);
    let channels: Vec<&str> = std::iter::repeat_n("clock.time", 39)
        .chain(["sim.counter"])
        .collect();
    let run = Kernel::open().run(&plan("soft", &channels));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    for _ in 0..300 {
        run.trigger(1).expect("to trigger");
        read_now(&mut reader, &mut account);
    }
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    for row in &account.rows {
        let fails = row.row > 0 && row.row % 3 == 0;
        assert_eq!(row.faults, Vec::from_iter(fails.then_some(39)), "{row:?}");
    }
}

#[test]
fn of_decimated_pulses_the_others_are_skipped_and_not_missed() {
    for keep in [1, 2, 10, 50] {
        let sim = Sim::well();
        sim.set("sim_keep", keep);
        let run = Kernel::open().run(&Plan {
            limit: Some(20),
            ..plan("sim.decimated", &["clock.late"])
        });
        let (account, end) = record(&run);
        assert_eq!(account.rows.len(), 20);
        // A pulse that is kept may be throttled, on a machine that stands still now and then: those before it are skipped.
        let throttled = end.missed_by[Missed::Throttled as usize];
        let others = keep - 1;
        assert_eq!(
            end.skipped,
            (20 + throttled) * others,
            "keep {keep}: {end:?}"
        );
        for row in &account.rows {
            let more = row.skipped - (row.row + 1) * others;
            assert!(more <= throttled * others, "keep {keep}: {row:?}");
            assert_eq!(more % others.max(1), 0, "keep {keep}: {row:?}");
        }
    }
}
