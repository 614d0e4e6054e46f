// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU that makes the rows: whether it is left alone.

use super::cpus::Cpus;
use super::system::{System, Unknown, boot_with, not_understood, some_of};
use super::task::Task;
use super::{Finding, Intent, Verdict};

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const NOHZ: &str = "/sys/devices/system/cpu/nohz_full";
/// Thread priorities beyond this watch over the machine.
const PRIORITY_MAX: u32 = 89;

/// The words that make a CPU free of what need not be there, of those that the kernel knows.
fn isolating(cpu: usize, others: &Cpus, has_nohz: bool) -> String {
    let ticks = match has_nohz {
        true => format!("nohz_full={cpu} rcu_nocbs={cpu} "),
        false => String::new(),
    };
    boot_with(&format!(
        "isolcpus=managed_irq,domain,{cpu} {ticks}irqaffinity={others}"
    ))
}

/// The CPU that is advised: the one asked for, or the last one, which has the least to do of itself.
fn advised(cpus: &Cpus) -> usize {
    cpus.iter().next_back().unwrap_or(0)
}

pub fn isolation(system: &System, intent: &Intent) -> Verdict {
    const AFFINITY: &str = "/proc/irq/default_smp_affinity";
    let cpus = system.cpus_of(intent)?;
    let online = system.cpus(ONLINE)?;
    if !cpus.are_within(&online) {
        return Err(Unknown(format!(
            "CPU {cpus} is not online: {ONLINE} has {online}"
        )));
    }
    let cpu = advised(&cpus);
    let others = online.without(&Cpus::one(cpu));
    if others.is_empty() {
        return Ok(Finding::advice(
            "this machine has one CPU, which does everything",
            "use a machine with two CPUs or more",
        ));
    }
    let isolated = system.cpus(ISOLATED)?;
    let words = system.command_line()?;
    let mut missing = Vec::new();
    if !cpus.are_within(&isolated) {
        missing.push("isolcpus");
    }
    let nohz = match system.is_there(NOHZ)? {
        true => Some(system.cpus(NOHZ)?),
        false => None,
    };
    // nohz_full takes RCU's work away as well.
    if nohz.as_ref().is_some_and(|nohz| !cpus.are_within(nohz)) {
        missing.push("nohz_full");
        let offloaded = words
            .iter()
            .find_map(|word| word.strip_prefix("rcu_nocbs="));
        if !offloaded
            .and_then(Cpus::of_list)
            .is_some_and(|set| cpus.are_within(&set))
        {
            missing.push("rcu_nocbs");
        }
    }
    let mask = system.text(AFFINITY)?;
    if Cpus::of_mask(&mask)
        .ok_or_else(|| not_understood(AFFINITY, &mask))?
        .meet(&cpus)
    {
        missing.push("irqaffinity");
    }
    let without = match &nohz {
        Some(_) => "",
        None => "; this kernel has no nohz_full",
    };
    Ok(match missing.is_empty() {
        true => Finding::ok(format!(
            "CPU {cpus} is isolated, and new interrupts go elsewhere{without}"
        )),
        false => Finding::advice(
            format!(
                "CPU {cpus} is shared with other work; missing: {}{without}",
                missing.join(", ")
            ),
            isolating(cpu, &others, nohz.is_some()),
        ),
    })
}

/// Threads that go before the one that makes rows. The kernel's migration threads are not counted: they do nothing but
/// move others.
pub fn rt_tasks(system: &System, intent: &Intent) -> Verdict {
    let cpus = system.cpus_of(intent)?;
    let priority = u32::from(intent.priority);
    let tasks = system.tasks()?;
    let is_counted = |task: &&Task| {
        task.priority > 0
            && !task.name.starts_with("migration/")
            && !task.name.starts_with("irq/")
            && task.cpus.meet(&cpus)
    };
    let there: Vec<&Task> = tasks.iter().filter(is_counted).collect();
    let above: Vec<&Task> = there
        .iter()
        .copied()
        .filter(|task| task.priority >= priority)
        .collect();
    if priority > PRIORITY_MAX {
        return Ok(Finding::advice(
            format!("priority {priority} is in the range of the kernel's watchdog threads"),
            "priority 60 (51 to 89)",
        ));
    }
    let Some(first) = above.iter().max_by_key(|task| task.priority) else {
        return Ok(Finding::ok(format!(
            "none of the {} real-time threads on CPU {cpus} has priority {priority} or more",
            there.len()
        )));
    };
    let words: Vec<String> = above.iter().map(|task| task.words()).collect();
    let seen = format!(
        "at priority {priority} or above on CPU {cpus}: {}",
        some_of(&words)
    );
    Ok(Finding::advice(
        seen,
        match first.priority {
            below if below < PRIORITY_MAX => format!("priority {}", below + 1),
            _ => {
                let online = system.cpus(ONLINE)?;
                match online.without(&cpus) {
                    none if none.is_empty() => format!(
                        "chrt -f -p {} {}",
                        priority.saturating_sub(1).max(1),
                        first.id
                    ),
                    others => format!("taskset -p -c {others} {} (as root)", first.id),
                }
            }
        },
    ))
}

/// Only for a run that never sleeps.
pub fn spinning(system: &System, intent: &Intent) -> Verdict {
    let cpus = system.cpus_of(intent)?;
    let isolated = system.cpus(ISOLATED)?;
    if cpus.are_within(&isolated) {
        return Ok(Finding::ok(format!(
            "CPU {cpus} is isolated, so little else needs it"
        )));
    }
    let cpu = advised(&cpus);
    let (online, has_nohz) = (system.cpus(ONLINE)?, system.is_there(NOHZ)?);
    Ok(Finding::advice(
        format!(
            "CPU {cpus} is not isolated ({ISOLATED}: {isolated}): at fifo:{} the thread starves the interrupt threads, \
             the soft interrupts and RCU of its CPU, even those of its own device",
            intent.priority
        ),
        format!(
            "wait hybrid; or {}",
            isolating(cpu, &online.without(&Cpus::one(cpu)), has_nohz)
        ),
    ))
}
