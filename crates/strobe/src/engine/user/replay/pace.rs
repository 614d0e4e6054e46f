// SPDX-License-Identifier: MIT OR Apache-2.0
//! When rows of a recording are due.

use strobe_ring::StartTimes;

use super::Speed;
use crate::clock::monotonic;

/// For its first row, if rows before it are not there, a replay waits for so long at most.
const PATIENCE_NS: u64 = 10_000_000_000;

/// When rows are due.
pub(super) struct Pace {
    pub(super) speed: Speed,
    /// The time in the recording that is due at `at`, ns on CLOCK_MONOTONIC.
    pub(super) from: u64,
    at: u64,
    /// The time of the last row that was made.
    pub(super) reached: u64,
}

impl Pace {
    /// For a recording that was started at this time of its clock.
    pub(super) fn new(speed: Speed, start: u64) -> Self {
        Pace {
            speed,
            from: start,
            at: 0,
            reached: start,
        }
    }

    /// When this time of the recording is due; `None`: at once.
    pub(super) fn due(&self, time: u64) -> Option<u64> {
        match self.speed {
            Speed::Max => None,
            Speed::Times(factor) => {
                let factor = if factor > 0.0 { factor } else { 1.0 };
                let after = time.saturating_sub(self.from) as f64 / factor;
                Some(self.at.saturating_add(after as u64))
            }
        }
    }

    /// The first row of a recording that lacks rows before it. If it was made long after the start, it is due now.
    pub(super) fn join(&mut self, time: u64, start: &StartTimes) {
        if time.saturating_sub(start.time) > PATIENCE_NS {
            self.reached = time;
            self.go_on();
        }
    }

    /// The recording goes on now, from where it is.
    pub(super) fn go_on(&mut self) {
        (self.from, self.at) = (self.reached, monotonic());
    }
}
