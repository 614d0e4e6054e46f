// SPDX-License-Identifier: MIT OR Apache-2.0
//! A card that interrupts faster than the machine can follow leaves others their part of the processor: what is beyond
//! the budget is not only refused, it is not delivered. And what the card has raised is still accounted for, to the last.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::fs;
use std::time::{Duration, Instant};

use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_board::{Board, Policy, System};
use strobe_cases::account::{begin, until};
use strobe_cases::pci::{Bound, cards, counted, get, put};
use strobe_cases::{Engine, Kernel, plan};
use strobe_ring::Missed;

const BOARD: &str = "/boards/lab-counter.toml";
/// Far too fast: a row takes longer than that.
const PERIOD: u64 = 1_000;
const STORM: u64 = 200_000_000;
/// In percent of the processor; the module's parameter `budget` leaves 20.
const LEFT: u64 = 12;

/// What a program gets done in the time of a storm.
fn work() -> u64 {
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < Duration::from_nanos(STORM) {
        done += 1;
    }
    done
}

fn a_storm_leaves_the_others_their_part(change: impl Fn(String) -> String) {
    let text = change(fs::read_to_string(BOARD).expect(BOARD));
    let board = Board::from_toml("a board", &text).expect("a good board");
    System::default()
        .install(&board, &text, Policy::FilesOnly)
        .expect("to install");
    let _card = Bound::to("strobe_board", &cards(0x1ab1)[0]);
    let engine = Kernel::open();
    let ends = STORM / PERIOD;
    put(
        &engine,
        &[
            ("counter.clear", 1),
            ("counter.period", PERIOD),
            ("counter.limit", ends),
        ],
    );
    let run = engine.run(&Plan {
        ring: Some(4096),
        ..plan(
            "counter.eoc",
            &[&["counter.index"][..], &["clock.time"; 64]].concat(),
        )
    });
    let (reader, _) = begin(&run);
    let all = work();
    run.start().expect("to start");
    put(&engine, &[("counter.run", 1)]);
    let left = work();
    until("the last end of count", || get(&engine, "counter.run") == 0);
    until("its row", || get(&engine, "counter.irq_status") == 0);
    run.stop().expect("to stop");

    let end = reader.snapshot();

    let (raised, merged) = counted(&engine, "counter", "eoc");
    let throttled = end.missed_by[Missed::Throttled as usize];
    let percent = 100 * left / all;
    println!(
        "{percent} % left; {raised} raised, {merged} merged, {} rows, {throttled} throttled",
        end.head
    );
    assert_eq!(raised, ends, "the card's own count");
    assert_eq!(end.triggers + merged, raised, "{end:?}");
    assert!(end.head > 0 && throttled > 0, "{end:?}");
    assert!(percent >= LEFT, "{percent} % are left");
}

#[test]
fn a_storm_of_messages_leaves_the_others_their_part() {
    a_storm_leaves_the_others_their_part(|text| text);
}

#[test]
fn a_storm_on_a_line_leaves_the_others_their_part() {
    a_storm_leaves_the_others_their_part(|text| {
        let lines = text.lines().filter(|line| !line.starts_with("vector"));
        let text: Vec<&str> = lines.collect();
        text.join("\n").replace("\"msix\"", "\"intx\"")
    });
}
