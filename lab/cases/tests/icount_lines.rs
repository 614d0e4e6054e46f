// SPDX-License-Identifier: MIT OR Apache-2.0
//! Edges at 10 kHz in hard interrupt context, on a machine whose time is made of instructions: each is a row, and how
//! long after the edge the row has its stamp, also in the user engine, and the line that it drives its level.
//! lab/cases/inverter has the answers of a program that waits for edges: no run of the user engine drives a line twice.
// lab: --module lab_gpio --module 'strobe_gpio raw=lab' --module uio_dummy

use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::cost::of_step;
use strobe_cases::machine::{slowness, undisturbed};
use strobe_cases::wave::Wave;
use strobe_cases::{Engine, Kernel, User, plan};

fn period() -> u64 {
    100_000 * slowness()
}

fn edges() -> u64 {
    10_000 / slowness()
}

#[test]
fn every_edge_is_a_row_and_is_answered() {
    undisturbed();
    // Every other edge rises.
    let wave = Wave::new(period() / 2);
    // The chip wants the inverse of its wave: after each rising edge a 0, which is a 1 again before the next.
    let run = Kernel::open().run(&Plan {
        steps: vec![
            Step::Write {
                output: "gpio:lab/answer".into(),
                value: 0,
            },
            Step::Read("gpio:lab/wave".into()),
            Step::Write {
                output: "gpio:lab/answer".into(),
                value: 1,
            },
        ],
        ..plan("gpio:lab/wave:rising", &[])
    });
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    wave.made(2 * edges());
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    let [raised, dropped, answered] =
        ["raised", "dropped", "answered"].map(|name| wave.figure(name));
    let [best, typical, worst] =
        ["best_ns", "typical_ns", "worst_ns"].map(|name| wave.figure(name));
    println!(
        "{} rows + {} missed of {raised} raised, {dropped} dropped; raised -> answered: best {best}, typical {typical}, \
         worst {worst} ns",
        end.head,
        end.missed()
    );
    assert_eq!((raised, dropped), (edges(), 0));
    assert_eq!(end.head + end.missed(), raised, "{end:?}");
    assert_eq!(end.errors, 0);
    if slowness() == 1 {
        assert_eq!((end.missed(), answered), (0, raised));
        assert!(account.column(0).all(|level| level == 1));
        // The user engine needs more than 9 us.
        assert!(worst < 9_000, "{worst} ns");
    }
}

/// How long after an edge the row has its stamp, of so many edges.
fn stamped(engine: &impl Engine) {
    undisturbed();
    let wave = Wave::new(period());
    let run = engine.run(&plan("gpio:lab/wave:both", &[]));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    let mut late = Vec::new();
    for edge in 1..=200 {
        wave.made(1);
        until("its row", || reader.snapshot().head == edge);
        read_now(&mut reader, &mut account);
        let row = account.rows.last().expect("a row");
        late.push(row.time - wave.figure("edge_ns"));
    }
    late.sort_unstable();
    println!(
        "raised -> stamp: best {}, typical {}, worst {} ns",
        late[0], late[100], late[199]
    );
    assert_eq!(account.rows.len(), 200);
    assert!(late[199] < 100_000 * slowness(), "{late:?}");
}

#[test]
fn a_row_of_the_kernel_has_its_stamp_soon_after_the_edge() {
    stamped(&Kernel::open());
}

#[test]
fn a_row_of_a_thread_has_its_stamp_soon_after_the_edge() {
    stamped(&User::open());
}

#[test]
fn what_a_level_and_an_output_cost() {
    undisturbed();
    let _wave = Wave::new(period());
    let read = |name: &str| of_step("timer:1kHz", &Step::Read(name.into()));
    let level = read("gpio:lab/spare1");
    let counter = read("sim.counter");
    let drive = of_step(
        "timer:1kHz",
        &Step::Write {
            output: "gpio:lab/spare0".into(),
            value: 1,
        },
    );
    println!("instructions: a level {level}, an output {drive}; beside that sim.counter {counter}");
    // What a sanitizer adds is no cost of these modules.
    assert!(slowness() > 1 || level < 300 && drive < 500);
}
