// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user may do.

use rustix::io::Errno;

use super::system::{System, Unknown};
use super::{Finding, Intent, Verdict};

/// For who is in the group strobe; at the next login.
const RAISE: &str = "printf '@strobe - rtprio 95\\n@strobe - memlock unlimited\\n' > \
                     /etc/security/limits.d/60-strobe.conf (as root; it takes effect when members of the group strobe \
                     log in again)";
/// Memory that a run takes beside what the program has, roughly.
const ROOM_KIB: u64 = 16 << 10;

/// It is tried: a limit, a capability, a namespace and a group all have a word in it.
pub fn fifo(system: &System, intent: &Intent) -> Verdict {
    let tried = system.trial().fifo(intent.priority);
    let step =
        tried.map_err(|error| Unknown(format!("no thread could be started to try it: {error}")))?;
    if step.ok {
        return Ok(Finding::ok(format!("{}: tried, and read back", step.got)));
    }
    // The rest are its words for what to do.
    let refused = step.got.split(": raise it").next().unwrap_or_default();
    Ok(match group_without_time(system) {
        Some(file) => Finding::advice(
            format!("{refused}; {file} is 0: this cgroup may not run real-time threads"),
            format!("echo 100000 > {file} (as root)"),
        ),
        None => Finding::advice(refused, RAISE),
    })
}

/// A cgroup of version 1 has no real-time time until it is given some.
fn group_without_time(system: &System) -> Option<String> {
    let groups = system.text("/proc/self/cgroup").ok()?;
    let place = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let is_cpu = parts.next()?.split(',').any(|name| name == "cpu");
        parts.next().filter(|_| is_cpu)
    })?;
    let place = place.trim_end_matches('/');
    let file = format!("/sys/fs/cgroup/cpu{place}/cpu.rt_runtime_us");
    (system.number::<i64>(&file) == Ok(0)).then_some(file)
}

/// It is tried with as much as a run will lock.
pub fn memory_lock(system: &System, _: &Intent) -> Verdict {
    const STATUS: &str = "/proc/self/status";
    let (all, locked) = (system.kib(STATUS, "VmSize")?, system.kib(STATUS, "VmLck")?);
    let need = all.saturating_sub(locked).saturating_add(ROOM_KIB);
    let error = match system.trial().lock(need.saturating_mul(1024)) {
        Ok(()) => {
            return Ok(Finding::ok(format!(
                "{need} KiB more can be locked (tried)"
            )));
        }
        Err(error) => error,
    };
    let limit = system.text("/proc/self/limits").ok().and_then(|limits| {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max locked memory"))?;
        line.split_whitespace().next().map(str::to_owned)
    });
    let limit = limit.map_or("not known".to_owned(), |limit| format!("{limit} bytes"));
    let seen =
        format!("{need} KiB more cannot be locked ({error}); the limit (ulimit -l) is {limit}");
    match Errno::from_io_error(&error) {
        Some(Errno::NOMEM | Errno::PERM | Errno::AGAIN) => Ok(Finding::advice(seen, RAISE)),
        _ => Err(Unknown(seen)),
    }
}
