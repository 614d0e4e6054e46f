// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sequence of twenty states as the rules of a run, some of them with a time-out, over pauses and over gaps of every cause
//! at once: triggers that the source has lost, rows that are left out, rows with a fault, rows that a reader has lost.

use std::thread;
use std::time::{Duration, Instant};

use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::run::OwnedRun;
use strobe_cases::account::{Kept, begin, read_now, until};
use strobe_cases::machine::{Sim, slowness};
use strobe_cases::{Account, Engine, Kernel, User, plan};
use strobe_ring::{Snapshot, State};

const STATES: u64 = 20;
/// Each fourth state ends by its time-out, in ms; the others by what is read.
const TIMEOUT_MS: u64 = 3;
/// `STROBE_SEQUENCE_HOURS`: so long, with a pulse each 0.1 s instead of each ms, and all times of the sequence as much longer.
const LONG: u64 = 100;
const CHANNELS: [&str; 4] = ["sim.counter", "sim.noise", "sim.latch", "clock.elapsed"];
/// Derived: the state, how many steps led to it, when it began, and when the one before it did, in ns.
const DERIVE: [&str; 4] = [
    "at = state",
    "count = steps",
    "began = entered",
    "earlier = before",
];
const LATCH: usize = 2;
const AT: usize = 4;
const COUNT: usize = 5;
const BEGAN: usize = 6;
const EARLIER: usize = 7;

fn hours() -> Option<u64> {
    let hours = std::env::var("STROBE_SEQUENCE_HOURS").ok()?;
    Some(hours.parse().expect("a number of hours"))
}

/// All times are so many times longer.
fn factor() -> u64 {
    hours().map_or(slowness(), |_| LONG)
}

fn timeout_ns() -> u64 {
    TIMEOUT_MS * factor() * 1_000_000
}

fn is_timed(state: u64) -> bool {
    state % 4 == 3
}

fn rule(state: u64) -> Rule {
    let ends = match is_timed(state) {
        true => "clock.elapsed >= due".into(),
        false => format!("sim.counter % 5 == {}", state % 5),
    };
    let then = [
        format!("state = {}", (state + 1) % STATES),
        "steps += 1".into(),
        "before = entered".into(),
        "entered = clock.elapsed".into(),
        format!("due = clock.elapsed + {} ns", timeout_ns()),
    ];
    Rule {
        when: format!("state == {state} && {ends}"),
        then: then.into(),
    }
}

/// Each state is written to the latch as it begins.
fn sequence(event: &str) -> Plan {
    let mut plan = Plan {
        ring: Some(64),
        ..plan(event, &CHANNELS)
    };
    plan.program = ProgramText {
        variables: vec![
            "state = 0".into(),
            "steps = 0".into(),
            "entered = 0 ns like clock.elapsed".into(),
            "before = 0 ns like clock.elapsed".into(),
            "due = 0 ns like clock.elapsed".into(),
        ],
        derive: DERIVE.map(Into::into).into(),
        keep: vec!["sim.counter % 3 != 0".into()],
        rules: (0..STATES).map(rule).collect(),
        ..ProgramText::default()
    };
    plan.steps.extend((0..STATES).map(|state| Step::Act {
        output: "sim.latch".into(),
        value: (state + 1) % STATES,
        rule: state as usize,
    }));
    plan
}

/// Lets it take fifty steps between two pauses, six times or for so many hours, and a reader be too slow for the ring at times.
/// Answers how often it was paused, too.
fn taken(run: &impl OwnedRun) -> (Account, Snapshot, u64) {
    let (mut reader, mut account) = begin(run);
    run.start().expect("to start");
    let begun = Instant::now();
    let nap = Duration::from_millis(20 * factor());
    let is_over = |pauses: u64| match hours() {
        Some(hours) => begun.elapsed() >= Duration::from_secs(3600 * hours),
        None => pauses == 6,
    };
    let mut pauses = 0;
    while !is_over(pauses) {
        pauses += 1;
        until("fifty steps more", || {
            thread::sleep(nap);
            read_now(&mut reader, &mut account);
            let good = account.rows.iter().rfind(|row| row.faults.is_empty());
            good.is_some_and(|row| row.values[COUNT] >= 50 * pauses)
        });
        // More rows than the ring has.
        let head = reader.snapshot().head;
        until("rows that are lost", || {
            thread::sleep(nap / 20);
            reader.snapshot().head > head + 100
        });
        run.pause().expect("to pause");
        let paused = reader.snapshot();
        assert_eq!(paused.state, State::Paused);
        let known = paused.head + paused.missed() + paused.skipped;
        assert_eq!(paused.triggers, known, "{paused:?}");
        thread::sleep(nap);
        assert_eq!(reader.snapshot(), paused);
        run.resume().expect("to resume");
        read_now(&mut reader, &mut account);
    }
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    (account, end, pauses)
}

/// Steps in their order, each with its output, and none before its time.
fn check(account: &Account, pauses: u64) {
    let good = account.rows.iter().filter(|row| row.faults.is_empty());
    let good: Vec<&Kept> = good.collect();
    for row in &good {
        let at = |column: usize| row.values[column];
        assert_eq!(at(AT), at(COUNT) % STATES, "{row:?}");
        if at(COUNT) == 0 {
            continue;
        }
        assert_eq!(at(LATCH), at(AT), "{row:?}");
        if is_timed((at(AT) + STATES - 1) % STATES) {
            assert!(at(BEGAN) - at(EARLIER) >= timeout_ns(), "{row:?}");
        }
    }
    let ordered = good.is_sorted_by_key(|row| row.values[COUNT]);
    assert!(ordered, "a step was taken back");
    let resumed = account.rows.iter().filter(|row| row.status.resumed());
    assert!(resumed.count() as u64 <= pauses);
}

#[test]
fn a_sequence_of_the_kernel_engine_is_exact_over_gaps_of_every_cause_at_once() {
    let sim = Sim::well();
    sim.set("sim_every", 7)
        .set("sim_fail", 1)
        .set("sim_drop", 3)
        .set("sim_pulse_ns", 1_000_000 * (factor() / slowness()));
    let (account, end, pauses) = taken(&Kernel::open().run(&sequence("sim.pulse")));
    check(&account, pauses);
    for (what, count) in [
        ("missed", end.missed()),
        ("skipped", end.skipped),
        ("lost", account.lost),
        ("at fault", end.errors),
    ] {
        assert!(count > 0, "nothing was {what}: {end:?}");
    }
    println!(
        "{} steps, {pauses} pauses: {} triggers = {} rows + {} missed + {} skipped; of the rows {} read, {} lost, {} with a fault",
        account
            .rows
            .iter()
            .map(|row| row.values[COUNT])
            .max()
            .unwrap_or(0),
        end.triggers,
        end.head,
        end.missed(),
        end.skipped,
        account.rows.len(),
        account.lost,
        end.errors
    );
}

#[test]
fn a_sequence_of_the_user_engine_is_exact_over_pauses_and_what_is_left_out() {
    let (account, end, pauses) = taken(&User::open().run(&sequence("timer:1ms")));
    check(&account, pauses);
    assert!(end.skipped > 0 && account.lost > 0, "{end:?}");
}
