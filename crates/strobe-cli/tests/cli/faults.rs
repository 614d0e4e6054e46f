// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that fail while a run is recorded by the user engine, and triggers that it skips: what the program says and
//! writes. `tests/files` reads the same with the programs of others.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};
use strobe_files::journal::Journal;

/// Of ten channels, those that fail.
const BAD: [usize; 3] = [2, 3, 7];

fn strobe(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    // Runs of others are none of its business.
    command.env("STROBE_RUNTIME_DIR", dir.join("runs"));
    command
}

/// A number in a file, whole or not.
fn number(index: usize) -> String {
    match index {
        3 | 4 => format!("{index}.5"),
        _ => format!("{}", index + 10),
    }
}

/// A recording of ten files, a row a line of input; its rows come as CSV.
struct Recording {
    files: Vec<PathBuf>,
    child: Child,
    input: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Recording {
    fn start(dir: &Path, outputs: &[&Path]) -> Recording {
        let files: Vec<_> = (0..10).map(|n| dir.join(format!("value{n}"))).collect();
        for (index, file) in files.iter().enumerate() {
            std::fs::write(file, number(index)).expect("a file");
        }
        let names = files.iter().map(|file| format!("file:{}", file.display()));
        let mut command = strobe(dir);
        command.args(["record", "--engine", "user", "--event", "soft", "--json"]);
        command.args(["-o", "-", "--read", &names.collect::<Vec<_>>().join(",")]);
        for output in outputs {
            command.arg("-o").arg(output);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("strobe runs");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut recording = Recording {
            files,
            input: child.stdin.take(),
            child,
            lines: stdout.lines(),
        };
        let names = recording.line();
        assert!(
            names.starts_with("row,trigger,time,status,file:"),
            "{names}"
        );
        recording
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("text")
    }

    /// One trigger; the fields of its row behind the status.
    fn row(&mut self) -> Vec<String> {
        let mut input = self.input.as_ref().expect("its input");
        input.write_all(b"\n").expect("a trigger");
        let line = self.line();
        line.split(',').skip(4).map(str::to_owned).collect()
    }

    /// The files that are to fail hold no number any more, or one again.
    fn break_files(&self, broken: bool) {
        for index in BAD {
            let text = if broken {
                "gone".to_owned()
            } else {
                number(index)
            };
            std::fs::write(&self.files[index], text).expect("a file");
        }
    }

    /// Exit status and account.
    fn end(mut self) -> (Option<i32>, Value) {
        self.input = None;
        assert!(self.lines.next().is_none(), "no more rows");
        let answer = self.child.wait_with_output().expect("its end");
        let account = serde_json::from_slice(&answer.stderr).expect("JSON");
        (answer.status.code(), account)
    }
}

#[test]
fn three_failed_channels_of_ten_are_all_named_and_none_reads_as_0() {
    let dir = tempfile::tempdir().expect("a folder");
    let journal = dir.path().join("a.arrows");
    let mut recording = Recording::start(dir.path(), &[&journal]);
    let good: Vec<String> = (0..10).map(number).collect();
    let mut bad = good.clone();
    BAD.iter().for_each(|index| bad[*index].clear());
    assert_eq!(recording.row(), good);
    recording.break_files(true);
    assert_eq!(recording.row(), bad);
    assert_eq!(recording.row(), bad);
    recording.break_files(false);
    assert_eq!(recording.row(), good);
    let names = recording
        .files
        .iter()
        .map(|f| format!("file:{}", f.display()));
    let names: Vec<_> = names.collect();
    let (status, account) = recording.end();
    assert_eq!(status, Some(3));
    let figures = |name: &str| account[name].as_u64();
    assert_eq!((figures("rows"), figures("errors")), (Some(4), Some(2)));
    assert_eq!((figures("missed"), figures("skipped")), (Some(0), Some(0)));
    let named: serde_json::Map<_, _> = BAD
        .iter()
        .map(|index| (names[*index].clone(), json!(2)))
        .collect();
    assert_eq!(account["faults"], Value::Object(named));

    let mut journal = Journal::open(&journal).expect("a recording");
    let mut failed = Vec::new();
    while let Some(rows) = journal.read().expect("rows") {
        rows.for_each(|row| failed.push(row.faults.iter().collect::<Vec<_>>()));
    }
    assert_eq!(failed, [vec![], BAD.to_vec(), BAD.to_vec(), vec![]]);
}

#[test]
fn what_was_skipped_is_no_loss_and_the_account_adds_up_in_words_and_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.arrows");
    let mut command = strobe(dir.path());
    command.args(["record", "--engine", "user", "--event", "sim.decimated"]);
    command.args(["--read", "sim.counter", "--rows", "20", "--json", "-o"]);
    let answer = command.arg(&path).output().expect("strobe runs");
    let account: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    let figure = |name: &str| account[name].as_u64().expect("a number");
    assert_eq!(figure("rows"), 20);
    assert!(figure("skipped") >= 9 * 20, "{account}");
    // A busy machine may have missed some.
    let wanted = if figure("missed") == 0 { 0 } else { 3 };
    assert_eq!(answer.status.code(), Some(wanted), "{account}");
    let mut journal = Journal::open(&path).expect("a recording");
    let totals = journal.totals().expect("an account").clone();
    assert_eq!(totals.skipped, figure("skipped"));
    assert_eq!(totals.missed_by.iter().sum::<u64>(), figure("missed"));
    let sum = totals.rows + totals.missed() + totals.skipped;
    assert_eq!((sum, totals.missed()), (totals.triggers, figure("missed")));
    let (mut missed, mut skipped) = (0, 0);
    while let Some(rows) = journal.read().expect("rows") {
        for row in rows {
            (missed, skipped) = (row.trigger - row.row - row.skipped, row.skipped);
        }
    }
    assert!(missed <= totals.missed() && skipped <= totals.skipped && skipped >= 9 * 20);
}
