// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long it takes to wake a thread: one stamps and signals, the other stamps as soon as it is back.
//!
//! Nothing but the waking is measured: the signaller lets the other one sleep for a while before each signal, and what
//! the signal has left behind is taken away after the stamp.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use strobe::clock::monotonic;
use strobe::plan::CpuLatency;
use strobe::stats::Stats;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::rt::{self, Policy, Step};

mod link;

use link::{Link, Signal, Sleep};

/// What a thread sleeps in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WakeMechanism {
    /// It does not: it looks at a word in memory all the time.
    Spin,
    /// futex(2).
    Futex,
    /// read(2) of an eventfd.
    Eventfd,
    /// poll(2) for an eventfd.
    Poll,
    /// epoll(7) for an eventfd.
    Epoll,
    /// read(2) of a pipe.
    Pipe,
    /// read(2) of a Unix socket.
    Socket,
    /// A read of an eventfd by io_uring(7).
    Uring,
}

impl WakeMechanism {
    /// All there are, the quickest first.
    pub const ALL: [WakeMechanism; 8] = [
        WakeMechanism::Spin,
        WakeMechanism::Futex,
        WakeMechanism::Eventfd,
        WakeMechanism::Poll,
        WakeMechanism::Epoll,
        WakeMechanism::Pipe,
        WakeMechanism::Socket,
        WakeMechanism::Uring,
    ];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            WakeMechanism::Spin => "spin",
            WakeMechanism::Futex => "futex",
            WakeMechanism::Eventfd => "eventfd",
            WakeMechanism::Poll => "poll",
            WakeMechanism::Epoll => "epoll",
            WakeMechanism::Pipe => "pipe",
            WakeMechanism::Socket => "socket",
            WakeMechanism::Uring => "uring",
        }
    }

    /// Whether this process may use it.
    ///
    /// # Errors
    /// The system's reason.
    pub fn check(self) -> io::Result<()> {
        Link::new(self).map(|_| ())
    }
}

impl FromStr for WakeMechanism {
    type Err = String;

    fn from_str(text: &str) -> Result<WakeMechanism, String> {
        let way = WakeMechanism::ALL
            .into_iter()
            .find(|way| way.name() == text);
        way.ok_or_else(|| {
            format!(
                "there are {}",
                WakeMechanism::ALL.map(WakeMechanism::name).join(", ")
            )
        })
    }
}

impl fmt::Display for WakeMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who wakes whom, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// What the sleeper sleeps in.
    pub way: WakeMechanism,
    /// Policy of the sleeper. The signaller has the same one, one step below if it has steps: where both have one CPU,
    /// the sleeper is to run as soon as it is woken, and not when the signaller has no more to do.
    pub policy: Policy,
    /// CPU of the sleeper.
    pub sleeper: usize,
    /// CPU of the signaller.
    pub signaller: usize,
    /// How often it is woken.
    pub count: u64,
    /// How long it is let sleep each time, at least.
    pub pause: Duration,
}

/// What came out.
#[derive(Debug, Clone)]
pub struct WakeTimes {
    /// From the signal to the return of the wait, ns.
    pub took: Stats,
    /// Real-time set-up of both threads: what was got, and what was refused.
    pub set_up: Vec<Step>,
}

/// Stamp of the signal that says that there will be no more.
const END: u64 = u64::MAX;

/// What the two threads know of each other.
#[derive(Default)]
struct Shared {
    /// The sleeper's count of its sleeps, as it begins each; [`END`] when it has come to its end.
    begun: AtomicU64,
    /// When the signaller signalled; [`END`]: the sleeper is to end.
    sent: AtomicU64,
}

/// Bytes of a thread's stack. All of them are locked in memory, so not more than it needs.
const STACK: usize = 256 * 1024;

/// Measures it. Ends early when `stop` is set.
///
/// # Errors
/// The way cannot be had, or there is no memory for two threads.
pub fn measure(plan: &Plan, stop: &AtomicBool) -> io::Result<WakeTimes> {
    let Link { signal, sleep } = Link::new(plan.way)?;
    let shared = &Shared::default();
    let awake = CpuLatencyRequest::hold(CpuLatency::default().0);
    let mut set_up = vec![rt::lock_memory(), awake.step.clone()];
    let policy = match plan.policy {
        Policy::Fifo(priority) => Policy::Fifo(priority.saturating_sub(1).max(1)),
        policy => policy,
    };
    thread::scope(|scope| {
        let thread = || thread::Builder::new().stack_size(STACK);
        let locked = |error| rt::lock_limit(error, STACK as u64);
        let signaller = thread().spawn_scoped(scope, move || {
            let got = rt::set_up_thread(Some(plan.signaller), policy);
            signal_each(signal.as_ref(), shared, plan, stop);
            got
        });
        let signaller = signaller.map_err(locked)?;
        let sleeper = thread().spawn_scoped(scope, move || {
            let got = rt::set_up_thread(Some(plan.sleeper), plan.policy);
            let took = sleep_each(sleep, shared, plan.count);
            shared.begun.store(END, Ordering::Release);
            (got, took)
        });
        let sleeper = sleeper.inspect_err(|_| shared.begun.store(END, Ordering::Release));
        let sleeper = sleeper.map_err(locked)?;
        let dead = |_| io::Error::other("a thread did not finish");
        let (got, took) = sleeper.join().map_err(dead)?;
        set_up.extend(got);
        set_up.extend(signaller.join().map_err(dead)?);
        let mut stats = Stats::around(0);
        for ns in took? {
            stats.add(ns);
        }
        Ok(WakeTimes {
            took: stats,
            set_up,
        })
    })
}

/// The sleeper: answers how long each waking took, ns.
fn sleep_each(mut sleep: Box<dyn Sleep>, shared: &Shared, count: u64) -> io::Result<Vec<i64>> {
    // All of it is there before the first sleep.
    let mut took = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for nth in 1..=count {
        // Release, with the Acquire of the signaller: what was left of the signal before has been taken away.
        shared.begun.store(nth, Ordering::Release);
        sleep.sleep()?;
        let now = monotonic();
        let sent = shared.sent.load(Ordering::Acquire);
        if sent == END {
            break;
        }
        // Clocks of two CPUs may differ by some nanoseconds.
        took.push(now.wrapping_sub(sent) as i64);
        sleep.clear()?;
    }
    Ok(took)
}

/// The signaller.
fn signal_each(signal: &dyn Signal, shared: &Shared, plan: &Plan, stop: &AtomicBool) {
    for nth in 1..=plan.count {
        loop {
            thread::sleep(plan.pause);
            match shared.begun.load(Ordering::Acquire) {
                END => return,
                begun if begun >= nth => break,
                // It has not had its CPU.
                _ => {}
            }
        }
        if stop.load(Ordering::Relaxed) {
            shared.sent.store(END, Ordering::Release);
            signal.signal();
            return;
        }
        shared.sent.store(monotonic(), Ordering::Release);
        signal.signal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the policy that everybody may have, on the CPU that there is.
    fn plan(way: WakeMechanism) -> Plan {
        let cpus = rt::cpus();
        let (first, last) = (cpus.first().copied(), cpus.last().copied());
        Plan {
            way,
            policy: Policy::Other,
            sleeper: first.expect("a CPU"),
            signaller: last.expect("a CPU"),
            count: 20,
            pause: Duration::from_micros(100),
        }
    }

    #[test]
    fn by_each_way_the_sleeper_is_woken_as_often_as_it_was_signalled() {
        for way in WakeMechanism::ALL {
            if let Err(why) = way.check() {
                // Many containers may not.
                assert_eq!(way, WakeMechanism::Uring, "{way:?}: {why}");
                continue;
            }
            let measured = measure(&plan(way), &AtomicBool::new(false))
                .unwrap_or_else(|error| panic!("{}: {error}", way.name()));
            assert_eq!(measured.took.count(), 20, "{way:?}");
            let figures = measured.took.figures().expect("figures");
            assert!(
                figures.max > 0 && figures.max < 10_000_000_000,
                "{figures:?}"
            );
            assert_eq!(measured.set_up.len(), 2 + 2 * 3, "{:?}", measured.set_up);
        }
    }

    #[test]
    fn a_measurement_that_is_stopped_comes_to_its_end_at_once() {
        let plan = Plan {
            count: u64::MAX >> 40,
            ..plan(WakeMechanism::Eventfd)
        };
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let measuring = scope.spawn(|| measure(&plan, &stop).expect("to measure"));
            thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
            let count = measuring.join().expect("an end").took.count();
            assert!(count < plan.count, "{count}");
        });
    }
}
