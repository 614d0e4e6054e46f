// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a row was late: the time from when it was due to its stamp, divided among what took it.
//!
//! | while the row's thread | the time went to | by |
//! |---|---|---|
//! | slept, and its timer's interrupt did not come | who kept interrupts off, or nobody: the CPU stood still | what that interrupt found, when it came |
//! | was awake, and had no CPU | the task, or the handler of an interrupt, that had it | switches, and the events of handlers |
//! | was stuck, or ran after a page fault | the page fault | its event |
//! | ran | nobody: on its way to the stamp it does next to nothing, so the CPU stood still | |
//!
//! A CPU stands still when the host of a virtual machine has stopped it, when its firmware has taken it, or when it is
//! slow to leave an idle state. Nothing that it could record tells these apart; but it is not the kernel's doing, and
//! that is known: interrupts are never off in code of programs, nor where an idle CPU waits.

use std::fmt;

use serde::Serialize;
use strobe::quantity::show_ns;

use super::Trace;
use super::timeline::{At, Cpu, Doing, Interrupted, State, of_thread};

/// The way from a timer's interrupt to a thread's stamp is made of short stretches, each of which has been found to be
/// shorter than this. A longer one is more than the way.
const WAY_NS: u64 = 20_000;

/// What takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The CPU stood still: its host, its firmware, or a deep idle state.
    Outside,
    /// The kernel's code kept interrupts off; or the CPU stood still while it was there.
    InterruptsOff,
    /// The handler of an interrupt.
    Interrupt,
    /// Another task, which comes first or cannot be preempted.
    Task,
    /// A task that comes after the thread, but was given its share of the CPU.
    Throttled,
    /// A page of memory that was not there.
    PageFault,
    /// A wait in the kernel that no signal ends, such as that of a driver.
    Stuck,
    /// The thread's own work: that of the row before.
    Own,
    /// The ordinary way: interrupt, wake-up, switch.
    Way,
    /// It waited for the next trigger, after one was missed.
    Waiting,
    /// The trace does not tell.
    Unknown,
}

/// So much of the time went there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Where it went.
    pub cause: Cause,
    /// Which task, handler or function, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// How much, ns; to the microsecond.
    pub ns: u64,
}

/// Who makes the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// This thread.
    Thread(u32),
    /// The kernel engine's timer, in its interrupt.
    Timer,
}

/// What was to be done, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// When the first trigger before the row was due that was missed; `due` if none was.
    pub from: u64,
    /// When the row was due.
    pub due: u64,
    /// Its stamp.
    pub to: u64,
}

/// Events that tell why a row was late. Those of one kind of machine only can be done without.
pub fn wanted() -> Vec<super::EventRequest> {
    use super::EventRequest;
    let needed = [
        "sched:sched_switch",
        "sched:sched_waking",
        "timer:hrtimer_expire_entry",
    ];
    let more = [
        "timer:hrtimer_expire_exit",
        "irq:irq_handler_entry",
        "irq:irq_handler_exit",
        "irq:softirq_entry",
        "irq:softirq_exit",
        "irq_vectors:local_timer_entry",
        "irq_vectors:call_function_single_entry",
        "irq_vectors:call_function_single_exit",
        "irq_vectors:irq_work_entry",
        "irq_vectors:irq_work_exit",
        "csd:csd_function_entry",
        "csd:csd_function_exit",
        "exceptions:page_fault_user",
        "exceptions:page_fault_kernel",
    ];
    // After the work of the interrupt is done, and only where a task was interrupted: rows pay next to nothing for it.
    let found =
        EventRequest::event("irq_vectors:local_timer_exit").with_stack_if("common_pid != 0");
    needed
        .into_iter()
        .map(EventRequest::event)
        .chain(
            more.into_iter()
                .map(|name| EventRequest::event(name).or_without()),
        )
        .chain([found.or_without()])
        .collect()
}

/// Where the time of a delay went, the greatest share first. They add up to all of it. The trace is one
/// [`with_stacks`](Trace::with_stacks).
pub fn shares(trace: &Trace<'_>, maker: Maker, delay: Delay) -> Vec<Share> {
    let mut shares = Shares(Vec::new());
    match maker {
        Maker::Thread(thread) => shares.of_thread(trace, thread, delay),
        Maker::Timer => shares.of_timer(trace, delay),
    }
    let known: u64 = shares.0.iter().map(|share| share.ns).sum();
    let unknown = (delay.to.saturating_sub(delay.from)).saturating_sub(known);
    shares.add(Cause::Unknown, String::new(), unknown);
    shares.0.sort_by_key(|share| std::cmp::Reverse(share.ns));
    shares.0
}

/// The cause of a delay: its greatest share. That a thread waited for the next trigger is none.
pub fn main_share(shares: &[Share]) -> Option<&Share> {
    let of_note = |share: &&Share| share.cause != Cause::Waiting;
    shares.iter().find(of_note).or(shares.first())
}

struct Shares(Vec<Share>);

impl Shares {
    fn add(&mut self, cause: Cause, who: String, ns: u64) {
        if ns == 0 {
            return;
        }
        let same = |share: &&mut Share| share.cause == cause && share.who == who;
        match self.0.iter_mut().find(same) {
            Some(share) => share.ns += ns,
            None => self.0.push(Share { cause, who, ns }),
        }
    }

    fn of_thread(&mut self, trace: &Trace<'_>, thread: u32, delay: Delay) {
        let doing = of_thread(trace, thread, delay.to);
        for doing in doing.iter().filter(|doing| doing.to > delay.from) {
            let cpu = Cpu::of(trace, doing.cpu);
            // Before the row was due the thread had the row before to finish, or nothing to do any more.
            for at in cpu.between(doing.from.max(delay.from), doing.to.min(delay.due)) {
                let (cause, who) = match doing.state {
                    State::Asleep => (Cause::Waiting, String::new()),
                    _ => of_stretch(doing, &at, &cpu, Cause::Own),
                };
                self.add(cause, who, at.to - at.from);
            }
            for at in cpu.between(doing.from.max(delay.due), doing.to) {
                let (cause, who) = of_stretch(doing, &at, &cpu, Cause::Outside);
                self.add(cause, who, at.to - at.from);
            }
        }
    }

    /// The timer's interrupt is where the row is made: until it comes, it is late.
    fn of_timer(&mut self, trace: &Trace<'_>, delay: Delay) {
        let Delay { due: from, to, .. } = delay;
        let fires = |event: &&super::Event<'_>| {
            event.name == "hrtimer_expire_entry"
                && event.word("function") == Some("timer_fire")
                // A row's stamp is finer than the times of events.
                && event.time <= to + 1000
                && event.time + 1000 > from
        };
        let Some(fired) = trace.events.iter().rfind(fires) else {
            return;
        };
        let cpu = Cpu::of(trace, fired.cpu);
        let come = fired.time.min(to);
        for at in cpu.between(from, come) {
            let is_short = at.to - at.from < WAY_NS;
            let (cause, who) = match at.handler {
                Some(_) if is_short => (Cause::Way, String::new()),
                Some(handler) => (Cause::Interrupt, handler.to_owned()),
                None => late_interrupt(&at, &cpu, is_short),
            };
            self.add(cause, who, at.to - at.from);
        }
        let left = to - come.max(from).min(to);
        let cause = if left < WAY_NS {
            Cause::Way
        } else {
            Cause::Outside
        };
        self.add(cause, String::new(), left);
    }
}

/// What took a stretch of the thread's time; `running` if it was the thread itself.
fn of_stretch(doing: &Doing, at: &At<'_>, cpu: &Cpu<'_, '_>, running: Cause) -> (Cause, String) {
    let is_short = at.to - at.from < WAY_NS;
    let nobody = String::new();
    match (doing.state, at.handler) {
        (State::Stuck, _) if doing.fault => (Cause::PageFault, nobody),
        (State::Stuck, _) => (Cause::Stuck, nobody),
        (_, Some(_)) if is_short => (Cause::Way, nobody),
        (_, Some(handler)) => (Cause::Interrupt, handler.to_owned()),
        (State::Asleep, None) => late_interrupt(at, cpu, is_short),
        (State::Ready { taken }, None) => ready(doing, at, taken, is_short),
        (State::Running, None) if doing.fault => (Cause::PageFault, nobody),
        (State::Running, None) if is_short && running == Cause::Outside => (Cause::Way, nobody),
        (State::Running, None) => (running, nobody),
    }
}

/// An interrupt was due, and did not come: what it found when it came tells why.
fn late_interrupt(at: &At<'_>, cpu: &Cpu<'_, '_>, is_short: bool) -> (Cause, String) {
    if is_short {
        return (Cause::Way, String::new());
    }
    match cpu.interrupted(at.to) {
        Interrupted::Open => (Cause::Outside, String::new()),
        Interrupted::Kernel {
            function,
            task,
            pid,
        } => (Cause::InterruptsOff, format!("{function}, in {task}-{pid}")),
        Interrupted::Unknown if at.pid == 0 => (Cause::Outside, String::new()),
        Interrupted::Unknown => (Cause::Unknown, format!("{}-{}", at.task, at.pid)),
    }
}

/// The thread could have run: who had the CPU?
fn ready(doing: &Doing, at: &At<'_>, taken: bool, is_short: bool) -> (Cause, String) {
    let who = || {
        let priority = at.priority.map(priority);
        let priority = priority.map_or(String::new(), |priority| format!(", {priority}"));
        format!("{}-{}{priority}", at.task, at.pid)
    };
    let comes_after = match (at.priority, doing.priority) {
        (Some(its), Some(mine)) => its > mine || at.pid == 0,
        _ => at.pid == 0,
    };
    match comes_after {
        true if taken => (
            Cause::Throttled,
            if at.pid == 0 { String::new() } else { who() },
        ),
        // It takes the CPU a moment to notice.
        _ if is_short && comes_after => (Cause::Way, String::new()),
        true if at.pid == 0 => (Cause::Outside, String::new()),
        _ => (Cause::Task, who()),
    }
}

/// A priority of the kernel's scale, in the words of this program.
fn priority(kernel: i64) -> String {
    match kernel {
        i64::MIN..=-1 => "deadline".to_owned(),
        0..=98 => format!("fifo:{}", 99 - kernel),
        _ => "other".to_owned(),
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Outside => "the CPU stood still (its host, firmware or idle state)",
            Cause::InterruptsOff => "interrupts off",
            Cause::Interrupt => "an interrupt's handler",
            Cause::Task => "another task",
            Cause::Throttled => "throttled: the CPU was given to others",
            Cause::PageFault => "a page fault",
            Cause::Stuck => "stuck in the kernel",
            Cause::Own => "its own work for the row before",
            Cause::Way => "the way from the timer to the thread",
            Cause::Waiting => "waiting for the next trigger",
            Cause::Unknown => "not known",
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if !self.who.is_empty() {
            write!(f, " ({})", self.who)?;
        }
        write!(f, " {}", show_ns(self.ns as f64))
    }
}

#[cfg(test)]
mod tests;
