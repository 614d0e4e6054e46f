// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of either engine that follow a run of the kernel engine: the slow one knows which row of the fast one it belongs to.

use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe::runs::Runs;
use strobe_cases::account::{begin, read_now, record, until, until_rows};
use strobe_cases::rounds::{held, rounds};
use strobe_cases::{Account, Engine, Kernel, User, plan};
use strobe_ring::{Snapshot, State};

const ROWS: u64 = 2000;

/// A run of the kernel engine that makes so many rows at 1 kHz; all of them stay in its ring.
fn fast(rows: Option<u64>) -> <Kernel as Engine>::Run {
    Kernel::open().run(&Plan {
        limit: rows,
        ring: Some(4096),
        ..plan("timer:1kHz", &["sim.ramp", "clock.time"])
    })
}

/// What follows each so many rows of it, and has started.
fn slow<E: Engine>(fast: &impl Run, every: u64) -> E::Run {
    let run = format!("run:kernel:{}", fast.info().run);
    let parts = ["row", "time", "sim.ramp", "clock.time"].map(|part| format!("{run}.{part}"));
    let follower = E::open().run(&plan(
        &format!("{run}.row:{every}"),
        &parts.each_ref().map(String::as_str),
    ));
    follower.start().expect("to start");
    follower
}

/// All its rows, once it has ended by itself.
fn ended(follower: &impl OwnedRun) -> (Account, Snapshot) {
    let (mut reader, mut account) = begin(follower);
    until("its end", || reader.snapshot().state.is_final());
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    (account, end)
}

fn follows_every_so_many_rows<E: Engine>() {
    let fast = fast(Some(ROWS));
    let followers = [1, 7, 100].map(|every| (every, slow::<E>(&fast, every)));
    let (theirs, end) = record(&fast);
    assert_eq!((end.state, end.head), (State::Done, ROWS));
    for (every, follower) in followers {
        let (account, end) = ended(&follower);
        println!("every {every}: {} missed", end.missed());
        assert_eq!((end.state, end.error), (State::Stopped, 0), "every {every}");
        assert_eq!(end.triggers, ROWS.div_ceil(every), "every {every}");
        for row in &account.rows {
            let number = row.values[0];
            assert_eq!((number % every, number / every), (0, row.trigger));
            let their = &theirs.rows[number as usize];
            assert_eq!(row.values[1..], [&[their.time], &their.values[..]].concat());
            assert!(row.time >= their.time, "{row:?} before {their:?}");
        }
    }
}

#[test]
fn a_run_follows_every_hundredth_row_of_a_faster_one_and_has_that_row() {
    follows_every_so_many_rows::<User>();
    follows_every_so_many_rows::<Kernel>();
}

fn takes_with_it_what_follows<E: Engine>() {
    let fast = fast(None);
    let (reader, _) = begin(&fast);
    fast.start().expect("to start");
    let gone = slow::<E>(&fast, 10);
    let stays = slow::<E>(&fast, 10);
    until("rows of both", || {
        [&gone, &stays].map(|run| run.snapshot().expect("a snapshot").head >= 3) == [true; 2]
    });
    drop(gone);
    let now = reader.snapshot();
    until_rows(&reader, now.head + 100);
    assert_eq!(reader.snapshot().state, State::Running);
    drop(fast);
    let (_, end) = ended(&stays);
    assert_eq!(end.state, State::Failed, "{end:?}");
}

#[test]
fn a_run_whose_owner_goes_away_takes_with_it_what_follows_and_not_the_other_way() {
    takes_with_it_what_follows::<User>();
    takes_with_it_what_follows::<Kernel>();
}

/// `strobe record`, as another process, and what its run is called.
fn recording(event: &str, channel: &str, file: &str) -> (Child, String) {
    let child = Command::new("strobe")
        .args(["record", "--event", event, "--read", channel])
        .args(["--overwrite", "-o", file])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("strobe");
    let mut name = None;
    until("its first row", || {
        let runs = Runs::now().runs;
        let its = runs
            .iter()
            .find(|run| run.pid as u32 == child.id() && run.rows > 0);
        name = its.map(|run| format!("{}:{}", run.engine, run.run));
        name.is_some()
    });
    (child, name.expect("a name"))
}

/// How many rows the run of this process has made.
fn rows_of(program: &Child) -> u64 {
    let runs = Runs::now().runs;
    let its = runs.iter().find(|run| run.pid as u32 == program.id());
    its.expect("its run").rows
}

#[test]
fn whichever_process_is_killed_the_one_that_is_followed_goes_on_and_the_other_knows() {
    let folder = env::temp_dir().join(format!("run-rows-{}", process::id()));
    fs::create_dir(&folder).expect("a new folder");
    let file = |name: &str| folder.join(name).display().to_string();
    let before = held();
    for round in 0..rounds(6, 4) {
        let (mut fast, followed) = recording("timer:1kHz", "sim.ramp", &file("fast.arrows"));
        let row = format!("run:{followed}.row");
        let (mut slow, _) = recording(&format!("{row}:10"), &row, &file("slow.arrows"));
        if round % 2 == 0 {
            fast.kill().expect("to kill");
            // What it follows has failed, and so does it: its file has what has come.
            let end = slow.wait().expect("an end");
            assert_eq!(end.code(), Some(3), "round {round}");
        } else {
            slow.kill().expect("to kill");
            slow.wait().expect("an end");
            let rows = rows_of(&fast);
            until("more rows of what was followed", || {
                rows_of(&fast) > rows + 100
            });
            fast.kill().expect("to kill");
        }
        fast.wait().expect("an end");
        until("nothing to be left", || held() == before);
    }
    fs::remove_dir_all(&folder).expect("to leave nothing");
}
