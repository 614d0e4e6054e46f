// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as it is now.

use super::system::{System, Unknown, not_understood};
use super::{Finding, Intent, Verdict};

/// Busy CPUs that are nobody's business.
const BUSY_MAX: f64 = 0.1;
/// Ticks of /proc/stat in a second.
const TICKS: f64 = 100.0;

/// The CPU says it by a flag, on x86; elsewhere nothing says that there is none.
pub fn virtual_machine(system: &System, _: &Intent) -> Verdict {
    let flags = system.field("/proc/cpuinfo", "flags");
    let is_virtual = match &flags {
        Ok(flags) => flags.split_whitespace().any(|flag| flag == "hypervisor"),
        Err(unknown) => match system.text("/sys/hypervisor/type") {
            Ok(_) => true,
            Err(_) => return Err(unknown.clone()),
        },
    };
    // A line of flags has many of them; one without is not one.
    if !is_virtual && !flags.is_ok_and(|flags| flags.split_whitespace().any(|flag| flag == "fpu")) {
        return Err(Unknown::new(
            "the flags of /proc/cpuinfo are not understood",
        ));
    }
    if !is_virtual {
        return Ok(Finding::ok("the CPU reports no hypervisor"));
    }
    let stolen = system.stat().ok().and_then(|(before, after, seconds)| {
        let (before, after) = (Ticks::of(before)?, Ticks::of(after)?);
        Some(after.stolen.saturating_sub(before.stolen) as f64 / TICKS / seconds * 100.0)
    });
    let stolen = stolen.map_or(String::new(), |percent| {
        format!("; {percent:.1} % of a CPU was stolen just now")
    });
    Ok(Finding::advice(
        format!(
            "this is a virtual machine, and the hypervisor causes the greatest lateness{stolen}"
        ),
        "measure on a physical machine; or give each virtual CPU a host CPU of its own (virsh vcpupin)",
    ))
}

/// What was done while the machine was watched, by all but those who sleep.
pub fn load(system: &System, _: &Intent) -> Verdict {
    let (before, after, seconds) = system.stat()?;
    let parsed = |text: &str| Ticks::of(text).ok_or_else(|| not_understood("/proc/stat", text));
    let (first, last) = (parsed(before)?, parsed(after)?);
    let busy = last.busy.saturating_sub(first.busy) as f64 / TICKS / seconds;
    let seen = format!(
        "{busy:.2} of {} CPUs were busy during {seconds:.1} s in which this program slept",
        last.cpus
    );
    Ok(Finding::ok_if(
        busy < BUSY_MAX,
        seen,
        "top -b -n 1 | head -20 shows the programs: let them end, or move them to other CPUs (taskset)",
    ))
}

/// Of all CPUs together, in 1/100 s.
struct Ticks {
    busy: u64,
    stolen: u64,
    cpus: usize,
}

impl Ticks {
    /// By the first line: user, nice, system, idle, iowait, irq, softirq, steal.
    fn of(stat: &str) -> Option<Ticks> {
        let mut words = stat.lines().next()?.split_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let at = |index: usize| numbers.get(index).copied();
        let busy = [at(0)?, at(1)?, at(2)?, at(5)?, at(6)?];
        Some(Ticks {
            busy: busy
                .iter()
                .fold(0, |sum: u64, part| sum.saturating_add(*part)),
            stolen: at(7)?,
            cpus: stat
                .lines()
                .skip(1)
                .filter(|line| line.starts_with("cpu"))
                .count(),
        })
    }
}

/// Whether the kernel's events are to be had.
pub fn tracing(system: &System, _: &Intent) -> Verdict {
    const PLACE: &str = "/sys/kernel/tracing";
    const NEEDED: [&str; 3] = [
        "sched:sched_switch",
        "sched:sched_waking",
        "irq:irq_handler_entry",
    ];
    let mount = format!("mount -t tracefs nodev {PLACE} (as root)");
    match system.list(PLACE) {
        Ok(names) if names.is_empty() => {
            return Ok(Finding::advice(format!("{PLACE} is empty"), mount));
        }
        Ok(_) => {}
        Err(unknown) => return Err(unknown),
    }
    let events = system.text(&format!("{PLACE}/available_events"))?;
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|event| !events.lines().any(|line| line == *event))
        .collect();
    match missing.is_empty() {
        true => Ok(Finding::ok(format!(
            "{} events in {PLACE}",
            events.lines().count()
        ))),
        false if !events.lines().any(|line| line.contains(':')) => {
            Err(not_understood("available_events", &events))
        }
        false => Ok(Finding::advice(
            format!("{PLACE} lacks {}", missing.join(", ")),
            "use a kernel with CONFIG_FTRACE, such as Debian's",
        )),
    }
}
