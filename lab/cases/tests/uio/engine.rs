// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user engine on interrupts of UIO devices.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::catalogue::Catalogue;
use strobe::channel::{Channel, Class, Type};
use strobe::engine::Error;
use strobe::engine::user::provider::{
    ChannelOpener, OutputOpener, Provider, ReadChannel, Row, WriteOutput,
};
use strobe::engine::user::{Settings, User, UserRun, WaitMode};
use strobe::map::{Region, Register};
use strobe::plan::Step;
use strobe::run::{OwnedRun, Run};
use strobe_cases::Pace;
use strobe_cases::account::{begin, read_now, read_to_end, until, until_counted, until_rows};
use strobe_cases::machine::{command, pin};
use strobe_cases::plan;
use strobe_cases::rounds::rounds;
use strobe_cases::uio::{DUMMY, Dummy, Edu, IRQ_ACK, IRQ_STATUS, register};
use strobe_ring::State;

use super::CARD;

const WAYS: [WaitMode; 3] = [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin];

fn engine(wait: WaitMode) -> User {
    User::new(Settings {
        wait,
        // Where no interrupt comes: who spins there leaves nothing to the interrupt threads of PREEMPT_RT.
        cpu: Some(1),
        ..Settings::default()
    })
}

/// Called where uio_dummy has no irqcontrol.
pub fn rows_come_from_a_device_without_irqcontrol() {
    let mut plan = plan("uio:uio_dummy", &["event.count"]);
    plan.limit = Some(20);
    let run = engine(WaitMode::Block).create(&plan).expect("a run");
    let (account, end) = strobe_cases::account::record(&run);
    assert_eq!((account.rows.len(), end.state), (20, State::Done));
}

#[test]
fn rows_and_missed_are_the_events_that_the_device_counts() {
    let events = 50 * rounds(40, 40);
    for wait in WAYS {
        let _pinned = pin(0);
        let dummy = Dummy::silent(200_000);
        // It stays on this CPU, and at its end until it is allowed more.
        dummy.device().enable().expect("to enable");
        let before = dummy.page().events;
        let run = engine(wait)
            .create(&plan("uio:uio_dummy", &["event.count"]))
            .expect("a run");
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        dummy.allow(events);
        until_counted("events", events, || {
            read_now(&mut reader, &mut account);
            reader.snapshot().triggers
        });
        thread::sleep(Duration::from_millis(5));
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        assert_eq!(dummy.page().events, before + events);
        assert_eq!(end.triggers, events, "{wait}: {end:?}");
        assert_eq!(end.head + end.missed(), events);
        // Each row knows which event it is.
        for row in &account.rows {
            assert_eq!(row.values[0], before + row.trigger + 1, "{wait}: {row:?}");
        }
        eprintln!("{wait}: {} rows, {} missed", end.head, end.missed());
    }
}

#[test]
fn events_before_the_start_and_in_a_pause_are_no_triggers() {
    let _pinned = pin(0);
    let dummy = Dummy::silent(100_000);
    dummy.device().enable().expect("to enable");
    let run = engine(WaitMode::Block)
        .create(&plan("uio:uio_dummy", &["event.count"]))
        .expect("a run");
    let (mut reader, mut account) = begin(&run);
    let events = |count| {
        let end = dummy.page().events + count;
        dummy.allow(count);
        until("events", || dummy.page().events == end);
    };
    events(50);
    run.start().expect("to start");
    events(100);
    until("triggers", || reader.snapshot().triggers == 100);
    run.pause().expect("to pause");
    events(50);
    run.resume().expect("to resume");
    events(100);
    until("triggers", || reader.snapshot().triggers == 200);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    assert_eq!(reader.snapshot().triggers, 200);
    let last = account.rows.last().expect("a row");
    assert_eq!(last.values[0], dummy.page().events, "all of them counted");
}

/// Registers of a card, as a channel and an output.
struct Registers(Region);

struct Access(Register);

impl ReadChannel for Access {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(self.0.read())
    }
}

impl WriteOutput for Access {
    fn write(&mut self, word: u64) -> io::Result<()> {
        self.0.write(word);
        Ok(())
    }
}

fn about(name: &str) -> Channel {
    Channel {
        name: name.to_owned(),
        description: String::new(),
        unit: String::new(),
        kind: Type::U64,
        class: Class::Hard,
        scale: 1.0,
        offset: 0.0,
        bits: 32,
        cost_ns: 100,
        in_use: false,
    }
}

impl Provider for Registers {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let reader = Box::new(Access(register(&self.0, IRQ_STATUS)));
        (name == "card.status").then(|| Ok(ChannelOpener::ready(about(name), reader)))
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let writer = Box::new(Access(register(&self.0, IRQ_ACK)));
        (name == "card.ack").then(|| Ok(OutputOpener::ready(about(name), writer)))
    }
}

const RAISED: u64 = 0x5a;

/// A run on the interrupt of the card, which reads what was raised and acknowledges it.
fn run_on(card: &Edu, wait: WaitMode) -> UserRun {
    let registers = Registers(card.bar.clone());
    let event = format!("uio:{}", card.node());
    let mut plan = plan(&event, &["card.status", "event.count"]);
    plan.steps.push(Step::Write {
        output: "card.ack".into(),
        value: RAISED,
    });
    let engine = engine(wait).with(Arc::new(registers));
    engine.create(&plan).expect("a run")
}

#[test]
fn each_interrupt_of_a_card_is_a_row_and_is_enabled_again() {
    let block = 50 * rounds(40, 40);
    for (wait, raises) in [(WaitMode::Block, block), (WaitMode::Spin, block / 10)] {
        let _pinned = pin(0);
        let card = Edu::bind(CARD);
        let uio = strobe::uio::Uio::find(&card.node()).expect("its UIO device");
        let run = run_on(&card, wait);
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        for raised in 1..=raises {
            card.raise(RAISED);
            until_rows(&reader, raised);
            read_now(&mut reader, &mut account);
        }
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        assert_eq!((end.head, end.missed(), account.lost), (raises, 0, 0));
        assert!(account.column(0).all(|status| status == RAISED));
        assert!(account.column(1).eq(1..=raises), "{wait}");
        assert_eq!(uio.read_events().ok().map(u64::from), Some(raises));
    }
}

#[test]
fn a_card_that_is_taken_from_its_driver_ends_the_run() {
    for wait in WAYS {
        let card = Edu::bind(CARD);
        let run = run_on(&card, wait);
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        card.raise(RAISED);
        until_rows(&reader, 1);
        card.unbind();
        let account = read_to_end(&mut reader, Pace::FAST);
        let end = reader.snapshot();
        let gone = -Errno::NODEV.raw_os_error();
        assert_eq!((end.state, end.error), (State::Failed, gone), "{wait}");
        assert_eq!(
            account.rows.len(),
            1,
            "{wait}: the row that was made is there"
        );
        assert!(!card.is_bound());
    }
}

#[test]
fn a_module_stays_as_long_as_a_run_uses_it() {
    let dummy = Dummy::silent(1_000_000);
    dummy.allow_all();
    let run = engine(WaitMode::Block)
        .create(&plan("uio:uio_dummy", &["event.count"]))
        .expect("a run");
    drop(dummy);
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    assert!(!command("rmmod uio_dummy"), "it is in use");
    let rows = reader.snapshot().head;
    until_rows(&reader, rows + 10);
    run.stop().expect("to stop");
    drop(run);
    assert!(command("rmmod uio_dummy"));
    assert!(command("modprobe uio_dummy"));
    assert!(strobe::uio::Uio::find(DUMMY).is_ok());
}

#[test]
fn a_wrong_name_is_answered_with_what_is_there() {
    let cards = [Edu::bind(CARD), Edu::bind("0000:00:02.0")];
    let refused = |event: &str| {
        let made = engine(WaitMode::Block).create(&plan(event, &["clock.time"]));
        made.map(|_| ()).expect_err(event).to_string()
    };
    let message = refused("uio:foo");
    assert!(message.starts_with("event uio:foo: "), "{message}");
    assert!(message.contains("uio_dummy (uio"), "{message}");
    let message = refused("uio:uio_pci_generic");
    let nodes = format!("choose one: {}, {}", cards[0].node(), cards[1].node());
    assert!(message.contains(&nodes), "{message}");
    let events = engine(WaitMode::Block).catalogue().events;
    let listed = |name: String| events.iter().any(|event| event.name == name);
    assert!(listed("uio:uio_dummy".into()) && listed(format!("uio:{}", cards[0].node())));
}
