// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power, and memory.

use State::{Advice, Ok, Unknown};

use super::*;

const CPU: &str = "/sys/devices/system/cpu";
const MM: &str = "/sys/kernel/mm";

/// A CPU whose deep state takes so long to wake from.
fn sleeping(state: State, latency: &str, sentence: &'static str) -> Case {
    let mut case = case("idle-states", state, sentence)
        .on_cpu(0)
        .file(&format!("{CPU}/cpuidle/current_driver"), "intel_idle\n");
    for (number, name, latency) in [(0, "POLL\n", "0\n"), (1, "C6\n", latency)] {
        let place = format!("{CPU}/cpu0/cpuidle/state{number}");
        case = case
            .file(&format!("{place}/name"), name)
            .file(&format!("{place}/latency"), latency)
            .file(&format!("{place}/disable"), "0\n");
    }
    case
}

fn governed(state: State, governor: &str, sentence: &'static str) -> Case {
    case("governor", state, sentence)
        .on_cpu(1)
        .file(&format!("{CPU}/cpu1/cpufreq/scaling_governor"), governor)
}

fn shared(state: State, active: &str, siblings: &str, sentence: &'static str) -> Case {
    case("smt", state, sentence)
        .on_cpu(1)
        .file(&format!("{CPU}/smt/active"), active)
        .file(
            &format!("{CPU}/cpu1/topology/thread_siblings_list"),
            siblings,
        )
}

pub fn cases() -> Vec<Case> {
    let haltpoll = |state, ns: &str, sentence| {
        case("idle-states", state, sentence)
            .file(&format!("{CPU}/cpuidle/current_driver"), "haltpoll\n")
            .file("/sys/module/haltpoll/parameters/guest_halt_poll_ns", ns)
    };
    let none = |state, words: &str, sentence| {
        case("idle-states", state, sentence)
            .file(&format!("{CPU}/cpuidle/current_driver"), "none\n")
            .file("/proc/cmdline", words)
    };
    let setting = |check, state, path: &str, text: &str, sentence| {
        case(check, state, sentence).file(path, text)
    };
    let turbo = |state, name: &str, text: &str, sentence| {
        setting("turbo", state, &format!("{CPU}/{name}"), text, sentence)
    };
    let pages = |state, text: &str, sentence| {
        setting(
            "huge-pages",
            state,
            &format!("{MM}/transparent_hugepage/enabled"),
            text,
            sentence,
        )
    };
    let merging = |state, text: &str, sentence| {
        setting(
            "page-merging",
            state,
            &format!("{MM}/ksm/run"),
            text,
            sentence,
        )
    };
    let numa = |state, text: &str, sentence| {
        setting(
            "numa-balancing",
            state,
            "/proc/sys/kernel/numa_balancing",
            text,
            sentence,
        )
    };
    let swap =
        |state, text: &str, sentence| setting("swap", state, "/proc/meminfo", text, sentence);
    vec![
        sleeping(Ok, "2\n", "a state that is left quickly"),
        sleeping(Ok, "890\n", "somebody holds /dev/cpu_dma_latency")
            .bytes("/dev/cpu_dma_latency", &0_i32.to_ne_bytes()),
        sleeping(Ok, "890\n", "a deep state that is switched off")
            .file(&format!("{CPU}/cpu0/cpuidle/state1/disable"), "1\n"),
        sleeping(Advice, "890\n", "a deep state").says("in C6, and wakes within 890 us"),
        sleeping(
            Advice,
            "890\n",
            "a deep state that a run may not keep CPUs from",
        )
        .says("no permission"),
        Case {
            answers: Answers {
                awake: || got("awake CPUs", true, "wake within 10 us"),
                ..DEAF
            },
            ..sleeping(Ok, "890\n", "a deep state that a run keeps CPUs from")
        }
        .says("during a run: wake within 10 us"),
        sleeping(Unknown, "long\n", "a latency that is none"),
        haltpoll(Ok, "200000\n", "a guest that polls"),
        haltpoll(Advice, "0\n", "a guest that does not").says("echo 200000 >"),
        none(Ok, "quiet idle=poll\n", "a CPU that never sleeps"),
        none(Unknown, "quiet\n", "a CPU that sleeps nobody knows how"),
        governed(Ok, "performance\n", "always fast"),
        governed(Advice, "powersave\n", "slow now and then")
            .says("echo performance > /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"),
        governed(Unknown, "\n", "no word"),
        case("governor", Unknown, "a guest")
            .on_cpu(1)
            .says("is not there"),
        shared(Ok, "0\n", "1\n", "one CPU a core"),
        shared(Ok, "1\n", "1\n", "the sibling is offline"),
        shared(Advice, "1\n", "1,5\n", "two CPUs a core")
            .says("echo 0 > /sys/devices/system/cpu/cpu5/online"),
        shared(Unknown, "1\n", "2-3\n", "a core of others"),
        shared(Unknown, "2\n", "1\n", "neither on nor off"),
        turbo(Ok, "intel_pstate/no_turbo", "1\n", "off, by one driver"),
        turbo(Ok, "cpufreq/boost", "0\n", "off, by another"),
        turbo(Advice, "intel_pstate/no_turbo", "0\n", "on, by one driver").says("echo 1 >"),
        turbo(Advice, "cpufreq/boost", "1\n", "on, by another").says("echo 0 >"),
        turbo(Unknown, "cpufreq/boost", "9\n", "neither on nor off"),
        pages(Ok, "always [madvise] never\n", "for who asks"),
        pages(Advice, "[always] madvise never\n", "for all").says("echo madvise >"),
        pages(Unknown, "[sometimes] never\n", "another word"),
        setting(
            "huge-pages",
            Ok,
            &format!("{MM}/swap/vma_ra_enabled"),
            "true\n",
            "a kernel without them",
        ),
        merging(Ok, "0\n", "off"),
        merging(Ok, "2\n", "taken apart"),
        merging(Advice, "1\n", "on").says("echo 0 > /sys/kernel/mm/ksm/run"),
        merging(Unknown, "7\n", "another number"),
        numa(Ok, "0\n", "off"),
        numa(Advice, "1\n", "on").says("sysctl -w kernel.numa_balancing=0"),
        numa(Unknown, "on\n", "no number"),
        setting(
            "numa-balancing",
            Ok,
            "/proc/sys/kernel/osrelease",
            "6.12\n",
            "a kernel without nodes",
        ),
        swap(Ok, "MemTotal: 5 kB\nSwapTotal:       0 kB\n", "none"),
        swap(Advice, "MemTotal: 5 kB\nSwapTotal:     100 kB\n", "some").says("swapoff -a"),
        swap(Unknown, "MemTotal: 5 kB\n", "not said"),
        swap(Unknown, "SwapTotal: 0 pages\n", "in another unit"),
    ]
}
