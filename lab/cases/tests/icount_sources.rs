// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thousands of triggers of each source of the user engine, against the source's own account, on a machine
//! whose time is made of instructions: there PREEMPT_RT may miss nothing but what is made to be.
// lab: --module lab_gpio --module 'strobe_gpio raw=lab' --module uio_dummy

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strobe::engine::user::{Settings, User, UserRun, WaitMode};
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_now, record, until};
use strobe_cases::hpet::interrupts;
use strobe_cases::machine::{is_rt, slowness, undisturbed};
use strobe_cases::plan;
use strobe_cases::rounds::rounds;
use strobe_cases::slow::Slowness;
use strobe_cases::uio::Dummy;
use strobe_cases::wave::Wave;
use strobe_ring::{Missed, Snapshot, State};

fn triggers() -> u64 {
    50 * rounds(40, 200) / slowness()
}

/// ns; of a slow kernel as many times longer.
fn period() -> u64 {
    200_000 * slowness()
}

/// Without spinning: on one CPU, who spins lets nobody make anything.
const WAYS: [WaitMode; 2] = [WaitMode::Block, WaitMode::Hybrid];

/// All triggers are rows, with these counts. A stock kernel is not preempted everywhere: there one of a thousand may be
/// missed, and the counts show it. A kernel that looks for faults prints what it finds of its own, and meanwhile does nothing
/// else: there the account is what must be right.
fn all_are_rows(counts: impl IntoIterator<Item = u64>, first: u64, end: &Snapshot) {
    if slowness() == 1 && !is_rt() {
        let last = counts.into_iter().last().expect("rows");
        assert_eq!(last, first + end.head + end.missed() - 1, "{end:?}");
        assert!(end.missed() <= triggers() / 1000, "{end:?}");
    } else if slowness() == 1 {
        let wrong = counts.into_iter().zip(first..).find(|(is, was)| is != was);
        assert_eq!(wrong, None, "the first row that does not follow, {end:?}");
        assert_eq!((end.missed(), end.head), (0, triggers()), "{end:?}");
    }
}

fn create(wait: WaitMode, plan: &Plan) -> UserRun {
    undisturbed();
    let settings = Settings {
        wait,
        ..Settings::default()
    };
    User::new(settings).create(plan).expect("a run")
}

/// Starts the run, has the source make all its triggers, and reads what has come of them: its event.count, and
/// the end.
fn counts(run: &UserRun, make: impl FnOnce()) -> (Vec<u64>, Snapshot) {
    let (mut reader, mut account) = begin(run);
    run.start().expect("to start");
    make();
    until("the last trigger", || {
        read_now(&mut reader, &mut account);
        reader.snapshot().triggers >= triggers()
    });
    // Long enough for one too many.
    thread::sleep(Duration::from_millis(100));
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(account.lost, 0, "{end:?}");
    (account.column(0).collect(), end)
}

#[test]
fn every_edge_of_a_gpio_line_is_a_row() {
    for wait in WAYS {
        let wave = Wave::new(period());
        let run = create(wait, &plan("gpio:lab/wave:both", &["event.count"]));
        let (counts, end) = counts(&run, || wave.make(triggers()));
        let [edges, raised, dropped] = ["edges", "raised", "dropped"].map(|name| wave.figure(name));
        println!(
            "gpio, {wait}: {} rows + {} missed of {raised} raised, {dropped} dropped",
            end.head,
            end.missed()
        );
        assert_eq!(
            (edges, raised, dropped),
            (triggers(), triggers(), 0),
            "{wait}"
        );
        assert_eq!(end.head + end.missed(), raised, "{wait}: {end:?}");
        all_are_rows(counts, 1, &end);
    }
}

#[test]
fn every_interrupt_of_a_uio_device_is_a_row() {
    for wait in WAYS {
        let dummy = Dummy::silent(period());
        dummy.device().enable().expect("to enable");
        let before = dummy.page().events;
        let run = create(wait, &plan("uio:uio_dummy", &["event.count"]));
        let (counts, end) = counts(&run, || dummy.allow(triggers()));
        let made = dummy.page().events - before;
        println!(
            "uio, {wait}: {} rows + {} missed of {made}",
            end.head,
            end.missed()
        );
        assert_eq!(made, triggers(), "{wait}");
        assert_eq!(end.head + end.missed(), made, "{wait}: {end:?}");
        all_are_rows(counts, before + 1, &end);
    }
}

#[test]
fn every_interrupt_of_the_hpet_is_a_row() {
    for wait in WAYS {
        let (_, before) = interrupts();
        let plan = Plan {
            limit: Some(triggers()),
            ..plan(&format!("hpet:{}Hz", 5000 / slowness()), &["event.count"])
        };
        let (account, end) = record(&create(wait, &plan));
        let counted = interrupts().0 - before;
        println!(
            "hpet, {wait}: {} rows + {} missed of {counted}",
            end.head,
            end.missed()
        );
        assert_eq!((end.state, end.head), (State::Done, triggers()));
        assert_eq!(end.head + end.missed(), counted, "{wait}: {end:?}");
        all_are_rows(account.column(0), 1, &end);
    }
}

#[test]
fn interrupts_that_come_while_a_row_takes_long_are_missed_and_counted() {
    let dummy = Dummy::silent(period());
    dummy.device().enable().expect("to enable");
    let before = dummy.page().events;
    // Five periods, every hundredth time.
    let slow = Slowness {
        every: 100,
        sleep: Duration::from_nanos(5 * period()),
    };
    let engine = User::default().with(Arc::new(slow));
    let run = engine
        .create(&plan("uio:uio_dummy", &["event.count", "slow.count"]))
        .expect("a run");
    let (counts, end) = counts(&run, || dummy.allow(triggers()));
    println!("uio, slow: {} rows + {} missed", end.head, end.missed());
    assert_eq!(dummy.page().events - before, triggers());
    assert_eq!(end.head + end.missed(), triggers(), "{end:?}");
    assert_eq!(end.missed(), end.missed_by[Missed::Source as usize]);
    // Five come in that time, the last of which is the next row.
    let slow = end.head / 100;
    assert!(
        (3 * slow..=5 * slow).contains(&end.missed()),
        "{slow} slow rows, {end:?}"
    );
    let steps = counts.windows(2).map(|pair| pair[1] - pair[0] - 1);
    assert_eq!(steps.sum::<u64>(), end.missed(), "as the rows show it");
}
