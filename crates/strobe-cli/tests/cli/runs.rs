// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the user engine, seen by other processes. Each test has a runtime directory of its own.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use strobe::engine::user::registry::Registry;
use strobe::ring::State;
use strobe::run::Run;

use crate::common::skip::skip;
use crate::common::{Process, answered, command, recorder, strobe, until};

const ENDLESS: [&str; 4] = ["--event", "timer:1kHz", "--read", "sim.counter"];

fn json(dir: &Path, command: &str) -> Value {
    let output = strobe(dir, &[command, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// What `strobe status` says of the runs of the user engine, once all owners have found the time to answer.
fn user_runs(dir: &Path) -> Vec<Value> {
    let status =
        until(|| Some(json(dir, "status")).filter(|s| s["silent"] == Value::Array(vec![])));
    let runs = status["runs"].as_array().expect("a list");
    let of_user = runs.iter().filter(|run| run["engine"] == "user");
    of_user.cloned().collect()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_run_of_another_process_is_shown_and_gone_when_it_has_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    assert_eq!(user_runs(dir.path()), [Value::Null; 0]);
    let mut run = recorder(dir.path(), &[&ENDLESS[..], &["--json"]].concat());
    let shown = until(|| {
        user_runs(dir.path())
            .pop()
            .filter(|run| run["rows"].as_u64() > Some(5))
    });
    assert_eq!(shown["run"], 1);
    assert_eq!(shown["event"], "timer");
    assert_eq!(shown["period_ns"], 1_000_000);
    assert_eq!(shown["state"], "running");
    assert_eq!(shown["program"], "strobe");
    assert_eq!(shown["pid"], run.0.id());
    assert_eq!(shown["channels"], 1);
    assert_eq!(shown["readers"], 1, "the recorder itself");
    let table = text(&answered(command(dir.path()).arg("status")));
    assert!(
        table.contains("timer:1ms") && table.contains("running"),
        "{table}"
    );
    let listed = until(|| {
        let list = json(dir.path(), "list");
        // None, if its owner was late.
        list["engines"][1]["catalogue"]["runs"][0]["run"].as_u64()
    });
    assert_eq!(listed, 1);
    run.signal(Signal::INT);
    assert_eq!(run.wait(), Some(130));
    assert_eq!(user_runs(dir.path()), [Value::Null; 0]);
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("the folder").count(),
        0
    );
}

#[test]
fn a_killed_recorder_leaves_no_ghost_and_its_reader_sees_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = recorder(dir.path(), &ENDLESS);
    let registry = Registry::at(dir.path());
    let attached = until(|| registry.attach(1).ok());
    let mut reader = attached.reader().expect("a reader");
    let mut buffer = vec![0; 1024 * reader.ring().row_words()];
    let mut rows = 0;
    while rows < 50 {
        reader.wait(1, Duration::from_secs(60)).expect("rows");
        rows += reader.read(&mut buffer).len() as u64;
    }
    assert_eq!(
        user_runs(dir.path())[0]["readers"],
        2,
        "the recorder and this test"
    );
    run.kill();
    assert!(dir.path().join("1.sock").exists(), "it could not clean up");
    let error = until(|| {
        let ended = reader.wait(1, Duration::from_secs(1)).err();
        rows += reader.read(&mut buffer).len() as u64;
        ended
    });
    assert_eq!(error.to_string(), "the run's program ended or closed it");
    let last = reader.snapshot();
    assert_eq!(
        last.state,
        State::Running,
        "nobody could change it any more"
    );
    let ring = reader.ring();
    assert_eq!(ring.delivered() + ring.lost() + ring.begun_at(), last.head);
    assert_eq!(ring.delivered(), rows);
    assert_eq!(last.triggers, last.head + last.missed());
    assert_eq!(text(&strobe(dir.path(), &["status"])), "no runs\n");
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("the folder").count(),
        0
    );
}

#[test]
fn the_reader_of_another_process_gets_every_row_to_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let limited = ["--event", "soft", "--read", "sim.counter", "--json"];
    let mut run = crate::common::recorder_with(dir.path(), &limited, Stdio::piped());
    let registry = Registry::at(dir.path());
    let attached = until(|| registry.attach(1).ok());
    let mut reader = attached.reader().expect("a reader");
    until(|| (reader.snapshot().state == State::Running).then_some(()));
    let mut lines = run.0.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut lines, &[b'\n'; 500]).expect("heard");
    drop(lines);
    let mut buffer = vec![0; 64 * reader.ring().row_words()];
    let mut values = Vec::new();
    while !reader.ring().ended() {
        reader
            .wait(1, Duration::from_secs(60))
            .expect("an end, and no error");
        let batch = reader.read(&mut buffer);
        values.extend(batch.rows().map(|row| (row.row, row.values[0])));
    }
    assert!(
        values.iter().copied().eq((0..500).map(|n| (n, n))),
        "{values:?}"
    );
    assert_eq!(reader.snapshot().head, 500);
    assert_eq!(reader.ring().lost(), 0);
    assert_eq!(run.wait(), Some(0));
}

#[test]
fn a_stopped_owner_does_not_hold_up_status() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = recorder(dir.path(), &ENDLESS);
    until(|| user_runs(dir.path()).pop());
    run.signal(Signal::STOP);
    // All of its threads stop, but not at once.
    until(|| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", run.0.id())).ok()?;
        stat.contains(") T ").then_some(())
    });
    let begun = Instant::now();
    let output = strobe(dir.path(), &["status"]);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    let expected = format!(
        "user:1 does not answer: its program is stopped or very busy (process {})\n",
        run.0.id()
    );
    assert_eq!(text(&output), expected);
    assert_eq!(json(dir.path(), "status")["silent"][0]["run"], 1);
    run.signal(Signal::CONT);
    until(|| user_runs(dir.path()).pop());
    run.kill();
}

#[test]
fn a_run_that_cannot_be_shown_goes_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let foreign = dir.path().join("file");
    std::fs::write(&foreign, "").expect("a file");
    let arguments = [
        &["record"],
        &ENDLESS[..],
        &["--engine", "user", "--rows", "5", "--allow-loss"],
    ];
    let output = strobe(&foreign, &arguments.concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = strobe(&foreign, &["status"]);
    assert_eq!(
        (output.status.code(), text(&output)),
        (Some(0), "no runs\n".into())
    );
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.contains("cannot list the user engine's runs"), "{why}");
    assert!(why.contains("STROBE_RUNTIME_DIR"), "{why}");
}

#[test]
fn both_engines_are_listed_and_a_missing_one_says_why() {
    let dir = tempfile::tempdir().expect("a folder");
    let list = json(dir.path(), "list");
    let [kernel, user] = [&list["engines"][0], &list["engines"][1]];
    assert_eq!(
        (&kernel["name"], &user["name"]),
        (&"kernel".into(), &"user".into())
    );
    assert_eq!(user["available"], true);
    let channels = user["catalogue"]["channels"].as_array().expect("a list");
    assert!(
        channels
            .iter()
            .any(|channel| channel["name"] == "sim.counter")
    );
    if Path::new("/dev/strobe").exists() {
        return skip("the kernel engine is loaded");
    }
    let text = text(&strobe(dir.path(), &["list"]));
    let why = "/dev/strobe: not available: the kernel engine is not loaded; load it as root: modprobe strobe";
    assert!(
        text.contains(&format!("  kernel  {why}\n  user    available\n")),
        "{text}"
    );
    assert_eq!(kernel["error"], why);
    assert_eq!(kernel["catalogue"], Value::Null);
}

#[cfg(feature = "plot")]
#[test]
fn a_run_is_drawn_as_far_as_its_ring_goes() {
    let dir = tempfile::tempdir().expect("a folder");
    let short = ["--ring", "64"];
    let _run = recorder(dir.path(), &[&ENDLESS[..], &short].concat());
    until(|| {
        let run = user_runs(dir.path()).pop()?;
        (run["rows"].as_u64() > Some(200)).then_some(())
    });
    let picture = dir.path().join("a.svg");
    let plot = |run: &str, name: &Path| {
        let name = name.to_str().expect("a name");
        answered(command(dir.path()).args(["plot", run, "-o", name]))
    };
    let output = plot("1", &picture);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{why}");
    let drawn = why.strip_prefix("strobe: user:1: the run goes on; drawn ");
    let drawn = drawn.and_then(|drawn| drawn.strip_suffix(" rows\n")?.parse::<u64>().ok());
    assert!(drawn.is_some_and(|rows| (1..=64).contains(&rows)), "{why}");
    let drawn = std::fs::read_to_string(&picture).expect("a picture");
    assert!(drawn.contains("sim.counter"));
    let output = plot("user:7", &dir.path().join("b.svg"));
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(why.starts_with("strobe: run user:7: "), "{why}");
    assert!(!dir.path().join("b.svg").exists());
}

#[test]
fn runs_of_several_processes_have_different_numbers() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut runs: Vec<Process> = (0..8).map(|_| recorder(dir.path(), &ENDLESS)).collect();
    until(|| (user_runs(dir.path()).len() == runs.len()).then_some(()));
    let numbers = user_runs(dir.path());
    let numbers = numbers.iter().filter_map(|run| run["run"].as_u64());
    assert!(numbers.eq(1..=8));
    runs.iter_mut().for_each(Process::kill);
    assert_eq!(user_runs(dir.path()), [Value::Null; 0]);
}

#[test]
fn what_is_not_there_yet_can_be_waited_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("value");
    let channel = format!("file:{}", file.display());
    let event = ["--event", "timer:1kHz", "--allow-loss"];
    let words = [&event[..], &["--read", &channel, "--rows", "5"]].concat();
    let refused = recorder(dir.path(), &words).wait();
    assert_eq!(refused, Some(1), "without being told to wait");
    let words = [&words[..], &["--wait-for-device"]].concat();
    let mut waiting = recorder(dir.path(), &words);
    std::thread::sleep(Duration::from_millis(300));
    assert!(matches!(waiting.0.try_wait(), Ok(None)), "it waits");
    std::fs::write(&file, "42\n").expect("to write");
    assert_eq!(waiting.wait(), Some(0));
    // And can be interrupted.
    std::fs::remove_file(&file).expect("to remove");
    let mut waiting = recorder(dir.path(), &words);
    waiting.until_it_hears(Signal::INT);
    waiting.signal(Signal::INT);
    assert_eq!(waiting.wait(), Some(130));
}

#[test]
fn a_run_follows_every_tenth_row_of_another_process_and_ends_when_that_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut fast = recorder(dir.path(), &[&ENDLESS[..], &["--json"]].concat());
    until(|| Registry::at(dir.path()).attach(1).ok());
    let of_it = [
        "--event",
        "run:1.row:10",
        "--read",
        "run:1.row,run:1.sim.counter,event.count",
        "-o",
        "-",
    ];
    let words = [&["record"], &of_it[..], &["--rows", "20", "--allow-loss"]].concat();
    let rows = answered(command(dir.path()).args(words));
    assert_eq!(rows.status.code(), Some(0), "{rows:?}");
    let text = text(&rows);
    let lines: Vec<Vec<u64>> = text
        .lines()
        .skip(1)
        .map(|line| {
            line.split(',')
                .filter_map(|cell| cell.parse().ok())
                .collect()
        })
        .collect();
    assert_eq!(lines.len(), 20, "{text}");
    for line in lines {
        let [.., row, counter, count] = line.as_slice() else {
            panic!("{line:?}");
        };
        assert_eq!((row % 10, row), (0, count), "{line:?}");
        assert_eq!(row, counter, "the simulator counts rows");
    }
    let follow = || recorder(dir.path(), &[&of_it[..4], &["--json"]].concat());
    let mut slow = follow();
    until(|| {
        // It ends at once if the owner was late.
        if slow.0.try_wait().expect("its state").is_some() {
            slow = follow();
        }
        Registry::at(dir.path()).attach(2).ok()
    });
    fast.kill();
    assert_ne!(slow.wait(), Some(0));
}
