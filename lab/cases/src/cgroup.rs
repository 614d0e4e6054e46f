// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group, which bounds the memory and the number of the processes in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::container::mount;

const ROOT: &str = "/sys/fs/cgroup";
/// Which processes are in it.
const PROCESSES: &str = "cgroup.procs";

/// A group below the root. It must be empty when it is dropped.
pub struct Group(PathBuf);

impl Group {
    /// Its processes have so many bytes, and are so many at most.
    pub fn new(name: &str, memory: u64, processes: u64) -> Group {
        let controllers = Path::new(ROOT).join("cgroup.subtree_control");
        if !controllers.exists() {
            mount("cgroup2", ROOT, "cgroup2", 0);
        }
        fs::write(controllers, "+memory +pids").expect("controllers of memory and processes");
        let group = Group(Path::new(ROOT).join(name));
        fs::create_dir(&group.0).expect("a group");
        for (name, bound) in [("memory.max", memory), ("pids.max", processes)] {
            fs::write(group.0.join(name), bound.to_string()).expect(name);
        }
        group
    }

    /// What is forked by `work` is in the group.
    pub fn around<T>(&self, work: impl FnOnce() -> T) -> T {
        let enter = |group: &Path| fs::write(group.join(PROCESSES), "0").expect("entered");
        enter(&self.0);
        let done = work();
        enter(Path::new(ROOT));
        done
    }

    /// The number in one of its files.
    pub fn get(&self, name: &str) -> u64 {
        self.text(name).trim().parse().expect("a number")
    }

    /// How often its processes were killed because it had no memory left.
    pub fn killed(&self) -> u64 {
        let events = self.text("memory.events");
        let line = events.lines().find_map(|it| it.strip_prefix("oom_kill "));
        line.expect("a line").parse().expect("a number")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect(name)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let gone = fs::remove_dir(&self.0);
        if !std::thread::panicking() {
            gone.expect("nobody is left in it");
        }
    }
}
