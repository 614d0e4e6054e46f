// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs: `--derive`, `--keep`, `--every`, their keys in a recipe, and `strobe try`.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

fn strobe(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = crate::common::command(dir);
    command.args(arguments).current_dir(dir);
    command.output().expect("strobe runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn account(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

const RUN: [&str; 9] = [
    "--engine",
    "user",
    "--event",
    "timer:2kHz",
    "--read",
    "sim.counter,sim.ramp",
    "--policy",
    "other",
    "--allow-loss",
];
const PROGRAM: [&str; 6] = [
    "--derive",
    "step = diff(sim.ramp) in mV",
    "--keep",
    "sim.counter & 1",
    "--every",
    "2",
];

fn record<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["record"], &RUN[..], more].concat()
}

#[test]
fn what_a_program_leaves_out_is_counted_as_skipped() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let output = strobe(
        dir,
        &record(&[&PROGRAM[..], &["--rows", "5", "-o", "a.csv", "--json"]].concat()),
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let account = account(&output);
    assert_eq!(
        (&account["rows"], &account["skipped"], &account["end"]),
        (&5.into(), &15.into(), &"complete".into())
    );
    let text = std::fs::read_to_string(dir.join("a.csv")).expect("text");
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .expect("a head")
            .starts_with("row,trigger,time,status,skipped,sim.counter,sim.ramp,step"),
        "{text}"
    );
    let counters: Vec<&str> = lines
        .map(|line| line.split(',').nth(5).expect("a column"))
        .collect();
    assert_eq!(counters, ["3", "7", "11", "15", "19"], "{text}");
}

#[test]
fn a_time_is_not_turned_into_rows_if_nobody_knows_how_many_are_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = strobe(
        dir.path(),
        &record(&["--keep", "sim.counter < 3", "--for", "200ms", "--json"]),
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(account(&output)["rows"], 3);
}

#[test]
fn a_recording_is_tried_with_the_account_that_the_run_would_have_had() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let output = strobe(dir, &record(&["--rows", "40", "-o", "plain.arrows"]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let args = [
        &[
            "try",
            "plain.arrows",
            "-o",
            "tried.arrows",
            "--json",
            "--allow-loss",
        ][..],
        &PROGRAM,
    ]
    .concat();
    let output = strobe(dir, &args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let account = account(&output);
    assert_eq!(
        (&account["rows"], &account["skipped"]),
        (&10.into(), &30.into())
    );
    assert_eq!(
        account["channels"].as_array().map(Vec::len),
        Some(3),
        "{account}"
    );
    // What it has written is a recording.
    let output = strobe(
        dir,
        &[
            "try",
            "tried.arrows",
            "--keep",
            "step > 0 mV",
            "-o",
            "-",
            "--allow-loss",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        String::from_utf8_lossy(&output.stdout)
            .starts_with("row,trigger,time,status,skipped,sim.counter,sim.ramp,step")
    );
    let again = strobe(dir, &args);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("tried.arrows"), "{}", said(&again));
}

#[test]
fn a_recipe_has_the_program_and_check_says_its_faults_by_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let args = record(
        &[
            &PROGRAM[..],
            &["--rows", "2", "--save", "scan.toml", "--json"],
        ]
        .concat(),
    );
    let output = strobe(dir, &args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = std::fs::read_to_string(dir.join("scan.toml")).expect("a recipe");
    for line in [
        "derive = [\"step = diff(sim.ramp) in mV\"]",
        "keep = [\"sim.counter & 1\"]",
        "every = 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let again = strobe(dir, &["record", "scan.toml", "--json", "--allow-loss"]);
    assert_eq!(account(&again)["skipped"], 6);
    assert_eq!(strobe(dir, &["check", "scan.toml"]).status.code(), Some(0));
    let faulty = "event = \"soft\"\nengine = \"user\"\nread = [\"sim.ramp\"]\nkeep = [\n    \"sim.ramp > 0.5 V\",\n    \"sim.ramp > 0.5 A\",\n]\n";
    std::fs::write(dir.join("faulty.toml"), faulty).expect("a file");
    let check = strobe(dir, &["check", "faulty.toml"]);
    assert_eq!(check.status.code(), Some(1));
    let expected = "faulty.toml:6: keep 'sim.ramp > 0.5 A', column 1: one side is in V, the other is in A; write both in V";
    assert!(said(&check).contains(expected), "{}", said(&check));
}

#[test]
fn what_is_wrong_with_a_program_is_said_before_anything_is_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for (args, words) in [
        (
            &["--keep", "sim.foo > 3"][..],
            "strobe: keep 'sim.foo > 3', column 1: a row has no column sim.foo; read it, or use another; there are sim.counter, sim.ramp",
        ),
        (
            &["--derive", "x = sim.counter + sim.counter"],
            "column 5: it may overflow",
        ),
        (&["--every", "0"], "--every"),
    ] {
        let output = strobe(
            dir,
            &record(&[args, &["--rows", "1", "-o", "a.csv"]].concat()),
        );
        assert_ne!(output.status.code(), Some(0));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
    assert!(!dir.join("a.csv").exists());
}

#[test]
fn a_recording_is_not_replaced_by_what_is_made_of_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let output = strobe(dir, &record(&["--rows", "10", "-o", "a.arrows"]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    std::os::unix::fs::symlink("a.arrows", dir.join("b.arrows")).expect("a link");
    let before = std::fs::read(dir.join("a.arrows")).expect("a recording");
    for sink in ["a.arrows", "b.arrows"] {
        let words = ["try", "a.arrows", "--every", "2", "--overwrite", "-o", sink];
        let output = strobe(dir, &words);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let why =
            format!("{sink}: it is both the input and the output; give the output another name");
        assert!(said(&output).contains(&why), "{}", said(&output));
        let after = std::fs::read(dir.join("a.arrows")).expect("a recording");
        assert!(before == after, "it is as it was");
    }
}

/// Rules: the latch of the simulator is written in every tenth row, from the fifth on, and shows it from the next one on.
const RULES: [&str; 10] = [
    "--let",
    "next = 5 like sim.counter",
    "--when",
    "sim.counter >= next",
    "--set",
    "sim.latch=7",
    "--then",
    "next += 10",
    "--derive",
    "wanted = next",
];

fn rows_of(file: &Path) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(file).expect("rows");
    let rows = text
        .lines()
        .skip_while(|line| line.starts_with('#'))
        .skip(1);
    let number = |cell: &str| cell.parse::<f64>().expect("a number") as u64;
    rows.map(|line| line.split(',').skip(4).map(number).collect())
        .collect()
}

#[test]
fn what_follows_a_when_is_done_in_rows_that_meet_it_and_a_recipe_keeps_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let own = [
        "--rows",
        "40",
        "-o",
        "a.csv",
        "--save",
        "r.toml",
        "--set",
        "sim.latch=1",
    ];
    let words = record(&[&own[..], &RULES[..]].concat());
    let words: Vec<&str> = words
        .iter()
        .map(|word| {
            if *word == "sim.counter,sim.ramp" {
                "sim.counter,sim.latch"
            } else {
                word
            }
        })
        .collect();
    let output = strobe(dir, &words);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let again = strobe(dir, &["record", "r.toml", "-o", "b.csv", "--allow-loss"]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    for file in ["a.csv", "b.csv"] {
        let rows = rows_of(&dir.join(file));
        assert_eq!(rows.len(), 40);
        for row in rows {
            // The --set before the --when is done first in each row.
            let wanted = if row[0] < 6 {
                5
            } else {
                15 + 10 * ((row[0] - 6) / 10)
            };
            assert_eq!(&row[..3], [row[0], 1, wanted], "{file}: {row:?}");
        }
    }
    let recipe = std::fs::read_to_string(dir.join("r.toml")).expect("a recipe");
    assert!(
        recipe.contains("\n[[rule]]\nwhen = \"sim.counter >= next\"\nset = [\"sim.latch=7\"]\n"),
        "{recipe}"
    );
    let checked = strobe(dir, &["check", "r.toml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
}

#[test]
fn a_limit_switches_an_output_and_the_run_ends_so_many_rows_later() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let words = [
        "record",
        "--event",
        "timer:1kHz",
        "--engine",
        "user",
        "--read",
        "sim.counter,sim.latch",
        "--let",
        "tripped = 0",
        "--when",
        "sim.counter > 400",
        "--set",
        "sim.latch=1",
        "--then",
        "tripped = 1",
        "--keep",
        "tripped || sim.counter > 400",
        "--rows",
        "700",
        "-o",
        "after.csv",
        "--allow-loss",
        "--json",
    ];
    let output = strobe(dir, &words);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let account = account(&output);
    assert_eq!(account["rows"], 700, "{account}");
    let rows = rows_of(&dir.join("after.csv"));
    assert_eq!(rows.len(), 700);
    let [skipped, counter, latch] = rows[0][..3] else {
        panic!("{rows:?}")
    };
    assert_eq!((counter, latch), (401, 0), "it is read, and then written");
    assert_eq!(account["skipped"], skipped, "what comes after is kept");
    assert!(rows[1..].iter().all(|row| row[2] == 1));
}

#[test]
fn a_rule_that_is_wrong_is_refused_with_its_place() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for (words, why) in [
        (
            &["--then", "next += 1"][..],
            "--then: it belongs to the --when before it",
        ),
        (
            &["--when", "sim.counter >= next", "--then", "other += 1"],
            "then 'other += 1', column 1: nothing says what kind of number other is",
        ),
        (
            &["--when", "sim.countre & 1"],
            "when 'sim.countre & 1', column 1: a row has no column sim.countre",
        ),
        (
            &["--when", "sim.counter & 1", "--set", "sim.nothing=1"],
            "sim.nothing",
        ),
        (
            &["--let", "n = 1 V like sim.counter"],
            "let 'n = 1 V like sim.counter', column 5: one side has no unit, the other is in V",
        ),
    ] {
        let output = strobe(dir, &record(&[&["--rows", "3"][..], words].concat()));
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        assert!(
            said(&output).contains(why),
            "{}\nwanted: {why}",
            said(&output)
        );
    }
    let text = "event = \"soft\"\nread = [\"sim.counter\"]\nlet = [\"n = 0\"]\n\n[[rule]]\nwhen = \"sim.counter & 1\"\n\
                set = [\"sim.latch\"]\nthen = [\"n += 1\"]\n\n[[rule]]\nwehn = \"n == 3\"\n";
    std::fs::write(dir.join("bad.toml"), text).expect("a recipe");
    let faults = said(&strobe(dir, &["check", "bad.toml"]));
    for why in [
        "bad.toml:7: ",
        "write OUTPUT=VALUE",
        "bad.toml:11: ",
        "did you mean `when`?",
        "[[rule]]: `when` is missing",
    ] {
        assert!(faults.contains(why), "{faults}\nwanted: {why}");
    }
    let text = text
        .replace("\"sim.latch\"", "\"sim.latch=1\", \"sim.latch2=1\"")
        .replace("wehn = \"n == 3\"", "when = \"n == 3 V\"");
    std::fs::write(dir.join("bad.toml"), text).expect("a recipe");
    let faults = said(&strobe(dir, &["check", "bad.toml"]));
    for why in ["bad.toml:7: ", "sim.latch2"] {
        assert!(faults.contains(why), "{faults}\nwanted: {why}");
    }
}
