// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency`, without a board: what needs one is in lab/cases.

use std::process::{Command, Output};

use serde_json::Value;

fn hook(more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strobe"))
        .args(["latency", "hook", "--engine", "user"])
        .args(more)
        .output()
        .expect("the program runs")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn two_events_are_measured_at_the_same_time_each_with_its_account() {
    let both = ["timer:1kHz", "timer:700us", "--rows", "50", "--json"];
    let output = hook(&[&both[..], &["--allow-loss"]].concat());
    assert_eq!(output.status.code(), Some(0));
    let said = json(&output);
    let runs = said["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 2);
    for (run, event) in runs.iter().zip(["timer:1kHz", "timer:700us"]) {
        assert_eq!((&run["event"], &run["rows"]), (&event.into(), &50.into()));
        assert_eq!(run["channels"][1], "clock.time#2");
        let of = |what: &str| run["delays"][what].clone();
        assert!(of("clock_ns")["min"].as_i64().expect("a number") > 0);
        assert!(of("interrupt_ns").is_null() && of("board").is_null());
        assert!(run["late_ns"]["max"].is_number());
    }
}

#[test]
fn the_table_has_a_line_for_each_delay_that_can_be_known() {
    let output = hook(&["timer:1kHz", "--rows", "5", "--allow-loss"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let begins = |what: &str| text.lines().any(|line| line.starts_with(what));
    assert!(begins("timer:1kHz: 5 rows in ") && begins("missed "));
    assert!(begins("late  ") && begins("clock.time read delay  ") && begins("period  "));
    assert!(!begins("interrupt latency") && !begins("channel read delay"));
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_remedy() {
    for (arguments, part) in [
        (
            vec!["timer:1kHz", "--running", "no.such"],
            "no such channel",
        ),
        (
            vec!["timer:1kHz", "--running", "sim.counter"],
            "channel sim.counter: its unit is \"\", not one of time",
        ),
        (
            vec!["timer:1kHz", "--latched", "clock.time,clock.elapsed"],
            "--latched: 2 names for 1 events",
        ),
        (
            vec![
                "timer:1kHz",
                "--running",
                "clock.time",
                "--latched",
                "sim.ramp",
            ],
            "sim.ramp",
        ),
        (vec!["timer:1kHz", "--read", "no.such"], "no such channel"),
        (vec!["timer:1kHz", "--set", "no.such=1"], "no such output"),
        (vec!["timer:1kHz", "--rows", "0"], "'0'"),
        (vec!["timer"], "say how often"),
        (vec![], "<EV>"),
    ] {
        let output = hook(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
