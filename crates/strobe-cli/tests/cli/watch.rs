// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe watch` and the progress line, on a pseudo-terminal.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Process, recorder, recorder_with, runs, strobe, until};
use crate::terminal::Terminal;

const ENDLESS: [&str; 4] = ["--event", "timer:1kHz", "--read", "sim.counter,sim.sine"];

/// A recording that can be seen.
fn running(dir: &Path) -> Process {
    let before = runs(dir);
    let run = recorder(dir, &ENDLESS);
    until(|| (runs(dir) == before + 1).then_some(()));
    run
}

#[test]
fn the_figures_appear_and_q_leaves() {
    let dir = tempfile::tempdir().expect("a folder");
    let _run = running(dir.path());
    let mut terminal = Terminal::new(dir.path(), &["watch"]);
    let text = terminal.sees("late: min");
    assert!(text.starts_with("user:1  timer:1kHz  running  "), "{text}");
    for part in [
        " a second, ",
        "\nmissed    ",
        "\nlost      0",
        "ring ",
        "sim.counter",
        " V ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(terminal.is_taken());
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
    terminal.sees("user:1 timer:1kHz: running, ");
    assert_eq!(runs(dir.path()), 1, "the run goes on");
}

#[test]
fn every_way_out_restores_the_terminal() {
    let dir = tempfile::tempdir().expect("a folder");
    let _run = running(dir.path());
    for keys in ["\u{1b}", "\u{3}", "Q"] {
        let mut terminal = Terminal::new(dir.path(), &["watch", "user:1"]);
        terminal.sees("q leaves");
        terminal.press(keys);
        assert_eq!(terminal.ends(), Some(0), "{keys:?}");
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = Terminal::new(dir.path(), &["watch", "1"]);
        terminal.sees("q leaves");
        terminal.process.signal(signal);
        assert_eq!(terminal.ends(), Some(0), "{signal:?}");
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_view_without_a_signal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let dir = tempfile::tempdir().expect("a folder");
    let _run = running(dir.path());
    // Not the controlling terminal of anybody, so that nobody is sent a SIGHUP.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .expect("a pseudo-terminal");
    grantpt(&master).expect("the other side");
    unlockpt(&master).expect("the other side");
    let name = ptsname(&master, Vec::new()).expect("its name");
    let line = rustix::fs::open(
        name,
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    let line = line.expect("the other side");
    let side = || std::process::Stdio::from(line.try_clone().expect("a descriptor"));
    let mut view = crate::common::command(dir.path());
    view.args(["watch", "user:1"])
        .stdin(side())
        .stdout(side())
        .stderr(side());
    let mut view = view.spawn().expect("the program");
    let mut seen = [0; 1];
    rustix::io::read(&master, &mut seen).expect("something is drawn");
    drop((master, line));
    let status = until(|| view.try_wait().expect("its state"));
    assert!(
        matches!(status.code(), Some(0 | 1)),
        "no signal, no panic: {status}"
    );
}

#[test]
fn no_window_is_too_small() {
    let dir = tempfile::tempdir().expect("a folder");
    let _run = running(dir.path());
    let mut terminal = Terminal::new(dir.path(), &["watch"]);
    terminal.sees("late: min");
    for (columns, rows) in [(20, 5), (1, 1), (3, 40), (200, 2)] {
        terminal.resize(columns, rows);
    }
    terminal.resize(100, 30);
    terminal.sees("late: min");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn the_end_of_a_run_is_said_and_its_figures_stay() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = running(dir.path());
    let mut terminal = Terminal::new(dir.path(), &["watch"]);
    terminal.sees("late: min");
    run.signal(Signal::INT);
    let text = terminal.sees("the run has ended");
    assert!(text.contains("timer:1kHz  stopped"), "{text}");
    assert!(
        text.contains("late: min") && text.contains("sim.counter"),
        "{text}"
    );
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn a_killed_owner_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = running(dir.path());
    let mut terminal = Terminal::new(dir.path(), &["watch"]);
    terminal.sees("late: min");
    run.kill();
    terminal.sees("failed: the run's program ended or closed it");
    terminal.sees("the run has ended");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(runs(dir.path()), 0, "no ghost");
}

#[test]
fn of_several_runs_one_is_chosen() {
    let dir = tempfile::tempdir().expect("a folder");
    let _runs = [running(dir.path()), running(dir.path())];
    let mut terminal = Terminal::new(dir.path(), &["watch"]);
    terminal.sees("which run?");
    terminal.press("\u{1b}[B");
    terminal.press("\r");
    let text = terminal.sees("late: min");
    assert!(text.starts_with("user:2  "), "{text}");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
    let mut terminal = Terminal::new(dir.path(), &["watch"]);
    terminal.sees("which run?");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn what_cannot_be_watched_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = strobe(dir.path(), &["watch"]);
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        why.contains("needs a terminal") && why.contains("strobe status --json"),
        "{why}"
    );
    for (arguments, why) in [
        (vec!["watch"], "strobe: there are no runs; start one"),
        (vec!["watch", "3"], "strobe: run 3: there are no runs"),
        (vec!["watch", "x"], "write its number"),
    ] {
        let mut terminal = Terminal::new(dir.path(), &arguments);
        terminal.sees(why);
        assert_eq!(terminal.ends(), Some(1), "{arguments:?}");
    }
}

#[test]
fn a_recording_on_a_terminal_shows_the_same_figures() {
    let dir = tempfile::tempdir().expect("a folder");
    let arguments = [&["record", "--engine", "user"], &ENDLESS[..]].concat();
    let mut terminal = Terminal::new(dir.path(), &arguments);
    let text = terminal.sees("late p50");
    for part in [
        " rows ",
        "/s missed ",
        " lost 0 ring ",
        "% late p50 ",
        " max ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Not Ctrl-C, which the terminal echoes into the line.
    terminal.process.signal(Signal::INT);
    assert_eq!(terminal.ends(), Some(130));
    let text = terminal.sees("stopped");
    assert!(!text.contains("ring "), "the line is gone: {text}");
}

/// The account of 500 software triggers, without what depends on time.
fn account(dir: &Path, is_watched: bool) -> Value {
    let event = ["--event", "soft", "--read", "sim.counter", "--json"];
    let mut run = recorder_with(dir, &event, Stdio::piped());
    until(|| (runs(dir) == 1).then_some(()));
    let mut watcher = is_watched.then(|| {
        let terminal = Terminal::new(dir, &["watch"]);
        terminal.sees("running");
        terminal
    });
    let mut lines = run.0.stdin.take().expect("a pipe");
    for _ in 0..500 {
        lines.write_all(b"\n").expect("heard");
    }
    if let Some(terminal) = &mut watcher {
        terminal.sees("rows      500,");
    }
    drop(lines);
    let mut json = String::new();
    let mut output = run.0.stdout.take().expect("a pipe");
    std::io::Read::read_to_string(&mut output, &mut json).expect("an account");
    assert_eq!(run.wait(), Some(0));
    if let Some(terminal) = &mut watcher {
        terminal.sees("the run has ended");
        terminal.press("q");
        assert_eq!(terminal.ends(), Some(0));
    }
    let mut account: Value = serde_json::from_str(&json).expect("one JSON object");
    let account = account.as_object_mut().expect("an object");
    for key in ["start_time_ns", "elapsed_s", "period_ns", "usage"] {
        account.remove(key).expect("the key is there");
    }
    Value::Object(account.clone())
}

#[test]
fn the_account_of_a_recording_is_the_same_with_and_without_a_watcher() {
    let dir = tempfile::tempdir().expect("a folder");
    let alone = account(dir.path(), false);
    assert_eq!(alone["rows"], 500);
    assert_eq!((&alone["missed"], &alone["lost"]), (&0.into(), &0.into()));
    assert_eq!(account(dir.path(), true), alone);
}

/// A recording of three seconds.
fn recorded(dir: &Path) -> String {
    let file = dir.join("a.arrows");
    let name = file.display().to_string();
    let recorded = strobe(
        dir,
        &[
            "record",
            "--engine",
            "user",
            "--event",
            "timer:1kHz",
            "--rows",
            "3000",
            "--read",
            "sim.counter,sim.sine",
            "--allow-loss",
            "-o",
            &name,
        ],
    );
    assert!(recorded.status.success(), "{recorded:?}");
    name
}

#[test]
fn a_replay_is_watched_like_a_live_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let name = recorded(dir.path());
    // It is running for as long as one looks at it; and it comes to its end.
    for (speed, is_endless) in [("0.01", true), ("1", false)] {
        let replay = crate::common::command(dir.path())
            .args(["replay", &name, "--speed", speed])
            .stderr(Stdio::null())
            .spawn();
        let mut replay = Process(replay.expect("the program runs"));
        until(|| (runs(dir.path()) == 1).then_some(()));
        let mut terminal = Terminal::new(dir.path(), &["watch", "1"]);
        let text = terminal.sees("late: min");
        for part in [" a second, ", "sim.sine", " V "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        if is_endless {
            assert!(text.starts_with("user:1  timer:1kHz  running  "), "{text}");
        } else {
            terminal.sees("done");
        }
        terminal.press("q");
        assert_eq!(terminal.ends(), Some(0));
        assert_eq!(replay.wait(), Some(0), "its last reader has gone");
    }
}

#[test]
fn a_recording_is_watched_as_a_replay_that_begins_at_once_and_ends_with_the_view() {
    let dir = tempfile::tempdir().expect("a folder");
    let name = recorded(dir.path());
    let mut terminal = Terminal::new(dir.path(), &["watch", &name]);
    let text = terminal.sees("late: min");
    // It lasts three seconds, of which a busy machine may take all.
    let title = |state: &str| text.contains(&format!("a.arrows  timer:1kHz  {state}  "));
    assert!(title("running") || title("done"), "{text}");
    for part in ["sim.sine", " V "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    terminal.sees("done");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(runs(dir.path()), 0);
}

#[test]
fn what_is_no_recording_is_not_watched_and_the_reason_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let name = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(name("b.arrows"), "no rows").expect("a file");
    for (file, why) in [
        ("a.arrows", "No such file"),
        ("b.arrows", "not a recording of"),
    ] {
        let mut terminal = Terminal::new(dir.path(), &["watch", &name(file)]);
        let text = terminal.sees(why);
        assert!(text.contains(file), "{text}");
        assert_eq!(terminal.ends(), Some(1), "{file}");
    }
}
