// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels that are not ready at once, exactly: what they cost others, on a machine that nothing disturbs.

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::record;
use strobe_cases::machine::{Sim, slowness, timer};
use strobe_cases::{Engine, Kernel, plan};
use strobe_ring::State;

#[test]
fn values_that_arrive_between_triggers_miss_nothing() {
    let _sim = Sim::well();
    let run = Kernel::open().run(&Plan {
        limit: Some(300),
        ..plan(&timer(5_000_000), &["sim.async"])
    });
    let (account, end) = record(&run);
    assert_eq!(
        (end.state, end.triggers, end.missed()),
        (State::Done, 300, 0)
    );
    assert!(account.column(0).eq(0..300));
}

#[test]
fn a_slow_run_does_not_hold_up_a_fast_one() {
    let sim = Sim::well();
    sim.set("sim_sleep_us", 5000 * slowness());
    let slow = Kernel::open().run(&plan(&timer(20_000_000), &["sim.slow", "sim.counter"]));
    slow.start().expect("to start");
    let fast = Kernel::open().run(&Plan {
        limit: Some(500),
        ..plan(&timer(1_000_000), &["sim.ramp", "clock.late"])
    });
    let (account, end) = record(&fast);
    assert_eq!((end.triggers, end.missed()), (500, 0));
    let latest = account.column(1).max();
    assert!(latest < Some(100_000 * slowness()), "{latest:?} ns late");
    slow.stop().expect("to stop");
    let slow = slow.reader().expect("a reader").snapshot();
    assert!(slow.head > 20, "{slow:?}");
}
