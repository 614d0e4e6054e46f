// SPDX-License-Identifier: MIT OR Apache-2.0

use State::{Advice, Ok, Unknown};

use super::*;

const RT: &str = "Linux version 6.12.1-rt (a@b) (gcc) #1 SMP PREEMPT_RT Debian 6.12.1 (2025)\n";
const STOCK: &str =
    "Linux version 6.12.1 (a@b) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.12.1 (2025)\n";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

fn throttled(state: State, sentence: &'static str, runtime: &str) -> Case {
    case("throttling", state, sentence)
        .with_status()
        .file("/proc/sys/kernel/sched_rt_runtime_us", runtime)
        .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n")
}

fn clock(state: State, current: &str, all: &str, sentence: &'static str) -> Case {
    case("clock", state, sentence)
        .file(&format!("{CLOCKS}/current_clocksource"), current)
        .file(&format!("{CLOCKS}/available_clocksource"), all)
}

fn resolution(
    state: State,
    sentence: &'static str,
    resolution_ns: fn() -> io::Result<u64>,
) -> Case {
    case("timers", state, sentence).answering(Answers {
        resolution_ns,
        ..DEAF
    })
}

pub fn cases() -> Vec<Case> {
    const FAIR: &str = "/sys/kernel/debug/sched/fair_server/cpu1/runtime";
    vec![
        case("preemption", Ok, "a PREEMPT_RT kernel").file("/proc/version", RT),
        case(
            "preemption",
            Advice,
            "a stock kernel, whose mode is to be seen",
        )
        .file("/proc/version", STOCK)
        .file(
            "/sys/kernel/debug/sched/preempt",
            "none voluntary full (lazy)\n",
        )
        .says("preempt=lazy"),
        case("preemption", Advice, "a stock kernel, locked down")
            .file("/proc/version", STOCK)
            .file("/proc/cmdline", "quiet preempt=full\n")
            .says("preempt=full apt install linux-image-rt-amd64"),
        case(
            "preemption",
            Unknown,
            "two files that contradict each other",
        )
        .file("/proc/version", STOCK)
        .file("/sys/kernel/realtime", "1\n"),
        case("preemption", Unknown, "another system").file("/proc/version", "FreeBSD PREEMPT_RT\n"),
        throttled(Ok, "the default, for who sleeps", "950000\n"),
        throttled(Ok, "none, for who sleeps", "-1\n"),
        throttled(Advice, "a tenth only", "100000\n").says("kernel.sched_rt_runtime_us=950000"),
        throttled(Advice, "the default, for who spins", "950000\n").spinning(),
        throttled(Advice, "the fair server, for who spins", "-1\n")
            .spinning()
            .on_cpu(1)
            .file(FAIR, "50000000\n")
            .says("echo 0 > /sys/kernel/debug/sched/fair_server/cpu1/runtime"),
        throttled(Ok, "all of the CPU, for who spins", "-1\n")
            .spinning()
            .on_cpu(1)
            .file(FAIR, "0\n"),
        throttled(Ok, "a kernel without a fair server, for who spins", "-1\n")
            .spinning()
            .file("/sys/kernel/debug/sched/features", "A B\n"),
        throttled(Unknown, "a kernel that hides its fair server", "-1\n").spinning(),
        throttled(Unknown, "what makes no sense", "-7\n"),
        clock(Ok, "tsc\n", "tsc hpet\n", "a TSC that is constant").file(
            "/proc/cpuinfo",
            "processor: 0\nflags\t\t: fpu constant_tsc nonstop_tsc\n",
        ),
        clock(Ok, "kvm-clock\n", "kvm-clock\n", "the clock of a guest"),
        clock(Advice, "tsc\n", "tsc hpet\n", "a TSC that stops")
            .file(
                "/proc/cpuinfo",
                "processor: 0\nflags\t\t: fpu constant_tsc\n",
            )
            .says("nonstop_tsc"),
        clock(
            Advice,
            "hpet\n",
            "tsc hpet\n",
            "a slow clock, though there is a quick one",
        )
        .says("echo tsc >"),
        clock(Advice, "acpi_pm\n", "acpi_pm\n", "a slow clock only").says("tsc=reliable"),
        clock(
            Unknown,
            "sundial\n",
            "sundial\n",
            "a clock that nobody knows",
        ),
        clock(Unknown, "tsc\n", "tsc hpet\n", "a TSC of an unknown CPU"),
        resolution(Ok, "high resolution", || Result::Ok(1)),
        resolution(Advice, "timers by ticks", || Result::Ok(4_000_000)).says("4000000 ns"),
        case("timers", Unknown, "no such clock"),
    ]
}
