// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels of the kernel engine that are not ready at once: those that sleep, those whose value arrives later,
//! those that are fetched before the next row. Rows stay whole and in order, and every trigger is a row or missed.

use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use strobe::engine::Error;
use strobe::engine::kernel::KernelRun;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until, until_rows};
use strobe_cases::machine::{Sim, patience, pin, slowness};
use strobe_cases::raw::limit;
use strobe_cases::{Engine, Kernel, Pace, plan};
use strobe_ring::{Missed, Snapshot, State};

const NEVER: u64 = 1;
const TWICE: u64 = 2;
const FAILS: u64 = 3;
const AT_ONCE: u64 = 4;
const REFUSED: u64 = 5;
const STALE: u64 = 6;

fn create(event: &str, limit: Option<u64>, channels: &[&str]) -> KernelRun {
    Kernel::open().run(&Plan {
        limit,
        ..plan(event, channels)
    })
}

fn busy(end: &Snapshot) -> u64 {
    end.missed_by[Missed::Busy as usize]
}

/// Timers of a millisecond have triggered on this CPU: those of another run, and so those of all.
fn triggers_have_come() {
    record(&create("timer:1ms", Some(20), &["clock.time"]));
}

/// The values count up from 0, one a row.
fn counts_up(values: impl Iterator<Item = u64>) {
    for (row, value) in (0..).zip(values) {
        assert_eq!(value, row);
    }
}

#[test]
fn a_channel_that_sleeps_is_read_by_a_thread_and_the_row_says_how_long_it_waited() {
    let _sim = Sim::well();
    let channels = ["clock.waited", "sim.slow", "clock.time", "sim.counter"];
    let (account, end) = record(&create("timer:2ms", Some(200), &channels));
    assert_eq!((account.rows.len(), end.state), (200, State::Done));
    counts_up(account.column(1));
    counts_up(account.column(3));
    for row in &account.rows {
        let (waited, time) = (row.values[0], row.values[2]);
        assert!(waited > 0, "{row:?}");
        // It was read after it had waited and then slept for 50 us.
        assert!(waited + 50_000 <= time - row.time, "{row:?}");
    }
}

#[test]
fn a_row_without_such_a_channel_has_not_waited() {
    let (account, _) = record(&create("timer:1ms", Some(20), &["clock.waited"]));
    assert!(account.column(0).all(|waited| waited == 0));
}

#[test]
fn a_trigger_that_finds_a_row_unfinished_is_missed_as_busy() {
    let sim = Sim::well();
    sim.set("sim_sleep_us", 3500);
    let (account, end) = record(&create("timer:1ms", Some(50), &["sim.slow"]));
    counts_up(account.column(0));
    assert!(busy(&end) > 0, "{end:?}");
    for pair in account.rows.windows(2) {
        assert!(pair[1].time >= pair[0].time + 3_500_000, "{pair:?}");
        // Three grid points from one to the other at least: this one is served less than a period late.
        if !pair[1].status.late() {
            assert!(pair[1].trigger >= pair[0].trigger + 3, "{pair:?}");
        }
    }
}

#[test]
fn each_software_trigger_waits_for_the_thread() {
    let _sim = Sim::well();
    let run = create("soft", None, &["sim.slow"]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(200).expect("to trigger");
    read_now(&mut reader, &mut account);
    assert_eq!(account.rows.len(), 200);
    counts_up(account.column(0));
}

#[test]
fn a_row_is_there_when_its_last_value_has_arrived_and_not_before() {
    let sim = Sim::well();
    let arrives = Duration::from_millis(300 * slowness());
    sim.set("sim_async_ns", arrives.as_nanos() as u64);
    let run = create("soft", None, &["sim.counter", "sim.async", "sim.latch"]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    let (mut rows, mut looked) = (0, 0);
    until("three looks before the value", || {
        let begun = Instant::now();
        run.trigger(1).expect("to trigger");
        let now = reader.snapshot();
        // Who was held up so long that the value has come by itself has seen nothing.
        if begun.elapsed() < arrives {
            assert_eq!((now.head, now.triggers, now.missed()), (rows, rows, 0));
            looked += 1;
        }
        rows += 1;
        until_rows(&reader, rows);
        read_now(&mut reader, &mut account);
        looked == 3
    });
    counts_up(account.column(0));
    counts_up(account.column(1));
    run.stop().expect("to stop");
    account.settle(&reader.snapshot());
}

#[test]
fn a_value_that_arrives_at_once_is_as_good() {
    let sim = Sim::well();
    sim.set("sim_every", 1).set("sim_async_fault", AT_ONCE);
    let (account, _) = record(&create("timer:1ms", Some(100), &["sim.async"]));
    counts_up(account.column(0));
}

#[test]
fn a_value_that_arrives_first_does_not_publish_a_row_whose_steps_go_on() {
    let sim = Sim::well();
    sim.set("sim_every", 1).set("sim_async_fault", AT_ONCE);
    sim.set("sim_sleep_us", 20_000);
    let run = create("timer:1ms", Some(20), &["sim.async", "sim.slow"]);
    let (account, _) = record(&run);
    counts_up(account.column(0));
    counts_up(account.column(1));
}

#[test]
fn a_value_that_comes_twice_counts_once_and_is_noticed() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_async_fault", TWICE);
    let before = Sim::parameter("strays");
    let (account, _) = record(&create("timer:1ms", Some(100), &["sim.async"]));
    counts_up(account.column(0));
    assert_eq!(Sim::parameter("strays") - before, 9, "values 10, 20, .. 90");
}

#[test]
fn a_value_that_comes_when_another_is_awaited_is_not_taken_for_it() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_async_fault", STALE);
    let before = Sim::parameter("strays");
    let (account, _) = record(&create("timer:1ms", Some(100), &["sim.async"]));
    counts_up(account.column(0));
    assert_eq!(Sim::parameter("strays") - before, 9, "values 10, 20, .. 90");
}

#[test]
fn a_value_that_fails_or_is_refused_at_once_is_named_in_its_row() {
    for fault in [FAILS, REFUSED] {
        let sim = Sim::well();
        sim.set("sim_every", 10).set("sim_async_fault", fault);
        let run = create("timer:1ms", Some(100), &["sim.counter", "sim.async"]);
        let (account, end) = record(&run);
        for row in &account.rows {
            let hit = row.row > 0 && row.row % 10 == 0;
            assert_eq!(
                row.faults,
                Vec::from_iter(hit.then_some(1)),
                "{fault}: {row:?}"
            );
            assert!(hit || row.values[1] == row.row, "{row:?}");
        }
        assert_eq!(end.errors, 9);
    }
}

#[test]
fn of_several_values_that_fail_all_are_named_whichever_came_first() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_fail", 1);
    sim.set("sim_async_fault", FAILS);
    for channels in [["sim.async", "sim.noise"], ["sim.noise", "sim.async"]] {
        let (account, end) = record(&create("timer:1ms", Some(50), &channels));
        for row in &account.rows {
            let hit = row.row > 0 && row.row % 10 == 0;
            assert_eq!(row.faults, if hit { vec![0, 1] } else { vec![] }, "{row:?}");
        }
        assert_eq!(end.errors, 4);
    }
}

#[test]
fn a_value_that_never_comes_leaves_the_run_to_be_stopped_and_all_is_counted() {
    let _pinned = pin(0);
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_async_fault", NEVER);
    let run = create("timer:1ms", None, &["sim.async"]);
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until_rows(&reader, 10);
    triggers_have_come();
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    let end = reader.snapshot();
    assert_eq!((account.rows.len(), end.state), (10, State::Stopped));
    assert!(busy(&end) > 0, "{end:?}");
}

#[test]
fn a_value_on_its_way_does_not_hold_up_the_stop() {
    let _pinned = pin(0);
    let sim = Sim::well();
    sim.set("sim_async_ns", 3_600_000_000_000);
    let run = create("timer:1ms", None, &["sim.async"]);
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    triggers_have_come();
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    assert_eq!(account.rows.len(), 0);
    assert!(busy(&reader.snapshot()) > 0);
}

#[test]
fn a_pause_gives_up_what_has_not_arrived_and_the_next_row_is_whole() {
    let sim = Sim::well();
    sim.set("sim_every", 10).set("sim_async_fault", NEVER);
    let run = create("timer:1ms", None, &["sim.counter", "sim.async"]);
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until_rows(&reader, 10);
    thread::sleep(Duration::from_millis(10));
    run.pause().expect("to pause");
    // Not before: the row to be given up may not have begun yet.
    sim.set("sim_async_fault", 0);
    let paused = reader.snapshot();
    assert_eq!(paused.triggers, paused.head + paused.missed(), "{paused:?}");
    run.resume().expect("to go on");
    until_rows(&reader, 20);
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    for row in &account.rows {
        assert_eq!(row.status.resumed(), row.row == 10, "{row:?}");
    }
    counts_up(account.column(1));
}

#[test]
fn an_asynchronous_channel_is_for_one_run_at_a_time() {
    let _sim = Sim::well();
    let run = create("soft", None, &["sim.async"]);
    let second = Kernel::open().create(&plan("soft", &["sim.async"]));
    assert!(matches!(second, Err(Error::Busy { .. })), "a second one");
    drop(run);
    drop(create("soft", None, &["sim.async"]));
}

#[test]
fn a_row_cannot_await_two_values_of_a_channel_that_has_one_under_way_at_a_time() {
    let twice = plan("timer:1kHz", &["sim.async", "sim.async"]);
    let refused = Kernel::open().0.create(&twice);
    assert!(matches!(refused, Err(Error::Busy { .. })));
    // Those that are read one after the other may be in a row twice.
    let run = create("timer:200Hz", Some(5), &["sim.slow", "sim.slow"]);
    let (account, end) = record(&run);
    assert_eq!((end.head, end.errors), (5, 0));
    for row in &account.rows {
        assert_eq!(row.values, [2 * row.row, 2 * row.row + 1]);
    }
}

#[test]
fn a_value_that_is_fetched_before_the_next_row_completes_the_one_before() {
    let _sim = Sim::well();
    let run = create("soft", None, &["sim.next", "sim.counter"]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    for row in 0..10 {
        run.trigger(1).expect("to trigger");
        assert_eq!(reader.snapshot().head, row, "the next trigger completes it");
    }
    run.stop().expect("to stop");
    assert_eq!(reader.snapshot().head, 10, "or the end does");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    counts_up(account.column(0));
    counts_up(account.column(1));
}

#[test]
fn a_limit_holds_for_all_classes_in_one_row() {
    let _sim = Sim::well();
    let mut plan = plan(
        "timer:3ms",
        &["sim.counter", "sim.slow", "sim.async", "sim.next"],
    );
    let write = |value| Step::Write {
        output: "sim.latch".into(),
        value,
    };
    plan.steps.insert(0, write(7));
    plan.steps.push(Step::Read("sim.latch".into()));
    plan.steps.push(write(9));
    plan.limit = Some(100);
    let (account, end) = record(&Kernel::open().run(&plan));
    assert_eq!((account.rows.len(), end.state), (100, State::Done));
    for channel in 0..4 {
        counts_up(account.column(channel));
    }
    assert!(account.column(4).all(|latch| latch == 7));
}

#[test]
fn an_event_of_a_device_makes_rows_with_slow_channels_too() {
    let sim = Sim::well();
    sim.set("sim_every", 10)
        .set("sim_drop", 3)
        .set("sim_burst", 2);
    let run = create("sim.pulse", Some(100), &["sim.slow", "sim.async"]);
    let (account, end) = record(&run);
    counts_up(account.column(0));
    assert!(busy(&end) > 0, "a burst: {end:?}");
    assert!(end.missed_by[Missed::Source as usize] > 0, "{end:?}");
}

#[test]
fn the_device_may_go_at_any_moment() {
    let sim = Sim::well();
    sim.set("sim_sleep_us", 900).set("sim_async_ns", 700_000);
    for round in 0..60 {
        let channels = ["sim.slow", "sim.async", "sim.next"];
        let channels = &channels[round % 3..=round % 3];
        let run = create("timer:1ms", None, channels);
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        thread::sleep(Duration::from_micros(2000 + 97 * round as u64));
        sim.plug(false);
        read_to_end(&mut reader, Pace::FAST);
        let end = reader.snapshot();
        assert_eq!(
            (end.state, end.error),
            (State::Failed, -Errno::NODEV.raw_os_error())
        );
        sim.plug(true);
    }
}

#[test]
fn the_owner_may_go_while_its_thread_sleeps() {
    let sim = Sim::well();
    sim.set("sim_sleep_us", 200_000);
    for _ in 0..10 {
        let run = create("timer:1ms", None, &["sim.slow"]);
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        thread::sleep(Duration::from_millis(3));
        let begun = Instant::now();
        drop(run);
        assert!(begun.elapsed() < patience(60), "a short sleep");
        read_to_end(&mut reader, Pace::FAST);
    }
    until("threads to be gone", || threads().is_empty());
}

#[test]
fn triggers_that_found_the_last_row_open_count_if_it_is_given_up() {
    let sim = Sim::well();
    sim.set("sim_every", 1).set("sim_async_fault", NEVER);
    let run = create("soft", Some(2), &["sim.async"]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(1).expect("to trigger");
    until_rows(&reader, 1);
    run.trigger(6).expect("to trigger");
    run.pause().expect("to pause");
    let paused = reader.snapshot();
    assert_eq!((paused.head, paused.triggers, busy(&paused)), (1, 7, 6));
    sim.set("sim_async_fault", 0);
    run.resume().expect("to go on");
    run.trigger(1).expect("to trigger");
    until("the limit", || reader.snapshot().state == State::Done);
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    assert_eq!(account.rows[1].trigger, 7);
}

#[test]
fn triggers_that_find_the_last_row_open_do_not_count_if_it_is_made() {
    let sim = Sim::well();
    sim.set("sim_async_ns", 100_000_000);
    let run = create("soft", Some(1), &["sim.async"]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(6).expect("to trigger");
    until("the limit", || reader.snapshot().state == State::Done);
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    assert_eq!(reader.snapshot().triggers, 1);
}

#[test]
fn nothing_is_missed_after_the_last_row() {
    let sim = Sim::well();
    // Values arrive while grid points pass, and more of these than the budget admits.
    for round in 0..60 {
        sim.set("sim_async_ns", 3000 + 211 * (round % 40));
        let channels = ["sim.slow", "sim.async"];
        let channels = &channels[usize::from(round % 3 > 0)..];
        let plan = Plan {
            ring: Some(64),
            limit: Some(3 + round % 5),
            ..plan("timer:2us", channels)
        };
        record(&Kernel::open().run(&plan));
    }
}

#[test]
fn a_value_that_comes_after_its_row_was_given_up_is_refused() {
    let sim = Sim::well();
    // So long that the pause comes first on a slow machine, too.
    sim.set("sim_async_ns", 5_000_000_000);
    let run = create("soft", None, &["sim.counter", "sim.async"]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(1).expect("to trigger");
    let before = Sim::parameter("strays");
    run.pause().expect("to pause");
    until("the value", || Sim::parameter("strays") == before + 1);
    sim.set("sim_async_ns", 1000);
    run.resume().expect("to go on");
    run.trigger(1).expect("to trigger");
    until_rows(&reader, 1);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    let row = &account.rows[0];
    assert_eq!((row.trigger, &row.values[..]), (1, &[1, 1][..]));
    assert!(row.status.resumed(), "{row:?}");
}

#[test]
fn all_runs_together_have_1024_asynchronous_channels_and_one_that_has_ended_has_none() {
    let _sim = Sim::well();
    let all = plan("soft", &["sim.next"; 1024]);
    let one = plan("soft", &["sim.next"]);
    for _ in 0..3 {
        let first = Kernel::open().run(&all);
        let mut reader = first.reader().expect("a reader");
        let more = Kernel::open().create(&one).err().expect("one too many");
        assert!(matches!(more, Error::Async(_)), "{more}");
        first.start().expect("to start");
        first.trigger(1).expect("to trigger");
        first.stop().expect("to stop");
        let row = &read_to_end(&mut reader, Pace::FAST).rows[0];
        counts_up(row.values.iter().copied());
        let (account, _) = record(&create("timer:1ms", Some(3), &["sim.next"]));
        assert_eq!(account.rows.len(), 3, "the first one is still there");
    }
}

#[test]
fn the_thread_has_the_priority_that_is_asked_for_or_45() {
    let _sim = Sim::well();
    for (asked, got) in [(None, 45), (Some(1), 1), (Some(99), 99)] {
        let mut plan = plan("soft", &["sim.slow"]);
        plan.priority = asked;
        let run = Kernel::open().run(&plan);
        // That of the run before may still be on its way out.
        until("no thread but its own", || threads() == [(FIFO, got)]);
        drop(run);
    }
}

#[test]
fn more_than_priority_45_is_for_those_who_have_cap_sys_nice_or_may_by_their_limit() {
    let _sim = Sim::well();
    let create = |priority| {
        let mut plan = plan("soft", &["sim.slow"]);
        plan.priority = Some(priority);
        Kernel::open().create(&plan)
    };
    // Capabilities are of a thread.
    thread::spawn(move || {
        let mut mine = capabilities(None).expect("capabilities");
        mine.effective.remove(CapabilitySet::SYS_NICE);
        set_capabilities(None, mine).expect("to give one up");
        assert!(matches!(create(46), Err(Error::Priority(46))));
        drop(create(45).expect("without privilege"));
        limit(libc::RLIMIT_RTPRIO as usize, 50);
        drop(create(50).expect("within the limit"));
        assert!(matches!(create(51), Err(Error::Priority(51))));
        limit(libc::RLIMIT_RTPRIO as usize, 0);
    })
    .join()
    .expect("no panic");
}

const FIFO: u64 = 1;

/// Policy and priority of the kernel's threads of runs.
fn threads() -> Vec<(u64, u64)> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let stats =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let of_runs = stats.filter(|stat| stat.contains("(strobe/"));
    let field = |stat: &str, number: usize| {
        // The second field may have blanks in it; those after it have none.
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let field = rest.split_whitespace().nth(number - 3);
        field
            .and_then(|field| field.parse().ok())
            .expect("a number")
    };
    of_runs
        .map(|stat| (field(&stat, 41), field(&stat, 40)))
        .collect()
}
