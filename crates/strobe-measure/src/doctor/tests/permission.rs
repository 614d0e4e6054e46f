// SPDX-License-Identifier: MIT OR Apache-2.0

use State::{Advice, Ok, Unknown};

use super::*;

fn got(ok: bool, got: &str) -> Step {
    let (what, got) = ("policy".into(), got.to_owned());
    Step { what, ok, got }
}

const ALLOWED: Answers = Answers {
    fifo: |priority| Result::Ok(got(true, &format!("fifo:{priority}"))),
    lock: |_| Result::Ok(()),
    ..DEAF
};
const REFUSED: Answers = Answers {
    fifo: |_| {
        Result::Ok(got(
            false,
            "other; fifo:60 was refused (EPERM), the limit is 0 (ulimit -r): raise it (...)",
        ))
    },
    lock: |_| Err(error(libc::ENOMEM)),
    ..DEAF
};
const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max locked memory         8388608              8388608              bytes     \n";

pub fn cases() -> Vec<Case> {
    vec![
        case("fifo", Ok, "a thread gets it")
            .answering(ALLOWED)
            .with_priority(70)
            .says("fifo:70: tried, and read back"),
        case("fifo", Advice, "a limit of 0")
            .answering(REFUSED)
            .says("the limit is 0 (ulimit -r) printf '@strobe - rtprio"),
        case("fifo", Advice, "a cgroup without real-time time")
            .answering(REFUSED)
            .file(
                "/proc/self/cgroup",
                "4:memory:/a\n1:cpu,cpuacct:/box\n0::/\n",
            )
            .file("/sys/fs/cgroup/cpu/box/cpu.rt_runtime_us", "0\n")
            .says("echo 100000 > /sys/fs/cgroup/cpu/box/cpu.rt_runtime_us"),
        case("fifo", Unknown, "no thread can be started").says("no thread could be started"),
        case("memory-lock", Ok, "it is allowed")
            .answering(ALLOWED)
            .with_status()
            .says("36384 KiB more"),
        case("memory-lock", Advice, "the limit is too low")
            .answering(REFUSED)
            .with_status()
            .file("/proc/self/limits", LIMITS)
            .says("the limit (ulimit -l) is 8388608 bytes"),
        case("memory-lock", Unknown, "the call is not there").with_status(),
        case(
            "memory-lock",
            Unknown,
            "how much is needed is not to be seen",
        )
        .answering(ALLOWED),
    ]
}
