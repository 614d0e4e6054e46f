// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter of Linux in the user engine: its driver `interrupt-cnt`, which counts the edges of a line.
//!
//! `$STROBE_ROUNDS` says how often it is unplugged.
// lab: --module interrupt-cnt --module 'lab_gpio counted=1'
// kernels: amd64 rt debug

use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use strobe::accounting::Accounting;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until_rows};
use strobe_cases::rounds::{held, rounds};
use strobe_cases::wave::Wave;
use strobe_cases::{Engine, Pace, User, plan};
use strobe_ring::State;

const EVENT: &str = "counter:interrupt-cnt/0:change-of-state";
const COUNT: &str = "counter:interrupt-cnt/count0";
const DRIVER: &str = "/sys/bus/platform/drivers/interrupt-cnt";
const PERIOD_NS: u64 = 500_000;

fn device() -> PathBuf {
    let devices = fs::read_dir("/sys/bus/counter/devices").expect("counters");
    let mut paths = devices.map(|device| device.expect("a counter").path());
    paths.next().expect("the counter")
}

fn write(name: &str, value: u64) {
    let path = device().join(name);
    fs::write(&path, value.to_string()).unwrap_or_else(|why| panic!("{path:?}: {why}"));
}

/// Plugs it in, if it is not.
fn plug() {
    if !Path::new(DRIVER).join("interrupt-cnt").exists() {
        fs::write(Path::new(DRIVER).join("bind"), "interrupt-cnt").expect("to plug it in");
    }
}

/// The chip's wave, and the counter at zero; its queue has room for a test.
fn counted() -> Wave {
    let wave = Wave::new(PERIOD_NS);
    plug();
    write("events_queue_size", 4096);
    write("count0/count", 0);
    write("count0/enable", 1);
    wave
}

#[test]
fn each_edge_that_is_counted_is_a_row_with_the_count_at_the_event() {
    let wave = counted();
    let run = User::open().run(&plan(EVENT, &[COUNT]));
    assert_eq!(run.info().accounting, Accounting::None);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    wave.made(4000);
    let raised = wave.figure("raised");
    assert!(raised > 0);
    until_rows(&reader, raised);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    assert_eq!(account.rows.len() as u64, raised);
    assert!(account.column(0).eq(1..=raised), "{:?}", account.rows);
}

#[test]
fn a_run_of_another_event_reads_the_count_as_it_is() {
    let wave = counted();
    wave.made(20);
    let counted = wave.figure("raised");
    let plan = Plan {
        limit: Some(5),
        ..plan("timer:100Hz", &[COUNT])
    };
    let (account, end) = record(&User::open().run(&plan));
    assert_eq!((end.state, end.errors), (State::Done, 0));
    assert!(account.column(0).all(|count| count == counted));
}

#[test]
fn an_event_that_the_driver_does_not_have_is_refused_and_so_is_a_second_run() {
    let wave = counted();
    let refused = |event: &str| {
        let refused = User::open().create(&plan(event, &[]));
        refused.err().expect("a refusal").to_string()
    };
    let text = refused("counter:interrupt-cnt/0:index");
    assert!(text.contains("its driver refuses that event"), "{text}");
    let text = refused("counter:nobody/0:index");
    assert!(text.contains("nobody"), "{text}");
    let first = User::open().run(&plan(EVENT, &[]));
    let (reader, _) = begin(&first);
    first.start().expect("to start");
    let text = refused(EVENT);
    assert!(text.contains("another run takes its events"), "{text}");
    // Who was refused has not ended its events.
    wave.made(20);
    until_rows(&reader, wave.figure("raised"));
    drop(first);
    drop(User::open().run(&plan(EVENT, &[])));
}

#[test]
fn a_counter_that_is_unplugged_ends_its_runs_and_nothing_is_left() {
    drop(counted());
    let before = held();
    for round in 0..rounds(20, 5) {
        let wave = counted();
        let run = User::open().run(&plan(EVENT, &[COUNT]));
        let (mut reader, _) = begin(&run);
        run.start().expect("to start");
        wave.make(1_000_000);
        until_rows(&reader, 10 + round % 10);
        fs::write(Path::new(DRIVER).join("unbind"), "interrupt-cnt").expect("to unplug it");
        read_to_end(&mut reader, Pace::FAST);
        let end = reader.snapshot();
        let gone = -Errno::NODEV.raw_os_error();
        assert_eq!((end.state, end.error), (State::Failed, gone), "{round}");
        drop((run, reader));
        wave.make(0);
        plug();
    }
    assert_eq!(held(), before, "what is left of the rounds");
}
