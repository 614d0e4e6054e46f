// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls of a run's thread, as strace counts them from outside.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Rows of a run.
const ROWS: u64 = 300;
/// Calls of each kind that setting up and ending may take.
const AROUND: u64 = 10;

/// The account of a run, and how often its thread made which call.
fn traced(wait: &str, channels: &str) -> (Value, BTreeMap<String, u64>) {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = dir.path().join("trace");
    let rows = ROWS.to_string();
    let mut strace = Command::new("strace");
    strace.env("STROBE_RUNTIME_DIR", dir.path());
    // -Y: with the name of the thread.
    strace.args(["-f", "-qq", "-Y", "-o"]).arg(&trace);
    strace.arg(env!("CARGO_BIN_EXE_strobe"));
    strace.args([
        "record",
        "--json",
        "--engine",
        "user",
        "--event",
        "timer:1kHz",
    ]);
    strace.args([
        "--wait",
        wait,
        "--rows",
        &rows,
        "--read",
        channels,
        "--allow-loss",
    ]);
    let output = strace
        .output()
        .expect("strace, which `make setup` installs");
    assert!(output.status.success(), "{output:?}");
    let account = serde_json::from_slice(&output.stdout).expect("an account");
    (account, calls(&trace))
}

/// Calls that were begun; what strace says of their end is left out.
fn calls(trace: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(trace).expect("a trace");
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let call = line.split_once("<strobe-run> ").map(|(_, call)| call);
        if let Some((name, _)) = call.and_then(|call| call.split_once('(')) {
            if !name.starts_with('<') {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    calls
}

/// Asserts that the calls that come with rows are so many each, and the others few.
fn are(wait: &str, channels: &str, per_row: &[(&str, u64)]) {
    let (account, calls) = traced(wait, channels);
    let rows = account["rows"].as_u64().expect("rows");
    assert_eq!(rows, ROWS, "{account}");
    for (name, count) in &calls {
        let each = per_row.iter().find(|(per_row, _)| per_row == name);
        let each = each.map_or(0, |(_, each)| *each);
        let expected = rows * each..=rows * each + AROUND;
        assert!(
            expected.contains(count),
            "{count} of {name} in {rows} rows, {wait}: {calls:?}"
        );
    }
    for (name, _) in per_row {
        assert!(calls.contains_key(*name), "no {name}: {calls:?}");
    }
}

#[test]
fn a_row_of_a_timer_takes_one_system_call_which_is_the_wait() {
    are(
        "block",
        "sim.counter,event.time,event.count,clock.late",
        &[("futex", 1)],
    );
}

#[test]
fn a_row_that_is_spun_for_takes_none() {
    are("spin", "sim.counter", &[]);
}

#[test]
fn a_file_takes_one_system_call_more() {
    are(
        "block",
        "file:/proc/uptime",
        &[("futex", 1), ("pread64", 1)],
    );
    are(
        "spin",
        "file:/proc/uptime,file:/proc/loadavg",
        &[("pread64", 2)],
    );
}
