// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as it is now, and its upkeep.

use State::{Advice, Ok, Unknown};

use super::*;

const KERNEL: &str = "/proc/sys/kernel";
const TRACING: &str = "/sys/kernel/tracing";
const EVENTS: &str = "irq:irq_handler_entry\nsched:sched_switch\nsched:sched_waking\n";
const STAT: &str = "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 50 0 50 500 0 0 0 0 0 0\ncpu1 50 0 50 500 0 0 0 0 0 0\nintr 1\n";

fn cpuinfo(state: State, flags: &str, sentence: &'static str) -> Case {
    case("virtual-machine", state, sentence).file(
        "/proc/cpuinfo",
        &format!("processor\t: 0\nflags\t\t: {flags}\n"),
    )
}

fn loaded(state: State, last: &str, sentence: &'static str) -> Case {
    case("load", state, sentence)
        .file("/proc/stat", STAT)
        .later("/proc/stat", last)
}

pub fn cases() -> Vec<Case> {
    let kernel = |check, state, name: &str, text: &str, sentence| {
        case(check, state, sentence).file(&format!("{KERNEL}/{name}"), text)
    };
    let statistics = |state, text: &str, sentence| {
        case("statistics", state, sentence).file("/proc/sys/vm/stat_interval", text)
    };
    vec![
        kernel("timer-migration", Ok, "timer_migration", "0\n", "off"),
        kernel(
            "timer-migration",
            Ok,
            "osrelease",
            "6.12\n",
            "a kernel that has none",
        ),
        kernel("timer-migration", Advice, "timer_migration", "1\n", "on")
            .says("sysctl -w kernel.timer_migration=0"),
        kernel(
            "timer-migration",
            Unknown,
            "timer_migration",
            "yes\n",
            "no number",
        ),
        kernel("watchdogs", Ok, "watchdog", "0\n", "off")
            .file(&format!("{KERNEL}/nmi_watchdog"), "0\n"),
        kernel("watchdogs", Advice, "watchdog", "1\n", "one is on")
            .file(&format!("{KERNEL}/nmi_watchdog"), "0\n")
            .says("on: watchdog "),
        kernel("watchdogs", Unknown, "watchdog", "?\n", "no number"),
        statistics(Ok, "120\n", "rarely"),
        statistics(Advice, "1\n", "each second").says("vm.stat_interval=120"),
        statistics(Unknown, "-1\n", "no time"),
        case("irqbalance", Ok, "it is not running").with_tasks(),
        case("irqbalance", Advice, "it is running")
            .with_tasks()
            .task(600, "irqbalance", 0, 0)
            .says("disable --now irqbalance"),
        case("irqbalance", Unknown, "processes are hidden").with_status(),
        cpuinfo(Ok, "fpu vme tsc", "a machine of metal"),
        cpuinfo(Advice, "fpu vme hypervisor", "a guest").says("hypervisor"),
        cpuinfo(
            Advice,
            "fpu vme hypervisor",
            "a guest that waits for its CPU",
        )
        .file("/proc/stat", STAT)
        .later(
            "/proc/stat",
            &STAT.replacen("0 0 0 0 0 0\n", "0 0 0 7 0 0\n", 1),
        )
        .says("% of a CPU was stolen"),
        cpuinfo(Unknown, "what is this", "flags that are none"),
        case("virtual-machine", Unknown, "a CPU without flags")
            .file("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp\n"),
        loaded(Ok, STAT, "nobody does anything").says("0.00 of 2 CPUs"),
        loaded(
            Advice,
            &STAT.replacen("cpu  100", "cpu  300", 1),
            "somebody is busy",
        )
        .says("of 2 CPUs were busy"),
        loaded(Unknown, "cpu  1 2\n", "a line that is too short"),
        case("load", Unknown, "a machine that was not watched").file("/proc/stat", STAT),
        case("tracing", Ok, "all events are there")
            .file(&format!("{TRACING}/available_events"), EVENTS)
            .says("3 events"),
        case("tracing", Advice, "some are not there")
            .file(
                &format!("{TRACING}/available_events"),
                "sched:sched_switch\n",
            )
            .says("sched:sched_waking, irq:irq_handler_entry"),
        case("tracing", Unknown, "it is not to be seen").file("/sys/kernel/mm/x", ""),
        case("tracing", Unknown, "events that are none")
            .file(&format!("{TRACING}/available_events"), "nothing\n"),
    ]
}

#[test]
fn tracing_that_is_not_mounted_is_an_empty_directory() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(root.path().join("sys/kernel/tracing")).expect("a directory");
    let system = System::new(root.path(), Box::new(DEAF));
    let found = named("tracing").find(&system, &Intent::default());
    assert_eq!(found.state, Advice);
    assert!(
        found
            .remedy
            .is_some_and(|remedy| remedy.starts_with("mount -t tracefs"))
    );
}
