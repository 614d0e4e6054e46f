// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HPET's periodic interrupt in the user engine, against the kernel's count of interrupts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use rustix::thread::{Uid, set_thread_uid};
use strobe::clock::RunClock;
use strobe::engine::Error;
use strobe::engine::user::WaitMode;
use strobe::engine::user::trigger::{EventSource, WaitOutcome};
use strobe::info::{Clock, RunInfo};
use strobe::internals::Hpet;
use strobe::plan::Plan;
use strobe::run::Run;
use strobe::wakeup::wakeup;
use strobe_cases::account::record;
use strobe_cases::hpet::interrupts;
use strobe_cases::{Engine, User, plan};
use strobe_ring::{Missed, State};

/// Triggers, and what was missed, of a source that is ended after so many triggers. What has come by then and nobody has
/// waited for is missed as well: the source's own account says how much that is, and a run adds it in the same way.
fn count(wait: WaitMode, triggers: u64) -> (u64, u64) {
    let clock = RunClock::new(Clock::Monotonic);
    let (_waker, mut wakeup) = wakeup().expect("a wake-up");
    let mut source = Hpet::new(1_000_000, wait).expect("an HPET");
    source.begin(&clock, clock.now()).expect("to begin");
    let (mut made, mut missed) = (0, 0);
    while made < triggers {
        match source.wait(&clock, &mut wakeup).expect("to wait") {
            WaitOutcome::Trigger(trigger) => {
                made += 1;
                missed += trigger.missed;
                assert_eq!(trigger.count, made + missed);
            }
            other => panic!("nobody rang: {other:?}"),
        }
    }
    source.end();
    let (cause, unserved) = source.unserved();
    assert_eq!(cause, Missed::Source);
    (made, missed + unserved)
}

#[test]
fn every_interrupt_is_a_trigger_or_missed_as_the_kernel_counts_them() {
    for (wait, triggers) in [(WaitMode::Block, 3000), (WaitMode::Spin, 2000)] {
        let (_, before) = interrupts();
        let (made, missed) = count(wait, triggers);
        let counted = interrupts().0 - before;
        println!("{wait}: {made} + {missed} of {counted} interrupts");
        assert!(made >= triggers);
        assert_eq!(made + missed, counted, "{wait}");
    }
}

#[test]
fn interrupts_make_rows_with_their_number() {
    let run = User::open().run(&Plan {
        limit: Some(500),
        ..plan("hpet:1kHz", &["event.count", "clock.elapsed"])
    });
    let (account, end) = record(&run);
    assert_eq!(end.state, State::Done);
    assert_eq!(end.missed(), end.missed_by[Missed::Source as usize]);
    for row in &account.rows {
        assert_eq!(row.values[0], row.trigger + 1, "{row:?}");
    }
    assert_eq!(run.info().period_ns, Some(1_000_000));
    let info = RunInfo {
        start: end.start,
        ..run.info().clone()
    };
    assert_eq!(info.first_due_ns(), None, "its phase is not known");
    // Guest time: the HPET and the clock are of one machine, so 500 periods cannot take less.
    let took = end.end_time - end.start.time;
    assert!(took >= (end.triggers - 1) * 990_000, "{took} ns, {end:?}");
}

#[test]
fn interrupts_before_the_beginning_are_forgotten() {
    let clock = RunClock::new(Clock::Monotonic);
    let (_waker, mut wakeup) = wakeup().expect("a wake-up");
    let mut source = Hpet::new(1_000_000, WaitMode::Block).expect("an HPET");
    source.begin(&clock, clock.now()).expect("to begin");
    thread::sleep(Duration::from_millis(500));
    source.end();
    let begun = clock.now();
    source.begin(&clock, begun).expect("to begin again");
    match source.wait(&clock, &mut wakeup).expect("to wait") {
        WaitOutcome::Trigger(trigger) => {
            let possible = (clock.now() - begun) / 1_000_000 + 1;
            assert!(
                trigger.count <= possible,
                "{trigger:?}, {possible} possible"
            );
            assert_eq!(
                trigger.count,
                trigger.missed + 1,
                "it counts from the beginning"
            );
        }
        other => panic!("nobody rang: {other:?}"),
    }
}

#[test]
fn a_timer_can_be_used_again_after_a_run() {
    for _ in 0..20 {
        let run = User::open().run(&Plan {
            limit: Some(3),
            ..plan("hpet:1kHz", &[])
        });
        record(&run);
    }
}

fn refused(event: &str) -> String {
    let refused = User::open().create(&plan(event, &[])).map(|_| ());
    refused.expect_err("a refusal").to_string()
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let late = User::open().create(&plan("hpet:64Hz", &["clock.late"]));
    assert!(
        matches!(late, Err(Error::Due { .. })),
        "an HPET is never due"
    );
    assert!(refused("hpet:400ms").contains("use hpet:3Hz"));
    assert!(refused("hpet:20kHz").contains("at most 10000"));
    fs::set_permissions("/dev/hpet", fs::Permissions::from_mode(0o600)).expect("root");
    let as_user = |period_ns| {
        let said = thread::spawn(move || {
            // Of this thread alone: the others of this process stay root.
            set_thread_uid(Uid::from_raw(1000)).expect("to be a user");
            Hpet::new(period_ns, WaitMode::Block).map(|_| ())
        });
        said.join().expect("an answer")
    };
    let said = as_user(15_625_000).expect_err("a device of root");
    assert!(said.contains("/dev/hpet: no permission;"), "{said}");
    fs::set_permissions("/dev/hpet", fs::Permissions::from_mode(0o666)).expect("root");
    assert_eq!(as_user(15_625_000), Ok(()));
    let said = as_user(15_384_615).expect_err("too fast for users");
    assert!(
        said.contains("65 Hz is more than the 64 Hz of /proc/sys/dev/hpet/max-user-freq"),
        "{said}"
    );
    assert!(said.contains("sysctl dev.hpet.max-user-freq=65"), "{said}");
}

#[test]
fn timers_run_out_and_come_back() {
    let mut taken = Vec::new();
    let said = loop {
        match Hpet::new(15_625_000, WaitMode::Block) {
            Ok(hpet) => taken.push(hpet),
            Err(why) => break why,
        }
        assert!(taken.len() < 100, "so many timers");
    };
    println!("{} timers for programs", taken.len());
    assert!(
        !taken.is_empty() && said.contains("use all its timers"),
        "{said}"
    );
    drop(taken);
    assert!(Hpet::new(15_625_000, WaitMode::Block).is_ok());
}
