// SPDX-License-Identifier: MIT OR Apache-2.0
//! How soon a reader of the user engine has a row, in instructions: one that looks, and one that has asked to be woken at each
//! row, which costs a call a row.

use std::time::Duration;

use strobe::clock::monotonic;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::machine::{slowness, undisturbed};
use strobe_cases::{Engine, User, plan};

const ROWS: u64 = 200;

/// What is between a row's stamp and its reader, ns, sorted; and the calls that the thread made for it.
fn seen(is_woken: bool) -> (Vec<u64>, u64) {
    let run = User::open().run(&Plan {
        limit: Some(ROWS),
        ..plan("timer:100Hz", &["sim.counter"])
    });
    let mut reader = run.reader().expect("a reader");
    if is_woken {
        reader.wake_at_each_row().expect("to be woken");
    }
    run.start().expect("to start");
    let mut after = Vec::new();
    while let Some(block) = reader.next(Duration::from_secs(1)).expect("rows") {
        let now = monotonic();
        after.extend(block.rows().map(|row| now - row.time));
    }
    let snapshot = reader.snapshot();
    assert_eq!(after.len() as u64 + snapshot.missed(), ROWS);
    assert_eq!(snapshot.missed(), 0, "{snapshot:?}");
    after.sort_unstable();
    println!(
        "{}: {} .. {} .. {} ns",
        if is_woken { "woken" } else { "looks" },
        after[0],
        after[after.len() / 2],
        after[after.len() - 1]
    );
    (after, run.usage().unwrap_or_default().wakes)
}

#[test]
fn a_reader_that_asked_to_be_woken_has_each_row_within_50_us_for_a_call_a_row() {
    undisturbed();
    let (after, calls) = seen(true);
    let latest = after.last().copied().unwrap_or(u64::MAX);
    assert!(latest <= 50_000 * slowness(), "{latest} ns");
    // And some at its begin and its end.
    assert!((ROWS..ROWS + 10).contains(&calls), "{calls} calls");
}

#[test]
fn a_reader_that_looks_has_each_row_within_16_ms_and_costs_no_call() {
    undisturbed();
    let (after, calls) = seen(false);
    let latest = after.last().copied().unwrap_or(u64::MAX);
    assert!(latest <= 17_000_000 * slowness(), "{latest} ns");
    assert!(calls < 10, "{calls} calls");
}
