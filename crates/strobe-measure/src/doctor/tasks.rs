// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a machine.

use super::cpus::Cpus;
use super::system::{System, Unknown, not_understood};
use super::task::{Task, parse};

impl System {
    /// Its tasks, looked for once: there may be thousands.
    pub(super) fn tasks(&self) -> Result<&[Task], Unknown> {
        let tasks = self.tasks.get_or_init(|| all(self));
        tasks.as_deref().map_err(Unknown::clone)
    }
}

/// All threads with a real-time policy, and all processes, but for this one.
///
/// They are all there only where the kernel's own are: in a container, or where processes are hidden, process 2 is not
/// the one that starts them.
fn all(system: &System) -> Result<Vec<Task>, Unknown> {
    let second = system.text("/proc/2/comm");
    if second.as_deref() != Ok("kthreadd") {
        return Err(Unknown::new(
            "the machine's tasks cannot be listed: process 2 is not kthreadd, as in a container",
        ));
    }
    let own = system.field("/proc/self/status", "Tgid")?;
    let mut tasks = Vec::new();
    for process in system.list("/proc")? {
        if process == own || !is_number(&process) {
            continue;
        }
        let threads = format!("/proc/{process}/task");
        // Who is not there any more is nobody's neighbour.
        for thread in system.list(&threads).unwrap_or_default() {
            let path = format!("{threads}/{thread}");
            let Ok(stat) = system.text(&format!("{path}/stat")) else {
                continue;
            };
            let Some((name, priority)) = parse(&stat) else {
                return Err(not_understood(&format!("{path}/stat"), &stat));
            };
            if priority == 0 && thread != process {
                continue;
            }
            let id = thread.parse().unwrap_or(0);
            let cpus = match priority {
                0 => Cpus::default(),
                _ => match cpus(system, &format!("{path}/status")) {
                    Some(cpus) => cpus,
                    None => continue,
                },
            };
            tasks.push(Task {
                id,
                name,
                priority,
                cpus,
            });
        }
    }
    Ok(tasks)
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// `None` for one that has gone.
fn cpus(system: &System, path: &str) -> Option<Cpus> {
    Cpus::of_list(&system.field(path, "Cpus_allowed_list").ok()?)
}
