// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel does with pages behind the back of who uses them.

use super::system::{System, not_understood};
use super::{Finding, Intent, Verdict};

const PLACE: &str = "/sys/kernel/mm";

/// A PREEMPT_RT kernel has none.
pub fn huge_pages(system: &System, _: &Intent) -> Verdict {
    if !system.is_there(&format!("{PLACE}/transparent_hugepage"))? {
        return Ok(Finding::ok("this kernel has no transparent huge pages"));
    }
    let file = format!("{PLACE}/transparent_hugepage/enabled");
    let chosen = system.chosen(&file)?;
    match chosen.as_str() {
        "never" | "madvise" | "always" => Ok(Finding::ok_if(
            chosen != "always",
            format!("transparent_hugepage/enabled is {chosen}"),
            format!("echo madvise > {file} (as root)"),
        )),
        other => Err(not_understood(&file, other)),
    }
}

pub fn page_merging(system: &System, _: &Intent) -> Verdict {
    if !system.is_there(&format!("{PLACE}/ksm"))? {
        return Ok(Finding::ok("this kernel merges no pages (KSM)"));
    }
    let file = format!("{PLACE}/ksm/run");
    let run: u8 = system.number(&file)?;
    // 2 takes apart what was merged, and is off then.
    match run {
        0..=2 => Ok(Finding::ok_if(
            run != 1,
            format!("ksm/run is {run}"),
            format!("echo 0 > {file} (as root)"),
        )),
        other => Err(not_understood(&file, &other.to_string())),
    }
}

pub fn numa_balancing(system: &System, _: &Intent) -> Verdict {
    const FILE: &str = "/proc/sys/kernel/numa_balancing";
    if !system.is_there(FILE)? {
        return Ok(Finding::ok("this kernel moves no pages between nodes"));
    }
    let value: u32 = system.number(FILE)?;
    Ok(Finding::ok_if(
        value == 0,
        format!("kernel.numa_balancing is {value}"),
        "sysctl -w kernel.numa_balancing=0",
    ))
}

pub fn swap(system: &System, _: &Intent) -> Verdict {
    let kib = system.kib("/proc/meminfo", "SwapTotal")?;
    Ok(Finding::ok_if(
        kib == 0,
        match kib {
            0 => "there is no swap".to_owned(),
            kib => format!(
                "{kib} KiB of swap: a run locks its own memory, but other programs may wait for the disk"
            ),
        },
        "swapoff -a (as root)",
    ))
}
