// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to stretches of time: what a thread was doing, and what a CPU was at.

use super::{Event, Trace};

/// What a thread was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It slept until something comes, as it does when it waits for its event.
    Asleep,
    /// It could not even be woken by a signal: it waited for a page, or for a device.
    Stuck,
    /// It could have run, and had no CPU; whether that was taken from it, instead of not being given yet.
    Ready { taken: bool },
    /// It ran.
    Running,
}

/// A stretch of a thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doing {
    pub from: u64,
    pub to: u64,
    pub state: State,
    /// Where it ran, or what brought it to the next stretch.
    pub cpu: u32,
    /// It has touched a page that was not there, and has not slept for its event since.
    pub fault: bool,
    /// Its priority in the kernel's scale, where less comes first; if that was said.
    pub priority: Option<i64>,
}

/// Until when the trace tells anything: a stretch that has begun goes on, but not for longer than anybody has looked.
fn end_of(trace: &Trace<'_>) -> u64 {
    trace.events.last().map_or(0, |last| last.time)
}

/// What `thread` was doing, for as long as the trace knows of it, until `end`.
pub fn of_thread(trace: &Trace<'_>, thread: u32, end: u64) -> Vec<Doing> {
    let end = end.min(end_of(trace));
    let me = Some(i64::from(thread));
    let mut done: Vec<Doing> = Vec::new();
    let mut now: Option<Doing> = None;
    for event in trace.events.iter().take_while(|event| event.time <= end) {
        let is = |key: &str| event.number(key) == me;
        let (state, cpu, priority) = match event.name {
            "sched_switch" if is("next_pid") => {
                (State::Running, event.cpu, event.number("next_prio"))
            }
            "sched_switch" if is("prev_pid") => {
                let state = match event
                    .word("prev_state")
                    .and_then(|state| state.bytes().next())
                {
                    Some(b'R') => State::Ready { taken: true },
                    Some(b'D') => State::Stuck,
                    _ => State::Asleep,
                };
                (state, event.cpu, event.number("prev_prio"))
            }
            "sched_waking" if is("pid") => {
                // One that is woken before it sleeps goes on running.
                if now.is_some_and(|now| !matches!(now.state, State::Asleep | State::Stuck)) {
                    continue;
                }
                // Who has come to wake it is where the time until then was spent.
                if let Some(now) = &mut now {
                    now.cpu = event.cpu;
                }
                let cpu = event
                    .number("target_cpu")
                    .and_then(|cpu| u32::try_from(cpu).ok());
                (
                    State::Ready { taken: false },
                    cpu.unwrap_or(event.cpu),
                    event.number("prio"),
                )
            }
            "page_fault_user" | "page_fault_kernel" if event.pid == thread => {
                (State::Running, event.cpu, None)
            }
            _ => continue,
        };
        let before = now;
        let fault = match event.name {
            "page_fault_user" | "page_fault_kernel" => true,
            _ => state != State::Asleep && before.is_some_and(|before| before.fault),
        };
        if let Some(mut before) = now.take() {
            before.to = event.time;
            if matches!(before.state, State::Ready { .. }) && state == State::Running {
                before.cpu = event.cpu;
            }
            done.push(before);
        }
        now = Some(Doing {
            from: event.time,
            to: end,
            state,
            cpu,
            fault,
            priority: priority.or(before.and_then(|before| before.priority)),
        });
    }
    done.extend(now);
    done
}

/// A stretch of a CPU's time, from one of its events to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At<'a> {
    pub from: u64,
    pub to: u64,
    /// The task it was at.
    pub task: &'a str,
    /// 0: it was idle.
    pub pid: u32,
    /// Priority of that task, if a switch to it was seen.
    pub priority: Option<i64>,
    /// What it did instead: the handler of an interrupt.
    pub handler: Option<&'a str>,
}

/// What a CPU was at.
pub struct Cpu<'t, 'a> {
    pub at: Vec<At<'a>>,
    events: Vec<&'t Event<'a>>,
}

/// Of what the CPU was doing when the timer's interrupt came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted<'a> {
    /// Nothing, or code of a program: there interrupts are never off.
    Open,
    /// The kernel's code: this function, for that task.
    Kernel {
        function: &'a str,
        task: &'a str,
        pid: u32,
    },
    /// The trace does not say.
    Unknown,
}

impl<'t, 'a> Cpu<'t, 'a> {
    pub fn of(trace: &'t Trace<'a>, cpu: u32) -> Cpu<'t, 'a> {
        let events: Vec<&Event<'_>> = trace
            .events
            .iter()
            .filter(|event| event.cpu == cpu)
            .collect();
        let end = end_of(trace);
        let mut handlers: Vec<(&str, &str)> = Vec::new();
        let mut priority = None;
        let mut at = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let (mut task, mut pid) = (event.task, event.pid);
            if event.name == "sched_switch" {
                task = event.between("next_comm", "next_pid").unwrap_or(task);
                let next = event
                    .number("next_pid")
                    .and_then(|pid| u32::try_from(pid).ok());
                pid = next.unwrap_or(pid);
                priority = event.number("next_prio");
                handlers.clear();
            } else if let Some(kind) = event.name.strip_suffix("_entry") {
                handlers.push((kind, handler(event).unwrap_or(kind)));
            } else if let Some(kind) = event.name.strip_suffix("_exit") {
                // What was entered within it has been left as well.
                if let Some(depth) = handlers.iter().rposition(|(entered, _)| *entered == kind) {
                    handlers.truncate(depth);
                }
            }
            let to = events.get(index + 1).map_or(end, |next| next.time);
            let handler = handlers.last().map(|(_, name)| *name);
            at.push(At {
                from: event.time,
                to,
                task,
                pid,
                priority,
                handler,
            });
        }
        Cpu { at, events }
    }

    /// Its stretches between these times, cut to them.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = At<'a>> + '_ {
        let cut = move |at: &At<'a>| At {
            from: at.from.max(from),
            to: at.to.min(to),
            ..*at
        };
        self.at.iter().map(cut).filter(|at| at.from < at.to)
    }

    /// What the first interrupt of the timer at `time` or later has found. It says so when it has done its work, with the
    /// functions that the CPU is in; the last ones of the way into an interrupt are called `asm_...`.
    pub fn interrupted(&self, time: u64) -> Interrupted<'a> {
        let mut later = self.events.iter().filter(|event| event.time >= time);
        let Some(exit) = later.find(|event| event.name == "local_timer_exit") else {
            return Interrupted::Unknown;
        };
        if exit.pid == 0 {
            return Interrupted::Open;
        }
        let Some(entry) = exit
            .stack
            .iter()
            .position(|function| function.starts_with("asm_"))
        else {
            return Interrupted::Unknown;
        };
        match exit.stack.get(entry + 1) {
            None => Interrupted::Open,
            Some(function) => Interrupted::Kernel {
                function,
                task: exit.task,
                pid: exit.pid,
            },
        }
    }
}

/// What a handler is called, by the event of its begin.
fn handler<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event.name {
        "irq_handler_entry" => event.word("name"),
        "softirq_entry" => event
            .word("[action")
            .map(|action| action.trim_end_matches(']')),
        _ => event.word("function").or_else(|| event.word("func")),
    }
}
