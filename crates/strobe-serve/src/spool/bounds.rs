// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much is kept.

use std::time::Duration;

/// How old rows may get before they are on the disk. A ring that holds more than this loses nothing if the daemon is killed.
pub(super) const EVERY: Duration = Duration::from_millis(100);

/// How much of a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of rows that stay in memory.
    pub recent: usize,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Rows older than this are given up; `None`: they may get as old as they like.
    pub age: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            recent: 16 << 20,
            bytes: 4 << 30,
            age: None,
        }
    }
}

impl Bounds {
    /// Bytes of a file: little is given up at once.
    pub(super) fn segment(&self) -> u64 {
        (self.bytes / 16).clamp(256 << 10, 64 << 20)
    }

    /// How long a file is written, so that not much more than what is too old is kept for the rest of it.
    pub(super) fn time(&self) -> Option<Duration> {
        Some((self.age? / 16).max(EVERY))
    }
}
