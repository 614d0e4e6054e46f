// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events from the kernel's text of them. A line is
//!
//! ```text
//!           <idle>-0       [001] d..2.    11.548127: sched_waking: comm=strobe-run pid=99 prio=39 target_cpu=001
//! ```
//!
//! with the task, its number, the CPU, flags, the time in seconds, the name and the details. A task may call itself
//! anything, so nothing is taken for the one before all that follows it fits.

/// The name of an event that holds functions.
const STACK: &str = "<stack trace>";
/// What begins the line of a function.
const FUNCTION: &str = " => ";

/// An event that the kernel has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// The task that the CPU was at; of one that is long gone, `<...>`.
    pub task: &'a str,
    /// Its number, that of the thread; 0 if the CPU was idle.
    pub pid: u32,
    /// The CPU.
    pub cpu: u32,
    /// When, ns, on the clock of the instance. The kernel's text has whole microseconds.
    pub time: u64,
    /// Its name, without that of its system; `sys_read` for the begin and the end of that system call.
    pub name: &'a str,
    /// What it says: mostly `key=value` words. Of a system call `(fd: 3, ...)` as it begins, `-> 0x8` as it ends.
    pub details: &'a str,
    /// Functions that the CPU was in, innermost first, if it was asked for them.
    pub stack: Vec<&'a str>,
    /// All of its lines.
    pub text: &'a str,
}

/// The events of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace<'a> {
    /// In the order of their times.
    pub events: Vec<Event<'a>>,
    /// Events that the kernel had no room for, and says so.
    pub lost: u64,
    /// Lines that are no event.
    pub damaged: u64,
}

impl<'a> Event<'a> {
    /// The value of `key` among the details: up to the next blank.
    pub fn word(&self, key: &str) -> Option<&'a str> {
        let rest = self.after(key)?;
        rest.split_ascii_whitespace().next()
    }

    /// The same as a number.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.word(key)?.parse().ok()
    }

    /// The value of a key that may have blanks in it, such as the name of a task: up to the key that follows it.
    pub fn between(&self, key: &str, next: &str) -> Option<&'a str> {
        let start = self.details.find(&format!("{key}="))? + key.len() + 1;
        let rest = self.details.get(start..)?;
        let end = rest.rfind(&format!(" {next}="))?;
        rest.get(..end)
    }

    /// What follows `key=`. The last one counts: names, in which anything may stand, come before numbers.
    fn after(&self, key: &str) -> Option<&'a str> {
        let is_key = |at: usize| {
            let before = self.details.get(..at).unwrap_or_default();
            before.is_empty() || before.ends_with(' ')
        };
        let mut found = self.details.rmatch_indices(key);
        found.find_map(|(at, _)| {
            let rest = self.details.get(at + key.len()..)?.strip_prefix('=')?;
            is_key(at).then_some(rest)
        })
    }
}

impl<'a> Trace<'a> {
    /// What a text of the kernel's says.
    pub fn parse(text: &'a str) -> Trace<'a> {
        let mut trace = Trace::default();
        let mut begin = 0;
        for line in text.split_inclusive('\n') {
            let end = begin + line.len();
            trace.line(text, begin, end);
            begin = end;
        }
        // That of a CPU is sorted; where several meet, the kernel may be a little off.
        trace.events.sort_by_key(|event| event.time);
        trace
    }

    fn line(&mut self, text: &'a str, begin: usize, end: usize) {
        let line = text.get(begin..end).unwrap_or_default();
        let line = line.trim_end_matches('\n');
        if line.trim().is_empty() || line.starts_with('#') {
            return;
        }
        if let Some(function) = line.strip_prefix(FUNCTION) {
            match self.events.last_mut() {
                Some(event) if event.name == STACK => {
                    event.stack.push(function.trim());
                    event.text = grown(text, event.text, end);
                }
                _ => self.damaged += 1,
            }
        } else if let Some(event) = event(line) {
            self.events.push(event);
        } else if let Some(count) = lost(line) {
            self.lost += count;
        } else {
            self.damaged += 1;
        }
    }

    /// The functions that each event was recorded with, at the event itself, which comes just before them.
    #[must_use]
    pub fn with_stacks(mut self) -> Trace<'a> {
        let mut events: Vec<Event<'a>> = Vec::with_capacity(self.events.len());
        for event in self.events {
            let of = events.iter_mut().rev().find(|last| last.cpu == event.cpu);
            match of {
                Some(last) if event.name == STACK && last.stack.is_empty() => {
                    last.stack = event.stack;
                }
                _ => events.push(event),
            }
        }
        self.events = events;
        self
    }
}

/// `part` of `text`, up to `end`.
fn grown<'a>(text: &'a str, part: &'a str, end: usize) -> &'a str {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    text.get(start..end).unwrap_or(part).trim_end_matches('\n')
}

/// `CPU:1 [LOST 12 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("CPU:")?.split_once(" [LOST ")?;
    rest.strip_suffix(" EVENTS]")?.trim().parse().ok()
}

/// The event of a line. The first bracket around which everything fits is that of the CPU.
fn event(line: &str) -> Option<Event<'_>> {
    line.match_indices(" [")
        .find_map(|(at, _)| event_at(line, at))
}

fn event_at(line: &str, bracket: usize) -> Option<Event<'_>> {
    let (task, pid) = line.get(..bracket)?.trim_end().rsplit_once('-')?;
    let (cpu, rest) = line.get(bracket + 2..)?.split_once("] ")?;
    let (_flags, rest) = rest.trim_start().split_once(' ')?;
    let (time, said) = rest.split_once(": ")?;
    let (name, details) = named(said)?;
    Some(Event {
        task: task.trim_start(),
        pid: pid.parse().ok()?,
        cpu: cpu.trim().parse().ok()?,
        time: nanoseconds(time.trim())?,
        name,
        details,
        stack: Vec::new(),
        text: line,
    })
}

/// `11.548127`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let fraction: u64 = fraction.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(fraction * scale)
}

/// The name of an event, and what it says. System calls have a form of their own: no colon.
fn named(said: &str) -> Option<(&str, &str)> {
    if said.starts_with(STACK) {
        return Some((STACK, ""));
    }
    let end = said.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, rest) = said.split_at_checked(end)?;
    match rest.strip_prefix(": ").or_else(|| rest.strip_prefix(':')) {
        _ if name.is_empty() => None,
        Some(details) => Some((name, details)),
        None if name.starts_with("sys_") && (rest.starts_with('(') || rest.starts_with(" -> ")) => {
            Some((name, rest.trim_start()))
        }
        None => None,
    }
}
