// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that follow another run: its rows are their event, and its row number, stamp and values are channels.

use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::engine::user::{User, UserRun};
use strobe::error::Error;
use strobe::plan::{Plan, Step};
use strobe::reader::RunReader;
use strobe::ring::{Snapshot, State};
use strobe::run::{OwnedRun, Run};

/// Long enough for anything that is to happen.
const LONG: Duration = Duration::from_secs(20);

fn plan(event: &str, channels: &[String]) -> Plan {
    let mut plan = Plan::new(event.parse().expect("an event"));
    plan.steps = channels.iter().cloned().map(Step::Read).collect();
    plan
}

/// A run. The owner of the one that it follows may be too busy for an answer for once.
fn made(event: &str, channels: &[String]) -> Result<UserRun, Error> {
    let begun = Instant::now();
    loop {
        let made = User::default().create(&plan(event, channels));
        let is_late = |error: &Error| error.to_string().contains("very busy");
        if !made.as_ref().is_err_and(is_late) || begun.elapsed() > LONG {
            return made;
        }
    }
}

fn started(event: &str, channels: &[String]) -> UserRun {
    let run = made(event, channels).expect("a run");
    run.start().expect("a start");
    run
}

/// A run on software triggers that counts its rows.
fn soft(rows: Option<u64>) -> UserRun {
    let mut plan = plan("soft", &["sim.counter".into()]);
    plan.limit = rows;
    let run = User::default().create(&plan).expect("a run");
    run.start().expect("a start");
    run
}

fn of(run: &UserRun, part: &str) -> String {
    format!("run:user:{}.{part}", run.info().run)
}

/// The rows that come until there are so many.
fn rows(reader: &mut RunReader, count: usize) -> Vec<Block> {
    let (begun, mut blocks, mut found) = (Instant::now(), Vec::new(), 0);
    while found < count && begun.elapsed() < LONG {
        if let Some(block) = reader.next(LONG).expect("rows") {
            found += block.len();
            blocks.push(block);
        }
    }
    assert_eq!(found, count);
    blocks
}

fn column(blocks: &[Block], name: &str) -> Vec<u64> {
    let words = blocks.iter().map(|block| {
        let column = block.column(name).expect("a column");
        column.raw().collect::<Vec<u64>>()
    });
    words.flatten().collect()
}

fn until(run: &UserRun, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let begun = Instant::now();
    loop {
        let now = run.snapshot().expect("a snapshot");
        if is_so(&now) || begun.elapsed() > LONG {
            return now;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_row_of_a_run_triggers_a_run_that_follows_it_and_has_its_number_stamp_and_values() {
    let run = soft(None);
    let names = ["row", "time", "sim.counter"].map(|part| of(&run, part));
    // Another name of the same run: the same row.
    let again = format!("run:{}.row", run.info().run);
    let more = ["event.count".into(), "event.time".into(), again.clone()];
    let read = [&names[..], &more].concat();
    let follower = started(&of(&run, "row"), &read);
    let mut reader = follower.reader().expect("a reader");
    let mut blocks = Vec::new();
    for _ in 0..5 {
        run.trigger(1).expect("a trigger");
        blocks.append(&mut rows(&mut reader, 1));
    }
    let theirs = rows(&mut run.reader().expect("a reader"), 5);
    let numbers: Vec<u64> = (0..5).collect();
    let stamps: Vec<u64> = theirs.iter().flat_map(Block::times).collect();
    assert_eq!(column(&blocks, &names[0]), numbers);
    assert_eq!(column(&blocks, "event.count"), numbers);
    assert_eq!(column(&blocks, &again), numbers);
    assert_eq!(column(&blocks, &names[1]), stamps);
    assert_eq!(column(&blocks, "event.time"), stamps);
    assert_eq!(column(&blocks, &names[2]), column(&theirs, "sim.counter"));
}

#[test]
fn every_third_row_is_a_trigger_and_what_comes_while_a_row_is_made_is_missed() {
    let run = soft(None);
    let number = of(&run, "row");
    let follower = started(&format!("{number}:3"), std::slice::from_ref(&number));
    run.trigger(10_000).expect("triggers");
    // Those before 10000 that are multiples of 3.
    let made = |now: &Snapshot| now.head + now.missed();
    assert_eq!(made(&until(&follower, |now| made(now) == 3334)), 3334);
    run.trigger(2).expect("triggers");
    run.trigger(1).expect("a trigger");
    // 10002 is one, 10000 and 10001 are not.
    assert_eq!(made(&until(&follower, |now| made(now) == 3335)), 3335);
    run.stop().expect("a stop");
    let end = until(&follower, |now| now.state.is_final());
    assert_eq!(end.triggers, end.head + end.missed());
    let blocks = rows(&mut follower.reader().expect("a reader"), end.head as usize);
    for (row, trigger) in column(&blocks, &number)
        .iter()
        .zip(blocks.iter().flat_map(Block::triggers))
    {
        assert_eq!((row % 3, row / 3), (0, trigger));
    }
}

#[test]
fn a_run_that_follows_ends_when_the_other_does_and_as_it_does() {
    for limit in [None, Some(4)] {
        let run = soft(limit);
        let number = of(&run, "row");
        let follower = started(&number, std::slice::from_ref(&number));
        run.trigger(4).expect("triggers");
        if limit.is_none() {
            run.stop().expect("a stop");
        }
        let end = until(&follower, |now| now.state.is_final());
        assert_eq!((end.state, end.error), (State::Stopped, 0));
        assert_eq!((end.triggers, end.head + end.missed()), (4, 4));
    }
    let run = soft(None);
    let follower = started(&of(&run, "row"), &[]);
    // Its owner goes away.
    drop(run);
    let end = until(&follower, |now| now.state.is_final());
    assert_eq!(end.state, State::Failed, "{end:?}");
}

#[test]
fn a_run_of_another_event_reads_the_last_row_and_fails_where_there_is_none() {
    let run = soft(None);
    let counter = of(&run, "sim.counter");
    let other = started("soft", std::slice::from_ref(&counter));
    let mut reader = other.reader().expect("a reader");
    other.trigger(1).expect("a trigger");
    let before = rows(&mut reader, 1);
    assert!(
        before[0].rows().all(|row| row.faults.failed(0)),
        "no row yet"
    );
    run.trigger(7).expect("triggers");
    other.trigger(1).expect("a trigger");
    let theirs = rows(&mut run.reader().expect("a reader"), 7);
    let blocks = rows(&mut reader, 1);
    assert_eq!(
        column(&blocks, &counter).last(),
        column(&theirs, "sim.counter").last()
    );
    assert!(blocks[0].rows().all(|row| row.faults.is_empty()));
    // What is over says nothing new: the device went away.
    run.stop().expect("a stop");
    let _ = other.trigger(1);
    let end = until(&other, |now| now.state.is_final());
    assert_eq!((end.state, end.errors), (State::Failed, 2));
}

#[test]
fn a_run_or_a_channel_that_is_not_there_is_refused_with_the_remedy() {
    let run = soft(None);
    let refused = |event: &str, channel: &str| {
        let refused = made(event, &[channel.into()]);
        refused.err().expect("a refusal").to_string()
    };
    let told = refused("run:user:999999.row", "clock.time");
    assert!(
        told.contains("999999") && told.contains("strobe status"),
        "{told}"
    );
    let told = refused("run:999999.row", "clock.time");
    assert!(
        told.contains("no run 999999") && told.contains("strobe status"),
        "{told}"
    );
    let told = refused("soft", "run:user:999999.row");
    assert!(told.contains("999999"), "{told}");
    let told = refused("soft", &of(&run, "sim.speed"));
    assert!(told.contains("row, time, sim.counter"), "{told}");
    let told = refused("soft", "run:x.row");
    assert!(told.contains("`x` is not the name of a run"), "{told}");
}
