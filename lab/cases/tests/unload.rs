// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules that are taken away from a run that computes, acts and is tuned: they stay as long as it lives, and go at the
//! moment after it.
//!
//! `$STROBE_ROUNDS` says how often.
// lab: --module strobe_sample

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use libc::{ENOENT, EWOULDBLOCK};
use strobe::engine::kernel::{Control, KernelRun};
use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::until;
use strobe_cases::dice::Dice;
use strobe_cases::machine::{command, slowness, timer};
use strobe_cases::rounds::{held, rounds};
use strobe_cases::{plan, raw};

/// In the order in which they can go.
const MODULES: [&str; 3] = ["strobe_board", "strobe_sample", "strobe"];

/// All modules are there, and are there again when this is dropped.
struct Loaded;

impl Loaded {
    fn new() -> Loaded {
        for module in MODULES {
            assert!(command(&format!("modprobe {module}")), "modprobe {module}");
        }
        Loaded
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        for module in MODULES {
            let _ = command(&format!("modprobe {module}"));
        }
    }
}

/// A run with everything that a program has, on one of these events.
fn whole(event: &str) -> Plan {
    let mut plan = plan(event, &["sim.counter", "sample.level"]);
    plan.steps.push(Step::Act {
        output: "sample.step".into(),
        value: 1,
        rule: 0,
    });
    plan.program = ProgramText {
        tunables: vec!["next = 5 like sim.counter".into()],
        rules: vec![Rule {
            when: "sim.counter >= next".into(),
            then: vec!["next += 3".into()],
        }],
        derive: vec!["change = diff(sim.counter)".into()],
        keep: vec!["(sim.counter & 3) != 0".into()],
        ..ProgramText::default()
    };
    plan
}

/// One of the events: timers of 1 to 10 kHz, and what the modules have themselves.
fn event(dice: &mut Dice) -> String {
    match dice.below(6) {
        0 => "sample.tick".into(),
        1 => "sim.pulse".into(),
        n => timer([1_000_000, 500_000, 200_000, 100_000][n - 2]),
    }
}

/// Up to so many milliseconds.
fn a_moment(dice: &mut Dice, ms: usize) {
    let us = dice.below(1000 * ms) as u64 * slowness();
    thread::sleep(Duration::from_micros(us));
}

/// What has ended has let go of them.
fn all_go_at_once(how: &str) {
    for module in MODULES {
        assert_eq!(raw::unload(module), Ok(0), "{module}, {how}");
    }
}

/// The run makes rows, and can be tuned.
fn goes_on(run: &KernelRun) {
    let before = run.snapshot().expect("its counters").head;
    run.tune("next", "50").expect("to tune");
    until("rows", || {
        run.snapshot().expect("its counters").head > before + 1
    });
}

/// A run of another process.
fn record() -> Child {
    let child = Command::new("strobe")
        .args(["record", "--engine", "kernel", "--event", "timer:5kHz"])
        .args(["--read", "sim.counter", "--read", "sample.level"])
        .args(["--tune", "next = 0 like sim.counter"])
        .args(["--when", "sim.counter >= next", "--set", "sample.step=1"])
        .args(["--then", "next += 3"])
        .args(["--derive", "change = diff(sim.counter)", "-o", "-"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("strobe");
    until("its run", || {
        let (entries, _) = raw::list(&raw::control(), 0).expect("the catalogue");
        entries.iter().any(|entry| entry.kind == raw::RUN)
    });
    child
}

#[test]
fn modules_stay_as_long_as_a_run_with_a_program_lives_and_go_the_moment_after_it() {
    let (mut dice, _loaded) = (Dice(5), Loaded::new());
    let before = held();
    for round in 0..rounds(12, 6) {
        drop(Loaded::new());
        if round % 3 == 0 {
            let mut child = record();
            a_moment(&mut dice, 20);
            assert_eq!(raw::unload("strobe_sample"), Err(EWOULDBLOCK));
            child.kill().expect("to kill");
            child.wait().expect("an end");
            all_go_at_once("killed");
            continue;
        }
        let event = event(&mut dice);
        // The control device is closed again: it would hold the module, too.
        let run = Control::open().and_then(|control| control.create(&whole(&event)));
        let run = run.expect("a run");
        run.start().expect("to start");
        a_moment(&mut dice, 20);
        if round % 2 == 0 {
            for module in &MODULES[1..] {
                assert_eq!(raw::unload(module), Err(EWOULDBLOCK), "{module}");
            }
            goes_on(&run);
        }
        if round % 4 == 1 {
            run.stop().expect("to stop");
        }
        drop(run);
        all_go_at_once(&event);
    }
    drop(Loaded::new());
    until("nothing to be left", || held() == before);
}

/// Tries to unload all modules until they are gone.
fn unload_all() {
    until("the modules to go", || {
        for module in MODULES {
            match raw::unload(module) {
                Ok(_) | Err(EWOULDBLOCK | ENOENT) => {}
                Err(errno) => panic!("{module}: errno {errno}"),
            }
        }
        !MODULES.iter().any(|module| raw::references(module) >= 0)
    });
}

#[test]
fn who_unloads_at_any_moment_is_refused_or_there_is_no_run() {
    let (mut dice, _loaded) = (Dice(6), Loaded::new());
    let (mut lived, mut gone) = (0, 0);
    for _ in 0..rounds(12, 6) {
        drop(Loaded::new());
        let (plan, begins) = (whole(&event(&mut dice)), dice.below(4));
        thread::scope(|threads| {
            let mut at = |step| {
                if step == begins {
                    threads.spawn(unload_all);
                    a_moment(&mut dice, 1);
                }
            };
            at(0);
            let run = Control::open().and_then(|control| {
                at(1);
                control.create(&plan)
            });
            match run {
                Ok(run) => {
                    at(2);
                    run.start().expect("to start");
                    at(3);
                    goes_on(&run);
                    lived += 1;
                }
                Err(why) => {
                    assert!(begins < 2, "nobody has unloaded anything: {why}");
                    gone += 1;
                }
            }
        });
    }
    println!("{lived} runs lived, {gone} came too late");
    assert!(lived > 0, "a test of nothing");
}
