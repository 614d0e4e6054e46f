// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rings and their readers.

use std::env::current_exe;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until, until_rows};
use strobe_cases::machine::patience;
use strobe_cases::{Engine, Pace, plan};
use strobe_hw::interrupt::interrupt;
use strobe_ring::State;

/// A run on `soft` that has been started.
fn soft<E: Engine>(engine: &E, ring: u64, limit: Option<u64>, channels: &[&str]) -> E::Run {
    let run = engine.run(&Plan {
        ring: Some(ring),
        limit,
        ..plan("soft", channels)
    });
    run.start().expect("to start");
    run
}

pub fn a_linear_ring_keeps_every_row<E: Engine>(engine: &E) {
    for limit in [2, 63, 64] {
        let run = soft(engine, 64, Some(limit), &["sim.counter"]);
        let mut asleep = run.reader().expect("a reader");
        run.trigger(limit as u32).expect("to trigger");
        let mut late = run.reader().expect("a reader");
        for reader in [&mut asleep, &mut late] {
            let account = read_to_end(reader, Pace::FAST);
            assert_eq!(account.rows.len() as u64, limit);
            assert_eq!((account.begun_at, account.lost), (0, 0));
            assert!(account.column(0).eq(0..limit));
        }
    }
}

pub fn a_circular_ring_with_a_limit_keeps_its_last_rows<E: Engine>(engine: &E) {
    let run = soft(engine, 64, Some(1000), &["sim.counter"]);
    let mut asleep = run.reader().expect("a reader");
    run.trigger(1000).expect("to trigger");
    let mut late = run.reader().expect("a reader");

    // Nobody writes after the last row, so no row has to be a guard.
    let account = read_to_end(&mut asleep, Pace::FAST);
    assert_eq!((account.rows.len(), account.lost), (64, 936));
    assert!(account.column(0).eq(936..1000));
    let account = read_to_end(&mut late, Pace::FAST);
    assert_eq!(
        (account.begun_at, account.rows.len(), account.lost),
        (936, 64, 0)
    );
}

pub fn a_continuous_ring_goes_on_until_it_is_stopped<E: Engine>(engine: &E) {
    let run = soft(engine, 64, None, &["sim.counter"]);
    let (mut reader, mut account) = begin(&run);
    for _ in 0..100 {
        run.trigger(50).expect("to trigger");
        read_now(&mut reader, &mut account);
    }
    assert_eq!((account.rows.len(), account.lost), (5000, 0));
    assert_eq!(reader.snapshot().state, State::Running);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    assert_eq!((end.state, end.head), (State::Stopped, 5000));
    account.settle(&end);
    // One row is the guard: the next might have been under way.
    let mut late = run.reader().expect("a reader");
    assert_eq!(read_to_end(&mut late, Pace::FAST).rows.len(), 63);
}

pub fn a_row_that_is_counted_is_whole<E: Engine>(engine: &E) {
    const ROWS: u64 = 50_000;
    let run = soft(engine, 16, Some(ROWS), &["sim.counter"; 8]);
    let pace = |rows| Pace { rows, ..Pace::FAST };
    let accounts: Vec<_> = thread::scope(|scope| {
        let readers = [1, 5, 16, 64].map(|rows| {
            let mut reader = run.reader().expect("a reader");
            scope.spawn(move || read_to_end(&mut reader, pace(rows)))
        });
        for _ in 0..ROWS / 100 {
            run.trigger(100).expect("to trigger");
        }
        readers.map(|r| r.join().expect("a whole account")).into()
    });
    for account in &accounts {
        for row in &account.rows {
            let whole: Vec<u64> = (8 * row.row..8 * row.row + 8).collect();
            assert_eq!(row.values, whole, "{row:?}");
        }
    }
    let lost: u64 = accounts.iter().map(|a| a.lost).sum();
    assert!(lost > 0, "readers that are never overtaken prove nothing");
}

pub fn a_reader_that_sleeps_knows_exactly_what_it_lost<E: Engine>(engine: &E) {
    let run = soft(engine, 64, None, &["sim.counter"]);
    let (mut reader, mut account) = begin(&run);
    let (mut head, mut lost) = (0, 0);
    for triggers in [10_u32, 63, 64, 65, 1000, 1, 127, 128] {
        run.trigger(triggers).expect("to trigger");
        head += u64::from(triggers);
        lost += u64::from(triggers).saturating_sub(63);
        read_now(&mut reader, &mut account);
        assert_eq!(
            (account.lost, reader.ring().lost()),
            (lost, lost),
            "{triggers} at once"
        );
        assert_eq!(account.next(), head, "{triggers} at once");
    }
    run.stop().expect("to stop");
    account.settle(&reader.snapshot());
    assert!(account.rows.iter().all(|row| row.values[0] == row.row));
}

pub fn a_program_written_from_the_header_alone_reads_every_row<E: Engine>(engine: &E) {
    let run = engine.run(&Plan {
        limit: Some(200),
        ..plan("timer:1kHz", &["sim.counter", "sim.sine", "sim.ramp"])
    });
    let number = run.info().run;
    let name = match E::KIND == strobe_ring::Engine::User {
        true => format!("user:{number}"),
        false => number.to_string(),
    };
    // examples/header_reader.c, which is built into the folder of this program.
    let here = current_exe().expect("this program");
    let mut reader = Command::new(here.with_file_name("header_reader"));
    reader
        .arg(name)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let reader = reader.spawn().expect("the program");
    let (account, end) = record(&run);
    let output = reader.wait_with_output().expect("its end");
    let [said, why] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert_eq!(output.status.code(), Some(0), "{why}");
    let channels = &run.info().channels;
    let mut lines = said.lines();
    let head = lines.next().expect("a head");
    assert!(head.ends_with("sim.counter,sim.sine,sim.ramp"), "{head}");
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len() as u64, end.head, "{why}");
    for (line, row) in lines.iter().zip(&account.rows) {
        let [number, trigger, time, _, skipped, ..] = line[..] else {
            panic!("{line:?}");
        };
        let numbers: [u64; 4] =
            [number, trigger, time, skipped].map(|text| text.parse().expect("a number"));
        assert_eq!(numbers, [row.row, row.trigger, row.time, row.skipped]);
        for ((text, channel), word) in line[5..].iter().zip(channels).zip(&row.values) {
            let value: f64 = text.parse().expect("a value");
            assert!(
                (value - channel.value(*word)).abs() < 1e-9,
                "{line:?} {row:?}"
            );
        }
    }
}

pub fn a_reader_attached_late_begins_with_the_oldest_row<E: Engine>(engine: &E) {
    let run = soft(engine, 64, None, &["sim.counter"]);
    for (triggers, oldest) in [(0, 0), (10, 0), (53, 0), (1, 1), (136, 137)] {
        if triggers > 0 {
            run.trigger(triggers).expect("to trigger");
        }
        let (mut reader, mut account) = begin(&run);
        assert_eq!(account.begun_at, oldest);
        read_now(&mut reader, &mut account);
        assert_eq!(
            account.lost, 0,
            "what was overwritten before is not its loss"
        );
        assert_eq!(account.next(), reader.snapshot().head);
    }
}

pub fn eight_readers_two_of_them_slow_are_all_exact<E: Engine>(engine: &E) {
    let run = soft(engine, 64, None, &["sim.counter", "clock.elapsed"]);
    let accounts: Vec<_> = thread::scope(|scope| {
        let mut readers = Vec::new();
        for i in 0..8 {
            let mut reader = run.reader().expect("a reader");
            let pace = if i % 4 == 0 { Pace::SLOW } else { Pace::FAST };
            readers.push(scope.spawn(move || {
                // Longer than the ring, however slow the engine makes rows.
                if i % 4 == 0 {
                    until_rows(&reader, 37 * i + 200);
                }
                (read_to_end(&mut reader, pace), reader.snapshot())
            }));
            // Each begins at another row.
            run.trigger(37).expect("to trigger");
        }
        run.trigger(5000).expect("to trigger");
        run.stop().expect("to stop");
        let accounts = readers
            .into_iter()
            .map(|r| r.join().expect("a whole account"));
        accounts.collect()
    });
    for (i, (account, end)) in accounts.iter().enumerate() {
        assert_eq!((end.head, end.triggers), (5000 + 8 * 37, 5000 + 8 * 37));
        assert_eq!(account.begun_at, (37 * i as u64).saturating_sub(63));
        assert!(
            account.rows.iter().all(|row| row.values[0] == row.row),
            "reader {i}"
        );
        if i % 4 == 0 {
            assert!(account.lost > 0, "reader {i} is too slow for this ring");
        }
    }
}

pub fn a_reader_is_woken_at_the_row_it_waits_for<E: Engine>(engine: &E) {
    let run = soft(engine, 64, None, &[]);
    let mut reader = run.reader().expect("a reader");
    let is_awake = AtomicBool::new(false);
    thread::scope(|scope| {
        let (reader, is_awake) = (&mut reader, &is_awake);
        scope.spawn(move || {
            let asleep = Instant::now();
            while reader.snapshot().head < 10 {
                reader.wait(10, patience(60)).expect("to wait");
                assert!(asleep.elapsed() < patience(60), "not woken");
            }
            is_awake.store(true, Ordering::Release);
        });
        thread::sleep(Duration::from_millis(20));
        run.trigger(9).expect("to trigger");
        thread::sleep(Duration::from_millis(20));
        assert!(!is_awake.load(Ordering::Acquire), "9 rows are not 10");
        run.trigger(1).expect("to trigger");
    });
    // The end wakes, too.
    thread::scope(|scope| {
        let reader = &mut reader;
        scope.spawn(move || {
            let asleep = Instant::now();
            reader.wait(1000, patience(60)).expect("to wait");
            assert!(asleep.elapsed() < patience(60), "not woken");
            assert_eq!(reader.snapshot().state, State::Stopped);
        });
        thread::sleep(Duration::from_millis(20));
        run.stop().expect("to stop");
    });
}

pub fn a_signal_ends_a_wait_and_the_longest_time_is_no_error<E: Engine>(engine: &E) {
    let run = soft(engine, 64, None, &[]);
    let reader = run.reader().expect("a reader");
    let signalled = Arc::new(AtomicBool::new(false));
    let sent = Arc::clone(&signalled);
    let waiting = thread::spawn(move || {
        reader.wait(1, Duration::MAX).expect("to wait");
        sent.load(Ordering::Acquire)
    });
    let pause = Duration::from_millis(50);
    thread::sleep(pause);
    signalled.store(true, Ordering::Release);
    // One may come before it sleeps.
    until("the end of the wait", || {
        interrupt(&waiting);
        thread::sleep(pause);
        waiting.is_finished()
    });
    let was_sent = waiting.join().expect("no error");
    assert!(was_sent, "nothing but a signal ends it");
}

pub fn the_ring_holds_one_second_of_rows_unless_asked<E: Engine>(engine: &E) {
    let capacity = |event: &str, ring| {
        let run = engine.run(&Plan {
            ring,
            ..plan(event, &["sim.counter"])
        });
        let reader = run.reader().expect("a reader");
        assert_eq!(run.info().capacity, reader.ring().geometry().capacity());
        run.info().capacity
    };
    assert_eq!(capacity("timer:1Hz", None), 1024);
    assert_eq!(capacity("timer:1kHz", None), 1024);
    assert_eq!(capacity("timer:976563ns", None), 1024);
    assert_eq!(capacity("timer:976562ns", None), 2048);
    assert_eq!(capacity("timer:10kHz", None), 16384);
    assert_eq!(capacity("timer:300us", None), 4096);
    assert_eq!(capacity("timer:1us", None), 1 << 20);
    assert_eq!(capacity("soft", None), 8192);
    assert_eq!(capacity("sim.pulse", None), 8192);
    assert_eq!(capacity("timer:10kHz", Some(2)), 2);
    assert_eq!(capacity("timer:10kHz", Some(100)), 128);

    // A reader of the smallest ring there is gets rows, too.
    let run = soft(engine, 2, None, &["sim.counter"]);
    let mut reader = run.reader().expect("a reader");
    run.trigger(100).expect("to trigger");
    until_rows(&reader, 100);
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    assert_eq!((account.rows.len(), account.lost), (1, 99));
}

/// As an async program waits: registered once, and told by edges.
pub fn a_reader_that_is_polled_is_ready_for_each_row_and_for_the_end<E: Engine>(engine: &E) {
    let run = engine.run(&plan("soft", &["sim.counter"]));
    let mut reader = run.reader().expect("a reader");
    let edges = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
    let what = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&edges, &reader, epoll::EventData::new_u64(0), what).expect("to register");
    let mut next = || {
        for _ in 0..10_000 {
            if let Poll::Ready(block) = reader.poll_next().expect("rows") {
                return block.map(|block| (block.first(), block.len(), block.lost()));
            }
            let mut events = [const { MaybeUninit::uninit() }; 1];
            let long = Timespec::try_from(Duration::from_secs(60)).expect("a time");
            let (ready, _) = epoll::wait(&edges, &mut events, Some(&long)).expect("to wait");
            assert_eq!(ready.len(), 1, "it is never ready");
        }
        panic!("ready again and again, for nothing");
    };
    run.start().expect("to start");
    for row in 0..20 {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(row % 4));
                run.trigger(1).expect("to trigger");
            });
            assert_eq!(next(), Some((row, 1, 0)));
        });
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            run.stop().expect("to stop");
        });
        assert_eq!(next(), None);
    });
}
