// SPDX-License-Identifier: MIT OR Apache-2.0
//! A card that counts its own interrupts: what it has raised are the rows, what strobe has missed, and what the card
//! itself has merged because nobody had answered the one before. Exactly, at any rate and under any load.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strobe::engine::user;
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::machine::{Counting, Sim, is_rt, slowness, undisturbed};
use strobe_cases::pci::{self, counted, get, put};
use strobe_cases::rounds::rounds;
use strobe_cases::slow::Slowness;
use strobe_cases::{Engine, plan};

const BOARD: [&str; 1] = ["lab-counter"];
const PERIODS: [u64; 3] = [10_000_000, 1_000_000, 200_000];
/// How long the timer runs, in ns.
fn idle() -> u64 {
    5_000_000 * rounds(60, 200)
}

/// A program that is always busy costs an instruction for each.
fn busy() -> u64 {
    1_500_000 * rounds(60, 200)
}

/// Who has seen what of the card's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    rows: u64,
    missed: u64,
    merged: u64,
}

/// Ends of count for so long, and what has become of them. Nothing may be left over.
fn settled(what: &str, engine: &impl Engine, ns: u64, period: u64, more: &[&str]) -> Counts {
    let ends = ns / period;
    let outputs = [("clear", 1), ("period", period), ("limit", ends)];
    for (output, value) in outputs {
        put(engine, &[(&format!("counter.{output}"), value)]);
    }
    let channels = [&["counter.index", "counter.latched"], more].concat();
    let run = engine.run(&Plan {
        ring: Some(2 * ends),
        ..plan("counter.eoc", &channels)
    });
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    put(engine, &[("counter.run", 1)]);
    thread::sleep(Duration::from_nanos(ns));
    until("the last end of count", || get(engine, "counter.run") == 0);
    until("its row", || get(engine, "counter.irq_status") == 0);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(account.lost, 0, "{end:?}");
    let (raised, merged) = counted(engine, "counter", "eoc");
    let start = get(engine, "counter.start");
    let counts = Counts {
        rows: end.head,
        missed: end.missed(),
        merged,
    };
    println!("{what}, {period} ns: {raised} raised, {counts:?}");
    assert_eq!(raised, ends, "the card's own count");
    assert_eq!(
        counts.rows + counts.missed + counts.merged,
        raised,
        "{end:?}"
    );
    for row in &account.rows {
        let late = (row.values[1] - start) % period;
        assert_eq!(late, 0, "an end of count lies on the grid: {row:?}");
    }
    let indexes: Vec<u64> = account.column(0).collect();
    assert!(indexes.windows(2).all(|pair| pair[0] < pair[1]));
    let shown = indexes.windows(2).map(|pair| pair[1] - pair[0] - 1);
    assert!(
        shown.sum::<u64>() <= counts.missed + counts.merged,
        "as the rows show it"
    );
    counts
}

fn all(rows: u64) -> Counts {
    Counts {
        rows,
        missed: 0,
        merged: 0,
    }
}

#[test]
fn in_the_kernel_every_interrupt_is_a_row_beside_a_busy_program_too() {
    let _sim = Sim::well();
    let fitted = pci::kernel(&BOARD);
    for period in PERIODS {
        let counts = settled("kernel, idle", &fitted.engine, idle(), period, &[]);
        assert_eq!(counts, all(idle() / period));
        let _hog = Counting::on(0);
        let counts = settled("kernel, busy", &fitted.engine, busy(), period, &[]);
        assert_eq!(counts, all(busy() / period));
    }
}

#[test]
fn interrupts_during_a_row_that_takes_long_are_merged_by_the_card_and_counted() {
    let sim = Sim::well();
    let fitted = pci::kernel(&BOARD);
    for period in PERIODS {
        // Every tenth row, in the handler, which the simulator bounds to 10 ms.
        sim.set("sim_every", 10)
            .set("sim_slow_ns", 5 * period + period / 2);
        let counts = settled(
            "kernel, slow",
            &fitted.engine,
            idle(),
            period,
            &["sim.ramp"],
        );
        assert!(counts.merged > 0, "{counts:?}");
    }
}

#[test]
fn interrupts_that_find_a_row_unfinished_are_missed_and_counted() {
    let sim = Sim::well();
    let fitted = pci::kernel(&BOARD);
    for period in PERIODS {
        sim.set("sim_sleep_us", 3 * period / 2000);
        let counts = settled(
            "kernel, asleep",
            &fitted.engine,
            idle(),
            period,
            &["sim.slow"],
        );
        assert!(counts.missed > 0, "{counts:?}");
        // And now with a busy program, and another run that keeps the CPU from interrupts: at most for 10 ms, so that
        // of the longest period none is merged.
        let _hog = Counting::on(0);
        sim.set("sim_every", 1).set("sim_slow_ns", 3 * period);
        let stall = plan(&format!("timer:{}us", period / 50), &["sim.ramp"]);
        let stall = fitted.engine.run(&stall);
        stall.start().expect("to start");
        let counts = settled(
            "kernel, all of it",
            &fitted.engine,
            busy(),
            period,
            &["sim.slow"],
        );
        assert!(counts.missed > 0, "{counts:?}");
        assert!(counts.merged > 0 || period == PERIODS[0], "{counts:?}");
        drop(stall);
        sim.set("sim_slow_ns", 0);
    }
}

#[test]
fn what_comes_through_uio_is_a_row_or_merged_by_the_card() {
    undisturbed();
    for period in PERIODS.map(|period| period * slowness()) {
        let slow = Slowness {
            every: 10,
            sleep: Duration::from_nanos(5 * period + period / 2),
        };
        let engine = user::User::default().with(Arc::new(slow));
        let fitted = pci::user_of(engine, &BOARD);
        let engine = &fitted.engine;
        let counts = settled("user, idle", engine, idle(), period, &[]);
        // A kernel that is no real-time one works now and then for longer than a period.
        let late = if is_rt() { 0 } else { idle() / period / 1000 };
        assert!(
            counts.missed + counts.merged <= late || slowness() > 1,
            "{counts:?}"
        );
        let counts = settled("user, slow", engine, idle(), period, &["slow.count"]);
        assert!(counts.merged > 0, "{counts:?}");
        let _hog = Counting::on(0);
        settled("user, busy", engine, busy(), period, &[]);
        settled(
            "user, busy and slow",
            engine,
            busy(),
            period,
            &["slow.count"],
        );
    }
}

/// The shortest period, in ns, down to which each of so many interrupts is a row, with a busy program on the only CPU.
fn shortest(what: &str, engine: &impl Engine) -> u64 {
    let ends = 5 * rounds(40, 200);
    let _hog = Counting::on(0);
    let lossless = |period: &u64| {
        let period = *period * slowness();
        settled(what, engine, ends * period, period, &[]) == all(ends)
    };
    let periods = [
        1000, 500, 200, 100, 50, 40, 30, 20, 15, 12, 10, 8, 7, 6, 5, 4, 3, 2,
    ];
    let found = periods.map(|us| us * 1000).into_iter().take_while(lossless);
    found.last().expect("a rate without a loss")
}

#[test]
fn up_to_a_high_rate_every_interrupt_of_a_card_is_a_row() {
    let _sim = Sim::well();
    let kernel = shortest("kernel, highest rate", &pci::kernel(&BOARD).engine);
    let user = shortest("user, highest rate", &pci::user(&BOARD).engine);
    println!("without a loss: kernel engine {kernel} ns, user engine {user} ns");
    // Real-time threads of the kernel may now and then hold the user engine up for longer than its shortest period.
    assert!(kernel <= 20_000 && user <= 1_000_000, "{kernel}, {user}");
}
