// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe convert` and `strobe plot` on a recording of 3 rows.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output as Answer};

use strobe::channel::{Channel, Class, Type};
use strobe::info::{Clock, End, RunInfo, Totals};
use strobe::note::{Note, State};
use strobe::ring::{Engine, RowShape, Rows, StartTimes};
use strobe_files::sink::Sink;
use strobe_files::sink::arrow::ArrowFile;

fn strobe(arguments: &[&Path]) -> Answer {
    Command::new(env!("CARGO_BIN_EXE_strobe"))
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn stderr(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.stderr).into_owned()
}

fn info() -> RunInfo {
    RunInfo {
        engine: Engine::User,
        kernel: "6.12.0".to_owned(),
        event: "timer:1kHz".to_owned(),
        run: 1,
        clock: Clock::Monotonic,
        period_ns: Some(1_000_000),
        capacity: 1024,
        limit: None,
        start: StartTimes {
            first_due: 100,
            ..StartTimes::default()
        },
        channels: vec![Channel {
            name: "adc.volt".to_owned(),
            description: "made up".to_owned(),
            unit: "V".to_owned(),
            kind: Type::S64,
            class: Class::Hard,
            scale: 0.5,
            offset: 0.0,
            bits: 64,
            cost_ns: 0,
            in_use: false,
        }],
        outputs: Vec::new(),
        tunables: Vec::new(),
        skips: false,
        accounting: strobe::accounting::Accounting::Exact,
        set_up: Vec::new(),
        doctor: vec![Note {
            check: "fifo".into(),
            state: State::Ok,
            evidence: "fifo:60: tried".to_owned(),
        }],
    }
}

/// Three rows in three batches, one trigger missed; with its account or not.
fn recording(directory: &Path, name: &str, is_whole: bool) -> PathBuf {
    let path = directory.join(name);
    let mut file = ArrowFile::new(File::create(&path).expect("a file"));
    file.begin(&info()).expect("begin");
    for row in [
        [0, 0, 100, 0, 1],
        [1, 2, 2_000_200, 0, 2],
        [2, 3, 3_000_300, 0, 3],
    ] {
        file.write(Rows::new(&row, RowShape::of_channels(1)))
            .expect("write");
        file.flush().expect("flush");
    }
    let totals = Totals {
        rows: 3,
        triggers: 4,
        skipped: 0,
        missed_by: [1, 0, 0, 0, 0, 0, 0, 0],
        lost: 0,
        errors: 0,
        end_time_ns: 4_000_000,
        end: End::Complete,
    };
    if is_whole {
        file.finish(Some(&totals)).expect("finish");
    }
    path
}

const CSV: &str = "row,trigger,time,status,adc.volt\n0,0,100,0,0.5\n1,2,2000200,0,1\n";
const LAST: &str = "2,3,3000300,0,1.5\n";

#[test]
fn a_recording_is_converted_with_its_losses_and_its_account() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = recording(dir.path(), "a.arrows", true);
    let (csv, copy) = (dir.path().join("a.csv"), dir.path().join("b.arrows"));
    let answer = strobe(&["convert".as_ref(), &input, &csv]);
    assert_eq!(
        (answer.status.code(), stderr(&answer)),
        (Some(0), String::new())
    );
    let text = std::fs::read_to_string(&csv).expect("text");
    assert_eq!(text, format!("{CSV}{LAST}"));
    assert_eq!(
        strobe(&["convert".as_ref(), &input, &copy]).status.code(),
        Some(0)
    );
    let mut journal = strobe_files::journal::Journal::open(&copy).expect("a recording");
    assert_eq!(journal.info(), &info());
    assert_eq!(journal.totals().map(|t| (t.rows, t.missed())), Some((3, 1)));
    assert_eq!(
        journal.read().expect("rows").map(|rows| rows.len()),
        Some(3)
    );
}

/// Four rows, of which the second has no value and has not written its output; a trigger skipped before each.
fn faulty(directory: &Path) -> PathBuf {
    let path = directory.join("faulty.arrows");
    let mut file = ArrowFile::new(File::create(&path).expect("a file"));
    let mut info = info();
    info.outputs.push("dac.x".to_owned());
    info.skips = true;
    file.begin(&info).expect("begin");
    for n in 0..4 {
        let failed = if n == 1 { 3 << 32 } else { 0 };
        let value = if n == 1 { 0 } else { n + 1 };
        let row = [n, 2 * n + 1, 100 + 2_000_000 * n, failed, value, n + 1];
        file.write(Rows::new(&row, info.shape())).expect("write");
    }
    let totals = Totals {
        rows: 4,
        triggers: 8,
        missed_by: [0; 8],
        skipped: 4,
        lost: 0,
        errors: 1,
        end_time_ns: 8_000_000,
        end: End::Complete,
    };
    file.finish(Some(&totals)).expect("finish");
    path
}

#[test]
fn a_value_that_failed_is_none_in_a_recording_that_was_converted_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = faulty(dir.path());
    let (csv, copy) = (dir.path().join("a.csv"), dir.path().join("b.arrows"));
    for output in [&copy, &csv] {
        // The copy of the copy is as good.
        let input = if copy.exists() { &copy } else { &input };
        let answer = strobe(&["convert".as_ref(), input, output]);
        assert_eq!(
            (answer.status.code(), stderr(&answer)),
            (Some(0), String::new())
        );
    }
    let text = std::fs::read_to_string(&csv).expect("text");
    let header = "row,trigger,time,status,skipped,adc.volt,output dac.x\n";
    let rows = "0,1,100,0,1,0.5,1\n1,3,2000100,0,2,,\n2,5,4000100,0,3,1.5,1\n3,7,6000100,0,4,2,1\n";
    assert_eq!(text, format!("{header}{rows}"));
}

#[test]
fn what_was_skipped_is_a_figure_of_its_own_in_the_judgement_of_a_recording() {
    let dir = tempfile::tempdir().expect("a folder");
    let answer = strobe(&["jitter".as_ref(), &faulty(dir.path()), "--json".as_ref()]);
    assert_eq!(answer.status.code(), Some(0), "{}", stderr(&answer));
    let text = String::from_utf8(answer.stdout).expect("text");
    assert!(text.contains("\"skipped\":4"), "{text}");
    assert!(
        text.contains("\"in_range\":3,\"over\":0,\"under\":0,\"missed\":0"),
        "{text}"
    );
}

#[cfg(feature = "plot")]
#[test]
fn a_value_that_failed_is_a_gap_in_a_picture() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = faulty(dir.path());
    let output = dir.path().join("a.svg");
    let answer = strobe(&["plot".as_ref(), &input, "-o".as_ref(), &output]);
    assert_eq!(
        (answer.status.code(), stderr(&answer)),
        (Some(0), String::new())
    );
    let svg = std::fs::read_to_string(output).expect("a picture");
    for words in [
        "missed 0",
        "4 triggers skipped",
        "something failed in 1 rows",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    // The value before the gap is joined to none.
    assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
}

#[test]
fn a_torn_recording_is_converted_up_to_its_last_whole_batch_and_said_to_be() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = recording(dir.path(), "a.arrows", false);
    let file = File::options().write(true).open(&input).expect("a file");
    let length = file.metadata().expect("its size").len();
    file.set_len(length - 5).expect("a shorter file");
    let output = dir.path().join("a.csv");
    let answer = strobe(&["convert".as_ref(), &input, &output]);
    assert_eq!(answer.status.code(), Some(3));
    assert!(stderr(&answer).ends_with("its last batch is not whole; converted 2 rows\n"));
    assert_eq!(std::fs::read_to_string(&output).expect("text"), CSV);
}

#[test]
fn a_recording_is_not_converted_into_itself() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = recording(dir.path(), "a.arrows", true);
    let before = std::fs::read(&input).expect("bytes");
    let link = dir.path().join("b.arrows");
    std::os::unix::fs::symlink(&input, &link).expect("a link");
    for name in [&input, &link] {
        let answer = strobe(&["convert".as_ref(), &input, name]);
        assert_eq!(answer.status.code(), Some(1));
        assert!(stderr(&answer).contains("is both the input and the output"));
    }
    assert!(std::fs::read(&input).expect("bytes") == before);
}

#[cfg(feature = "plot")]
#[test]
fn a_recording_is_drawn_with_its_names_figures_and_gaps() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = recording(dir.path(), "a.arrows", true);
    let draw = |name: &str| {
        let output = dir.path().join(name);
        let answer = strobe(&["plot".as_ref(), &input, "-o".as_ref(), &output]);
        assert_eq!(
            (answer.status.code(), stderr(&answer)),
            (Some(0), String::new())
        );
        std::fs::read(output).expect("a picture")
    };
    assert!(draw("a.png").starts_with(b"\x89PNG\r\n"));
    let svg = String::from_utf8(draw("a.svg")).expect("text");
    for words in [
        "timer:1kHz: 3 rows in",
        "adc.volt (V)",
        "missed 1",
        "lost 0",
        "period: min",
        "late: min",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    // In the legend, and where a trigger is missing.
    assert_eq!(svg.matches("#D62728").count(), 2, "{svg}");
    assert_eq!(svg.matches("#FF9F1C").count(), 1, "{svg}");
}

#[test]
fn a_file_that_exists_is_neither_converted_into_nor_drawn_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = recording(dir.path(), "a.arrows", true);
    let mut commands = vec![("a.csv", vec!["convert".as_ref(), input.as_path()])];
    if cfg!(feature = "plot") {
        commands.push(("a.svg", vec!["plot".as_ref(), &input, "-o".as_ref()]));
    }
    for (name, mut command) in commands {
        let output = dir.path().join(name);
        std::fs::write(&output, "older").expect("text");
        command.push(&output);
        let answer = strobe(&command);
        let said = stderr(&answer);
        assert_eq!(answer.status.code(), Some(1), "{said}");
        assert!(
            said.contains("the file exists") && said.contains("--overwrite"),
            "{said}"
        );
        assert_eq!(std::fs::read(&output).expect("the file"), b"older");
        command.push("--overwrite".as_ref());
        let answer = strobe(&command);
        assert_eq!(answer.status.code(), Some(0), "{}", stderr(&answer));
        assert!(std::fs::read(&output).expect("the file").len() > 50);
    }
}

#[cfg(feature = "plot")]
#[test]
fn what_cannot_be_drawn_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let input = recording(dir.path(), "a.arrows", true);
    let plot = |input: &Path, output: &str| {
        let answer = strobe(&[
            "plot".as_ref(),
            input,
            "-o".as_ref(),
            &dir.path().join(output),
        ]);
        assert_eq!(answer.status.code(), Some(1));
        stderr(&answer)
    };
    assert!(plot(&input, "a.gif").contains("end the name in .png or .svg"));
    assert!(plot(&input, "no/a.png").contains("cannot be created: No such file"));
    assert!(plot(&dir.path().join("b.arrows"), "a.png").contains("b.arrows: No such file"));
}
