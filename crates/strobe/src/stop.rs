// SPDX-License-Identifier: MIT OR Apache-2.0
//! How to end a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How to end a recording from outside, from a signal handler or a thread.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// End it: it is stopped then.
    pub interrupt: Arc<AtomicBool>,
    /// End it: it is complete then.
    pub finish: Arc<AtomicBool>,
}

impl Stop {
    /// Whether it was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Whether it is to end, be it complete or not.
    pub fn is_over(&self) -> bool {
        self.is_interrupted() || self.finish.load(Ordering::Relaxed)
    }
}
