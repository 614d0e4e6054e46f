// SPDX-License-Identifier: MIT OR Apache-2.0

use State::{Advice, Ok, Unknown};

use super::*;

const CPU: &str = "/sys/devices/system/cpu";

/// Two CPUs, of which the second is kept free.
fn isolated(state: State, sentence: &'static str) -> Case {
    case("isolation", state, sentence)
        .with_status()
        .on_cpu(1)
        .file(&format!("{CPU}/online"), "0-1\n")
        .file(&format!("{CPU}/isolated"), "1\n")
        .file(&format!("{CPU}/nohz_full"), "1\n")
        .file(
            "/proc/cmdline",
            "quiet isolcpus=managed_irq,domain,1 nohz_full=1\n",
        )
        .file("/proc/irq/default_smp_affinity", "1\n")
}

const BEFORE: &str = "           CPU0       CPU1       \n 36:        5   4248983 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
                      NMI:          0          0   Non-maskable interrupts\nERR:          0\n";
const AFTER: &str = "           CPU0       CPU1       \n 36:        5   4248999 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
                     NMI:          9          9   Non-maskable interrupts\nERR:          0\n";

fn interrupted(state: State, sentence: &'static str) -> Case {
    case("interrupts", state, sentence)
        .with_status()
        .file(&format!("{CPU}/online"), "0-1\n")
        .file("/proc/interrupts", BEFORE)
        .later("/proc/interrupts", AFTER)
}

fn with_irq(check: &'static str, state: State, sentence: &'static str) -> Case {
    case(check, state, sentence)
        .with_tasks()
        .task(77, "irq/24-virtio0 (x)", 50, 1)
}

pub fn cases() -> Vec<Case> {
    vec![
        isolated(Ok, "a CPU with no other work"),
        isolated(Ok, "a kernel without nohz_full").without(&format!("{CPU}/nohz_full")).says("has no nohz_full"),
        isolated(Advice, "isolated, but interrupts come")
            .file("/proc/irq/default_smp_affinity", "3\n")
            .says("missing: irqaffinity add to GRUB_CMDLINE_LINUX in /etc/default/grub: isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0;"),
        isolated(Advice, "isolated, but it ticks").file(&format!("{CPU}/nohz_full"), "(null)\n").says("missing: nohz_full, rcu_nocbs"),
        isolated(Advice, "the other one").on_cpu(0).says("irqaffinity=1;"),
        isolated(Advice, "one CPU only").on_cpu(0).file(&format!("{CPU}/online"), "0\n").says("this machine has one CPU"),
        isolated(Unknown, "a CPU that is not there").on_cpu(7),
        isolated(Unknown, "an affinity that is none").file("/proc/irq/default_smp_affinity", "all\n"),
        case("isolation", Unknown, "/sys is not to be seen").with_status().on_cpu(1),
        with_irq("rt-tasks", Ok, "nobody goes before").says("none of the 0 real-time threads on CPU 0-1"),
        with_irq("rt-tasks", Advice, "a sound server goes before")
            .task(90, "sound", 70, 2)
            .says("sound (90, 70) priority 71"),
        with_irq("rt-tasks", Advice, "a deadline goes before all")
            .task(90, "control", 0, 6)
            .on_cpu(1)
            .says("control (90, deadline) taskset -p -c 0 90"),
        with_irq("rt-tasks", Advice, "a priority beyond reason").with_priority(99).says("priority 60"),
        case("rt-tasks", Unknown, "a container").with_status().file("/proc/2/comm", "bash\n").says("as in a container"),
        with_irq("rt-tasks", Unknown, "a task that is not understood").file("/proc/77/task/77/stat", "77 (x"),
        case("irq-threads", Ok, "interrupts have no threads").with_tasks(),
        with_irq("irq-threads", Ok, "interrupt threads below who sleeps").says("1 interrupt threads on CPU 0-1, up to 50"),
        with_irq("irq-threads", Ok, "interrupt threads above who spins").spinning().with_priority(40),
        with_irq("irq-threads", Advice, "interrupt threads above who sleeps").with_priority(40).says("priority 51"),
        with_irq("irq-threads", Advice, "interrupt threads below who spins: an event that never comes")
            .spinning()
            .on_cpu(1)
            .says("it never comes wait hybrid; or raise the thread of the run's own event: chrt -f -p 61"),
        case("irq-threads", Unknown, "a container").with_status().file("/proc/1/comm", "init\n"),
        case("spinning", Ok, "an isolated CPU").spinning().on_cpu(1).file(&format!("{CPU}/isolated"), "1\n"),
        case("spinning", Advice, "a CPU that others need")
            .spinning()
            .on_cpu(1)
            .file(&format!("{CPU}/isolated"), "\n")
            .file(&format!("{CPU}/online"), "0-1\n")
            .says("wait hybrid"),
        case("spinning", Unknown, "/sys is not to be seen").spinning().on_cpu(1),
        interrupted(Ok, "a CPU that none came to").on_cpu(0).says("none of 1 devices"),
        interrupted(Advice, "a CPU that a disk interrupts")
            .on_cpu(1)
            .says("echo 0 > /proc/irq/36/smp_affinity_list"),
        interrupted(Advice, "one of two CPUs is quiet").says("use CPU 0"),
        interrupted(Unknown, "a CPU that is not in the table").on_cpu(5),
        interrupted(Unknown, "a table that is none").later("/proc/interrupts", "36: 1 2 x\n"),
        case("interrupts", Unknown, "a machine that was not watched").with_status().file("/proc/interrupts", BEFORE),
    ]
}
