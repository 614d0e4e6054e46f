// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs in docs/how-to/library.md are the examples of this crate, and they do what the page says.

use std::path::PathBuf;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/how-to/library.md");

/// What an example that was built with this test writes to standard output.
fn output(name: &str, argument: &str) -> String {
    let here = std::env::current_exe().expect("this test");
    let built: PathBuf = here.ancestors().skip(2).take(1).collect();
    let program = built.join("examples").join(name);
    assert!(program.exists(), "build it: cargo build --examples");
    let output = Command::new(program).arg(argument).output();
    let output = output.expect("to run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn the_page_shows_the_examples_as_they_are_and_a_program_of_ones_own_is_short() {
    for (name, source) in [
        ("record", include_str!("../../examples/record.rs")),
        ("replay", include_str!("../../examples/replay.rs")),
        (
            "rows_of_file",
            include_str!("../../examples/rows_of_file.rs"),
        ),
    ] {
        let (_, program) = source.split_once("//!").expect("what it is");
        assert!(PAGE.contains(&format!("//!{program}")), "{name}");
        assert!(source.lines().count() < 40, "{name}");
    }
}

#[test]
fn what_was_recorded_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scan.arrows");
    let file = file.to_str().expect("a name");
    let recorded = output("record", file);
    let (rows, _) = recorded.split_once(" rows, ").expect("a count");
    let read = output("rows_of_file", file);
    let last = read.lines().last().unwrap_or_default();
    assert_eq!(last, format!("{rows} rows, 0 lost"), "{recorded}{read}");
    let replayed = output("replay", file);
    let last = replayed.lines().last().unwrap_or_default();
    assert!(
        recorded.starts_with(&format!("{last}, ")),
        "{recorded}{replayed}"
    );
}
