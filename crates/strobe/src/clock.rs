// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a run. Reading it is no system call where the vDSO serves it.

use rustix::time::{ClockId, clock_gettime};
use strobe_ring::StartTimes;

use crate::info::Clock;

/// Sets of the three clocks that are read at a start.
const SETS: usize = 8;

/// The clock of all times of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(crate) fn of_monotonic(&self, instant: u64) -> u64 {
        match self.0 {
            ClockId::Monotonic => instant,
            _ => self.now().wrapping_sub(monotonic().wrapping_sub(instant)),
        }
    }

    /// The three clocks, at the same moment as nearly as can be had.
    pub(crate) fn start_times(&self) -> StartTimes {
        self.start_times_by(ns)
    }

    /// The same, of clocks that are read like this. A thread may lose its CPU between two readings: of several sets, the
    /// one that was read in the shortest time is taken, and that time is halved.
    fn start_times_by(&self, mut read: impl FnMut(ClockId) -> u64) -> StartTimes {
        let mut tightest = u64::MAX;
        let mut times = StartTimes::default();
        for _ in 0..SETS {
            let before = read(ClockId::Monotonic);
            let (realtime, tai) = (read(ClockId::Realtime), read(ClockId::Tai));
            let took = read(ClockId::Monotonic).saturating_sub(before);
            if took < tightest {
                tightest = took;
                times = StartTimes {
                    time: match self.0 {
                        ClockId::Monotonic => before + took / 2,
                        _ => tai,
                    },
                    realtime,
                    tai,
                    first_due: 0,
                };
            }
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REALTIME: u64 = 1_000_000_000_000;
    const TAI: u64 = REALTIME + 37_000_000_000;

    /// The start times of a thread that loses its CPU before these readings, for so long.
    fn interrupted(clock: Clock, before: &[usize], ns: u64) -> StartTimes {
        let (mut now, mut readings) = (1_000_000, 0);
        RunClock::new(clock).start_times_by(|clock| {
            now += 30;
            if before.contains(&readings) {
                now += ns;
            }
            readings += 1;
            match clock {
                ClockId::Realtime => REALTIME + now,
                ClockId::Tai => TAI + now,
                _ => now,
            }
        })
    }

    #[test]
    fn the_clocks_of_a_start_agree_although_the_thread_loses_its_cpu_between_them() {
        for before in [&[][..], &[1], &[2, 5], &[1, 4, 9, 13, 17]] {
            let times = interrupted(Clock::Monotonic, before, 5_000_000);
            let offset = times.realtime - times.time;
            assert!(offset.abs_diff(REALTIME) <= 50, "{before:?}: {times:?}");
            assert!(
                (times.tai - times.time).abs_diff(TAI) <= 50,
                "{before:?}: {times:?}"
            );
            let times = interrupted(Clock::Tai, before, 5_000_000);
            assert_eq!(times.time, times.tai);
            assert!(
                (times.tai - times.realtime).abs_diff(TAI - REALTIME) <= 50,
                "{before:?}: {times:?}"
            );
        }
    }
}
