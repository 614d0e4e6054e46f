// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel says of the HPET.

use std::fs;

use strobe::clock::RunClock;
use strobe::engine::user::WaitMode;
use strobe::engine::user::trigger::{EventSource, WaitOutcome};
use strobe::info::Clock;
use strobe::internals::Hpet;
use strobe::wakeup::wakeup;

/// Interrupts of the HPET, as the kernel counts them, before this and after it: it says so only while they are
/// on, so this switches them on, for one.
pub fn interrupts() -> (u64, u64) {
    let clock = RunClock::new(Clock::Monotonic);
    let (_waker, mut wakeup) = wakeup().expect("a wake-up");
    let mut mine = 0;
    loop {
        let mut source = Hpet::new(250_000_000, WaitMode::Block).expect("an HPET");
        // This waits for the first one.
        source.begin(&clock, clock.now()).expect("to begin");
        let text = fs::read_to_string("/proc/interrupts").expect("the interrupts");
        source.end();
        let WaitOutcome::Trigger(trigger) = source.wait(&clock, &mut wakeup).expect("to wait")
        else {
            panic!("nobody rang");
        };
        mine += trigger.count;
        if trigger.count > 1 {
            // A second one has come, before or after the text was made.
            continue;
        }
        let line = text.lines().find(|line| line.contains("hpet"));
        let (_, counts) = line
            .and_then(|line| line.split_once(':'))
            .expect("it is on");
        let words = counts.split_whitespace();
        let all: u64 = words.map_while(|word| word.parse::<u64>().ok()).sum();
        return (all - mine, all);
    }
}
