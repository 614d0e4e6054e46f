// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPIO lines in the kernel engine, against the account of the chip itself.
//!
//! `$STROBE_ROUNDS` says how often the chip is unplugged.
// lab: --module lab_gpio --module 'strobe_gpio raw=lab'

use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::accounting::Accounting;
use strobe::channel::Class;
use strobe::engine::Error;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until, until_rows};
use strobe_cases::rounds::{held, rounds};
use strobe_cases::wave::Wave;
use strobe_cases::{Engine, Kernel, Pace, User, errno, plan};
use strobe_ring::State;

const PERIOD_NS: u64 = 500_000;

fn drive(line: &str, value: u64) -> Step {
    Step::Write {
        output: line.into(),
        value,
    }
}

fn kernel() -> Kernel {
    Kernel::open()
}

#[test]
fn a_line_has_the_names_of_the_user_engine_and_is_read_in_hard_interrupt_context() {
    let _wave = Wave::new(PERIOD_NS);
    let catalogue = kernel().0.catalogue().expect("a catalogue");
    let mut channels = catalogue.channels.iter();
    let line = channels.find(|channel| channel.name == "gpio:gpiochip0/0");
    let line = line.expect("line 0");
    assert_eq!((line.class, line.bits), (Class::Hard, 1));
    assert_eq!(line.description, "wave");
    let mut events = catalogue.events.iter();
    let edge = events.find(|event| event.name == "gpio:gpiochip0/0:both");
    // An interrupt controller merges edges without a trace.
    assert_eq!(edge.map(|edge| edge.accounting), Some(Accounting::None));
    for chip in ["lab", "gpiochip0", "0", "/dev/gpiochip0"] {
        for line in ["2", "spare0"] {
            let name = format!("gpio:{chip}/{line}");
            let plan = Plan {
                limit: Some(3),
                ..plan("timer:1kHz", &[&name])
            };
            let run = kernel().run(&plan);
            assert_eq!(run.info().channels[0].name, name);
            assert_eq!(run.info().accounting, Accounting::Exact);
            let (account, end) = record(&run);
            assert_eq!((end.state, end.errors), (State::Done, 0));
            assert!(account.column(0).all(|level| level <= 1));
        }
    }
    for wrong in ["gpio:lab/4", "gpio:bal/0", "gpio:lab/weave"] {
        let said = kernel().create(&plan("timer:1kHz", &[wrong]));
        let said = said.map(|_| ()).expect_err("no such line").to_string();
        assert!(said.contains("has the lines of gpiochip0 (lab)"), "{said}");
    }
}

#[test]
fn every_edge_is_a_row_or_missed_as_the_chip_counts_them() {
    for (edge, share) in [("both", 1), ("rising", 2), ("falling", 2)] {
        let wave = Wave::new(PERIOD_NS);
        let event = format!("gpio:lab/wave:{edge}");
        let run = kernel().run(&plan(&event, &["gpio:lab/wave"]));
        assert_eq!(run.info().accounting, Accounting::None);
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        wave.made(2000);
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        let (raised, dropped) = (wave.figure("raised"), wave.figure("dropped"));
        println!(
            "{edge}: {} rows + {} missed of {raised} raised, {dropped} dropped",
            end.head,
            end.missed()
        );
        assert_eq!(raised + dropped, 2000 / share);
        assert_eq!(end.head + end.missed(), raised, "{end:?}");
        assert_eq!(end.errors, 0);
        // The level is that after the edge, unless the next one was there before it was read.
        assert!(end.head > 1000 / share, "{end:?}");
    }
}

#[test]
fn a_row_drives_a_line_and_reads_its_level() {
    let _wave = Wave::new(PERIOD_NS);
    for value in [1, 0, 1] {
        let run = kernel().run(&Plan {
            limit: Some(1),
            steps: vec![
                drive("gpio:lab/spare0", value),
                Step::Read("gpio:lab/2".into()),
                // Twice in a row: a pulse.
                drive("gpio:lab/spare0", 1 - value),
                Step::Read("gpio:lab/2".into()),
                drive("gpio:lab/spare0", value),
            ],
            ..plan("soft", &[])
        });
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        run.trigger(1).expect("a trigger");
        read_now(&mut reader, &mut account);
        assert_eq!(account.rows[0].values, [value, 1 - value]);
    }
}

#[test]
fn a_line_of_another_is_refused_and_is_free_when_its_run_has_ended() {
    let _wave = Wave::new(PERIOD_NS);
    let is_busy = |plan: &Plan| matches!(kernel().create(plan), Err(Error::Busy { .. }));
    // Not by a run of this engine.
    let taken = Some(Errno::ADDRINUSE.raw_os_error());
    let level = plan("soft", &["gpio:lab/2"]);
    let driven = Plan {
        steps: vec![drive("gpio:lab/2", 1)],
        ..plan("soft", &[])
    };
    let run = User::open().run(&level);
    for plan in [&level, &driven] {
        match kernel().create(plan).map(|_| ()) {
            Err(Error::Provider { source, .. }) => assert_eq!(source.raw_os_error(), taken),
            other => panic!("{other:?}"),
        }
    }
    drop(run);
    let run = kernel().run(&level);
    assert!(User::open().create(&level).is_err());
    assert!(is_busy(&driven), "somebody reads it");
    let also = kernel().run(&level);
    drop((run, also));
    let run = kernel().run(&driven);
    drop(kernel().run(&level));
    drop(run);
    drop(User::open().run(&level));
}

#[test]
fn a_line_has_one_kind_of_edge_at_a_time() {
    let wave = Wave::new(PERIOD_NS);
    let first = kernel().run(&plan("gpio:lab/wave:rising", &[]));
    let same = kernel().run(&plan("gpio:lab/0:rising", &[]));
    let other = kernel().run(&plan("gpio:lab/wave:both", &[]));
    first.start().expect("to start");
    same.start().expect("to start");
    assert!(other.start().is_err());
    wave.made(20);
    for run in [&first, &same] {
        let end = run.snapshot().expect("its state");
        assert_eq!(end.head + end.missed() + wave.figure("dropped"), 10);
    }
    drop((first, same));
    let other = kernel().run(&plan("gpio:lab/wave:both", &[]));
    other.start().expect("to start");
    // The chip's line 1 has no interrupt.
    let none = kernel().run(&plan("gpio:lab/answer:both", &[]));
    assert!(errno(none.start()).is_some());
}

#[test]
fn a_chip_that_goes_ends_its_runs_whatever_they_do() {
    let gone = -Errno::NODEV.raw_os_error();
    let before = held();
    for round in 0..rounds(50, 20) {
        let wave = Wave::new(100_000);
        let edges = kernel().run(&plan("gpio:lab/wave:both", &["gpio:lab/wave"]));
        let levels = kernel().run(&Plan {
            steps: vec![
                drive("gpio:lab/spare0", 1),
                Step::Read("gpio:lab/spare0".into()),
                Step::Read("gpio:lab/wave".into()),
            ],
            ..plan("timer:5kHz", &[])
        });
        let idle = kernel().run(&plan("soft", &["gpio:lab/spare1"]));
        let mut readers = [&edges, &levels].map(|run| run.reader().expect("a reader"));
        edges.start().expect("to start");
        levels.start().expect("to start");
        wave.make(1_000_000);
        readers.iter().for_each(|reader| until_rows(reader, 1));
        // Any moment of its first milliseconds, in few rounds too.
        thread::sleep(Duration::from_micros(37 * (7 * round % 100)));
        wave.unplug();
        for reader in &mut readers {
            read_to_end(reader, Pace::FAST);
            let end = reader.snapshot();
            assert_eq!((end.state, end.error), (State::Failed, gone), "{round}");
        }
        assert_eq!(idle.snapshot().expect("its state").state, State::Failed);
        let catalogue = kernel().0.catalogue().expect("a catalogue");
        assert!(!catalogue.devices.iter().any(|d| d.name == "gpiochip0"));
        drop(wave);
        until("the chip", || {
            let catalogue = kernel().0.catalogue().expect("a catalogue");
            catalogue.devices.iter().any(|d| d.name == "gpiochip0")
        });
    }
    assert_eq!(held(), before, "what is left of the rounds");
}
