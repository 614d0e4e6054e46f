// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--at URL`: the program on the machine of a server, which is a real one.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Process, command, strobe, until};
use crate::daemon::Daemon;

const RUN: [&str; 6] = [
    "--engine",
    "user",
    "--event",
    "timer:1kHz",
    "--read",
    "sim.counter,sim.sine",
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the program prints on the machine of this server.
fn at(dir: &Path, daemon: &Daemon, arguments: &[&str]) -> Output {
    strobe(dir, &[arguments, &["--at", &daemon.url]].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The only run of the server.
fn only_run(dir: &Path, daemon: &Daemon) -> Value {
    let status = json(&at(dir, daemon, &["status", "--json"]));
    let runs = status["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1, "{status}");
    runs[0].clone()
}

fn number(object: &Value, key: &str) -> u64 {
    let number = object[key].as_u64();
    number.unwrap_or_else(|| panic!("{key}: {object}"))
}

/// A recording of a run of the server that goes on; its file has rows when this returns.
fn recording(dir: &Path, daemon: &Daemon, file: &str) -> Process {
    let child = command(dir)
        .args(["record", "--at", &daemon.url, "--json", "-o", file])
        .args(RUN)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let recording = Process(child.expect("the program runs"));
    // More than a schema.
    let size = || std::fs::metadata(file).map_or(0, |about| about.len());
    until(|| (size() > 20_000).then_some(()));
    recording
}

/// The account and the exit status.
fn ended(mut recording: Process) -> (Value, Option<i32>) {
    let mut account = String::new();
    let mut output = recording.0.stdout.take().expect("a pipe");
    std::io::Read::read_to_string(&mut output, &mut account).expect("an account");
    let account = serde_json::from_str(&account).expect("one JSON object");
    (account, recording.wait())
}

/// Rows + missed + skipped are the triggers of the run, and what is in the file, with what was lost, its rows.
fn assert_adds_up(account: &Value, run: &Value) {
    let sum = number(account, "rows") + number(account, "missed") + number(account, "skipped");
    assert_eq!(sum, number(run, "triggers"), "{account} {run}");
    assert_eq!(number(account, "rows"), number(run, "rows"));
    for sink in account["outputs"].as_array().expect("sinks") {
        let sum = number(sink, "rows") + number(account, "lost");
        assert_eq!(sum, number(account, "rows"), "{account}");
    }
}

#[test]
fn the_rows_that_are_recorded_are_those_that_the_server_has() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (csv, arrows, again) = (file("a.csv"), file("a.arrows"), file("b.csv"));
    let record = ["record", "--rows", "500", "--json", "--allow-loss"];
    let sinks = ["-o", &csv, "-o", &arrows];
    let output = at(dir.path(), &daemon, &[&record[..], &RUN, &sinks].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let account = json(&output);
    assert_eq!(
        (&account["end"], &account["rows"]),
        (&"complete".into(), &500.into())
    );
    let run = only_run(dir.path(), &daemon);
    assert_adds_up(&account, &run);
    assert_eq!(
        (&run["state"], &run["engine"]),
        (&"done".into(), &"user".into())
    );
    let read = |name: &str| std::fs::read_to_string(name).expect("text");
    assert_eq!(read(&csv), daemon.asked("/api/runs/1/rows?format=csv"));
    // As one records a run of somebody else.
    let of_run = [
        "record",
        "--run",
        "1",
        "--allow-loss",
        "-o",
        &again,
        "--json",
    ];
    let output = at(dir.path(), &daemon, &of_run);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(read(&again), read(&csv));
    for key in [
        "rows",
        "missed",
        "missed_by",
        "skipped",
        "lost",
        "errors",
        "end",
    ] {
        assert_eq!(json(&output)[key], account[key], "{key}");
    }
    let converted = strobe(dir.path(), &["convert", &arrows, "-"]);
    assert_eq!(
        (converted.status.code(), text(&converted.stdout)),
        (Some(0), read(&csv))
    );
}

#[test]
fn an_interrupt_ends_the_run_and_its_last_rows_come() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let csv = dir.path().join("a.csv").display().to_string();
    let recording = recording(dir.path(), &daemon, &csv);
    recording.signal(Signal::INT);
    let (account, status) = ended(recording);
    assert_eq!(
        (status, &account["end"]),
        (Some(130), &"stopped".into()),
        "{account}"
    );
    let run = only_run(dir.path(), &daemon);
    assert_eq!(run["state"], "stopped");
    assert_adds_up(&account, &run);
}

#[test]
fn a_recording_ends_when_its_time_is_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let mut child = command(dir.path())
        .args(["record", "--at", &daemon.url, "--json", "--for", "300ms"])
        .args([
            "--engine",
            "user",
            "--event",
            "soft",
            "--read",
            "sim.counter",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    // It is not their end that ends it.
    let lines = child.stdin.take();
    let (account, status) = ended(Process(child));
    drop(lines);
    assert_eq!(
        (status, &account["end"]),
        (Some(0), &"complete".into()),
        "{account}"
    );
    assert_adds_up(&account, &only_run(dir.path(), &daemon));
}

#[test]
fn a_line_is_a_trigger_there_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::with(dir.path(), "[limits]\nrequests = 20\n");
    let mut child = command(dir.path())
        .args([
            "record",
            "--at",
            &daemon.url,
            "--json",
            "-o",
            "-",
            "--engine",
            "user",
        ])
        .args(["--event", "soft", "--read", "sim.counter"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut lines = child.stdin.take().expect("a pipe");
    lines.write_all(&[b'\n'; 60]).expect("heard");
    drop(lines);
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows = text(&output.stdout);
    let values: Vec<_> = rows
        .lines()
        .skip(1)
        .filter_map(|l| l.rsplit(',').next())
        .collect();
    let expected: Vec<_> = (0..60).map(|value| value.to_string()).collect();
    assert_eq!(values, expected, "more lines than the server hears at once");
}

#[test]
fn a_server_that_is_killed_leaves_an_honest_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut daemon = Daemon::new(dir.path());
    let arrows = dir.path().join("a.arrows").display().to_string();
    let recording = recording(dir.path(), &daemon, &arrows);
    daemon.process.kill();
    let (account, status) = ended(recording);
    assert_eq!(status, Some(3), "{account}");
    let rows = number(&account["outputs"][0], "rows");
    let end = account["end"].as_str().expect("an end");
    assert!(
        end.starts_with(&format!(
            "failed: {}: run 1: the rows were cut off before row ",
            daemon.url
        )),
        "{end}"
    );
    let converted = strobe(dir.path(), &["convert", &arrows, "-"]);
    let lines = text(&converted.stdout);
    let last = lines.lines().last().and_then(|line| line.split(',').next());
    let last: u64 = last.and_then(|row| row.parse().ok()).expect("a row");
    assert!(
        end.contains(&format!("before row {}:", last + 1)),
        "{end}: {last}"
    );
    assert_eq!(lines.lines().count() as u64 - 1, rows);
    assert_eq!(number(&account, "rows"), last + 1);
}

#[test]
fn what_cannot_be_recorded_leaves_no_run_and_no_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let csv = dir.path().join("a.csv").display().to_string();
    std::fs::write(&csv, "older\n").expect("a file");
    let output = at(
        dir.path(),
        &daemon,
        &[&["record", "-o", &csv][..], &RUN].concat(),
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let why = text(&output.stderr);
    assert!(
        why.contains("the file exists") && why.contains("--overwrite"),
        "{why}"
    );
    assert_eq!(std::fs::read_to_string(&csv).expect("text"), "older\n");
    let wrong = [
        "record",
        "--event",
        "timer:1kHz",
        "--read",
        "sim.nothing",
        "--engine",
        "user",
    ];
    let output = at(dir.path(), &daemon, &wrong);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{why}");
    assert!(
        why.contains(&daemon.url) && why.contains("sim.nothing"),
        "{why}"
    );
    let status = json(&at(dir.path(), &daemon, &["status", "--json"]));
    assert_eq!(status["runs"], Value::Array(Vec::new()));
    let local = ["--dry-run", "--force", "--wait-for-device"];
    for option in local {
        let output = at(
            dir.path(),
            &daemon,
            &[&["record", option][..], &RUN].concat(),
        );
        let why = text(&output.stderr);
        assert!(
            why.contains(option) && why.contains("this machine"),
            "{why}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_server_is_listed_like_this_machine() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let listing = json(&at(dir.path(), &daemon, &["list", "--json"]));
    let here = json(&strobe(dir.path(), &["list", "--json"]));
    let names = |listing: &Value, of: &str| -> Vec<String> {
        let list = listing["engines"][1]["catalogue"][of].as_array();
        let names = list
            .expect("a list")
            .iter()
            .map(|entry| entry["name"].to_string());
        names.collect()
    };
    for of in ["devices", "channels", "outputs", "events"] {
        assert!(!names(&listing, of).is_empty());
        assert_eq!(names(&listing, of), names(&here, of), "{of}");
    }
    assert_eq!(
        text(&at(dir.path(), &daemon, &["status"]).stdout),
        "no runs\n"
    );
    let csv = dir.path().join("a.csv").display().to_string();
    let _recording = recording(dir.path(), &daemon, &csv);
    let status = text(&at(dir.path(), &daemon, &["status"]).stdout);
    for part in ["running", "timer:1 ms", "user"] {
        let part = part.replace(' ', "");
        assert!(status.contains(&part), "{part}: {status}");
    }
    let list = text(&at(dir.path(), &daemon, &["list"]).stdout);
    assert!(
        list.contains("sim.counter") && list.contains("running"),
        "{list}"
    );
}

#[test]
fn a_channel_is_read_and_an_output_written_once_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let output = at(
        dir.path(),
        &daemon,
        &["get", "sim.counter,sim.sine", "--json"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let got = json(&output);
    assert_eq!(got["channels"][0]["channel"], "sim.counter");
    assert_eq!(got["channels"][0]["value"], 0);
    assert_eq!(got["channels"][1]["unit"], "V");
    assert!(got["channels"][1]["value"].is_number(), "{got}");
    assert!(number(&got, "time_ns") > 0);
    let output = at(dir.path(), &daemon, &["get", "sim.counter"]);
    assert!(
        text(&output.stdout).starts_with("sim.counter  0"),
        "{output:?}"
    );
    let output = at(dir.path(), &daemon, &["set", "sim.latch=1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let set = json(&output);
    assert_eq!(set["outputs"][0]["output"], "sim.latch");
    assert_eq!(set["outputs"][0]["written"], true, "{set}");
    for arguments in [["get", "sim.nothing"], ["set", "sim.nothing=1"]] {
        let output = at(dir.path(), &daemon, &arguments);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(
            why.contains(&daemon.url) && why.contains("sim.nothing"),
            "{why}"
        );
    }
    let output = at(dir.path(), &daemon, &["set", "sim.latch=1,sim.latch=0"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("twice"), "{output:?}");
    let output = at(
        dir.path(),
        &daemon,
        &["get", "sim.counter", "--engine", "user"],
    );
    assert!(text(&output.stderr).contains("--engine"), "{output:?}");
}

#[cfg(feature = "plot")]
#[test]
fn a_run_of_a_server_is_drawn_whether_it_goes_on_or_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (csv, live, done) = (file("a.csv"), file("live.svg"), file("done.svg"));
    let recording = recording(dir.path(), &daemon, &csv);
    let output = at(dir.path(), &daemon, &["plot", "1", "-o", &live]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        text(&output.stderr).contains("the run goes on; drawn "),
        "{output:?}"
    );
    recording.signal(Signal::INT);
    let (account, _) = ended(recording);
    let output = at(dir.path(), &daemon, &["plot", "1", "-o", &done]);
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
    let picture = std::fs::read_to_string(&done).expect("a picture");
    assert!(picture.contains("sim.sine") && picture.contains(&format!("{} rows", account["rows"])));
    assert!(
        std::fs::read_to_string(&live)
            .expect("a picture")
            .contains("sim.sine")
    );
    let output = at(dir.path(), &daemon, &["plot", "7", "-o", &file("x.svg")]);
    assert!(text(&output.stderr).contains("no such run"), "{output:?}");
}

#[test]
fn the_rows_of_a_run_of_a_server_are_judged_and_nothing_is_measured_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let record = ["record", "--rows", "300", "--json", "--allow-loss"];
    let output = at(dir.path(), &daemon, &[&record[..], &RUN].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = json(&at(dir.path(), &daemon, &["jitter", "1", "--json"]));
    let round = &said["ways"][0]["rounds"][0];
    assert_eq!((&round["rows"], &round["lost"]), (&300.into(), &0.into()));
    assert_eq!(said["target"]["period_ns"], 1_000_000);
    for (arguments, why) in [
        (&["jitter"][..], "jitter without a run: "),
        (&["jitter", "x.arrows"], "a recording: "),
    ] {
        let output = at(dir.path(), &daemon, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with(&format!("strobe: {why}it is for this machine")),
            "{said}"
        );
    }
}

#[cfg(feature = "watch")]
#[test]
fn a_run_of_a_server_is_watched_and_its_end_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(dir.path());
    let csv = dir.path().join("a.csv").display().to_string();
    let recording = recording(dir.path(), &daemon, &csv);
    let mut terminal = crate::terminal::Terminal::new(dir.path(), &["watch", "--at", &daemon.url]);
    let seen = terminal.sees("late: min");
    assert!(seen.starts_with("user:1  timer:1kHz  running  "), "{seen}");
    for part in [" a second, ", "\nlost      0", "sim.counter", " V "] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    recording.signal(Signal::INT);
    let (account, _) = ended(recording);
    let seen = terminal.sees("the run has ended");
    assert!(seen.contains("timer:1kHz  stopped"), "{seen}");
    terminal.sees(&format!("rows      {},", account["rows"]));
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}

#[cfg(feature = "watch")]
#[test]
fn of_the_runs_of_a_server_one_is_chosen_and_its_death_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut daemon = Daemon::new(dir.path());
    let csv = |n: u32| dir.path().join(format!("{n}.csv")).display().to_string();
    let _runs = [1, 2].map(|n| recording(dir.path(), &daemon, &csv(n)));
    let mut terminal = crate::terminal::Terminal::new(dir.path(), &["watch", "--at", &daemon.url]);
    terminal.sees("which run?");
    terminal.press("\u{1b}[B");
    terminal.press("\r");
    let seen = terminal.sees("late: min");
    assert!(seen.starts_with("user:2  "), "{seen}");
    daemon.process.kill();
    terminal.sees("failed: http://");
    terminal.sees("the run has ended");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}
