// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe replay`, and `strobe record --run`: a recording of a recording is the same recording.

use std::ffi::OsStr;
use std::fs::{File, read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use strobe::channel::{Channel, Class, Type};
use strobe::info::{Clock, End, RunInfo, Totals};
use strobe::ring::{Engine, Rows, StartTimes};
use strobe::samples;
use strobe_files::sink::Sink;
use strobe_files::sink::arrow::ArrowFile;

use crate::common::{Process, answered, command, runs, strobe, until};

/// With all that the kernel engine's recordings can have: two channels, an output, triggers that were skipped.
fn info() -> RunInfo {
    let channel = |name: &str, kind, scale| Channel {
        name: name.to_owned(),
        description: "made up".to_owned(),
        unit: "V".to_owned(),
        kind,
        class: Class::Hard,
        scale,
        offset: 0.0,
        bits: 64,
        cost_ns: 0,
        in_use: false,
    };
    RunInfo {
        engine: Engine::Kernel,
        kernel: "6.12.0".to_owned(),
        event: "sim.decimated".to_owned(),
        run: 7,
        clock: Clock::Tai,
        period_ns: Some(1_000_000),
        capacity: 4,
        limit: None,
        start: StartTimes {
            time: 4_000_000,
            realtime: 5,
            tai: 6,
            first_due: 5_000_000,
        },
        channels: vec![
            channel("sim.counter", Type::U64, 1.0),
            channel("adc.volt", Type::S64, 0.5),
        ],
        outputs: vec!["sim.latch".to_owned()],
        tunables: Vec::new(),
        skips: true,
        accounting: strobe::accounting::Accounting::Exact,
        set_up: Vec::new(),
        doctor: Vec::new(),
    }
}

/// Rows 0, 3 to 7 and 11 are lost, triggers are missed and skipped, a channel and an output failed.
fn recording(dir: &Path) -> PathBuf {
    let path = dir.join("first.arrows");
    let mut file = ArrowFile::new(File::create(&path).expect("a file"));
    file.begin(&info()).expect("begin");
    for rows in [
        &[[1, 1, 6_000_000, 0, 10, 20, 0]][..],
        &[
            [2, 5, 10_000_100, 0b10, 11, u64::MAX, 2],
            [8, 13, 18_000_000, 0b10 << 32, 12, 0, 2],
        ],
        &[[9, 14, 19_000_000, 0b100 << 32 | 1, 13, 24, 2]],
        &[[10, 19, 24_000_000, 0, 14, 25, 5]],
    ] {
        file.write(Rows::new(rows.as_flattened(), info().shape()))
            .expect("write");
        file.flush().expect("flush");
    }
    let totals = Totals {
        rows: 12,
        triggers: 25,
        skipped: 6,
        missed_by: [3, 1, 0, 2, 1, 0, 0, 0],
        lost: 7,
        errors: 4,
        end_time_ns: 30_000_000,
        end: End::Stopped,
    };
    file.finish(Some(&totals)).expect("finish");
    path
}

/// A replay in another process.
fn replay(dir: &Path, file: &Path, arguments: &[&str]) -> Process {
    let child = command(dir)
        .arg("replay")
        .arg(file)
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn();
    let process = Process(child.expect("the program runs"));
    until(|| (runs(dir) == 1).then_some(()));
    process
}

fn all_of(path: &Path) -> (RunInfo, Totals, Vec<u64>) {
    samples::all_of(strobe_files::open(path).expect("a recording"))
}

/// Another form of a recording, beside it.
fn converted(first: &Path, extension: &str) -> PathBuf {
    let copy = first.with_extension(extension);
    let output = strobe(
        first.parent().expect("a folder"),
        &["convert", text(first), text(&copy), "--overwrite"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    copy
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// Records a replay of this recording into new files beside it, and compares them.
fn again(dir: &Path, first: &Path, speed: &str) {
    let mut replayed = replay(dir, first, &["--speed", speed]);
    // Not those of the replay before: this process has read them, and HDF5 leaves its lock of a file to the processes
    // that other tests begin meanwhile.
    let extension = first.extension().and_then(OsStr::to_str);
    let name = format!("{}-{speed}.arrows", extension.expect("an extension"));
    let second = dir.join(name);
    let mut sinks = vec![&second];
    let (csv, h5) = (second.with_extension("csv"), second.with_extension("h5"));
    sinks.push(&csv);
    if cfg!(feature = "hdf5") {
        sinks.push(&h5);
    }
    let named = sinks.iter().flat_map(|sink| ["-o", text(sink)]);
    let output = answered(command(dir).args(["record", "--run", "user:1"]).args(named));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3 | 130)), "{words}");
    assert_eq!(replayed.wait(), Some(0), "its last reader has gone");
    let all = all_of(first);
    for sink in sinks.into_iter().filter(|sink| **sink != csv) {
        assert_eq!(all_of(sink), all, "{speed}: {}", sink.display());
    }
    // As text, byte for byte.
    let read = |path: &Path| String::from_utf8(read(path).expect("a file")).expect("text");
    assert_eq!(read(&converted(first, "csv")), read(&csv), "{speed}");
}

#[test]
fn a_recording_of_a_replay_is_the_recording() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = recording(dir.path());
    for speed in ["max", "1", "10"] {
        again(dir.path(), &first, speed);
    }
    if cfg!(feature = "hdf5") {
        again(dir.path(), &converted(&first, "h5"), "max");
    }
}

#[test]
fn so_it_is_of_a_live_run_that_has_lost_rows() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = dir.path().join("live.arrows");
    // The ring is so short that its recorder comes too late for most rows.
    let arguments = [
        "record",
        "--engine",
        "user",
        "--event",
        "timer:50us",
        "--rows",
        "5000",
        "--ring",
        "16",
        "--read",
        "sim.counter,sim.sine,clock.late",
        "--allow-loss",
        "--json",
        "-o",
    ];
    let output = command(dir.path()).args(arguments).arg(&first).output();
    let output = output.expect("the program runs");
    let account: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(account["rows"], 5000);
    assert_ne!(account["lost"], 0, "nothing was lost");
    again(dir.path(), &first, "max");
}

#[test]
fn one_that_was_cut_off_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let whole = recording(dir.path());
    let bytes = read(&whole).expect("a file");
    // Within its last batch, behind which only the end mark is.
    let cut = dir.path().join("cut.arrows");
    std::fs::write(&cut, &bytes[..bytes.len() - 20]).expect("a file");
    let output = command(dir.path())
        .args(["replay", "--now", "--speed", "max"])
        .arg(&cut)
        .output()
        .expect("the program runs");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("the recording was cut off"), "{words}");
    assert_eq!(output.status.code(), Some(3), "{words}");
}

#[test]
fn it_ends_when_its_last_reader_leaves() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = recording(dir.path());
    // It would take 26 s.
    let mut replayed = replay(dir.path(), &first, &["--speed", "0.001"]);
    let words = ["record", "--run", "1", "--for", "200ms", "--allow-loss"];
    let output = answered(command(dir.path()).args(words));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(replayed.wait(), Some(0));
}

#[test]
fn a_signal_ends_it_wherever_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = recording(dir.path());
    let mut waiting = replay(dir.path(), &first, &[]);
    waiting.signal(Signal::INT);
    assert_eq!(waiting.wait(), Some(130));
    let mut going_on = replay(dir.path(), &first, &["--now", "--speed", "0.001"]);
    going_on.signal(Signal::TERM);
    assert_eq!(going_on.wait(), Some(130));
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = dir.path().join("a.txt");
    std::fs::write(&text, "row,trigger\n").expect("a file");
    let name = text.display().to_string();
    for (arguments, reason) in [
        (&["replay", "/nonexistent/a.arrows"][..], "No such file"),
        (&["replay", &name], &name),
        (&["replay", "a.arrows", "--speed", "0"], "0.001"),
        (&["replay", "a.arrows", "--speed", "fast"], "or max"),
        (&["record", "--run", "user:9"], "user:9"),
        (
            &["record", "--run", "1", "--event", "soft"],
            "cannot be used with",
        ),
    ] {
        let output = strobe(dir.path(), arguments);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.contains(reason), "{arguments:?}: {words}");
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!words.contains("panicked"), "{words}");
    }
    assert_eq!(runs(dir.path()), 0);
}
