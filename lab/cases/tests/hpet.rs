// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HPET's periodic interrupt in the user engine, against the kernel's count of interrupts.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use rustix::thread::{set_thread_uid, Uid};
use strobe::engine::user::bell::bell;
use strobe::engine::user::clock::RunClock;
use strobe::engine::user::hpet::Hpet;
use strobe::engine::user::trigger::{EventSource, Woken};
use strobe::engine::user::WaitMode;
use strobe::info::Clock;
use strobe::plan::Plan;
use strobe_cases::account::record;
use strobe_cases::{plan, Engine, User};
use strobe_ring::{Missed, State};

/// The kernel's counts of interrupts, and the number of the HPET's if it is on.
fn interrupts() -> (HashMap<String, u64>, Option<String>) {
    let text = fs::read_to_string("/proc/interrupts").expect("the interrupts");
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let (mut counts, mut hpet) = (HashMap::new(), None);
    for (number, rest) in lines {
        let words = rest.split_whitespace();
        let count = words.map_while(|word| word.parse::<u64>().ok()).sum();
        if rest.contains("hpet") {
            hpet = Some(number.to_owned());
        }
        counts.insert(number.to_owned(), count);
    }
    (counts, hpet)
}

/// Triggers and misses, and interrupts as the kernel counts them, of a source that is ended after so many.
fn count(wait: WaitMode, triggers: u64) -> (u64, u64, u64) {
    let clock = RunClock::new(Clock::Monotonic);
    let (rope, mut bell) = bell().expect("a bell");
    let mut source = Hpet::new(1_000_000, wait).expect("an HPET");
    let (before, _) = interrupts();
    source.begin(&clock, clock.now()).expect("to begin");
    let (_, number) = interrupts();
    let number = number.expect("the interrupt is on");
    let (mut made, mut missed) = (0, 0);
    thread::scope(|scope| loop {
        match source.wait(&clock, &mut bell).expect("to wait") {
            Woken::Bell => break,
            Woken::Trigger(trigger) => {
                made += 1;
                missed += trigger.missed;
                assert_eq!(trigger.count, made + missed);
                if made == triggers {
                    // What has come by now is still read.
                    source.end();
                    let rope = rope.clone();
                    scope.spawn(move || {
                        thread::sleep(Duration::from_millis(200));
                        rope.ring();
                    });
                }
            }
        }
    });
    let (after, _) = interrupts();
    let count = |counts: &HashMap<String, u64>| counts.get(&number).copied().unwrap_or(0);
    (made, missed, count(&after) - count(&before))
}

#[test]
fn every_interrupt_is_a_trigger_or_missed_as_the_kernel_counts_them() {
    for (wait, triggers) in [(WaitMode::Block, 10_000), (WaitMode::Spin, 2000)] {
        let (made, missed, counted) = count(wait, triggers);
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
    // Guest time: the HPET and the clock are of one machine, so 500 periods cannot take less.
    let took = end.end_time - end.start.time;
    assert!(took >= (end.triggers - 1) * 990_000, "{took} ns, {end:?}");
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
    assert!(refused("hpet:400ms").contains("take hpet:3Hz"));
    assert!(refused("hpet:20kHz").contains("at most 10000"));
    fs::set_permissions("/dev/hpet", fs::Permissions::from_mode(0o600)).expect("root");
    let as_user = |event: &'static str| {
        let said = thread::spawn(move || {
            // Of this thread alone: the others of this process stay root.
            set_thread_uid(Uid::from_raw(1000)).expect("to be a user");
            User::open()
                .create(&plan(event, &[]))
                .map(|_| ())
                .map_err(|error| error.to_string())
        });
        said.join().expect("an answer")
    };
    let said = as_user("hpet:64Hz").expect_err("a device of root");
    assert!(said.contains("/dev/hpet: no permission;"), "{said}");
    fs::set_permissions("/dev/hpet", fs::Permissions::from_mode(0o666)).expect("root");
    assert_eq!(as_user("hpet:64Hz"), Ok(()));
    let said = as_user("hpet:65Hz").expect_err("too fast for users");
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
        !taken.is_empty() && said.contains("all its timers are used"),
        "{said}"
    );
    drop(taken);
    assert!(Hpet::new(15_625_000, WaitMode::Block).is_ok());
}
