// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a machine stands in the way of regular rows, and what mends it.
//!
//! A check is a pure function from a [`System`] to a [`Finding`]. What it reads it reads through that, so that a
//! directory of files can stand for a machine. What it cannot read, or does not understand, it does not guess: that is
//! unknown, and unknown is never ok. Where a file would only say what ought to be, it is tried ([`Trial`]).
//!
//! Nothing is changed by a check.

use serde::Serialize;
use strobe::engine::user::{PRIORITY, WaitMode};
use strobe::info::RunInfo;
use strobe::note::{Note, State};

mod cpu;
mod cpus;
mod irq;
mod kernel;
mod machine;
mod memory;
mod own;
mod permission;
mod power;
pub mod prove;
mod system;
mod task;
mod tasks;
mod upkeep;

pub use system::{System, Trial, Unknown};

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How it is.
    pub state: State,
    /// What was seen, and where.
    pub evidence: String,
    /// The command that mends it, or the words for the kernel's command line; only with an advice.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(evidence: impl Into<String>) -> Finding {
        Finding {
            state: State::Ok,
            evidence: evidence.into(),
            remedy: None,
        }
    }

    fn advice(evidence: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            state: State::Advice,
            evidence: evidence.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// As it should be, or else mended by this.
    fn ok_if(is_ok: bool, evidence: impl Into<String>, remedy: impl Into<String>) -> Finding {
        match is_ok {
            true => Finding::ok(evidence),
            false => Finding::advice(evidence, remedy),
        }
    }
}

/// What a check answers; what could not be read ends it.
type Verdict = Result<Finding, Unknown>;

/// What the machine is to be good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The CPU that makes the rows; `None`: any that this process may use.
    pub cpu: Option<usize>,
    /// SCHED_FIFO priority of the thread that makes them.
    pub priority: u8,
    /// How it waits.
    pub wait: WaitMode,
}

impl Default for Intent {
    fn default() -> Self {
        Intent {
            cpu: None,
            priority: PRIORITY,
            wait: WaitMode::Block,
        }
    }
}

impl Intent {
    /// That of a run, as its set-up says; a run without a thread has that of a run with one.
    pub fn of(info: &RunInfo) -> Intent {
        let got = |what: &str| {
            let step = info.set_up.iter().find(|step| step.what == what);
            step.map(|step| step.got.as_str())
        };
        let priority = got("policy").and_then(|policy| policy.strip_prefix("fifo:")?.parse().ok());
        let wait = [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin];
        let wait = wait
            .into_iter()
            .find(|wait| got("wait") == Some(wait.to_string().as_str()));
        Intent {
            // More than one CPU is no number.
            cpu: got("cpu").and_then(|cpu| cpu.parse().ok()),
            priority: priority.unwrap_or(PRIORITY),
            wait: wait.unwrap_or_default(),
        }
    }
}

/// When a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always; it takes a moment.
    Always,
    /// When the machine was watched for a while ([`System::watch`]).
    Watched,
    /// When the thread is not to sleep.
    Spinning,
}

/// One thing that is looked at.
pub struct Check {
    /// What it is called.
    pub name: &'static str,
    /// What it belongs to.
    pub subject: &'static str,
    /// Why it matters.
    pub about: &'static str,
    /// When it is made.
    pub when: When,
    look: fn(&System, &Intent) -> Verdict,
}

/// A check, and what it has found.
#[derive(Debug, Serialize)]
pub struct CheckResult {
    /// What the check is called.
    pub check: &'static str,
    /// What it belongs to.
    pub subject: &'static str,
    /// Why it matters.
    pub about: &'static str,
    /// What it has found.
    #[serde(flatten)]
    pub finding: Finding,
}

impl Check {
    /// Looks, and says what at.
    pub fn result(&self, system: &System, intent: &Intent) -> CheckResult {
        CheckResult {
            check: self.name,
            subject: self.subject,
            about: self.about,
            finding: self.find(system, intent),
        }
    }

    /// Looks.
    pub fn find(&self, system: &System, intent: &Intent) -> Finding {
        (self.look)(system, intent).unwrap_or_else(|Unknown(why)| Finding {
            state: State::Unknown,
            evidence: why,
            remedy: None,
        })
    }

    /// Whether it can be made, and is about a run like this one.
    pub fn fits(&self, system: &System, intent: &Intent) -> bool {
        match self.when {
            When::Always => true,
            When::Watched => system.was_watched(),
            When::Spinning => intent.wait == WaitMode::Spin,
        }
    }
}

/// A line of [`CHECKS`].
const fn check(
    name: &'static str,
    subject: &'static str,
    when: When,
    look: fn(&System, &Intent) -> Verdict,
    about: &'static str,
) -> Check {
    Check {
        name,
        subject,
        about,
        when,
        look,
    }
}

use When::{Always, Spinning, Watched};

/// All there are, in the order in which they are shown.
#[rustfmt::skip]
pub const CHECKS: &[Check] = &[
    check("fifo", "permission", Always, permission::fifo, "real-time priority for the thread that makes rows"),
    check("memory-lock", "permission", Always, permission::memory_lock, "a page fault makes a row late"),
    check("preemption", "kernel", Always, kernel::preemption, "how long the kernel may keep the CPU from a thread"),
    check("throttling", "kernel", Always, kernel::throttling, "share of each second that real-time threads may use"),
    check("clock", "kernel", Always, kernel::clock, "cost and accuracy of reading the time"),
    check("timers", "kernel", Always, kernel::timers, "resolution of timers"),
    check("isolation", "cpu", Always, cpu::isolation, "a CPU with no other work"),
    check("rt-tasks", "cpu", Always, cpu::rt_tasks, "threads that run before the one that makes rows"),
    check("irq-threads", "cpu", Always, irq::threads, "interrupt threads: the run's own above it, others below"),
    check("spinning", "cpu", Spinning, cpu::spinning, "a thread that never sleeps starves all else on its CPU"),
    check("interrupts", "cpu", Watched, irq::interrupts, "interrupts of other devices on the same CPU"),
    check("idle-states", "power", Always, power::idle_states, "a CPU that sleeps deeply wakes late"),
    check("governor", "power", Always, power::governor, "a CPU that runs slowly when it has little to do"),
    check("smt", "power", Always, power::smt, "a CPU that shares its core with another"),
    check("turbo", "power", Always, power::turbo, "a clock rate that depends on the other CPUs"),
    check("huge-pages", "memory", Always, memory::huge_pages, "the kernel merges pages in use into huge pages"),
    check("page-merging", "memory", Always, memory::page_merging, "the kernel merges pages in use that are equal"),
    check("numa-balancing", "memory", Always, memory::numa_balancing, "the kernel moves pages in use to another node"),
    check("swap", "memory", Always, memory::swap, "pages that must be read from disk when needed"),
    check("timer-migration", "upkeep", Always, upkeep::timer_migration, "timers that move to another CPU"),
    check("watchdogs", "upkeep", Always, upkeep::watchdogs, "the kernel's self-checks, which run on each CPU"),
    check("statistics", "upkeep", Always, upkeep::statistics, "the kernel's memory statistics, on each CPU"),
    check("irqbalance", "upkeep", Always, upkeep::irqbalance, "a program that moves interrupts between CPUs"),
    check("virtual-machine", "machine", Always, machine::virtual_machine, "a hypervisor may take the CPU away"),
    check("load", "machine", Watched, machine::load, "other work on this machine now"),
    check("tracing", "machine", Always, machine::tracing, "trace events that show why a row was late"),
    check("module", "strobe", Always, own::module, "the kernel engine, which is a module"),
    check("signature", "strobe", Always, own::signature, "the kernel may refuse modules that are not signed"),
    check("headers", "strobe", Always, own::headers, "needed to build the module for this kernel"),
    check("dkms", "strobe", Always, own::dkms, "rebuilds the module when the kernel is replaced"),
    check("device", "strobe", Always, own::device, "access to the kernel engine by /dev/strobe"),
    check("group", "strobe", Always, own::group, "membership that gives access to /dev/strobe"),
    check("ring-memory", "strobe", Always, own::ring_memory, "memory limit of the kernel engine's rings"),
    check("boards", "strobe", Always, own::boards, "boards installed for the kernel engine"),
    check("uio", "strobe", Always, own::uio, "interrupts and registers for the user engine"),
    check("ptp", "strobe", Always, own::ptp, "a hardware clock to keep the time by"),
];

/// All checks that take a moment only, of this machine, for a run like this one.
pub fn note(info: &RunInfo) -> Vec<Note> {
    let (system, intent) = (System::this_one(), Intent::of(info));
    let fitting = CHECKS.iter().filter(|check| check.fits(&system, &intent));
    let noted = fitting.map(|check| {
        let finding = check.find(&system, &intent);
        Note {
            check: check.name.into(),
            state: finding.state,
            evidence: finding.evidence,
        }
    });
    noted.collect()
}

#[cfg(test)]
mod tests;
