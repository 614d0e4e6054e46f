// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a run. Reading it is no system call where the vDSO serves it.

use rustix::time::{ClockId, clock_gettime};
use strobe_ring::StartTimes;

use crate::info::Clock;

/// The clock of all times of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunClock(ClockId);

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Neither is negative on a machine that has booted.
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// Now, on CLOCK_MONOTONIC.
pub fn monotonic() -> u64 {
    ns(ClockId::Monotonic)
}

impl RunClock {
    /// The clock that a plan names.
    pub fn new(clock: Clock) -> Self {
        RunClock(match clock {
            Clock::Monotonic => ClockId::Monotonic,
            Clock::Tai => ClockId::Tai,
        })
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> u64 {
        ns(self.0)
    }

    /// An instant of this clock on CLOCK_MONOTONIC, which threads sleep by.
    #[inline]
    pub fn monotonic(&self, instant: u64) -> u64 {
        match self.0 {
            ClockId::Monotonic => instant,
            _ => monotonic().wrapping_add(instant.wrapping_sub(self.now())),
        }
    }

    /// An instant of CLOCK_MONOTONIC on this clock, for the time stamps of the kernel.
    #[inline]
    pub fn from_monotonic(&self, instant: u64) -> u64 {
        match self.0 {
            ClockId::Monotonic => instant,
            _ => self.now().wrapping_sub(monotonic().wrapping_sub(instant)),
        }
    }

    /// The three clocks, at the same moment as nearly as can be had.
    pub fn start_times(&self) -> StartTimes {
        let monotonic = monotonic();
        let (realtime, tai) = (ns(ClockId::Realtime), ns(ClockId::Tai));
        StartTimes {
            time: match self.0 {
                ClockId::Monotonic => monotonic,
                _ => tai,
            },
            realtime,
            tai,
            first_due: 0,
        }
    }
}
