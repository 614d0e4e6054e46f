// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program says, and how it exits, where nothing can be recorded.
//! These tests need a machine without /dev/strobe; where there is one they
//! only check what is refused before it is opened.

use std::process::{Command, Output, Stdio};

use crate::common::skip::skip;

fn strobe(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_strobe");
    Command::new(program)
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The message of a command that must exit with 1.
fn refusal(arguments: &[&str]) -> String {
    let output = strobe(arguments);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{arguments:?}: {}",
        stderr(&output)
    );
    assert!(output.stdout.is_empty(), "{arguments:?}");
    stderr(&output)
}

fn record(more: &[&str]) -> String {
    let usual = ["record", "--event", "timer:1kHz", "--read", "sim.counter"];
    refusal(&[&usual, more].concat())
}

#[test]
fn without_the_module_the_message_says_how_to_load_it() {
    if std::path::Path::new("/dev/strobe").exists() {
        return skip("the kernel engine is loaded");
    }
    assert!(record(&["--engine", "kernel"]).contains("modprobe strobe"));
    assert!(record(&["--engine", "kernel", "--dry-run"]).contains("modprobe strobe"));
}

#[test]
fn a_file_is_not_touched_if_nothing_can_be_recorded() {
    if std::path::Path::new("/dev/strobe").exists() {
        return skip("the kernel engine is loaded");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("old.csv");
    std::fs::write(&file, "precious").expect("a file");
    let file_name = file.to_str().expect("a name");
    record(&["--engine", "kernel", "-o", file_name]);
    refusal(&[
        "record", "--event", "soft", "--read", "no.such", "-o", file_name,
    ]);
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "precious");
}

#[test]
fn usage_errors_exit_with_1() {
    for (arguments, part) in [
        (vec!["recrod"], "unrecognized subcommand"),
        (vec!["record", "--read", "a.b"], "--event"),
        (vec!["record", "--event", "soft"], "--read"),
        (
            vec!["record", "--event", "timer", "--read", "a.b"],
            "add the rate or period, as in timer:1kHz",
        ),
        (
            vec!["record", "--event", "timer:fast", "--read", "a.b"],
            "not a number",
        ),
        (
            vec!["record", "--event", "timer:1s2", "--read", "a.b"],
            "is not a unit",
        ),
    ] {
        let message = refusal(&arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
    for (more, part) in [
        (vec!["--rows", "0"], "'0'"),
        (vec!["--rows", "5", "--for", "10s"], "cannot be used with"),
        (
            vec!["--for", "10"],
            "is not a unit; use ns, us, ms, s, min or h",
        ),
        (vec!["--engine", "quantum"], "auto, kernel, user"),
        (vec!["--set", "sim.latch"], "write OUTPUT=VALUE"),
        (vec!["--set", "sim.latch=x"], "not a whole number"),
        (vec!["--ring", "-5"], "-5"),
    ] {
        let message = record(&more);
        assert!(message.contains(part), "{more:?}: {message}");
    }
}

#[test]
fn what_the_kernel_engine_cannot_do_is_refused_with_the_remedy() {
    let kernel = |more: &[&str]| record(&[&["--engine", "kernel"], more].concat());
    assert!(kernel(&["--wait", "spin"]).contains("--wait: only the user engine"));
    assert!(kernel(&["--board", "b.toml"]).contains("strobe board install b.toml"));
    for board in ["host", "uio_dummy"] {
        let file = format!("{}/../../boards/{board}.toml", env!("CARGO_MANIFEST_DIR"));
        let message = kernel(&["--board", &file]);
        assert!(
            message.contains("only the user engine") && !message.contains("install"),
            "{message}"
        );
    }
    for event in ["uio:edu", "hpet:64Hz"] {
        let kernel = [
            "record", "--engine", "kernel", "--event", event, "--read", "a.b",
        ];
        let message = refusal(&kernel);
        assert!(
            message.starts_with(&format!("strobe: event {event}: the kernel engine")),
            "{message}"
        );
    }
}

#[test]
fn a_board_that_no_driver_takes_is_refused_with_the_command_that_takes_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().to_str().expect("a name");
    for board in ["host", "uio_dummy"] {
        let file = format!("{}/../../boards/{board}.toml", env!("CARGO_MANIFEST_DIR"));
        let message = refusal(&["board", "install", &file, "--firmware-dir", place]);
        assert!(
            message.starts_with(&format!("board {board}: only the user engine "))
                && message
                    .ends_with("; the user engine takes the file: strobe record --board FILE\n"),
            "{message}"
        );
    }
}

#[test]
fn a_sink_that_cannot_be_is_refused_before_anything_is_done() {
    assert!(record(&["-o", "scan.txt"]).contains("sink scan.txt: unknown format; end the name in"));
    assert!(
        record(&["--rows", "1", "-o", "{m}.csv"]).contains("sink {m}.csv: {m} is unknown; use {n}")
    );
    if std::path::Path::new("/dev/strobe").exists() {
        return skip("the kernel engine is loaded");
    }
    // Formats that this program was built without.
    for (extension, is_built) in [
        ("h5", cfg!(feature = "hdf5")),
        ("parquet", cfg!(feature = "parquet")),
    ] {
        let message = record(&["--engine", "kernel", "-o", &format!("scan.{extension}")]);
        let refusal = format!("cannot write .{extension} files");
        assert_eq!(message.contains(&refusal), !is_built, "{message}");
    }
}

#[test]
fn help_and_version_are_answers() {
    for arguments in [
        vec!["--help"],
        vec!["record", "--help"],
        vec!["--version"],
        vec!["help"],
    ] {
        let output = strobe(&arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(
            !output.stdout.is_empty() && output.stderr.is_empty(),
            "{arguments:?}"
        );
    }
    assert_eq!(
        strobe(&["--version"]).stdout,
        format!("strobe {}\n", env!("CARGO_PKG_VERSION")).as_bytes()
    );
}

#[test]
fn nobody_listening_is_no_panic() {
    for arguments in ["list", "record --event x --read y", "--help"] {
        for redirection in ["2>&-", ">&-", "2>/dev/full", ">/dev/full"] {
            let program = env!("CARGO_BIN_EXE_strobe");
            let status = Command::new("sh")
                .args(["-c", &format!("{program} {arguments} {redirection}")])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .expect("a shell");
            // 101 is a panic, none a signal.
            assert!(
                matches!(status.code(), Some(0 | 1)),
                "{arguments} {redirection}: {status}"
            );
        }
    }
}

#[test]
fn manual_pages_and_completions_are_written_for_all_subcommands() {
    let dir = tempfile::tempdir().expect("a folder");
    let assets = env!("CARGO_BIN_EXE_strobe-assets");
    let status = Command::new(assets)
        .arg(dir.path())
        .status()
        .expect("the program runs");
    assert!(status.success());
    for file in [
        "man/strobe.1",
        "man/strobe-record.1",
        "man/strobe-list.1",
        "man/strobe-status.1",
        "man/strobe-board.1",
        "completions/bash/strobe.bash",
        "completions/zsh/_strobe",
        "completions/fish/strobe.fish",
    ] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap_or_default();
        assert!(text.contains("strobe"), "{file}");
    }
    let usage = Command::new(assets).output().expect("the program runs");
    assert_eq!(usage.status.code(), Some(1));
}

#[test]
fn a_uio_device_that_is_not_there_and_wrong_words_are_refused() {
    let message = refusal(&["uio", "wait", "nowhere"]);
    assert!(
        message.starts_with("strobe: UIO device nowhere: no such device; there "),
        "{message}"
    );
    for wrong in [["--count", "0"], ["--timeout", "soon"]] {
        let message = refusal(&[&["uio", "wait", "nowhere"][..], &wrong].concat());
        assert!(message.contains(wrong[0]), "{message}");
    }
}
