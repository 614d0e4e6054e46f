// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record --dry-run`, by the user engine.

use std::path::Path;

use serde_json::Value;

use crate::common::strobe;

/// Its exit status, standard output and standard error.
fn record(dir: &Path, words: &str) -> (Option<i32>, String, String) {
    let words = format!("record --engine user {words}");
    let output = strobe(dir, &words.split(' ').collect::<Vec<_>>());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn each_step_has_a_price_and_the_run_a_highest_rate() {
    let dir = tempfile::tempdir().expect("a directory");
    let words =
        "--event timer:100Hz --read sim.counter,file:/proc/loadavg --rows 5 --dry-run --json";
    let (status, said, errors) = record(dir.path(), words);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    let measured = &answer["measured"];
    let steps = measured["steps"].as_array().expect("steps");
    let p50 = |step: &Value| step["ns"]["p50"].as_i64().expect("ns");
    let names: Vec<&Value> = steps.iter().map(|step| &step["name"]).collect();
    assert_eq!(names, ["sim.counter", "file:/proc/loadavg"]);
    // A file is read by calls of the kernel, a counter is memory.
    assert!(p50(&steps[0]) < p50(&steps[1]), "{measured}");
    assert!(measured["highest_hz"].as_f64() > Some(100.0), "{measured}");
    let ring_s = measured["ring_s"].as_f64().expect("s");
    assert_eq!(Some(ring_s * 100.0), answer["ring_rows"].as_f64());
    let rehearsal = &measured["rehearsal"];
    assert!(rehearsal["rows"].as_u64() > Some(0), "{measured}");
    assert!(rehearsal["late_ns"]["max"].is_number(), "{measured}");
    assert!(measured["cpu_percent"].as_f64() > Some(0.0), "{measured}");
}

#[test]
fn an_event_without_a_period_has_no_rehearsal_and_prices_all_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let (status, said, _) = record(
        dir.path(),
        "--event soft --read sim.counter --dry-run --json",
    );
    assert_eq!(status, Some(0));
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    assert!(answer["measured"]["highest_hz"].is_number(), "{answer}");
    for none in ["rehearsal", "ring_s", "cpu_percent"] {
        assert!(answer["measured"][none].is_null(), "{none}: {answer}");
    }
}

#[test]
fn outputs_are_written_only_if_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = "--event timer:1kHz --set sim.latch=7 --read sim.counter --dry-run --json";
    let price = |words: &str| {
        let (status, said, errors) = record(dir.path(), words);
        assert_eq!(status, Some(0), "{errors}");
        let answer: Value = serde_json::from_str(&said).expect("JSON");
        let step = &answer["measured"]["steps"][0];
        assert_eq!(step["name"], "sim.latch");
        step["ns"].clone()
    };
    assert!(price(words).is_null());
    assert!(price(&format!("{words} --with-outputs"))["max"].is_number());
}

#[test]
fn what_is_impossible_is_refused_with_the_reason_unless_forced() {
    let dir = tempfile::tempdir().expect("a directory");
    let measured = "--event timer:1us --read file:/proc/loadavg --dry-run";
    let (status, said, errors) = record(dir.path(), measured);
    assert_eq!(status, Some(1));
    assert!(said.contains("highest rate"), "{said}");
    assert!(errors.contains("event timer:1us"), "{errors}");
    assert!(errors.contains("use a longer period"), "{errors}");
    assert_eq!(
        record(dir.path(), &format!("{measured} --force")).0,
        Some(0)
    );

    let known = "--event timer:1us --read file:/proc/loadavg --rows 3 -o -";
    let (status, said, errors) = record(dir.path(), known);
    assert_eq!((status, said.as_str()), (Some(1), ""));
    assert!(errors.contains("--force"), "{errors}");
    let (status, said, _) = record(dir.path(), &format!("{known} --force --allow-loss"));
    assert_eq!(status, Some(0));
    assert_eq!(
        said.lines().filter(|line| !line.starts_with('#')).count(),
        4,
        "{said}"
    );
}

#[test]
fn outputs_in_a_dry_run_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let (status, _, errors) = record(dir.path(), "--event soft --read sim.counter --with-outputs");
    assert_eq!(status, Some(1));
    assert!(errors.contains("--dry-run"), "{errors}");
}

#[test]
fn what_a_program_computes_is_in_the_price_of_a_row() {
    let dir = tempfile::tempdir().expect("a directory");
    let row = |columns: usize| {
        let columns = (0..columns).map(|n| format!("--derive x{n}=mean(sim.counter&255,2)"));
        let columns: Vec<_> = columns.collect();
        let words = "--event timer:1kHz --read sim.counter --dry-run --json";
        // Only some rows are kept: the price is of each.
        let words = format!("{words} --every 10 {}", columns.join(" "));
        let (status, said, errors) = record(dir.path(), words.trim_end());
        assert_eq!(status, Some(0), "{errors}");
        let answer: Value = serde_json::from_str(&said).expect("JSON");
        answer["measured"]["row_ns"]["min"].as_f64().expect("ns")
    };
    let (without, with) = (row(0), row(80));
    assert!(without < with, "{without} ns, and {with} ns with a program");
}
