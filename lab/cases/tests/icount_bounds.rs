// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an ordinary user can take from others, in time: with as many runs as it gets, each as expensive as it may be.
//! Time is made of instructions here, so that the figures are the kernel's and not the host's.
// lab: --memory 3072

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use strobe::plan::Plan;
use strobe::rt::{Policy, set_up_thread};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::read_now;
use strobe_cases::machine::{Counting, Sim, slowness};
use strobe_cases::raw::{
    OtherUser, PAUSE, READ, RESUME, START, STOP, Talk, create, list, order, request, soft, step,
};
use strobe_cases::{Account, Engine, Kernel, plan};
use strobe_ring::Missed;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// An ordinary user.
const SOMEBODY: usize = 1000;

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

fn sleep_until(time: u64) {
    thread::sleep(Duration::from_nanos(time.saturating_sub(now())));
}

/// The longest time that was taken from a thread that comes before all others: interrupts took it.
fn longest_stretch(until: u64) -> u64 {
    let (mut last, mut longest) = (now(), 0);
    while last < until {
        let next = now();
        longest = longest.max(next - last);
        last = next;
    }
    longest
}

/// Makes as many runs as are wanted and allowed.
fn make(control: &OwnedFd, runs: u64, channels: &[&str], period: u64) -> Vec<OwnedFd> {
    let steps: Vec<_> = channels.iter().map(|name| step(READ, name, 0)).collect();
    let mut made = Vec::new();
    for _ in 0..runs {
        match create(control, &request("timer", period, 2, &steps)) {
            Ok((owner, _)) => made.push(owner),
            Err(errno) => {
                println!("run {} is refused: {errno}", made.len());
                break;
            }
        }
    }
    made
}

/// Starts those that may be started, 4 us apart; how many.
fn start(runs: &[OwnedFd]) -> u64 {
    let begin = now();
    let started = (0..).zip(runs).filter(|(i, run)| {
        while now() < begin + 4000 * i {}
        order(*run, START, 0).is_ok()
    });
    started.count() as u64
}

/// A crowd of expensive runs of somebody else's: says how many it has, waits, starts them, says when and how many.
fn crowd(control: &OwnedFd, talk: &mut Talk, runs: u64, channels: &[&str], period: u64) {
    let runs = make(control, runs, channels, period);
    talk.say(runs.len() as u64);
    talk.hear();
    talk.say(now());
    talk.say(start(&runs));
    talk.hear();
}

/// What an innocent run at 1 kHz suffers beside such a crowd, in its second, third and fourth second.
fn beside(runs: u64) -> (u64, u64) {
    let channels = ["clock.time"; 1024];
    let mut other = OtherUser::new(SOMEBODY, |control, talk| {
        crowd(control, talk, runs, &channels, SECOND);
    });
    let made = other.talk().hear().expect("its runs");
    // After the fork: what is about to be measured is not what comes first.
    set_up_thread(None, Policy::Fifo(99));
    let innocent = Kernel::open().run(&Plan {
        ring: Some(16384),
        ..plan("timer:1ms", &["clock.late"])
    });
    let mut reader = innocent.reader().expect("a reader");
    let mut account = Account::new(0, 1);
    innocent.start().expect("to start");
    other.talk().say(0);
    let begun = other.talk().hear().expect("a time");
    let started = other.talk().hear().expect("a number");
    let mut longest = 0;
    for second in 1..=3 {
        let due = begun + second * SECOND;
        sleep_until(due - 2 * MS);
        longest = longest.max(longest_stretch(due + 300 * MS));
    }
    innocent.stop().expect("to stop");
    set_up_thread(None, Policy::Other);
    drop(other);
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    let late = account.column(0).max().expect("rows");
    let by = |cause| end.missed_by[cause as usize];
    println!(
        "{runs} runs of 1024 channels, {made} made, {started} started: longest stretch in hard interrupt {} us; \
         innocent run: {} us late, {} of {} missed ({} overrun, {} throttled)",
        longest / 1000,
        late / 1000,
        end.missed(),
        end.triggers,
        by(Missed::Overrun),
        by(Missed::Throttled),
    );
    assert_eq!(end.triggers, end.head + end.missed(), "{end:?}");
    (longest, late)
}

#[test]
fn interrupts_of_many_expensive_runs_do_not_keep_others_off_a_cpu() {
    let table = [0, 10, 100, 1000].map(beside);
    for (longest, late) in table {
        assert!(
            longest <= 2 * MS * slowness(),
            "{longest} ns in hard interrupt"
        );
        assert!(late <= 2 * MS * slowness(), "{late} ns late");
    }
}

#[test]
fn threads_of_slow_runs_leave_a_cpu_to_others() {
    let sim = Sim::well();
    sim.set("sim_sleep_us", 5);
    let mut channels = vec!["clock.time"; 1023];
    channels.push("sim.slow");
    let mut other = OtherUser::new(SOMEBODY, |control, talk| {
        crowd(control, talk, 8, &channels, 10_000);
    });
    let made = other.talk().hear().expect("its runs");
    let counting = Counting::on(0);
    set_up_thread(None, Policy::Fifo(99));
    thread::sleep(Duration::from_millis(10));
    let spent = |from| counting.count() - from;
    let alone = counting.count();
    thread::sleep(Duration::from_millis(500));
    let alone = spent(alone);
    other.talk().say(0);
    other.talk().hear().expect("a time");
    let started = other.talk().hear().expect("a number");
    thread::sleep(Duration::from_millis(200));
    let beside = counting.count();
    thread::sleep(Duration::from_millis(500));
    let beside = spent(beside);
    set_up_thread(None, Policy::Other);
    drop(counting);
    drop(other);
    let share = beside * 100 / alone;
    println!("beside {started} of {made} slow runs an ordinary thread has {share} % of the CPU");
    assert!(share >= 15, "{share} % of the CPU");
}

#[test]
fn list_and_stop_do_not_wait_for_the_slow_rows_of_others() {
    let _sim = Sim::well();
    let channels = ["sim.slow"; 1024];
    let mut other = OtherUser::new(SOMEBODY, |control, talk| {
        let runs = make(control, 1, &channels, MS);
        order(&runs[0], START, 0).expect("to start");
        talk.say(0);
        while talk.is_quiet() {
            thread::sleep(Duration::from_millis(2));
            order(&runs[0], PAUSE, 0).expect("to pause");
            order(&runs[0], RESUME, 0).expect("to resume");
        }
    });
    other.talk().hear();
    let control = strobe_cases::raw::control();
    let (mut listing, mut stopping) = (0, 0);
    for round in 0..200 {
        let (owner, _) = soft(&control, 2, 0);
        order(&owner, START, 0).expect("to start");
        let begun = now();
        if round % 2 == 0 {
            list(&control, 0).expect("a catalogue");
            listing = listing.max(now() - begun);
        } else {
            order(&owner, STOP, 0).expect("to stop");
            stopping = stopping.max(now() - begun);
        }
        thread::sleep(Duration::from_micros(3700));
    }
    println!(
        "STROBE_LIST took {} us at most, STROBE_STOP {} us",
        listing / 1000,
        stopping / 1000
    );
    assert!(
        listing.max(stopping) <= 20 * MS * slowness(),
        "{listing}, {stopping} ns"
    );
}
