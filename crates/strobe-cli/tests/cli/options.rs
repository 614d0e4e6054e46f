// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `strobe record` that say how a run is made and what is kept of it.

use std::path::Path;
use std::process::Output;

use strobe::engine::user::registry::Registry;

use crate::common::skip::skip;
use crate::common::{answered, as_nobody, recorder, strobe, until};
use crate::terminal::Terminal;

fn record(dir: &Path, more: &str) -> Output {
    let mut command = crate::common::command(dir);
    command.args([
        "record",
        "--engine",
        "user",
        "--event",
        "timer:1kHz",
        "--read",
        "sim.counter",
    ]);
    command
        .args(["--allow-loss"])
        .args(more.split(' '))
        .current_dir(dir);
    command.output().expect("strobe runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn refusal(dir: &Path, more: &str) -> String {
    let output = record(dir, more);
    assert_eq!(output.status.code(), Some(1), "{more}: {}", said(&output));
    said(&output)
}

#[test]
fn only_the_last_rows_are_kept_and_the_account_says_what_was_left_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let output = record(dir, "--rows 50 --last 3 -o a.csv -o a.arrows --json");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = std::fs::read_to_string(dir.join("a.csv")).expect("text");
    let rows: Vec<&str> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    assert_eq!(rows, ["47", "48", "49"]);
    let account = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        account.contains("\"rows\":3,") && account.contains("\"left_out\":47"),
        "{account}"
    );
    let mut journal =
        strobe_files::journal::Journal::open(&dir.join("a.arrows")).expect("a recording");
    assert_eq!(journal.totals().map(|totals| totals.rows), Some(50));
    assert_eq!(
        journal.read().expect("rows").map(|rows| rows.len()),
        Some(3)
    );
    let text = said(&record(dir, "--rows 50 --last 3 -o b.csv"));
    assert!(
        text.contains("b.csv: 3 rows") && text.contains("47 earlier rows left out on purpose"),
        "{text}"
    );
}

#[test]
fn more_rows_than_there_is_memory_for_are_refused_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().expect("a folder");
    let said = refusal(dir.path(), "--last 99999999999999 -o a.csv");
    assert!(
        said.contains("--last: the last 99999999999999 rows: they take "),
        "{said}"
    );
    assert!(!dir.path().join("a.csv").exists());
    assert!(refusal(dir.path(), "--last 0 -o a.csv").contains("--last"));
}

#[test]
fn only_journals_can_be_made_safe_against_a_power_cut() {
    let dir = tempfile::tempdir().expect("a folder");
    let said = refusal(dir.path(), "--sync -o a.csv");
    assert!(
        said.contains("--sync: the sinks: none is a journal") && said.contains("FILE.arrows"),
        "{said}"
    );
    assert!(!dir.path().join("a.csv").exists());
    let said = refusal(dir.path(), "--sync --last 5 -o a.arrows");
    assert!(
        said.contains("--sync: the last rows: they are known only when the run ends"),
        "{said}"
    );
    let output = record(dir.path(), "--sync --rows 5 -o a.csv -o a.arrows");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_clock_of_all_times_can_be_that_of_the_atomic_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let time = |more: &str| -> u64 {
        let output = record(dir.path(), &format!("--rows 1 -o - {more}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let row = text.lines().nth(1).expect("a row");
        row.split(',').nth(2).expect("a time").parse().expect("ns")
    };
    let (tai, monotonic) = (time("--clock tai"), time("--clock monotonic"));
    // Of this century, and of this uptime.
    assert!(tai > 1_000_000_000_000_000_000, "{tai}");
    assert!(monotonic < 1_000_000_000_000_000_000, "{monotonic}");
    assert!(refusal(dir.path(), "--clock utc").contains("monotonic, tai"));
}

#[test]
fn the_thread_runs_on_the_cpu_and_by_the_policy_that_were_asked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let cpu = *strobe::rt::cpus().first().expect("a CPU");
    let output = record(
        dir.path(),
        &format!("--rows 5 --cpu {cpu} --policy other --json"),
    );
    let account = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        account.contains("{\"what\":\"policy\",\"ok\":true,\"got\":\"other\"}"),
        "{account}"
    );
    let step = format!("{{\"what\":\"cpu\",\"ok\":true,\"got\":\"{cpu}\"}}");
    assert!(account.contains(&step), "{step}: {account}");
    assert!(refusal(dir.path(), "--cpu 60000").contains("--cpu: CPU 60000: no such CPU"));
    assert!(refusal(dir.path(), "--policy rr:5").contains("write fifo:1 to fifo:99, or other"));
    assert!(refusal(dir.path(), "--policy fifo:5 --priority 5").contains("cannot be used with"));
}

#[test]
fn other_users_read_a_run_only_if_it_is_shared() {
    if !rustix::process::getuid().is_root() {
        return skip("only root can be another user");
    }
    for (shared, status) in [(&[][..], 1), (&["--shared"], 0)] {
        let dir = tempfile::tempdir().expect("a folder");
        let run = ["--event", "timer:1kHz", "--read", "sim.counter"];
        let _run = recorder(dir.path(), &[&run[..], shared].concat());
        until(|| Registry::at(dir.path()).attach(1).ok());
        let reads = "record --run user:1 --for 100ms --allow-loss --json";
        let output = answered(as_nobody(dir.path()).args(reads.split(' ')));
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        let account = String::from_utf8_lossy(&output.stdout).into_owned();
        let refused = said(&output);
        match status {
            0 => assert!(account.contains("\"rows\":"), "{account}"),
            _ => assert!(refused.contains("user:1: "), "{refused}"),
        }
    }
}

#[test]
fn a_run_that_somebody_else_has_made_cannot_be_shared() {
    let dir = tempfile::tempdir().expect("a folder");
    let said = said(&strobe(
        dir.path(),
        &["record", "--run", "user:1", "--shared"],
    ));
    assert!(
        said.contains("cannot be used with") && said.contains("--shared"),
        "{said}"
    );
}

#[test]
fn the_line_on_a_terminal_says_how_much_time_is_left() {
    let dir = tempfile::tempdir().expect("a folder");
    for (event, end, part) in [
        ("timer:1kHz", ["--rows", "40000"], "seconds left"),
        ("timer:1kHz", ["--for", "40s"], "seconds left"),
        ("sim.pulse", ["--for", "3min"], "minutes left"),
    ] {
        let words = [
            "record",
            "--engine",
            "user",
            "--read",
            "sim.counter",
            "--event",
            event,
        ];
        let terminal = Terminal::new(dir.path(), &[&words[..], &end].concat());
        terminal.sees(part);
    }
}
