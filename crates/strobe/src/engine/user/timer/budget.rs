// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of a CPU a timer's run may take while it misses triggers.

use rustix::time::{ClockId, clock_gettime};

/// Time over which the CPU share of a run that cannot keep up is looked at.
pub(super) const WINDOW_NS: u64 = 100_000_000;
/// Share of it that such a run may have, in percent; as in the kernel engine.
const SHARE: u64 = 80;

/// Keeps a run that misses triggers from taking the whole CPU. The thread's CPU time is asked for only when
/// something was missed, and then ten times a second.
#[derive(Default)]
pub(super) struct Budget {
    pub(super) window: u64,
    pub(super) cpu: u64,
}

impl Budget {
    pub(super) fn new(now: u64) -> Self {
        Budget {
            window: now,
            cpu: cpu_time(),
        }
    }

    /// Until when the run has to rest, if it has to.
    pub(super) fn rest(&mut self, now: u64, cpu_time: impl FnOnce() -> u64) -> Option<u64> {
        let passed = now.saturating_sub(self.window);
        if passed < WINDOW_NS {
            return None;
        }
        let cpu = cpu_time();
        let used = cpu.saturating_sub(self.cpu);
        *self = Budget { window: now, cpu };
        // Long ago is no measure: nothing was missed since.
        if passed > 2 * WINDOW_NS || used * 100 <= passed * SHARE {
            return None;
        }
        let rest = used * 100 / SHARE - passed;
        self.window = now + rest;
        Some(now + rest)
    }
}

/// CPU time of this thread.
pub(super) fn cpu_time() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    (used.tv_sec as u64) * 1_000_000_000 + used.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_takes_its_whole_budget_has_to_rest() {
        let mut budget = Budget { window: 0, cpu: 0 };
        assert_eq!(
            budget.rest(WINDOW_NS - 1, || unreachable!()),
            None,
            "too early to say"
        );
        // All of the window was used: a quarter of it more makes that four fifths.
        let rest = budget.rest(WINDOW_NS, || WINDOW_NS);
        assert_eq!(rest, Some(WINDOW_NS + WINDOW_NS / 4));
        assert_eq!(
            budget.rest(WINDOW_NS / 4 + 2 * WINDOW_NS - 1, || unreachable!()),
            None,
            "the next window begins after the rest"
        );
        let used = WINDOW_NS + WINDOW_NS / 2;
        assert_eq!(
            budget.rest(WINDOW_NS / 4 + 2 * WINDOW_NS, || used),
            None,
            "half of a window"
        );
        // Long ago is no measure.
        assert_eq!(budget.rest(10 * WINDOW_NS, || 10 * WINDOW_NS), None);
    }
}
