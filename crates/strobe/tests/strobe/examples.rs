// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs in docs/how-to/library.md are the examples of this crate, and they do what the page says.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};

const PAGE: &str = include_str!("../../../../docs/how-to/library.md");

/// An example that was built with this test.
fn example(name: &str) -> Command {
    let here = std::env::current_exe().expect("this test");
    let built: PathBuf = here.ancestors().skip(2).take(1).collect();
    let program = built.join("examples").join(name);
    assert!(program.exists(), "build it: cargo build --examples");
    Command::new(program)
}

/// What it writes to standard output.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("to run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn the_page_shows_the_examples_as_they_are_and_a_program_of_ones_own_is_short() {
    for (name, source) in [
        ("list", include_str!("../../examples/list.rs")),
        ("rows", include_str!("../../examples/rows.rs")),
        ("attach", include_str!("../../examples/attach.rs")),
    ] {
        let (_, program) = source.split_once("//!").expect("what it is");
        assert!(PAGE.contains(&format!("//!{program}")), "{name}");
        assert!(source.lines().count() < 40, "{name}");
    }
}

#[test]
fn rows_come_as_columns_in_an_async_program() {
    let text = output(&mut example("rows"));
    let counts = text.lines().map(|line| {
        let count = line.split(' ').next().and_then(|word| word.parse().ok());
        count.unwrap_or(0_u64)
    });
    assert_eq!(counts.sum::<u64>(), 500, "{text}");
}

#[test]
fn channels_and_runs_are_listed() {
    let run = User::default().create(&Plan::new("soft".parse().expect("an event")));
    let run = run.expect("a run");
    run.start().expect("a start");
    let line = format!("user:{} on soft: 0 rows", run.info().run);
    let begun = Instant::now();
    loop {
        let text = output(&mut example("list"));
        assert!(text.contains("sim.counter (): "), "{text}");
        // On a busy machine, a run may be too late with its answer for once.
        if text.contains(&line) {
            return;
        }
        assert!(begun.elapsed() < crate::PATIENCE, "{text}");
    }
}

#[test]
fn anothers_run_is_read_from_now_on() {
    let run = User::default().create(&Plan::new("timer:1kHz".parse().expect("an event")));
    let run = run.expect("a run");
    run.start().expect("a start");
    let name = format!("user:{}", run.info().run);
    let begun = Instant::now();
    let output = loop {
        let output = example("attach").arg(&name).output().expect("to run");
        let errors = String::from_utf8_lossy(&output.stderr);
        if !errors.contains("very busy") || begun.elapsed() > crate::PATIENCE {
            break output;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("timer:1kHz: Block").count(), 10, "{output:?}");
}
