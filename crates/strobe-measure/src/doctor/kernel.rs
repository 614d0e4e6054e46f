// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel: how it schedules, and how it tells the time.

use strobe::engine::user::WaitMode;

use super::system::{System, Unknown, boot_with, not_understood};
use super::{Finding, Intent, Verdict};

/// What Debian calls CPUs of this kind.
const DEBIAN_ARCH: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "amd64"
};

/// By what the kernel says of its own build: /sys/kernel/realtime may be hidden.
pub fn preemption(system: &System, _: &Intent) -> Verdict {
    const PATH: &str = "/proc/version";
    let version = system.text(PATH)?;
    if !version.starts_with("Linux version ") {
        return Err(not_understood(PATH, &version));
    }
    let is_rt = version.split_whitespace().any(|word| word == "PREEMPT_RT");
    let says_rt = system.text("/sys/kernel/realtime");
    if is_rt {
        return Ok(Finding::ok(format!("{PATH} says PREEMPT_RT")));
    }
    if says_rt.as_deref() == Ok("1") {
        return Err(Unknown::new(format!(
            "/sys/kernel/realtime is 1, but {PATH} does not say PREEMPT_RT"
        )));
    }
    // Round brackets, here.
    let modes = system
        .text("/sys/kernel/debug/sched/preempt")
        .unwrap_or_default();
    let mode = modes
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    let asked = system.command_line().unwrap_or_default();
    let asked = asked.iter().find(|word| word.starts_with("preempt="));
    let mode = match (mode, asked) {
        (Some((mode, _)), _) => format!("preempt={mode}"),
        (None, Some(word)) => word.clone(),
        (None, None) => "its preemption mode cannot be read".to_owned(),
    };
    Ok(Finding::advice(
        format!("{PATH} does not say PREEMPT_RT; {mode}"),
        format!(
            "apt install linux-image-rt-{DEBIAN_ARCH} && reboot (Debian's PREEMPT_RT kernel); or {}",
            boot_with("preempt=full")
        ),
    ))
}

/// Who sleeps between rows never comes near the limit; who spins comes to it every second.
pub fn throttling(system: &System, intent: &Intent) -> Verdict {
    let runtime: i64 = system.number("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period: i64 = system.number("/proc/sys/kernel/sched_rt_period_us")?;
    let seen = format!("sched_rt_runtime_us is {runtime} of {period}");
    if period <= 0 || runtime < -1 {
        return Err(Unknown(format!("{seen}, which makes no sense")));
    }
    if intent.wait != WaitMode::Spin {
        let is_enough = runtime == -1 || runtime.saturating_mul(10) >= period.saturating_mul(9);
        let remedy = format!("sysctl -w kernel.sched_rt_runtime_us={}", period / 100 * 95);
        return Ok(Finding::ok_if(is_enough, seen, remedy));
    }
    if runtime != -1 {
        return Ok(Finding::advice(
            format!("{seen}: a thread that spins is stopped for the rest"),
            "sysctl -w kernel.sched_rt_runtime_us=-1 (only if the CPU is isolated); or wait hybrid",
        ));
    }
    const FAIR: &str = "/sys/kernel/debug/sched/fair_server";
    if !system.is_there(FAIR)? {
        return Ok(Finding::ok(format!(
            "{seen}; this kernel has no fair server"
        )));
    }
    for cpu in system.cpus_of(intent)?.iter() {
        let file = format!("{FAIR}/cpu{cpu}/runtime");
        let ns: u64 = system.number(&file)?;
        if ns != 0 {
            return Ok(Finding::advice(
                format!(
                    "{seen}; {file} is {ns} ns: a thread that spins is stopped for so long if others wait"
                ),
                format!("echo 0 > {file} (as root; only if the CPU is isolated); or wait hybrid"),
            ));
        }
    }
    Ok(Finding::ok(format!("{seen}; the fair server is off")))
}

/// Clocks that are read without a call of the kernel, and those that are not.
const QUICK: [&str; 5] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "riscv_clocksource",
];
const SLOW: [&str; 6] = [
    "hpet",
    "acpi_pm",
    "pit",
    "jiffies",
    "refined-jiffies",
    "xen",
];

pub fn clock(system: &System, _: &Intent) -> Verdict {
    const PLACE: &str = "/sys/devices/system/clocksource/clocksource0";
    let file = format!("{PLACE}/current_clocksource");
    let clock = system.text(&file)?;
    let others = system.text(&format!("{PLACE}/available_clocksource"))?;
    if SLOW.contains(&clock.as_str()) {
        let seen = format!(
            "clocksource {clock}: reading the time takes a system call or an access to a device"
        );
        let remedy = match others.split_whitespace().any(|other| other == "tsc") {
            true => format!("echo tsc > {file} (as root)"),
            false => format!(
                "{}; only if dmesg says that the TSC is stable",
                boot_with("tsc=reliable")
            ),
        };
        return Ok(Finding::advice(seen, remedy));
    }
    if !QUICK.contains(&clock.as_str()) {
        return Err(not_understood(&file, &clock));
    }
    if clock != "tsc" {
        return Ok(Finding::ok(format!("clocksource {clock}")));
    }
    let flags = system.field("/proc/cpuinfo", "flags")?;
    let missing: Vec<&str> = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .filter(|flag| !flags.split_whitespace().any(|word| word == *flag))
        .collect();
    Ok(Finding::ok_if(
        missing.is_empty(),
        match missing.is_empty() {
            true => "clocksource tsc; constant_tsc and nonstop_tsc".to_owned(),
            false => format!(
                "clocksource tsc, but the CPU does not promise {}",
                missing.join(" and ")
            ),
        },
        "compare with a clock outside of this machine (chronyc tracking); give a virtual machine the host's CPU model",
    ))
}

pub fn timers(system: &System, _: &Intent) -> Verdict {
    let tried = system.trial().resolution_ns();
    let ns =
        tried.map_err(|error| Unknown(format!("cannot read the clock's resolution: {error}")))?;
    Ok(Finding::ok_if(
        ns == 1,
        format!("timers have a resolution of {ns} ns"),
        "remove highres=off and nohz=off from the kernel's command line: a kernel with CONFIG_HIGH_RES_TIMERS has 1 ns",
    ))
}
