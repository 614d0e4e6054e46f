// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the way from an event to its row takes: in the kernel engine, of a UIO device, of a GPIO line, by a counter
//! of a board; and how long it takes to wake a thread.

use strobe_hw::rt::Policy;

pub mod delays;
pub mod gpio;
pub mod hook;
pub mod kernel;
pub mod steps;
pub mod uio;
pub mod wake;

/// What is asked of every way.
#[derive(Debug, Clone)]
pub struct Common {
    /// End after so many rows.
    pub rows: u64,
    /// End after this time, if there are not so many rows by then; ns.
    pub duration: u64,
    /// Policy of the thread that waits.
    pub policy: Policy,
    /// The CPU that it works on.
    pub cpu: Option<usize>,
    /// List the differences of each row, too.
    pub list: bool,
}
