// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe jitter`, by the user engine and of recordings.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use strobe::engine::user::registry::Registry;

use crate::common::{Process, answered, command, recorder, strobe, until};

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn periods(report: &Value) -> u64 {
    ["in_range", "over", "under"]
        .iter()
        .map(|what| number(&report[*what]))
        .sum()
}

/// What it says of this, which cannot be; its exit status is 1.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = strobe(dir, &[&["jitter"], arguments].concat());
    assert_ne!(output.status.code(), Some(0), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ways_are_measured_in_turn_and_each_has_all_its_rounds() {
    let dir = tempfile::tempdir().expect("a directory");
    let words =
        "jitter --rate 500Hz --wait hybrid --vs block,relative --rounds 2 --for 100ms --json";
    let output = strobe(dir.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    let said = json(&output);
    assert_eq!(said["target"]["period_ns"], 2_000_000);
    assert_eq!(said["target"]["band_ns"], 60_000);
    let ways = said["ways"].as_array().expect("ways");
    let names: Vec<&Value> = ways.iter().map(|way| &way["way"]).collect();
    assert_eq!(names, ["hybrid", "block", "relative"]);
    for way in ways {
        let rounds = way["rounds"].as_array().expect("rounds");
        assert_eq!(rounds.len(), 2);
        let each: u64 = rounds.iter().map(periods).sum();
        assert_eq!(periods(&way["all"]), each, "{way}");
        for round in rounds {
            assert_eq!(periods(round) + 1, number(&round["rows"]), "{round}");
            assert!(number(&round["usage"]["cpu_ns"]) > 0);
            assert_eq!(round["set_up"][0]["what"], "memory");
        }
        // Who sleeps for a period after each row makes rows that are further apart.
        let drift = way["all"]["drift_ppm"].as_f64().expect("a drift");
        assert!(drift > 0.0 || way["way"] != "relative", "{drift} ppm");
    }
    assert!(ways[2]["all"]["late_ns"].is_null(), "it is never due");
}

#[test]
fn the_tables_name_each_way_and_what_was_not_got() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = "jitter --vs hybrid --rounds 2 --for 50ms --policy other";
    let output = strobe(dir.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("text");
    for what in [
        "period 1 ms, in range within 30 us of it; Linux ",
        "in range",
        "drift ppm",
        "p99.99",
        "over rounds",
        "\nblock ",
        "\nhybrid ",
        "late from",
    ] {
        assert!(text.contains(what), "{what}: {text}");
    }
}

#[test]
fn a_recording_is_judged_by_its_own_period_or_another() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("rows.arrows");
    let file = file.to_str().expect("a name");
    let words =
        "record --engine user --event timer:1kHz --read sim.counter --rows 200 --allow-loss -o";
    let words: Vec<&str> = words.split(' ').chain([file]).collect();
    assert_eq!(strobe(dir.path(), &words).status.code(), Some(0));

    let said = json(&strobe(dir.path(), &["jitter", file, "--json"]));
    assert_eq!(said["target"]["period_ns"], 1_000_000);
    let round = &said["ways"][0]["rounds"][0];
    assert_eq!((number(&round["rows"]), periods(round)), (200, 199));
    assert!(round["late_ns"]["p99"].is_number(), "{round}");

    let words = ["jitter", file, "--rate", "100us", "--json"];
    let said = json(&strobe(dir.path(), &words));
    let all = &said["ways"][0]["all"];
    assert!(number(&all["over"]) > number(&all["in_range"]), "{all}");

    // As after a crash: the account is not there. A busy machine may have
    // written all rows as one batch, of which half a file has none.
    let whole = std::fs::read(file).expect("the file");
    std::fs::write(file, &whole[..whole.len() / 2]).expect("to cut it");
    let output = strobe(dir.path(), &["jitter", file]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("failed: the recording was cut off"), "{text}");
    let said = json(&strobe(dir.path(), &["jitter", file, "--json"]));
    let round = &said["ways"][0]["rounds"][0];
    let rows = number(&round["rows"]);
    assert!(rows < 200, "{round}");
    assert_eq!(periods(round), rows.saturating_sub(1), "{round}");
}

#[test]
fn a_run_of_another_program_is_judged_for_a_time_or_to_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = ["--event", "timer:1kHz", "--read", "sim.counter"];
    let run = recorder(dir.path(), &run);
    let registry = Registry::at(dir.path());
    until(|| registry.attach(1).ok());
    let words = ["jitter", "user:1", "--for", "300ms", "--json"];
    let said = json(&answered(command(dir.path()).args(words)));
    assert_eq!(said["target"]["period_ns"], 1_000_000);
    let way = &said["ways"][0];
    assert_eq!(way["way"], "user:1");
    assert_eq!(way["rounds"][0]["end"], "complete");
    assert!(periods(&way["all"]) > 0, "{way}");
    assert!(way["all"]["late_ns"]["p99"].is_number(), "{way}");
    // To the end of the run, with any other period.
    let judge = || {
        let mut command = command(dir.path());
        let command = command.args(["jitter", "1", "--rate", "2ms", "--json"]);
        command.stdout(Stdio::piped()).spawn().expect("it runs")
    };
    let mut judging = judge();
    until(|| {
        // It ends at once if the owner was late with its answer.
        if judging.try_wait().expect("its state").is_some() {
            judging = judge();
        }
        let found = registry.runs().ok()?.runs.pop()?;
        (found.readers > 1).then_some(())
    });
    run.signal(Signal::INT);
    let output = judging.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = json(&output);
    assert_eq!(said["target"]["period_ns"], 2_000_000);
    assert_eq!(said["ways"][0]["rounds"][0]["end"], "stopped");
}

#[test]
fn an_event_without_a_period_needs_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("soft.arrows");
    let file = file.to_str().expect("a name");
    let words = "record --engine user --event soft --read sim.counter --rows 2 -o";
    let words: Vec<&str> = words.split(' ').chain([file]).collect();
    let lines = std::process::Stdio::from(tempfile_of(dir.path(), "\n\n"));
    let done = command(dir.path()).args(words).stdin(lines).output();
    assert_eq!(done.expect("the program runs").status.code(), Some(0));
    let said = refused(dir.path(), &[file]);
    assert!(
        said.contains("--rate: ") && said.contains("has no period; name the period to judge by"),
        "{said}"
    );
    assert_eq!(
        strobe(dir.path(), &["jitter", file, "--rate", "1s"])
            .status
            .code(),
        Some(0)
    );
}

fn tempfile_of(dir: &Path, text: &str) -> std::fs::File {
    let path = dir.join("lines");
    std::fs::write(&path, text).expect("to write");
    std::fs::File::open(path).expect("to open")
}

#[test]
fn what_cannot_be_is_said_before_anything_is_measured() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |words: &str| refused(dir.path(), &words.split(' ').collect::<Vec<_>>());
    for (words, why) in [
        ("--rate 0", "`0`"),
        ("--rate 0Hz", "more than 0"),
        ("--rate 1GHz", "not a unit"),
        ("--rate 2MHz", "period"),
        ("--band 0%", "more than 0% and less than 100%"),
        ("--band 0us", "more than 0"),
        (
            "--band 1ms --rate 1kHz",
            "--band: a band of 1 ms is as long as the period",
        ),
        (
            "--band +3%-1ms --rate 1kHz",
            "as long as the period or longer",
        ),
        ("--band +3%", "write both sides, as in +3%-100us"),
        ("--read no.such", "channel no.such: no such channel"),
        ("--set sim.latch", "write OUTPUT=VALUE"),
        ("--set sim.nothing=1", "output sim.nothing: no such output"),
        (
            "--board nosuch",
            "--board: board nosuch: there is no nosuch.toml in ",
        ),
        (
            "--judge nosuch",
            "--judge: nosuch: output nosuch.output: no such output",
        ),
        (
            "--judge nosuch --band +3%-4%",
            "has one tolerance for both sides",
        ),
        ("x.arrows --judge counter", "cannot be used with"),
        (
            "--wait sleep",
            "block, hybrid, spin, relative, kernel:timer",
        ),
        ("--vs block", "given twice"),
        ("--vs hybrid,hybrid", "given twice"),
        ("--vs block/other,block/other", "given twice"),
        ("--wait kernel:timer/other", "the policy of kernel:timer"),
        (
            "--wait kernel:timer --policy other",
            "--policy: none of these ways uses",
        ),
        ("--load disk", "[possible values: cpu, vm, io, switch]"),
        (
            "--policy fifo:0",
            "fifo:1 to fifo:99, or other; or deadline",
        ),
        ("--cpu 4095", "--cpu: CPU 4095: no such CPU"),
        ("--rounds 0", "1..=1000"),
        ("nothing.arrows", "nothing.arrows"),
        ("x.arrows --load cpu", "cannot be used with"),
        (
            "x.arrows --for 1s",
            "--for: a recording is looked at to its end; leave it out",
        ),
        ("user:1 --vs hybrid", "cannot be used with"),
        ("user:1", "run user:1: there are no runs"),
        ("nothing", "write its number"),
    ] {
        let said = refused(words);
        assert!(said.contains(why), "{words}: {said}");
    }
}

#[test]
fn without_stress_ng_a_load_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = command(dir.path());
    let command = command.env("PATH", dir.path());
    let output = command
        .args(["jitter", "--load", "cpu", "--for", "10ms"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("apt install stress-ng"), "{said}");
}

#[test]
fn what_was_measured_can_be_drawn_and_else_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = "jitter --rate 1kHz --for 200ms --rounds 2 --wait hybrid --vs relative --json";
    let output = strobe(dir.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    let said = json(&output);
    let missed = |part: &Value| number(&part["missed"]);
    for way in said["ways"].as_array().expect("ways") {
        for round in way["rounds"].as_array().expect("rounds") {
            let parts = round["timeline"]["parts"].as_array().expect("parts");
            let rows: u64 = parts.iter().map(|part| number(&part["rows"])).sum();
            assert_eq!(rows, number(&round["rows"]), "{way}");
            // Those behind the last row are in no part.
            assert!(parts.iter().map(missed).sum::<u64>() <= number(&round["missed"]));
        }
        let counted = number(&way["histogram"]["period"]["count"]);
        assert_eq!(counted, periods(&way["all"]));
    }
    let plot = |what: &str| {
        let name = |extension: &str| dir.path().join(format!("{what}.{extension}"));
        let [from, to] = ["json", "svg"].map(|extension| name(extension).display().to_string());
        strobe(dir.path(), &["plot", &from, "-o", &to])
    };
    std::fs::write(dir.path().join("said.json"), &output.stdout).expect("a file");
    let drawn = plot("said");
    assert_eq!(drawn.status.code(), Some(0), "{drawn:?}");
    let picture = std::fs::read_to_string(dir.path().join("said.svg")).expect("a picture");
    for way in ["hybrid: ", "relative: ", "1 ms, in range within 30 us"] {
        assert!(picture.contains(way), "{way}");
    }
    for wrong in [
        "{}",
        "[1]",
        "",
        "{\"target\":{\"period_ns\":1,\"band_ns\":0},\"machine\":{\"kernel\":\"x\"},\"ways\":[]}",
    ] {
        std::fs::write(dir.path().join("wrong.json"), wrong).expect("a file");
        let drawn = plot("wrong");
        assert_eq!(drawn.status.code(), Some(1), "{wrong}");
        let said = String::from_utf8_lossy(&drawn.stderr).into_owned();
        assert!(said.contains("wrong.json"), "{said}");
        assert!(!dir.path().join("wrong.svg").exists(), "{wrong}");
    }
}

#[test]
fn a_rate_beyond_the_machine_is_said_to_be_one() {
    let dir = tempfile::tempdir().expect("a directory");
    // Each sleep takes longer than that.
    let words = ["jitter", "--rate", "1us", "--for", "50ms"];
    let output = strobe(dir.path(), &words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("cannot keep up with this rate"), "{said}");
    let words = ["jitter", "--rate", "100Hz", "--for", "50ms"];
    let output = strobe(dir.path(), &words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("beyond"), "{said}");
}

/// A directory with a stress-ng of our own, which does this.
fn stress_ng(does: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join("stress-ng");
    std::fs::write(&program, format!("#!/bin/sh\n{does}\n")).expect("a program");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("to be run");
    dir
}

/// `strobe jitter` beside it.
fn loaded(dir: &Path, time: &str) -> std::process::Command {
    let path = std::env::var("PATH").expect("a path");
    let mut command = command(dir);
    command
        .env("PATH", format!("{}:{path}", dir.display()))
        .args(["jitter", "--load", "cpu", "--for", time, "--json"]);
    command
}

#[test]
fn a_load_that_ends_by_itself_was_none() {
    let dir = stress_ng("echo stress-ng: no CPU >&2; exit 4");
    // Whether it is there is looked at after each round. How soon it is not depends on the machine.
    let output = loaded(dir.path(), "50ms")
        .args(["--rounds", "1000"])
        .output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("stress-ng: no CPU"), "{said}");
    assert!(said.contains("exit status: 4"), "{said}");
}

#[test]
fn the_load_goes_with_the_program_however_that_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let dir = stress_ng("echo $$ >\"${0%/*}/pid\"; exec sleep 300");
        let pid_file = dir.path().join("pid");
        let child = loaded(dir.path(), "5min").stdout(Stdio::null()).spawn();
        let mut child = Process(child.expect("it runs"));
        let pid = until(|| {
            let pid = std::fs::read_to_string(&pid_file).ok()?;
            pid.trim_end().parse::<u32>().ok()
        });
        child.signal(signal);
        child.0.wait().expect("to end");
        until(|| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            // A dead process that nobody has waited for yet is Z.
            stat.map_or(true, |stat| stat.contains(" Z ")).then_some(())
        });
    }
}

#[test]
fn who_interrupts_it_gets_what_there_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = dir.path().join("said");
    let child = command(dir.path())
        .args(["jitter", "--for", "1h", "--json"])
        .stdout(std::fs::File::create(&output).expect("a file"))
        .spawn();
    let mut child = Process(child.expect("the program runs"));
    let begun = Instant::now();
    let runs = || json(&strobe(dir.path(), &["status", "--json"]))["runs"].clone();
    while !runs()
        .as_array()
        .is_some_and(|runs| runs.iter().any(|run| run["rows"].as_u64() > Some(50)))
    {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not begin"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.signal(Signal::INT);
    assert_eq!(child.wait(), Some(130));
    let said = std::fs::read(&output).expect("what it said");
    let said: Value = serde_json::from_slice(&said).expect("JSON");
    assert_eq!(said["interrupted"], true);
    assert!(periods(&said["ways"][0]["all"]) >= 50, "{said}");
}

#[test]
fn a_band_may_be_wider_below_and_each_row_may_have_its_work() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = "jitter --rate 500Hz --band +1%-200us --read sim.counter,clock.time --set sim.latch=3 --for 100ms --json";
    let output = strobe(dir.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    let said = json(&output);
    assert_eq!(said["target"]["band_ns"], 20_000);
    assert_eq!(said["target"]["under_ns"], 200_000);
    let words = "jitter --rate 500Hz --band +1%-200us --for 50ms";
    let output = strobe(dir.path(), &words.split(' ').collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.starts_with("period 2 ms, in range up to 20 us longer or 200 us shorter; "),
        "{said}"
    );
}

#[test]
fn what_has_been_counted_is_to_be_seen_while_it_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = "jitter --rate 100Hz --band 50% --for 30s --policy other";
    let words: Vec<&str> = words.split(' ').collect();
    let terminal = crate::terminal::Terminal::new(dir.path(), &words);
    terminal.sees("in range ");
}
