// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was in a file before is still there, whatever becomes of a recording.

use std::path::Path;
use std::process::Output;

mod common;

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
    let record = "\"$STROBE\" record --engine user --event timer:10kHz --read sim.counter --ring 1024 -o -";
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
