// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread of a machine.

use super::cpus::Cpus;

const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
const SCHED_DEADLINE: u32 = 6;

/// A thread that has a real-time policy, or the main one of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: u32,
    pub name: String,
    /// Real-time priority, 1 to 99; 100 for SCHED_DEADLINE, which goes before all of them; 0 for others.
    pub priority: u32,
    /// Where it may run; of those with a priority only.
    pub cpus: Cpus,
}

impl Task {
    /// A few words about it.
    pub fn words(&self) -> String {
        let (name, id) = (&self.name, self.id);
        match self.priority {
            100 => format!("{name} ({id}, deadline)"),
            priority => format!("{name} ({id}, {priority})"),
        }
    }
}

/// Name and priority, by a line as in /proc/PID/stat: the name may have blanks and brackets.
pub fn parse(stat: &str) -> Option<(String, u32)> {
    let (start, rest) = stat.rsplit_once(") ")?;
    let (_, name) = start.split_once(" (")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u32>().ok();
    let (priority, policy) = (number(40)?, number(41)?);
    let priority = match policy {
        SCHED_FIFO | SCHED_RR => priority,
        SCHED_DEADLINE => 100,
        _ => 0,
    };
    Some((name.to_owned(), priority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_is_a_name() {
        let rest =
            "S 2 0 0 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 50 1 0 0";
        let line = format!("77 (irq/24-a (b) c) {rest}");
        assert_eq!(parse(&line), Some(("irq/24-a (b) c".to_owned(), 50)));
        assert_eq!(parse("77 (short) S 2"), None);
        assert_eq!(parse(""), None);
    }
}
