// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon that is killed in mid-run, again and again, and that no service manager keeps runs for: what is lost then.
//!
//! `STROBE_SERVE_KILLS` says how often; `make soak` does it 100 times.

use std::time::{Duration, Instant};

use serde_json::Value;
use strobe::reader::RunReader;
use strobe::run::Run;
use strobe::runs::{Place, RunName, Runs};

use crate::daemon::{Daemon, PATIENCE, command, number, rows_of, start};

const RATE: u64 = 2000;
/// Longer than the daemon waits before it writes.
const PAUSE_MS: u64 = 300;

/// The ring of the daemon's run, seen by this process: it can still be read when the daemon is killed.
fn ring(about: &Value) -> (Box<dyn Run>, RunReader) {
    let number = about["info"]["run"].as_u64().expect("its number");
    let name: RunName = format!("user:{number}").parse().expect("a name");
    // On a busy machine, its owner may be late with its answer for once.
    let until = Instant::now() + PATIENCE;
    let run = loop {
        if let Some(Ok(run)) = Runs::now().find(&name).ok().map(Place::attach) {
            break run;
        }
        assert!(Instant::now() < until, "no ring of {name}");
    };
    let reader = run.reader().expect("a reader");
    (run, reader)
}

/// The run of this number, if it is there.
fn about(daemon: &Daemon, id: u64) -> Option<Value> {
    let runs: Value = serde_json::from_str(&daemon.get("/api/runs")).expect("runs");
    let mut runs = runs["runs"].as_array().expect("runs").iter();
    runs.find(|run| run["id"] == id).cloned()
}

#[test]
fn a_kill_takes_rows_that_were_not_written_yet_and_no_others() {
    let kills = std::env::var("STROBE_SERVE_KILLS").map_or(10, |n| n.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = start(command(folder.path()));
    let (mut made_in_all, mut lost_in_all, mut lost_most) = (0, 0, 0);
    for kill in 0..kills {
        let id = daemon.make(RATE);
        let run = about(&daemon, id).expect("the run");
        let (_run, reader) = ring(&run);
        // At any moment of a run's life, its first ones among them.
        std::thread::sleep(Duration::from_millis(kill * 7919 % PAUSE_MS));
        if kill % 4 > 0 {
            daemon.wait_for_written(id, 100 * (kill % 4));
        }
        let run = about(&daemon, id).expect("the run");
        let promised = number(&run["spool"], "written");
        assert!(promised <= number(&run, "next"));
        daemon.ended("-KILL");
        let end = reader.snapshot();
        daemon = start(command(folder.path()));
        // A run of which nothing was written yet is gone.
        let left = about(&daemon, id);
        let found = left.as_ref().map_or(0, |left| number(left, "next"));
        assert!(
            promised <= found && found <= end.head,
            "kill {kill}: {promised} rows were promised and {} made, {found} are there",
            end.head
        );
        if let Some(left) = left {
            assert_eq!(rows_of(&daemon, id), (0..found).collect::<Vec<_>>());
            assert_eq!((number(&left, "lost"), number(&left, "rows")), (0, found));
            // What came after is not known, and that is said.
            assert_eq!(left["state"], "failed");
            let why = left["end"].as_str().expect("an end");
            assert!(why.contains("the daemon ended before the run"), "{why}");
        }
        let lost = end.head - found;
        (made_in_all, lost_in_all) = (made_in_all + end.head, lost_in_all + lost);
        lost_most = lost_most.max(lost);
    }
    let most_ms = lost_most * 1000 / RATE;
    println!(
        "{kills} kills: {made_in_all} rows made, {lost_in_all} lost, of a run at most {lost_most} ({most_ms} ms)"
    );
}
