// SPDX-License-Identifier: MIT OR Apache-2.0
//! What saves power, and costs time.

use super::cpus::Cpus;
use super::system::{System, Unknown, not_understood};
use super::{Finding, Intent, Verdict};

const CPU: &str = "/sys/devices/system/cpu";
/// A CPU that wakes within this is awake enough, us.
const WAKE_US: u64 = 10;

/// The deepest state that a CPU may be in, and what it takes to wake from it.
pub fn idle_states(system: &System, intent: &Intent) -> Verdict {
    let driver_file = format!("{CPU}/cpuidle/current_driver");
    let driver = system.text(&driver_file)?;
    if driver == "none" {
        return match system
            .command_line()?
            .iter()
            .any(|word| word == "idle=poll")
        {
            true => Ok(Finding::ok("idle=poll: a CPU never sleeps")),
            false => Err(Unknown(format!(
                "{driver_file} is none: the kernel does not say how long a CPU takes to wake"
            ))),
        };
    }
    if driver == "haltpoll" {
        let file = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
        let ns: u64 = system.number(file)?;
        return Ok(Finding::ok_if(
            ns > 0,
            format!("haltpoll: an idle CPU polls for {ns} ns before the hypervisor takes it"),
            format!("echo 200000 > {file} (as root)"),
        ));
    }
    // What somebody holds now, such as another run; who may not look sees none.
    let held = system.bytes("/dev/cpu_dma_latency").ok();
    let held = held.and_then(|bytes| Some(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)));
    let held = held.and_then(|us| u64::try_from(us).ok());
    let mut deepest: (u64, String) = (0, "none".to_owned());
    for cpu in system.cpus_of(intent)?.iter() {
        let place = format!("{CPU}/cpu{cpu}/cpuidle");
        let states = system.list(&place)?;
        if !states.iter().any(|state| state.starts_with("state")) {
            return Err(Unknown(format!("{place} has no states")));
        }
        for state in states.iter().filter(|state| state.starts_with("state")) {
            let us: u64 = system.number(&format!("{place}/{state}/latency"))?;
            let is_off = system.number::<u64>(&format!("{place}/{state}/disable"))? != 0;
            let name = system.text(&format!("{place}/{state}/name"))?;
            if !is_off && held.is_none_or(|held| us <= held) && us >= deepest.0 {
                deepest = (us, name);
            }
        }
    }
    let (us, name) = deepest;
    let held = held.map_or(String::new(), |us| {
        format!("; /dev/cpu_dma_latency is {us} us")
    });
    let evidence =
        format!("{driver}: an idle CPU may be in {name}, and wakes within {us} us{held}");
    if us <= WAKE_US {
        return Ok(Finding::ok(evidence));
    }
    // It is tried: that is what each run does, unless it is told not to.
    let awake = system.trial().awake();
    Ok(Finding::ok_if(
        awake.ok,
        match awake.ok {
            true => format!("{evidence}; during a run: {}", awake.got),
            false => format!("{evidence}; {}", awake.got),
        },
        "chgrp strobe /dev/cpu_dma_latency && chmod 660 /dev/cpu_dma_latency (as root; the udev rule of dist/install does \
         it at each boot): a run then keeps all CPUs from sleeping deeply",
    ))
}

pub fn governor(system: &System, intent: &Intent) -> Verdict {
    let mut seen = Vec::new();
    for cpu in system.cpus_of(intent)?.iter() {
        let file = format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
        let governor = system.text(&file)?;
        if !governor.bytes().all(|byte| byte.is_ascii_lowercase()) || governor.is_empty() {
            return Err(not_understood(&file, &governor));
        }
        seen.push((file, governor));
    }
    let slow: Vec<&(String, String)> = seen
        .iter()
        .filter(|(_, governor)| governor != "performance")
        .collect();
    Ok(match slow.first() {
        None => Finding::ok("scaling_governor is performance"),
        Some((_, governor)) => {
            let each = slow
                .iter()
                .map(|(file, _)| format!("echo performance > {file}"));
            let remedy = each.collect::<Vec<_>>().join("; ");
            Finding::advice(
                format!("scaling_governor is {governor}"),
                format!("{remedy} (as root)"),
            )
        }
    })
}

/// Whether the CPU has its core for itself, as far as this machine knows.
pub fn smt(system: &System, intent: &Intent) -> Verdict {
    let active: u8 = system.number(&format!("{CPU}/smt/active"))?;
    match active {
        0 => {
            return Ok(Finding::ok(
                "smt/active is 0: each core is one CPU, as far as this machine can tell",
            ));
        }
        1 => {}
        other => {
            return Err(not_understood(
                &format!("{CPU}/smt/active"),
                &other.to_string(),
            ));
        }
    }
    let mut siblings = Vec::new();
    for cpu in system.cpus_of(intent)?.iter() {
        let all = system.cpus(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"))?;
        if !all.has(cpu) {
            return Err(Unknown(format!(
                "CPU {cpu} is not among the CPUs of its own core"
            )));
        }
        siblings.extend(
            all.without(&Cpus::one(cpu))
                .iter()
                .map(|other| (cpu, other)),
        );
    }
    Ok(match siblings.first() {
        None => Finding::ok("no other CPU of its core is online"),
        Some((cpu, other)) => Finding::advice(
            format!("CPU {cpu} shares its core with CPU {other}"),
            match intent.cpu {
                Some(_) => format!("echo 0 > {CPU}/cpu{other}/online (as root)"),
                None => format!("echo off > {CPU}/smt/control (as root)"),
            },
        ),
    })
}

pub fn turbo(system: &System, _: &Intent) -> Verdict {
    // One driver says that it is off, the others that it is on.
    let files = [("intel_pstate/no_turbo", 1), ("cpufreq/boost", 0)];
    let mut why = Unknown::new("no file says so");
    for (name, off) in files {
        let file = format!("{CPU}/{name}");
        let value: u8 = match system.number(&file) {
            Ok(value) => value,
            Err(unknown) => {
                why = unknown;
                continue;
            }
        };
        if value > 1 {
            return Err(not_understood(&file, &value.to_string()));
        }
        return Ok(Finding::ok_if(
            value == off,
            format!("{name} is {value}"),
            format!("echo {off} > {file} (as root)"),
        ));
    }
    Err(why)
}
