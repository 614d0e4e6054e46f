// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user engine: a real-time thread of this process makes the rows.

use std::fmt;

pub mod bell;
pub mod clock;
pub mod provider;
pub mod trigger;

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

/// How the thread of a run works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// How it waits.
    pub wait: WaitMode,
    /// SCHED_FIFO priority to ask for; `None`: the engine's choice.
    pub priority: Option<u8>,
    /// The only CPU it is to run on; `None`: any.
    pub cpu: Option<usize>,
}
