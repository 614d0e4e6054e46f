// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPIO lines in the user engine, against the account of the chip itself.
//!
//! A run that spins leaves nothing of its CPU to RCU's threads, unless they are above it.
// lab: --module uio_dummy --module uio_pci_generic --module lab_gpio --append rcutree.kthread_prio=70 --append irqaffinity=0

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use gpiocdev_uapi::v2::{self, LineFlags};
use rustix::io::Errno;
use strobe::clock::RunClock;
use strobe::engine::Error;
use strobe::engine::user::gpio::{Edges, Gpio, QUEUE};
use strobe::engine::user::provider::WriteOutput;
use strobe::engine::user::trigger::{EventSource, WaitOutcome};
use strobe::engine::user::{self, Settings, WaitMode};
use strobe::event::Edge;
use strobe::info::Clock;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe::wakeup::{Wakeup, wakeup};
use strobe_cases::account::{begin, read_now, read_to_end, until, until_rows};
use strobe_cases::machine::pin;
use strobe_cases::rounds::rounds;
use strobe_cases::wave::Wave;
use strobe_cases::{Engine, Pace, User, plan};
use strobe_ring::{Missed, State};

const WAITS: [WaitMode; 2] = [WaitMode::Block, WaitMode::Spin];
const PERIOD_NS: u64 = 500_000;

fn edges(gpio: &Gpio, edge: Edge, wait: WaitMode) -> Edges {
    gpio.edges("lab", "wave", edge, wait)
        .expect("the wave's line")
}

/// Triggers and misses until the thread is woken, which is when they are as many as the chip has raised, or never will be.
fn count(
    source: &mut Edges,
    clock: &RunClock,
    wakeup: &mut Wakeup,
    so_far: &AtomicU64,
) -> (u64, u64) {
    let (mut triggers, mut missed) = (0, 0);
    while let WaitOutcome::Trigger(trigger) = source.wait(clock, wakeup).expect("to wait") {
        triggers += 1;
        missed += trigger.missed;
        assert_eq!(trigger.count, triggers + missed, "the kernel's own number");
        so_far.store(triggers + missed, Ordering::Relaxed);
    }
    (triggers, missed)
}

fn until_all(wave: &Wave, so_far: &AtomicU64) {
    until("every edge that was raised", || {
        so_far.load(Ordering::Relaxed) >= wave.figure("raised")
    });
}

#[test]
fn every_edge_is_a_trigger_or_missed_as_the_chip_counts_them() {
    for wait in WAITS {
        for (edge, share) in [(Edge::Both, 1), (Edge::Rising, 2), (Edge::Falling, 2)] {
            let wave = Wave::new(PERIOD_NS);
            let clock = RunClock::new(Clock::Monotonic);
            let (waker, mut wakeup) = wakeup().expect("a wake-up");
            let mut source = edges(&Gpio::default(), edge, wait);
            source.begin(&clock, clock.now()).expect("to begin");
            let so_far = AtomicU64::new(0);
            let (triggers, missed) = thread::scope(|scope| {
                let counting = scope.spawn(|| count(&mut source, &clock, &mut wakeup, &so_far));
                wave.made(2000);
                until_all(&wave, &so_far);
                waker.wake();
                counting.join().expect("it counts")
            });
            let (raised, dropped) = (wave.figure("raised"), wave.figure("dropped"));
            println!(
                "{wait} {edge:?}: {triggers} + {missed} of {raised} raised, {dropped} dropped"
            );
            assert_eq!(raised + dropped, 2000 / share);
            assert_eq!(triggers + missed, raised, "{wait} {edge:?}");
        }
    }
}

#[test]
fn edges_that_overflow_the_queue_are_missed() {
    let wave = Wave::new(PERIOD_NS);
    let clock = RunClock::new(Clock::Monotonic);
    let (waker, mut wakeup) = wakeup().expect("a wake-up");
    let mut source = edges(&Gpio::default(), Edge::Both, WaitMode::Spin);
    source.begin(&clock, clock.now()).expect("to begin");
    // On a slow kernel many edges come while the interrupt is masked, and raise none.
    while wave.figure("raised") < u64::from(QUEUE) + 500 {
        wave.made(500);
    }
    let so_far = AtomicU64::new(0);
    thread::scope(|scope| {
        let counting = scope.spawn(|| count(&mut source, &clock, &mut wakeup, &so_far));
        until_all(&wave, &so_far);
        waker.wake();
        let (triggers, missed) = counting.join().expect("it counts");
        assert_eq!(triggers, u64::from(QUEUE), "what the queue holds");
        assert_eq!(triggers + missed, wave.figure("raised"));
    });
}

#[test]
fn an_edge_has_the_time_at_which_it_happened_and_its_level() {
    let wave = Wave::new(PERIOD_NS);
    for run_clock in [Clock::Monotonic, Clock::Tai] {
        let clock = RunClock::new(run_clock);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut source = edges(&Gpio::default(), Edge::Both, WaitMode::Block);
        source.begin(&clock, clock.now()).expect("to begin");
        // One at a time: of an edge whose thread comes late the kernel tells the level of the next.
        for high in [true, false] {
            let before = clock.now();
            wave.made(1);
            let after = clock.now();
            match source.wait(&clock, &mut wakeup).expect("to wait") {
                WaitOutcome::Trigger(trigger) => {
                    assert!(trigger.time > before && trigger.time < after, "{trigger:?}");
                }
                other => panic!("nobody rang: {other:?}"),
            }
            assert_eq!(source.is_high(), high);
        }
    }
}

#[test]
fn what_was_queued_before_the_beginning_is_forgotten() {
    let wave = Wave::new(PERIOD_NS);
    let clock = RunClock::new(Clock::Monotonic);
    let (waker, mut wakeup) = wakeup().expect("a wake-up");
    let mut source = edges(&Gpio::default(), Edge::Both, WaitMode::Spin);
    for edges in [10, 2 * u64::from(QUEUE)] {
        wave.made(edges);
        source.begin(&clock, clock.now()).expect("to begin");
        wave.made(1);
        match source.wait(&clock, &mut wakeup).expect("to wait") {
            WaitOutcome::Trigger(trigger) => assert_eq!(trigger.missed, 0, "{trigger:?}"),
            other => panic!("nobody rang: {other:?}"),
        }
    }
    waker.wake();
    assert_eq!(
        source.wait(&clock, &mut wakeup).ok(),
        Some(WaitOutcome::Wakeup)
    );
}

#[test]
fn thousands_of_edges_make_rows_or_are_missed() {
    // Short, for a kernel whose CPU is kept busy by a real-time thread complains after 20 s.
    for (wait, period_ns) in [(WaitMode::Block, PERIOD_NS), (WaitMode::Spin, 100_000)] {
        let _pinned = pin(0);
        let wave = Wave::new(period_ns);
        let engine = user::User::new(Settings {
            wait,
            cpu: Some(1),
            ..Settings::default()
        });
        let channels = ["event.time", "event.count", "gpio:lab/wave"];
        let run = engine
            .create(&plan("gpio:lab/wave:both", &channels))
            .expect("a run");
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        wave.made(50 * rounds(60, 200));
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        let raised = wave.figure("raised");
        let dropped = wave.figure("dropped");
        println!(
            "{wait}: {} rows + {} missed of {raised}, {dropped} dropped",
            end.head,
            end.missed()
        );
        assert_eq!(end.head + end.missed(), raised, "{wait}");
        assert_eq!(end.missed(), end.missed_by[Missed::Source as usize]);
        assert_eq!(wave.figure("edges"), wave.figure("raised") + dropped);
        for row in &account.rows {
            assert!(row.values[0] <= row.time, "{row:?}");
            assert_eq!(row.values[1], row.trigger + 1, "{row:?}");
            assert!(row.values[2] <= 1, "{row:?}");
        }
        assert_eq!(end.errors, 0);
    }
}

#[test]
fn edges_in_a_pause_do_not_count() {
    let wave = Wave::new(PERIOD_NS);
    let run = User::open().run(&plan("gpio:lab/0:rising", &["event.count"]));
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    wave.made(20);
    until("ten rising edges", || {
        let now = reader.snapshot();
        now.head + now.missed() + wave.figure("dropped") == 10
    });
    run.pause().expect("to pause");
    let paused = reader.snapshot();
    wave.made(100);
    run.resume().expect("to go on");
    let before = wave.figure("dropped");
    wave.made(20);
    until("ten more", || {
        let now = reader.snapshot();
        now.head + now.missed() + (wave.figure("dropped") - before)
            == paused.head + paused.missed() + 10
    });
    run.stop().expect("to stop");
    read_to_end(&mut reader, Pace::FAST);
}

#[test]
fn a_row_drives_a_line_and_reads_its_level() {
    let _wave = Wave::new(PERIOD_NS);
    for value in [1, 0, 1] {
        let run = User::open().run(&Plan {
            limit: Some(1),
            steps: vec![
                Step::Write {
                    output: "gpio:lab/spare0".into(),
                    value,
                },
                Step::Read("gpio:lab/2".into()),
            ],
            ..plan("soft", &[])
        });
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        run.trigger(1).expect("a trigger");
        read_now(&mut reader, &mut account);
        assert_eq!(account.rows[0].values, [value]);
    }
}

#[test]
fn an_output_keeps_its_level_until_it_is_driven() {
    let wave = Wave::new(PERIOD_NS);
    for word in [1, 0] {
        let gpio = Gpio::default();
        gpio.drive("lab", "spare0")
            .expect("an output")
            .write(word)
            .expect("to drive it");
        drop(gpio);
        let gpio = Gpio::default();
        let _output = gpio.drive("lab", "spare0").expect("an output");
        let level = gpio.level("lab", "spare0").expect("its level");
        assert_eq!(level.is_high().ok(), Some(word == 1));
    }
    drop(wave);
}

/// Whether the line is an output now, as the kernel says.
fn is_output(offset: u32) -> bool {
    let chip = fs::File::open("/dev/gpiochip0").expect("the chip");
    let line = v2::get_line_info(&chip, offset).expect("the line");
    line.flags.contains(LineFlags::OUTPUT)
}

#[test]
fn a_dry_run_and_a_plan_that_is_refused_leave_a_line_as_it_was() {
    let wave = Wave::new(PERIOD_NS);
    let engine = User::open();
    drop(Gpio::default().level("lab", "3").expect("an input"));
    assert!(!is_output(3));
    let mut driven = plan("soft", &[]);
    driven.steps = vec![Step::Write {
        output: "gpio:lab/3".into(),
        value: 1,
    }];
    engine.0.dry_run(&driven).expect("a dry run");
    assert!(!is_output(3), "after a dry run");
    let mut wrong = driven.clone();
    wrong.steps.push(Step::Read("no.such".into()));
    assert!(engine.create(&wrong).is_err());
    assert!(!is_output(3), "after a plan that was refused");
    let _run = engine.run(&driven);
    assert!(is_output(3));
    drop(wave);
}

/// What the engine says when it refuses this.
fn refused(event: &str, channels: &[&str]) -> String {
    match User::open().create(&plan(event, channels)) {
        Ok(_) => panic!("{event}, {channels:?} is taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_line_of_another_program_is_refused_with_who_has_it() {
    let _wave = Wave::new(PERIOD_NS);
    let run = User::open().run(&plan("gpio:lab/wave:both", &[]));
    let said = refused("gpio:gpiochip0/0:rising", &[]);
    assert_eq!(
        said,
        "event gpio:gpiochip0/0:rising: line 0 of gpiochip0 (lab) is used by strobe; end that program, or use another \
         line"
    );
    assert!(refused("soft", &["gpio:lab/0"]).contains("is used by strobe"));
    drop(run);
    User::open().run(&plan("gpio:gpiochip0/0:rising", &[]));
}

#[test]
fn of_two_programs_that_ask_for_one_line_the_second_is_told_of_the_first() {
    let wave = Wave::new(PERIOD_NS);
    let record = |rows: &str| {
        let mut record = Command::new("strobe");
        let event = ["--event", "gpio:lab/wave:both", "--read", "event.count"];
        record
            .arg("record")
            .args(event)
            .args(["--engine", "user", "--rows", rows]);
        record
    };
    let mut first = record("20").stderr(Stdio::null()).spawn().expect("strobe");
    until("the first has the line", || {
        let lines = fs::read_to_string("/sys/kernel/debug/gpio").expect("the lines");
        lines.contains("|strobe")
    });
    let second = record("1").output().expect("strobe");
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        said.contains("line 0 of gpiochip0 (lab) is used by strobe;"),
        "{said}"
    );
    // The first one has not been disturbed. Whether it was started yet, nobody knows: edges until it is done.
    while first.try_wait().expect("its end").is_none() {
        wave.made(10);
    }
    assert!(matches!(first.wait().expect("its end").code(), Some(0 | 3)));
}

#[test]
fn a_chip_has_many_names_and_wrong_ones_are_answered_with_right_ones() {
    let _wave = Wave::new(PERIOD_NS);
    for chip in ["lab", "gpiochip0", "0", "/dev/gpiochip0"] {
        for line in ["0", "wave"] {
            User::open().run(&plan(&format!("gpio:{chip}/{line}:both"), &[]));
        }
    }
    for (event, words) in [
        (
            "gpio:bal/0:both",
            "there is no chip bal; there are gpiochip0 (lab)",
        ),
        (
            "gpio:7/0:both",
            "there is no chip 7; there are gpiochip0 (lab)",
        ),
        ("gpio:lab/4:both", "gpiochip0 (lab) has lines 0 to 3"),
        (
            "gpio:lab/weave:both",
            "has no line weave; it has lines 0 to 3, some named wave, answer",
        ),
        (
            "gpio:lab/answer:both",
            "line 1 of gpiochip0 (lab) cannot raise an event",
        ),
    ] {
        let said = refused(event, &[]);
        assert!(said.contains(words), "{said}");
    }
    let output = Step::Write {
        output: "gpio:lab/wave".into(),
        value: 1,
    };
    let plan = Plan {
        steps: vec![output],
        ..plan("soft", &[])
    };
    let said = User::open()
        .create(&plan)
        .map(|_| ())
        .expect_err("an input")
        .to_string();
    assert!(said.contains("cannot be an output"), "{said}");
}

#[test]
fn a_chip_without_permission_says_who_may() {
    let _wave = Wave::new(PERIOD_NS);
    let said = thread::spawn(|| {
        // Of this thread alone: the others of this process stay root.
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(1000)).expect("to be a user");
        refused("gpio:/dev/gpiochip0/0:both", &[])
    });
    let said = said.join().expect("a refusal");
    assert!(said.contains("/dev/gpiochip0: no permission;"), "{said}");
    assert!(said.contains("or be root"), "{said}");
}

#[test]
fn a_chip_that_goes_ends_the_run() {
    for wait in WAITS {
        let wave = Wave::new(PERIOD_NS);
        let engine = user::User::new(Settings {
            wait,
            ..Settings::default()
        });
        let run = engine.create(&plan("gpio:lab/0:both", &[])).expect("a run");
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        wave.made(10);
        until_rows(&reader, 1);
        wave.unplug();
        read_to_end(&mut reader, Pace::FAST);
        let end = reader.snapshot();
        assert_eq!(end.state, State::Failed, "{end:?}");
        assert_eq!(end.error, -Errno::NODEV.raw_os_error(), "{end:?}");
        drop(run);
        drop(wave);
        let again = Wave::new(PERIOD_NS);
        User::open().run(&plan("gpio:lab/0:both", &[]));
        drop(again);
    }
    assert!(fs::metadata("/dev/gpiochip0").is_ok());
}

#[test]
fn a_channel_of_a_chip_that_goes_ends_the_run() {
    let wave = Wave::new(PERIOD_NS);
    let run = User::open().run(&plan("timer:1kHz", &["gpio:lab/0"]));
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until_rows(&reader, 3);
    wave.unplug();
    read_to_end(&mut reader, Pace::FAST);
    assert_eq!(reader.snapshot().error, -Errno::NODEV.raw_os_error());
    drop(run);
}

#[test]
fn a_line_cannot_be_driven_by_the_run_that_waits_for_it() {
    let _wave = Wave::new(PERIOD_NS);
    let plan = Plan {
        steps: vec![Step::Write {
            output: "gpio:lab/0".into(),
            value: 1,
        }],
        ..plan("gpio:lab/0:both", &[])
    };
    let refused = User::open().create(&plan).map(|_| ());
    assert!(
        matches!(refused, Err(Error::Unusable { ref why, .. }) if why.contains("used twice")),
        "{refused:?}"
    );
}
