// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel and its programs do by themselves, now and then.

use super::system::System;
use super::{Finding, Intent, Verdict};

/// Seconds; each CPU has its turn once in so many.
const RARELY: u64 = 10;

pub fn timer_migration(system: &System, _: &Intent) -> Verdict {
    const FILE: &str = "/proc/sys/kernel/timer_migration";
    if !system.is_there(FILE)? {
        return Ok(Finding::ok("this kernel leaves timers where they are"));
    }
    let value: u32 = system.number(FILE)?;
    Ok(Finding::ok_if(
        value == 0,
        format!("kernel.timer_migration is {value}"),
        "sysctl -w kernel.timer_migration=0",
    ))
}

pub fn watchdogs(system: &System, _: &Intent) -> Verdict {
    let mut seen = Vec::new();
    for name in ["watchdog", "nmi_watchdog"] {
        let file = format!("/proc/sys/kernel/{name}");
        if system.is_there(&file)? {
            seen.push((name, system.number::<u32>(&file)?));
        }
    }
    let on: Vec<&str> = seen
        .iter()
        .filter(|(_, value)| *value != 0)
        .map(|(name, _)| *name)
        .collect();
    Ok(match on.is_empty() {
        true => Finding::ok("none is on"),
        false => Finding::advice(
            format!("on: {}", on.join(", ")),
            "sysctl -w kernel.nmi_watchdog=0 kernel.watchdog=0",
        ),
    })
}

pub fn statistics(system: &System, _: &Intent) -> Verdict {
    let seconds: u64 = system.number("/proc/sys/vm/stat_interval")?;
    Ok(Finding::ok_if(
        seconds >= RARELY,
        format!("vm.stat_interval is {seconds} s"),
        "sysctl -w vm.stat_interval=120",
    ))
}

pub fn irqbalance(system: &System, _: &Intent) -> Verdict {
    let tasks = system.tasks()?;
    let running = tasks.iter().find(|task| task.name == "irqbalance");
    Ok(match running {
        None => Finding::ok("it is not running"),
        Some(task) => Finding::advice(
            format!("it is running (process {})", task.id),
            "systemctl disable --now irqbalance",
        ),
    })
}
