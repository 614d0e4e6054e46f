// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers of the user engine's runs: where they begin, what they do about loss, and how they are woken.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use strobe::block::Block;
use strobe::engine::user::{User, UserRun};
use strobe::error::Error;
use strobe::plan::{Plan, Step};
use strobe::reader::{AfterLoss, Begin, OnLoss, ReaderOptions, RunReader};
use strobe::ring::State;
use strobe::run::{OwnedRun, Run};

use crate::{attached, wake_at_each_row};

/// Long enough for anything that is to happen.
const LONG: Duration = Duration::from_secs(20);

/// A run on software triggers, in a ring of 16 rows: 15 can be read.
fn soft() -> UserRun {
    started("soft")
}

fn started(event: &str) -> UserRun {
    let mut plan = Plan::new(event.parse().expect("an event"));
    plan.ring = Some(16);
    plan.steps.push(Step::Read("sim.counter".into()));
    let run = User::default().create(&plan).expect("a run");
    run.start().expect("a start");
    run
}

fn is_ready(reader: &RunReader, at_most: Duration) -> bool {
    let at_most = Timespec::try_from(at_most).expect("a time");
    let mut fds = [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&at_most)).expect("to poll") > 0
}

/// The numbers of the rows that are there, and how many were lost before them.
fn rows(reader: &mut RunReader) -> (Vec<u64>, u64) {
    let block = reader.next(Duration::ZERO).expect("a block");
    let block = block.expect("a run that goes on");
    (block.rows().map(|row| row.row).collect(), block.lost())
}

#[test]
fn a_reader_begins_and_goes_on_where_it_is_told() {
    let run = soft();
    run.trigger(5).expect("triggers");
    let reader = |begin, after_loss| {
        let options = ReaderOptions {
            begin,
            after_loss,
            ..ReaderOptions::default()
        };
        run.reader_with(options).expect("a reader")
    };
    let mut oldest = reader(Begin::Oldest, AfterLoss::Half);
    let mut third = reader(Begin::Row(3), AfterLoss::Newest);
    let mut now = reader(Begin::Now, AfterLoss::Oldest);
    assert_eq!(rows(&mut oldest), ((0..5).collect(), 0));
    assert_eq!(rows(&mut third), (vec![3, 4], 0));
    assert_eq!(rows(&mut now), (vec![], 0));
    run.trigger(35).expect("triggers");
    assert_eq!(rows(&mut oldest), ((25..40).collect(), 20));
    assert_eq!(rows(&mut third), (vec![39], 34));
    assert_eq!(rows(&mut now), ((25..40).collect(), 20));
}

#[test]
fn a_reader_that_must_not_lose_rows_fails_when_it_has() {
    let run = soft();
    let options = ReaderOptions {
        on_loss: OnLoss::Fail,
        ..ReaderOptions::default()
    };
    let mut reader = run.reader_with(options).expect("a reader");
    run.trigger(15).expect("triggers");
    assert_eq!(rows(&mut reader).0.len(), 15);
    run.trigger(20).expect("triggers");
    for _ in 0..2 {
        let error = reader.next(Duration::ZERO).expect_err("rows are lost");
        assert!(matches!(error, Error::Lost { rows: 5, .. }), "{error}");
    }
}

#[test]
fn a_block_is_empty_when_the_time_is_over_and_none_comes_after_the_end() {
    let run = soft();
    let mut reader = run.reader().expect("a reader");
    let begun = Instant::now();
    let block = reader.next(Duration::from_millis(30)).expect("a block");
    assert!(block.is_some_and(|block| block.is_empty()));
    assert!(begun.elapsed() >= Duration::from_millis(30));
    run.trigger(3).expect("triggers");
    run.stop().expect("a stop");
    let block = reader.next(LONG).expect("a block").expect("three rows");
    assert_eq!((block.len(), block.missed()), (3, 0));
    let counter = block.column("sim.counter").expect("a column");
    assert_eq!(counter.raw().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(block.info().start.time > 0, "it has started");
    // It stays as it is, whatever the reader does.
    assert!(reader.next(LONG).expect("the end").is_none());
    assert_eq!(counter.to_vec(), [0.0, 1.0, 2.0]);
}

#[test]
fn blocks_that_are_not_needed_any_more_give_their_memory_to_later_ones() {
    let run = soft();
    let mut reader = run.reader().expect("a reader");
    let mut next = || {
        run.trigger(3).expect("triggers");
        let block = reader.next(LONG).expect("a block");
        block.expect("a run that goes on")
    };
    let address = |block: &Block| block.words().as_ptr().addr();
    let (first, second) = (next(), next());
    let free = address(&first);
    assert_ne!(free, address(&second));
    let like_it = vec![1_u64; 32768 / first.width() * first.width()];
    drop(first);
    // Whoever wants so much memory now would get what was given back to the system.
    let others = [like_it.clone(), like_it.clone(), like_it];
    let third = next();
    assert_eq!(free, address(&third), "as a `for` of Python has them");
    drop(others);
    let fourth = next();
    let held: [Vec<u64>; 3] =
        [&second, &third, &fourth].map(|block| block.rows().map(|row| row.row).collect());
    assert_eq!(held, [vec![3, 4, 5], vec![6, 7, 8], vec![9, 10, 11]]);
}

#[test]
fn a_run_says_where_it_is() {
    let run = soft();
    assert_eq!(run.state().expect("a state"), State::Running);
    run.pause().expect("a pause");
    assert_eq!(run.state().expect("a state"), State::Paused);
    run.resume().expect("to go on");
    run.trigger(2).expect("triggers");
    let attached: Box<dyn Run> = Box::new(attached(&run));
    assert_eq!(attached.snapshot().expect("counters").head, 2);
    run.stop().expect("a stop");
    assert_eq!(run.state().expect("a state"), State::Stopped);
}

#[test]
fn a_reader_is_ready_to_be_polled_when_its_rows_are_there() {
    let run = soft();
    let mut reader = run.reader().expect("a reader");
    reader.arm(1).expect("to arm");
    // It may be ready before: then there is nothing, and it is armed again.
    while is_ready(&reader, Duration::from_millis(2)) {
        assert_eq!(rows(&mut reader), (vec![], 0));
        reader.arm(1).expect("to arm");
    }
    run.trigger(2).expect("triggers");
    assert!(is_ready(&reader, LONG));
    assert_eq!(rows(&mut reader), (vec![0, 1], 0));
    run.trigger(1).expect("a trigger");
    reader.arm(1).expect("to arm");
    assert!(is_ready(&reader, LONG), "the row is there already");
    reader.disarm().expect("to disarm");
    assert!(!is_ready(&reader, Duration::from_millis(40)));
    run.stop().expect("a stop");
    reader.arm(1000).expect("to arm");
    assert!(is_ready(&reader, LONG), "the run has ended");
}

/// How long a thread of this machine, as busy as it is, takes to be woken by another.
fn bare_waking() -> Duration {
    let event = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
    std::thread::scope(|scope| {
        let signaller = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            let now = Instant::now();
            rustix::io::write(&event, &1_u64.to_ne_bytes()).expect("an event");
            now
        });
        rustix::io::read(&event, &mut [0; 8]).expect("to be woken");
        let woken = Instant::now();
        woken.duration_since(signaller.join().expect("it signalled"))
    })
}

/// Rows of an event that nobody knows the period of: how long each took to be seen, and how long a bare waking took beside
/// each. Both in order.
fn delays(
    event: &OwnedFd,
    reader: &mut RunReader,
    rows: u64,
    by_poll: bool,
) -> (Vec<Duration>, Vec<Duration>) {
    let mut delay = || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                rustix::io::write(event, &1_u64.to_ne_bytes()).expect("an event");
            });
            loop {
                if by_poll {
                    reader.arm(1).expect("to arm");
                    is_ready(reader, LONG);
                } else {
                    reader.wait(1, LONG).expect("to wait");
                }
                let block = reader.next(Duration::ZERO).expect("a block");
                let block = block.expect("a run that goes on");
                if let Some(time) = block.times().next() {
                    let now = strobe::clock::monotonic();
                    return Duration::from_nanos(now.saturating_sub(time));
                }
            }
        })
    };
    let each = (0..rows).map(|_| (delay(), bare_waking()));
    let (mut delays, mut bare): (Vec<_>, Vec<_>) = each.unzip();
    delays.sort();
    bare.sort();
    (delays, bare)
}

#[test]
fn a_reader_that_is_woken_at_each_row_has_it_at_once_and_the_account_says_so() {
    const ROWS: u64 = 15;
    let event = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
    let run = started(&format!("eventfd:{}", event.as_raw_fd()));
    let attached = attached(&run);
    let mut made = 0;
    for (whose, by_poll) in [
        ("own", false),
        ("own", true),
        ("attached", false),
        ("attached", true),
    ] {
        let mut reader = match whose {
            "own" => run.reader().expect("a reader"),
            _ => attached.reader().expect("a reader"),
        };
        rows(&mut reader);
        wake_at_each_row(&reader);
        let (delays, bare) = delays(&event, &mut reader, ROWS, by_poll);
        made += ROWS;
        println!(
            "{whose}, by poll {by_poll}: median {:?}, bare {:?}",
            delays[7], bare[7]
        );
        // Who looks for rows by itself finds them after 8 ms in the middle. Here the engine is woken, and wakes the reader.
        let at_once = Duration::from_millis(5) + 4 * bare[7];
        assert!(delays[7] < at_once, "{delays:?}, bare {bare:?}");
    }
    run.stop().expect("a stop");
    assert_eq!(run.usage().expect("a thread").wakes, made);
}

#[test]
fn nobody_is_woken_at_each_row_who_has_not_asked() {
    let run = soft();
    let reader = run.reader().expect("a reader");
    run.trigger(10).expect("triggers");
    reader.wake_at_each_row().expect("to be woken");
    run.trigger(10).expect("triggers");
    drop(reader);
    run.trigger(10).expect("triggers");
    run.stop().expect("a stop");
    assert_eq!(run.usage().expect("a thread").wakes, 10);
}
