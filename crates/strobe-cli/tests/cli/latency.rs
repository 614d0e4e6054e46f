// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency`, without a board: what needs one is in lab/cases.

use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Process, until};

fn latency(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strobe"))
        .arg("latency")
        .args(words.split(' '))
        .output()
        .expect("the program runs")
}

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
            "channel sim.counter: its unit is \"\", which is no unit of time",
        ),
        (
            vec!["timer:1kHz", "--latched", "clock.time,clock.elapsed"],
            "--latched: latched counters: 2 names for 1 events",
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
        (vec!["timer"], "add the rate or period"),
        (vec![], "<EV>"),
    ] {
        let output = hook(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn each_way_to_wake_a_thread_has_all_its_rounds() {
    let output = latency(
        "wake futex eventfd epoll --place same --policy other,fifo:1 --rounds 2 --count 50 --json",
    );
    assert_eq!(output.status.code(), Some(0));
    let said = json(&output);
    let ways = said["ways"].as_array().expect("ways");
    let names: Vec<&Value> = ways.iter().map(|way| &way["way"]).collect();
    assert_eq!(
        names,
        ["futex", "eventfd", "epoll", "futex", "eventfd", "epoll"]
    );
    for way in ways {
        assert_eq!(way["cpus"][0], way["cpus"][1], "{way}");
        let rounds = way["rounds"].as_array().expect("rounds");
        assert_eq!(rounds.len(), 2);
        let least = rounds.iter().map(|round| round["min"].as_i64()).min();
        assert_eq!(way["all"]["min"].as_i64(), least.flatten(), "{way}");
        assert!(way["all"]["min"].as_i64() > Some(0), "{way}");
        assert!(way["all"]["p99"].is_number() && rounds[0]["p99"].is_null());
    }
    let said = latency("wake pipe --place same --rounds 2 --count 20");
    let text = String::from_utf8(said.stdout).expect("text");
    for what in ["same CPU, fifo:60  min ", "\npipe  ", "\nover rounds  p50 "] {
        assert!(text.contains(what), "{what}: {text}");
    }
}

#[test]
fn ctrl_c_ends_the_waking_with_what_there_is() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_strobe"));
    let words = "latency wake poll --place same --count 1000000 --json";
    let child = program.args(words.split(' ')).stdout(Stdio::piped());
    let mut child = Process(child.spawn().expect("the program runs"));
    child.until_it_hears(Signal::INT);
    let threads = format!("/proc/{}/task", child.0.id());
    until(|| (std::fs::read_dir(&threads).ok()?.count() >= 3).then_some(()));
    child.signal(Signal::INT);
    let mut stdout = child.0.stdout.take().expect("its output");
    let said: Value = serde_json::from_reader(&mut stdout).expect("JSON");
    assert_eq!(child.wait(), Some(130));
    assert_eq!(said["interrupted"], true);
    assert_eq!(said["ways"][0]["rounds"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_cannot_be_is_refused_by_name_with_the_remedy() {
    for (words, part) in [
        ("wake --rate 0", "'0'"),
        ("wake --count 0", "'0'"),
        ("wake sleep", "there are spin, futex, eventfd,"),
        (
            "wake spin --place same",
            "--place: spin: a thread that never sleeps",
        ),
        ("wake futex futex --place same", "given twice"),
        ("wake --cpu 99999", "--cpu: CPU 99999: no such CPU"),
        (
            "wake --policy fifo:100",
            "write fifo:1 to fifo:99, or other",
        ),
        ("kernel soft", "soft: no device raises it"),
        ("kernel timer:1kHz --running a.b", "--latched"),
        ("kernel timer", "add the rate or period"),
        (
            "uio no-such-device",
            "UIO device no-such-device: no such device",
        ),
        ("uio x --rows 0", "'0'"),
        ("uio x --board none.toml", "--event"),
        ("gpio chip", "write CHIP/LINE"),
        ("gpio no-such-chip/4", "there is no chip no-such-chip"),
        (
            "gpio no-such-chip/4 --answer no-such-chip/5",
            "there is no chip",
        ),
        ("gpio a/1 --drive a/1", "given twice"),
        ("gpio a/1 --drive b/1 --answer b/2", "cannot be used with"),
        ("gpio a/1 --rate 0", "'0'"),
    ] {
        let output = latency(words);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {message}");
        assert!(message.contains(part), "{words}: {message}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}

#[test]
#[cfg(feature = "plot")]
fn what_was_measured_can_be_drawn() {
    let dir = tempfile::tempdir().expect("a directory");
    let (result, picture) = (dir.path().join("wake.json"), dir.path().join("wake.svg"));
    let words = "latency wake futex pipe --count 200 --rounds 1 --rate 10kHz --policy other --json";
    let output = crate::common::strobe(dir.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    std::fs::write(&result, &output.stdout).expect("to write");
    let (from, to) = (
        result.to_str().expect("a name"),
        picture.to_str().expect("a name"),
    );
    let drawn = crate::common::strobe(dir.path(), &["plot", from, "-o", to]);
    let said = String::from_utf8_lossy(&drawn.stderr).into_owned();
    assert_eq!((drawn.status.code(), said), (Some(0), String::new()));
    let text = std::fs::read_to_string(&picture).expect("a picture");
    for part in [
        "futex: p50 ",
        "pipe: p50 ",
        "CPU, other",
        "share of the rows",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
