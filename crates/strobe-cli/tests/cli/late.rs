// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why rows were late: what is said and kept, and that no tracing is left behind. Where this user may not trace, only
//! that this is said.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use strobe_measure::trace::{Instance, Settings, Tracefs};

use crate::common::skip::skip;
use crate::common::{Process, as_nobody, command, until};

/// Whether this user may trace.
fn may_trace() -> bool {
    Instance::create(&Settings::of([])).is_ok()
}

fn late(dir: &Path, words: &str) -> Output {
    let output = command(dir)
        .current_dir(dir)
        .args(words.split(' '))
        .output();
    output.expect("the program runs")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The instances of this process.
fn instances_of(pid: u32) -> usize {
    let tracefs = Tracefs::find().expect("a tracefs");
    let names = fs::read_dir(tracefs.dir().join("instances")).expect("instances");
    let mine = format!("strobe-{pid}-");
    let is_mine = |name: &fs::DirEntry| name.file_name().to_string_lossy().starts_with(&mine);
    names.flatten().filter(is_mine).count()
}

/// Each delay is divided without a rest, and its events are in a file.
fn assert_explained(dir: &Path, rows: &[Value]) {
    assert!(rows.iter().any(|row| row["cause"] != "unknown"), "{rows:?}");
    let number = |value: &Value| value.as_u64().expect("a number");
    for row in rows {
        let shares = row["shares"].as_array().expect("shares");
        let sum: u64 = shares.iter().map(|share| number(&share["ns"])).sum();
        assert_eq!(sum, number(&row["delay_ns"]), "{row}");
        assert!(row["cause"].is_string(), "{row}");
        let trace = row["trace"].as_str().expect("a file");
        let text = fs::read_to_string(dir.join(trace)).expect("a trace");
        assert!(text.starts_with(&format!("row {}, ", row["row"])), "{text}");
        // Of rows that came while others were looked at there are none.
        let is_known = row["cause"] != "unknown";
        assert!(text.contains(": sched_switch: ") || !is_known, "{text}");
    }
}

#[test]
fn the_worst_rows_of_all_rounds_are_explained_the_worst_first() {
    if !may_trace() {
        return skip("this user may not trace");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let words = "jitter --vs hybrid --rounds 2 --for 200ms --worst 3 --trace-to kept --json";
    let said = json(&late(dir.path(), words));
    for way in said["ways"].as_array().expect("ways") {
        let rows = way["late_rows"].as_array().expect("late rows");
        assert_eq!(rows.len(), 3, "{way}");
        assert_explained(dir.path(), rows);
        let delays: Vec<u64> = rows
            .iter()
            .filter_map(|row| row["delay_ns"].as_u64())
            .collect();
        assert!(delays.is_sorted_by(|one, next| one >= next), "{delays:?}");
    }
    let kept = fs::read_dir(dir.path().join("kept")).expect("traces");
    assert_eq!(kept.count(), 6, "three of each way");
}

#[test]
fn the_first_row_that_is_too_late_ends_the_measurement() {
    if !may_trace() {
        return skip("this user may not trace");
    }
    let dir = tempfile::tempdir().expect("a directory");
    // Every row is.
    let output = late(dir.path(), "jitter --for 1h --rounds 9 --stop-on 1ns");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.contains("\nrow 0, trigger 0, late "), "{said}");
    assert!(
        said.contains("\n  trace: strobe-late/block-row-0.txt\n"),
        "{said}"
    );
    assert!(dir.path().join("strobe-late/block-row-0.txt").exists());
}

#[test]
fn late_rows_of_a_recording_are_in_its_account() {
    if !may_trace() {
        return skip("this user may not trace");
    }
    let dir = tempfile::tempdir().expect("a directory");
    // Long enough that there are rows between two looks at the trace, however long a look takes.
    let record =
        "record --engine user --event timer:100Hz --read sim.counter --rows 300 --allow-loss";
    let said = json(&late(
        dir.path(),
        &format!("{record} --trace-late 1ns --json"),
    ));
    let rows = said["late_rows"].as_array().expect("late rows");
    assert!(rows.len() > 200, "{} late rows", rows.len());
    assert_explained(dir.path(), rows);
    let said = json(&late(dir.path(), &format!("{record} --json")));
    assert!(said.get("late_rows").is_none(), "it was not asked for");
}

#[test]
fn tracing_goes_with_the_program_however_it_ends() {
    if !may_trace() {
        return skip("this user may not trace");
    }
    let dir = tempfile::tempdir().expect("a directory");
    // Both on one CPU: a signal comes as soon as the program has made its instance.
    let cpus = sched_getaffinity(None).expect("the CPUs of this thread");
    let mut one = CpuSet::new();
    one.set(
        (0..CpuSet::MAX_CPU)
            .find(|cpu| cpus.is_set(*cpu))
            .expect("a CPU"),
    );
    sched_setaffinity(None, &one).expect("to stay on it");
    let kills = [Signal::KILL; 10];
    for signal in [Signal::INT, Signal::TERM, Signal::HUP]
        .into_iter()
        .chain(kills)
    {
        let child = command(dir.path())
            .current_dir(dir.path())
            .args(["jitter", "--for", "1h", "--worst", "3"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = Process(child.expect("the program runs"));
        let pid = child.0.id();
        until(|| (instances_of(pid) == 1).then_some(()));
        // When it handles signals it was long before it began to trace.
        child.signal(signal);
        let status = child.wait();
        match signal {
            // The guard has yet to notice.
            Signal::KILL => until(|| (instances_of(pid) == 0).then_some(())),
            _ => assert_eq!((status, instances_of(pid)), (Some(130), 0), "{signal:?}"),
        }
    }
}

#[test]
fn who_may_not_trace_is_told_so_with_the_remedy_before_anything_is_measured() {
    if may_trace() && !rustix::process::getuid().is_root() {
        return skip("this user may trace, and cannot be another one");
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (words, option) in [
        ("jitter --for 1h --worst 1", "block"),
        ("jitter --for 1h --stop-on 1ms", "block"),
        (
            "record --engine user --event timer:1kHz --read sim.counter --for 1h --trace-late 1ms",
            "--trace-late",
        ),
    ] {
        let mut command = as_nobody(dir.path());
        command
            .args(words.split(' '))
            .env("STROBE_RUNTIME_DIR", "/nonexistent");
        let output = command.output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("strobe: {option}: ")), "{said}");
        let remedy = [
            "mount -t tracefs tracefs /sys/kernel/tracing",
            "only root may trace",
        ];
        assert!(remedy.iter().any(|remedy| said.contains(remedy)), "{said}");
    }
}

#[test]
fn what_is_never_due_and_who_is_not_known_is_refused() {
    if !may_trace() {
        return skip("this user may not trace");
    }
    let dir = tempfile::tempdir().expect("a directory");
    for words in [
        "jitter --wait relative --for 1h --worst 1",
        "record --engine user --event soft --read sim.counter --for 1h --trace-late 1ms",
    ] {
        let output = late(dir.path(), words);
        assert_eq!(output.status.code(), Some(1), "{words}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("cannot be found out") && said.contains("use a timer"),
            "{said}"
        );
    }
}
