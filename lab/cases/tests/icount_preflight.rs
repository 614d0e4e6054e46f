// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe record --dry-run` predicts of the kernel engine, and what a recording then does.

use std::process::{Command, Output};

use serde_json::Value;
use strobe_cases::machine::slowness;

fn record(words: &str) -> Output {
    let output = Command::new("strobe")
        .args(["record", "--engine", "kernel", "--json"])
        .args(words.split(' '))
        .output();
    output.expect("strobe")
}

fn said(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The highest rate of this, in Hz.
fn highest(read: &str) -> f64 {
    let output = record(&format!("--event timer:1kHz --read {read} --dry-run"));
    assert!(output.status.success(), "{output:?}");
    let answer = said(&output);
    assert_eq!(answer["measured"]["rehearsal"]["missed"], 0, "{answer}");
    let highest = answer["measured"]["highest_hz"].as_f64();
    highest.expect("a rate")
}

/// The share of its triggers that this misses.
fn missed_at(hz: f64, read: &str) -> f64 {
    let period = (1e9 / hz).round();
    let words = format!("--event timer:{period}ns --read {read} --rows 20000 --allow-loss --force");
    let answer = said(&record(&words));
    let count = |what: &str| answer[what].as_f64().expect("a count");
    count("missed") / (count("missed") + count("rows"))
}

#[test]
fn below_the_highest_rate_rows_keep_up_and_above_it_they_do_not() {
    for read in [
        "sim.counter",
        "sim.counter,sim.sine,sim.noise,clock.time,clock.late",
    ] {
        let highest = highest(read);
        // The guest's other work takes its share at any rate.
        let below = missed_at(0.8 * highest, read);
        assert!(below < 0.02, "{read}: {highest} Hz, {below} missed");
        let above = missed_at(1.25 * highest, read);
        // Sanitizers make a row's time so uneven that the rate is a careful one.
        assert!(
            above > 0.02 || slowness() > 1,
            "{read}: {highest} Hz, {above} missed"
        );
    }
}

#[test]
fn a_channel_that_sleeps_is_priced_by_its_sleep() {
    let words = "--event timer:100Hz --read sim.counter,sim.slow --dry-run";
    let output = record(words);
    assert!(output.status.success(), "{output:?}");
    let answer = said(&output);
    let ns = |step: usize| answer["measured"]["steps"][step]["ns"]["p50"].as_i64();
    assert!(ns(0).expect("ns") < 10_000 * slowness() as i64, "{answer}");
    assert!(ns(1).expect("ns") >= 50_000, "{answer}");
    let output = record("--event timer:10us --read sim.slow --dry-run");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
