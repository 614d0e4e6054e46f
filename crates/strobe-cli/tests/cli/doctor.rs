// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe doctor` on this machine, whatever it is; and on one of which less is to be seen.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use strobe::note::State;
use strobe_files::journal::Journal;
use strobe_measure::doctor::{CHECKS, When};

use crate::common::skip::skip;
use crate::common::strobe;

fn doctor(arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    strobe(dir.path(), &[&["doctor"], arguments].concat())
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// State of each check, by its name.
fn states(said: &Value) -> BTreeMap<String, String> {
    let lines = said["checks"].as_array().expect("checks");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let pairs = lines
        .iter()
        .map(|line| (text(&line["check"]), text(&line["state"])));
    pairs.collect()
}

#[test]
fn each_check_says_how_it_is_and_what_it_saw() {
    let output = doctor(&["--json", "--wait", "spin"]);
    let said = json(&output);
    let lines = said["checks"].as_array().expect("checks");
    let names: Vec<&str> = lines
        .iter()
        .map(|line| line["check"].as_str().expect("a name"))
        .collect();
    let all: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names, all);
    for line in lines {
        let is_advice = line["state"] == "advice";
        assert_eq!(line["remedy"].is_string(), is_advice, "{line}");
        assert!(
            line["evidence"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{line}"
        );
    }
    let count = |state: &str| said[state].as_u64().expect("a number");
    let sum = count("ok") + count("advice") + count("unknown");
    assert_eq!(sum, all.len() as u64);
    let whole = count("ok") == sum;
    assert_eq!(output.status.code(), Some(if whole { 0 } else { 3 }));
    assert!(said["proofs"].is_null());
}

#[test]
fn the_table_has_each_subject_and_each_remedy() {
    let output = doctor(&[]);
    let text = String::from_utf8(output.stdout).expect("text");
    for subject in [
        "permission",
        "kernel",
        "cpu",
        "power",
        "memory",
        "upkeep",
        "machine",
        "strobe",
    ] {
        assert!(
            text.lines().any(|line| line == subject),
            "{subject}: {text}"
        );
    }
    let advices = text
        .lines()
        .filter(|line| line.starts_with("  advice "))
        .count();
    let remedies = text
        .lines()
        .filter(|line| line.trim_start().starts_with("-> "))
        .count();
    assert_eq!(advices, remedies, "{text}");
    let end = text.lines().last().expect("a line");
    assert!(end.contains(&format!("{advices} advice")), "{end}");
}

#[test]
fn the_exit_status_is_that_of_the_checks_that_are_named() {
    // The machine may be otherwise the next time: status and state are of one look.
    for check in CHECKS.iter().filter(|check| check.when == When::Always) {
        let output = doctor(&["--json", check.name]);
        let states = states(&json(&output));
        let is_ok = states.values().all(|state| state == "ok");
        assert!(states.contains_key(check.name), "{states:?}");
        let status = if is_ok { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(status), "{states:?}");
    }
}

#[test]
fn what_cannot_be_is_named() {
    for (words, why) in [
        (
            "humours",
            "humours: no such check; there are fifo, memory-lock,",
        ),
        ("spinning", "add --wait spin"),
        ("--cpu 4095", "--cpu: CPU 4095: no such CPU"),
        ("--priority 100", "1..=99"),
        ("--rounds 5", "--prove"),
    ] {
        let output = doctor(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(output.stdout.is_empty(), "{words}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(why), "{words}: {said}");
    }
}

#[test]
fn a_proof_of_two_rounds_has_figures_and_no_verdict() {
    let output = doctor(&[
        "timers", "--prove", "--rounds", "2", "--for", "150ms", "--json",
    ]);
    let said = json(&output);
    let proofs = said["proofs"].as_array().expect("proofs");
    let advices: Vec<&Value> = proofs.iter().map(|proof| &proof["advice"]).collect();
    assert_eq!(advices, ["fifo", "hybrid", "idle-states", "one-cpu"]);
    for proof in proofs {
        for figure in [&proof["p50"], &proof["p99"]] {
            assert!(figure["verdict"].is_null(), "{proof}");
            for side in ["without_ns", "with_ns"] {
                let range = &figure[side];
                assert!(
                    range["least"].as_i64() <= range["most"].as_i64() && range["least"].is_i64(),
                    "{proof}"
                );
            }
        }
        assert!(proof["refused"].is_string(), "{proof}");
    }
    let output = doctor(&["timers", "--prove", "--rounds", "2", "--for", "150ms"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("no verdict: "), "{text}");
}

/// Nothing may be written, no capability is left, no device is there, and processes are those of a container.
const CONTAINER: &str = "mount -t proc proc /proc && mount -o bind /sys /sys && mount -o remount,bind,ro /sys && \
                         mount -t tmpfs tmpfs /dev && ";

#[test]
fn in_a_container_nothing_is_ok_that_is_not_ok_outside() {
    let program = env!("CARGO_BIN_EXE_strobe");
    let inside = |command: &str| {
        let script = format!("{CONTAINER}{command}");
        let words = ["--mount", "--pid", "--fork", "sh", "-c", &script];
        Command::new("unshare")
            .args(words)
            .output()
            .expect("unshare, of util-linux")
    };
    let drop = "exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs";
    if !inside(&format!("{drop} {program} --version"))
        .status
        .success()
    {
        return skip("this machine does not allow to make a container");
    }
    let outside = states(&json(&doctor(&["--json"])));
    let output = inside(&format!("{drop} {program} doctor --json"));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = json(&output);
    for (name, state) in states(&said) {
        let may_change = CHECKS
            .iter()
            .any(|check| check.name == name && check.when == When::Watched);
        assert!(
            state != "ok" || outside[&name] == "ok" || may_change,
            "{name}: {said}"
        );
    }
    let inside = states(&said);
    for (name, state) in [
        ("fifo", "advice"),
        ("device", "advice"),
        ("rt-tasks", "unknown"),
        ("irq-threads", "unknown"),
        ("irqbalance", "unknown"),
    ] {
        assert_eq!(inside[name], state, "{name}: {said}");
    }
}

#[test]
fn a_recording_says_how_the_machine_was_and_a_copy_of_it_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, copy) = (dir.path().join("a.arrows"), dir.path().join("b.arrows"));
    let (file, copy) = (
        file.to_str().expect("a name"),
        copy.to_str().expect("a name"),
    );
    let words =
        "record --engine user --event timer:1kHz --read sim.counter --rows 10 --allow-loss -o";
    let words: Vec<&str> = words.split(' ').chain([file]).collect();
    assert_eq!(strobe(dir.path(), &words).status.code(), Some(0));
    assert_eq!(
        strobe(dir.path(), &["convert", file, copy]).status.code(),
        Some(0)
    );
    let of = |file: &str| {
        let journal = Journal::open(Path::new(file)).expect("a recording");
        journal.info().doctor.clone()
    };
    let noted = of(file);
    let quick = CHECKS.iter().filter(|check| check.when == When::Always);
    assert_eq!(noted.len(), quick.count());
    assert_eq!(of(copy), noted);
    // What the run has got by the same means.
    let journal = Journal::open(Path::new(file)).expect("a recording");
    let policy = journal
        .info()
        .set_up
        .iter()
        .find(|step| step.what == "policy");
    let fifo = noted.iter().find(|noted| noted.check == "fifo");
    let is_ok = fifo.map(|noted| noted.state == State::Ok);
    assert_eq!(is_ok, policy.map(|step| step.ok));
}
