// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was in a file before is still there, whatever becomes of a recording.

use std::path::Path;
use std::process::Output;

/// A recording of five rows.
fn record(dir: &Path, more: &[&str]) -> Output {
    let words = "record --engine user --event timer:1kHz --read sim.counter --rows 5 --allow-loss";
    let mut command = crate::common::command(dir);
    command.args(words.split(' ')).args(more).current_dir(dir);
    command.output().expect("strobe runs")
}

fn text(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).expect("text")
}

/// A shell's answer; `$STROBE` is the program, whose runs are in this directory, as the files are.
fn shell(dir: &Path, script: &str) -> Output {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).current_dir(dir);
    shell.env("STROBE", env!("CARGO_BIN_EXE_strobe"));
    shell.env("STROBE_RUNTIME_DIR", dir);
    shell.output().expect("a shell")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn rows_on_standard_output_never_cut_what_was_in_the_file_before() {
    let dir = tempfile::tempdir().expect("a folder");
    let older = "12345678\n".repeat(20_000);
    std::fs::write(dir.path().join("older"), &older).expect("text");
    let record =
        "\"$STROBE\" record --engine user --event timer:10kHz --read sim.counter --ring 1024 -o -";
    for script in [
        format!("cp older all.csv; {record} >>all.csv"),
        format!("{{ cat older; {record}; }} >all.csv"),
    ] {
        // As on a disk that becomes full: no file has more than 200 KiB, and no signal comes.
        let output = shell(
            dir.path(),
            &format!("trap '' XFSZ; ulimit -f 400; {script}"),
        );
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("File too large"), "{said}");
        let text = std::fs::read_to_string(dir.path().join("all.csv")).expect("text");
        assert!(
            text.starts_with(&older),
            "{script}: {} bytes are left",
            text.len()
        );
        let rows = text[older.len()..].lines().count();
        assert!(rows > 100, "{script}: {rows} rows");
    }
}

#[test]
fn a_recording_is_overwritten_only_if_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    assert_eq!(record(dir, &["-o", "a.csv"]).status.code(), Some(0));
    let first = text(dir, "a.csv");
    for more in [
        vec!["-o", "a.csv"],
        vec!["-o", "./a.csv"],
        vec!["-o", "b.csv", "-o", "a.csv"],
    ] {
        let refusal = record(dir, &more);
        let said = stderr(&refusal);
        assert_eq!(refusal.status.code(), Some(1), "{said}");
        assert!(
            said.contains("a.csv: the file exists") && said.contains("--overwrite"),
            "{said}"
        );
        assert_eq!(text(dir, "a.csv"), first);
    }
    assert!(!dir.join("b.csv").exists());
    let again = record(dir, &["-o", "a.csv", "--overwrite"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(text(dir, "a.csv").lines().count(), 6);
    assert_ne!(text(dir, "a.csv"), first);
}

#[test]
fn numbers_dates_and_events_are_filled_into_names() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for _ in 0..2 {
        let recorded = record(
            dir,
            &[
                "-o",
                "scan-{n:05}.csv",
                "-o",
                "{event}-{n}.arrows",
                "--json",
            ],
        );
        assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    }
    for name in [
        "scan-00001.csv",
        "scan-00002.csv",
        "timer-1kHz-1.arrows",
        "timer-1kHz-2.arrows",
    ] {
        assert!(dir.join(name).exists(), "{name}");
    }
    let wrong = record(dir, &["-o", "scan-{number}.csv"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        stderr(&wrong).contains("use {n}, {n:05}, {date} or {event}"),
        "{}",
        stderr(&wrong)
    );
}
