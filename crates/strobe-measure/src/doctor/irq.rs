// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts on the CPU that makes the rows.

use std::collections::BTreeMap;

use strobe::engine::user::WaitMode;

use super::cpus::Cpus;
use super::system::{System, Unknown, not_understood, some_of};
use super::task::Task;
use super::{Finding, Intent, Verdict};

/// A device's interrupt is to come before the row it makes, and others after it. Who sleeps lets a thread through that
/// is below him; who spins never does, and waits for ever for an interrupt whose thread is.
pub fn threads(system: &System, intent: &Intent) -> Verdict {
    let cpus = system.cpus_of(intent)?;
    let priority = u32::from(intent.priority);
    let tasks = system.tasks()?;
    let is_one =
        |task: &&Task| task.name.starts_with("irq/") && task.priority > 0 && task.cpus.meet(&cpus);
    let threads: Vec<&Task> = tasks.iter().filter(is_one).collect();
    let Some(highest) = threads.iter().max_by_key(|task| task.priority) else {
        return Ok(Finding::ok(format!("CPU {cpus} has no interrupt threads")));
    };
    let words = |of: fn(u32, u32) -> bool| -> Vec<String> {
        let some = threads.iter().filter(|task| of(task.priority, priority));
        some.map(|task| task.words()).collect()
    };
    let below = words(|task, ours| task <= ours);
    if intent.wait == WaitMode::Spin && !below.is_empty() {
        return Ok(Finding::advice(
            format!(
                "a thread that spins at {priority} keeps CPU {cpus} from these: {}; if the run's event is one of them, \
                 it never comes",
                some_of(&below)
            ),
            match priority < 98 {
                true => format!(
                    "wait hybrid; or raise the thread of the run's own event: chrt -f -p {} NUMBER (as root)",
                    priority + 1
                ),
                false => "wait hybrid, with priority 60".to_owned(),
            },
        ));
    }
    let above = words(|task, ours| task >= ours);
    let seen = format!(
        "{} interrupt threads on CPU {cpus}, up to {}",
        threads.len(),
        highest.priority
    );
    Ok(match above.is_empty() || intent.wait == WaitMode::Spin {
        true => Finding::ok(format!("{seen}; the run's has {priority}")),
        false => Finding::advice(
            format!(
                "{seen}; at priority {priority} or above: {}",
                some_of(&above)
            ),
            match highest.priority {
                most @ ..=88 => format!("priority {}", most + 1),
                _ => format!("chrt -f -p 50 {} (as root)", highest.id),
            },
        ),
    })
}

/// What came to the CPU while the machine was watched.
pub fn interrupts(system: &System, intent: &Intent) -> Verdict {
    const PATH: &str = "/proc/interrupts";
    let (before, after, seconds) = system.interrupts()?;
    let foreign = || not_understood(PATH, before);
    let before = parse(before).ok_or_else(foreign)?;
    let after = parse(after).ok_or_else(foreign)?;
    let cpus = system.cpus_of(intent)?;
    let mut came: Vec<(f64, usize, &str, &str)> = Vec::new();
    for (number, (name, counts)) in &after {
        for cpu in cpus.iter() {
            let Some(now) = counts.get(&cpu) else {
                return Err(Unknown(format!("{PATH} has no CPU {cpu}")));
            };
            let then = before.get(number).and_then(|(_, counts)| counts.get(&cpu));
            let count = now.saturating_sub(then.copied().unwrap_or(0));
            if count > 0 {
                came.push((count as f64 / seconds, cpu, number, name));
            }
        }
    }
    if came.is_empty() {
        let devices = after.len();
        return Ok(Finding::ok(format!(
            "none of {devices} devices interrupted CPU {cpus} within {seconds:.1} s"
        )));
    }
    came.sort_by(|one, other| other.0.total_cmp(&one.0));
    let words: Vec<String> = came
        .iter()
        .map(|(rate, cpu, number, name)| format!("{number} {name} {rate:.0}/s on CPU {cpu}"))
        .collect();
    let seen = format!("within {seconds:.1} s: {}", some_of(&words));
    let online = system.cpus("/sys/devices/system/cpu/online")?;
    let others = online.without(&cpus);
    let quiet = cpus
        .iter()
        .rev()
        .find(|cpu| came.iter().all(|(_, busy, ..)| busy != cpu));
    let remedy = match (intent.cpu, quiet) {
        (None, Some(cpu)) => {
            format!("use CPU {cpu}")
        }
        (None, None) => {
            let cpu = cpus.iter().next_back().unwrap_or(0);
            let numbers: Vec<&str> = came
                .iter()
                .filter(|(_, at, ..)| *at == cpu)
                .map(|(_, _, number, _)| *number)
                .collect();
            moved(&numbers, &online.without(&Cpus::one(cpu)))
        }
        (Some(_), _) => {
            let numbers: Vec<&str> = came.iter().map(|(_, _, number, _)| *number).collect();
            moved(&numbers, &others)
        }
    };
    Ok(Finding::advice(seen, remedy))
}

fn moved(numbers: &[&str], others: &Cpus) -> String {
    if others.is_empty() {
        return "there is no other CPU for them".to_owned();
    }
    let each = numbers
        .iter()
        .map(|number| format!("echo {others} > /proc/irq/{number}/smp_affinity_list"));
    format!(
        "{} (as root; not the interrupt of the run's own event)",
        each.collect::<Vec<_>>().join("; ")
    )
}

/// Of each interrupt of a device: its name, and how many came to each CPU.
type Counts<'a> = BTreeMap<&'a str, (&'a str, BTreeMap<usize, u64>)>;

/// A table: its first line names the CPUs that are there. Lines that do not begin with a number are the CPUs' own.
fn parse(text: &str) -> Option<Counts<'_>> {
    let mut lines = text.lines();
    let heads = lines.next()?.split_whitespace();
    let cpus: Vec<usize> = heads
        .map(|head| head.strip_prefix("CPU")?.parse().ok())
        .collect::<Option<_>>()?;
    if cpus.is_empty() {
        return None;
    }
    let mut interrupts = BTreeMap::new();
    for line in lines {
        let (number, rest) = line.trim_start().split_once(':')?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let mut words = rest.split_whitespace();
        let mut counts = BTreeMap::new();
        for cpu in &cpus {
            counts.insert(*cpu, words.next()?.parse().ok()?);
        }
        let name = words.last().unwrap_or("?");
        interrupts.insert(number, (name, counts));
    }
    Some(interrupts)
}
