// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time set-up of a thread. Each step is read back; what was got and what was refused is recorded.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

mod memory;

pub use memory::{lock_limit, lock_memory, lock_stack, try_lock};

/// One step of the set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is about: `memory`, `cpu`, `slack`, `policy`, ...
    pub what: Cow<'static, str>,
    /// Whether it is as it was asked for.
    pub ok: bool,
    /// What was got; if something was refused, why, and the remedy.
    pub got: String,
}

/// How the kernel gives a CPU to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_FIFO with this priority, 1 to 99: before all that have a lower one, for as long as it likes.
    Fifo(u8),
    /// SCHED_OTHER: a fair share, when the kernel sees fit.
    Other,
    /// SCHED_DEADLINE: so much of each period, ns; the kernel admits no more than it can keep.
    Deadline {
        /// CPU time.
        runtime_ns: u64,
        /// Of this time.
        period_ns: u64,
    },
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fifo(priority) => write!(f, "fifo:{priority}"),
            Policy::Other => f.write_str("other"),
            Policy::Deadline {
                runtime_ns,
                period_ns,
            } => write!(f, "deadline:{runtime_ns}/{period_ns} ns"),
        }
    }
}

/// As it is displayed: `fifo:1` to `fifo:99`, or `other`.
impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        if text == "other" {
            return Ok(Policy::Other);
        }
        let priority = text.strip_prefix("fifo:").and_then(|n| n.parse().ok());
        priority
            .filter(|priority| (1..=99).contains(priority))
            .map(Policy::Fifo)
            .ok_or_else(|| "write fifo:1 to fifo:99, or other".to_owned())
    }
}

/// The CPUs that this thread may run on, by number.
pub fn cpus() -> Vec<usize> {
    let may = sched_getaffinity(None);
    may.map_or_else(
        |_| Vec::new(),
        |set| {
            let all = 0..CpuSet::MAX_CPU;
            all.filter(|cpu| set.is_set(*cpu)).collect()
        },
    )
}

/// What a thread has cost, and what has disturbed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Page faults that were served from memory.
    pub minor_faults: u64,
    /// Page faults that had to wait for a disk.
    pub major_faults: u64,
    /// It gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// The CPU was taken from it.
    pub involuntary_switches: u64,
    /// Calls with which it has woken readers that want each row at once.
    #[serde(skip_serializing_if = "is_none")]
    pub wakes: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Of the calling thread, so far.
    pub fn of_this_thread() -> Usage {
        // SAFETY: all zero is a value of this structure of numbers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a structure of the right kind, on our stack.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        let ns = |t: libc::timeval| count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1_000;
        Usage {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            wakes: 0,
        }
    }

    /// What has come since `before`.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            wakes: self.wakes - before.wakes,
        }
    }
}

/// Sets up the calling thread. The policy comes last: before, nothing may stop the machine.
pub fn set_up_thread(cpu: Option<usize>, policy: Policy) -> Vec<Step> {
    block_signals();
    touch_stack();
    let set_up = match policy {
        Policy::Other => other(),
        Policy::Fifo(priority) => fifo(priority),
        Policy::Deadline {
            runtime_ns,
            period_ns,
        } => deadline(runtime_ns, period_ns),
    };
    vec![affinity(cpu), slack(), set_up]
}

/// Signals are for the other threads: one that came here would end a wait.
pub fn block_signals() {
    // SAFETY: all zero is a value of this structure, and sigfillset fills it at once.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both get pointers to a set on our stack; a null pointer for the old mask is allowed.
    unsafe {
        libc::sigfillset(&mut all);
        // What the thread itself does wrong cannot wait: a blocked one of these ends the process.
        for signal in [
            libc::SIGBUS,
            libc::SIGSEGV,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
        ] {
            libc::sigdelset(&mut all, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// The pages of the stack that the loop will use are there before it needs them.
#[inline(never)]
fn touch_stack() {
    let pages = [0_u8; 128 * 1024];
    std::hint::black_box(&pages);
}

fn affinity(cpu: Option<usize>) -> Step {
    let asked = cpu.map(|cpu| {
        let mut set = CpuSet::new();
        if cpu < CpuSet::MAX_CPU {
            set.set(cpu);
        }
        sched_setaffinity(None, &set)
    });
    let got = sched_getaffinity(None).map_or("unknown".to_owned(), |set| {
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        cpus.map(|cpu| cpu.to_string())
            .collect::<Vec<_>>()
            .join(",")
    });
    match asked {
        Some(Err(errno)) => {
            let cpu = cpu.unwrap_or(0);
            step(
                "cpu",
                false,
                format!(
                    "{got}; CPU {cpu} was refused ({errno}): no such CPU, or not in this process's cpuset"
                ),
            )
        }
        _ => step("cpu", true, got),
    }
}

/// Only matters without a real-time policy, which has none.
fn slack() -> Step {
    /// An argument that the call does not have.
    const NONE: libc::c_ulong = 0;
    // SAFETY: these two take numbers only.
    let got = unsafe {
        libc::prctl(
            libc::PR_SET_TIMERSLACK,
            1 as libc::c_ulong,
            NONE,
            NONE,
            NONE,
        );
        libc::prctl(libc::PR_GET_TIMERSLACK, NONE, NONE, NONE, NONE)
    };
    step("slack", (0..=1).contains(&got), format!("{got} ns"))
}

/// Sets the policy of this thread, and looks whether it has it.
fn schedule(policy: i32, priority: u8) -> io::Result<bool> {
    // SAFETY: all zero is a value of this structure of numbers.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    let flags = policy | libc::SCHED_RESET_ON_FORK;
    // The system call, not the C library's function, which some libraries have as an empty shell.
    // SAFETY: pid 0 is this thread; the pointer is to a structure on our stack.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, flags, &parameters) } {
        0 => Ok(policy_of_this_thread() == policy),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Who has started this program may have given it another.
fn other() -> Step {
    match schedule(libc::SCHED_OTHER, 0) {
        Ok(true) => step("policy", true, Policy::Other.to_string()),
        refused => {
            let why = refused.map_or_else(|error| format!(" ({error})"), |_| String::new());
            step(
                "policy",
                false,
                format!(
                    "that of the program that started this one; other was refused{why}: start this program without \
                     chrt, or be root"
                ),
            )
        }
    }
}

fn fifo(priority: u8) -> Step {
    let error = match schedule(libc::SCHED_FIFO, priority) {
        Ok(true) => return step("policy", true, Policy::Fifo(priority).to_string()),
        Ok(false) => io::Error::other("the call had no effect"),
        Err(error) => error,
    };
    let limit = getrlimit(Resource::Rtprio).current.unwrap_or(99);
    step(
        "policy",
        false,
        format!(
            "other; fifo:{priority} was refused ({error}), the limit is {limit} (ulimit -r): raise it (LimitRTPRIO=, or \
         an rtprio line in /etc/security/limits.conf), give the program CAP_SYS_NICE, or be root"
        ),
    )
}

fn deadline(runtime_ns: u64, period_ns: u64) -> Step {
    let policy = Policy::Deadline {
        runtime_ns,
        period_ns,
    };
    let attributes = libc::sched_attr {
        size: std::mem::size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_DEADLINE as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: runtime_ns,
        sched_deadline: period_ns,
        sched_period: period_ns,
    };
    // SAFETY: pid 0 is this thread; the pointer is to a structure on our stack that says its size.
    let refused = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) } != 0;
    let error = io::Error::last_os_error();
    if !refused && policy_of_this_thread() == libc::SCHED_DEADLINE {
        return step("policy", true, policy.to_string());
    }
    step(
        "policy",
        false,
        format!(
            "other; {policy} was refused ({error}): it needs CAP_SYS_NICE, a thread that may run on all CPUs, and room \
         beside the others that have it; leave the CPU out, or use fifo"
        ),
    )
}

fn policy_of_this_thread() -> i32 {
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) as i32 & !libc::SCHED_RESET_ON_FORK }
}

fn step(what: &'static str, ok: bool, got: String) -> Step {
    let what = what.into();
    Step { what, ok, got }
}

/// A line of this process's status, which is in KiB.
fn status_kb(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_got_is_what_the_system_says() {
        let steps = std::thread::spawn(|| set_up_thread(None, Policy::Fifo(1)))
            .join()
            .expect("no panic");
        let by_name = |what| steps.iter().find(|s| s.what == what).expect("a step");
        assert!(by_name("cpu").ok);
        assert!(by_name("slack").ok, "{:?}", by_name("slack"));
        let policy = by_name("policy");
        assert_eq!(policy.ok, policy.got == "fifo:1", "{policy:?}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_a_word() {
        let steps = std::thread::spawn(|| set_up_thread(Some(1000), Policy::Fifo(1)))
            .join()
            .expect("no panic");
        assert!(
            !steps[0].ok && steps[0].got.contains("CPU 1000 was refused"),
            "{:?}",
            steps[0]
        );
    }

    #[test]
    fn each_policy_is_got_or_refused_with_a_remedy() {
        let deadline = Policy::Deadline {
            runtime_ns: 1_000_000,
            period_ns: 100_000_000,
        };
        for asked in [Policy::Other, Policy::Fifo(1), deadline] {
            let set_up =
                std::thread::spawn(move || (set_up_thread(None, asked), policy_of_this_thread()));
            let (steps, got) = set_up.join().expect("no panic");
            let policy = steps.last().expect("a step");
            let wanted = match asked {
                Policy::Fifo(_) => libc::SCHED_FIFO,
                Policy::Other => libc::SCHED_OTHER,
                Policy::Deadline { .. } => libc::SCHED_DEADLINE,
            };
            assert_eq!(policy.ok, got == wanted, "{policy:?}");
            assert!(
                policy.got == asked.to_string() || policy.got.contains("was refused ("),
                "{policy:?}"
            );
        }
        assert_eq!(deadline.to_string(), "deadline:1000000/100000000 ns");
    }

    #[test]
    fn who_asks_for_other_has_it_also_in_a_thread_that_had_a_real_time_policy() {
        let set_up = std::thread::spawn(|| {
            set_up_thread(None, Policy::Fifo(1));
            let steps = set_up_thread(None, Policy::Other);
            (steps.last().cloned(), policy_of_this_thread())
        });
        let (policy, got) = set_up.join().expect("no panic");
        assert_eq!(got, libc::SCHED_OTHER);
        assert!(policy.is_some_and(|policy| policy.ok && policy.got == "other"));
    }

    #[test]
    fn usage_counts_what_this_thread_has_done() {
        let before = Usage::of_this_thread();
        let pages = vec![1_u8; 8 << 20];
        std::hint::black_box(&pages);
        let usage = Usage::of_this_thread().since(before);
        assert!(usage.minor_faults > 0, "{usage:?}");
    }
}
