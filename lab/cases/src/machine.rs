// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for what is around the engine: the simulator's faults, sysfs, modules,
//! processors.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const PARAMETERS: &str = "/sys/module/strobe/parameters";

/// So many seconds of a stock kernel: on one that looks for faults they are as many more as it is slower. A bound that
/// only a failure reaches.
pub fn patience(seconds: u64) -> Duration {
    Duration::from_secs(seconds * slowness())
}

/// How many times slower than a stock kernel the guest's is, roughly; 1 for a stock one.
pub fn slowness() -> u64 {
    let text = std::env::var("LAB_SLOWNESS").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Whether the guest's kernel is the one with PREEMPT_RT.
pub fn is_rt() -> bool {
    std::env::var("LAB_KERNEL").is_ok_and(|kernel| kernel == "rt")
}

/// From now on the kernel's own work does not keep a real-time thread from its CPU for longer than a row may wait; `strobe doctor` says
/// how to do both. A stock kernel gives up to 50 ms of each second to what such threads have kept from it, and holds a lock while it
/// makes one huge page of 512 small ones, for 0.2 ms and more: at moments that depend on all that has happened before.
pub fn undisturbed() {
    if let Ok(cpus) = fs::read_dir("/sys/kernel/debug/sched/fair_server") {
        for cpu in cpus.flatten() {
            fs::write(cpu.path().join("runtime"), "0")
                .expect("a fair server that can be switched off");
        }
    }
    let huge_pages = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    if huge_pages.exists() {
        fs::write(huge_pages, "never").expect("huge pages that can be switched off");
    }
}

/// The event of a timer of that period on a stock kernel; on a slow one of as many times more.
pub fn timer(period_ns: u64) -> String {
    format!("timer:{}ns", period_ns * slowness())
}

/// What the simulator is loaded with.
const WELL: [(&str, u64); 14] = [
    ("sim_pulse_ns", 1_000_000),
    ("sim_seed", 1),
    ("sim_every", 100),
    ("sim_late_ns", 0),
    ("sim_slow_ns", 0),
    ("sim_fail", 0),
    ("sim_burst", 0),
    ("sim_drop", 0),
    ("sim_vanish", 0),
    ("sim_refuse", 0),
    ("sim_keep", 10),
    ("sim_sleep_us", 50),
    ("sim_async_ns", 20_000),
    ("sim_async_fault", 0),
];

/// The kernel's simulator: well and plugged in when this is made, and again
/// when it is dropped, so that no test sees the faults of another.
pub struct Sim(());

impl Sim {
    /// Well and plugged in.
    pub fn well() -> Sim {
        reset().expect("parameters of the simulator");
        Sim(())
    }

    /// Sets a parameter.
    pub fn set(&self, name: &str, value: u64) -> &Sim {
        fs::write(Path::new(PARAMETERS).join(name), value.to_string())
            .unwrap_or_else(|why| panic!("{name}={value}: {why}"));
        self
    }

    /// What a parameter of the module is.
    pub fn parameter(name: &str) -> u64 {
        let text = fs::read_to_string(Path::new(PARAMETERS).join(name));
        let text = text.unwrap_or_else(|why| panic!("{name}: {why}"));
        let value = text.trim().parse();
        value.unwrap_or_else(|_| panic!("{name} is {text}"))
    }

    /// Plugs it in or unplugs it.
    pub fn plug(&self, is_in: bool) {
        self.set("sim", is_in.into());
    }

    /// Whether it is plugged in, or will be in a moment.
    pub fn is_plugged(&self) -> bool {
        fs::read_to_string(Path::new(PARAMETERS).join("sim")).is_ok_and(|text| text.trim() == "Y")
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // Should it fail, the next test says so.
        let _ = reset();
    }
}

fn reset() -> std::io::Result<()> {
    for (name, value) in WELL {
        fs::write(Path::new(PARAMETERS).join(name), value.to_string())?;
    }
    fs::write(Path::new(PARAMETERS).join("sim"), "1")
}

/// A file below /sys/class/strobe, without its line's end.
pub fn sysfs(path: &str) -> String {
    let path = format!("/sys/class/strobe/{path}");
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    text.trim_end().to_owned()
}

/// The same as a number.
pub fn sysfs_number(path: &str) -> u64 {
    let text = sysfs(path);
    text.parse().unwrap_or_else(|_| panic!("{path}: {text}"))
}

/// Whether a command of the machine did what it was to do.
pub fn command(line: &str) -> bool {
    let (program, words) = line.split_once(' ').unwrap_or((line, ""));
    let done = Command::new(program).args(words.split(' ')).output();
    done.unwrap_or_else(|why| panic!("{line}: {why}"))
        .status
        .success()
}

/// This thread, and those it starts meanwhile, run on one CPU only.
#[must_use]
pub struct Pinned(CpuSet);

/// Until the answer is dropped, this thread runs on that CPU only.
pub fn pin(cpu: usize) -> Pinned {
    let before = sched_getaffinity(None).expect("the CPUs of this thread");
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("a CPU of its own");
    Pinned(before)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Where it could run before, it can run again.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// A thread of ordinary priority that does nothing but count, on one CPU.
pub struct Counting {
    shared: Arc<(AtomicU64, AtomicBool)>,
    thread: Option<JoinHandle<()>>,
}

impl Counting {
    /// It counts from now on.
    pub fn on(cpu: usize) -> Counting {
        let shared = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
        let its = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let _pinned = pin(cpu);
            let (count, stop) = &*its;
            while !stop.load(Ordering::Relaxed) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Counting {
            shared,
            thread: Some(thread),
        }
    }

    /// How far it has come.
    pub fn count(&self) -> u64 {
        self.shared.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.shared.1.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
