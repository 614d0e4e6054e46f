// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the thread of a run works.

use std::fmt;

use strobe_hw::rt::Policy;

/// How a thread waits for its event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WaitMode {
    /// It sleeps, and the kernel wakes it.
    #[default]
    Block,
    /// It sleeps for most of the time, and spins for the rest.
    Hybrid,
    /// It never sleeps.
    Spin,
}

impl fmt::Display for WaitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitMode::Block => "block",
            WaitMode::Hybrid => "hybrid",
            WaitMode::Spin => "spin",
        })
    }
}

/// What is locked in memory, so that the thread of a run never waits for a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lock {
    /// All memory of the process, now and in future, and for good: for a program that does nothing else. All that it
    /// allocates later counts for its limit of locked memory.
    Process,
    /// The ring of the run, and the stack of its thread.
    #[default]
    RingAndStack,
    /// Nothing.
    None,
}

/// How the thread of a run works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// How it waits.
    pub wait: WaitMode,
    /// The only CPU it is to run on; `None`: any.
    pub cpu: Option<usize>,
    /// What is locked in memory.
    pub lock: Lock,
    /// Its policy; `None`: SCHED_FIFO, with the priority that the plan says.
    pub policy: Option<Policy>,
}

/// SCHED_FIFO priority of a run's thread, unless the plan says another: above the interrupt threads of a PREEMPT_RT
/// kernel, which have 50, and far below what watches over the machine.
pub const PRIORITY: u8 = 60;
