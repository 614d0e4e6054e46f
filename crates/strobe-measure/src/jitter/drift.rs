// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much longer the time from trigger to trigger is than the period: the slope of a line through all rows.
//!
//! First and last row alone would do it, were neither of them ever late: a row that is late at the end of a run is no
//! drift.

/// Rows of one run after the other. Sums are of distances from the means, so that long runs lose no digits.
#[derive(Debug, Clone, Default)]
pub struct Drift {
    /// Of the stretch without a pause that is going on.
    rows: f64,
    trigger: f64,
    late: f64,
    trigger_trigger: f64,
    trigger_late: f64,
    /// The trigger and the time that it began with.
    begin: Option<(u64, u64)>,
    /// Of all before it.
    before: (f64, f64),
}

impl Drift {
    /// A row; `period_ns` is what was asked for.
    pub fn add(&mut self, trigger: u64, time: u64, period_ns: u64) {
        let begin = *self.begin.get_or_insert((trigger, time));
        let triggers = trigger.saturating_sub(begin.0);
        let due = i128::from(triggers) * i128::from(period_ns);
        let late = (i128::from(time) - i128::from(begin.1) - due) as f64;
        let triggers = triggers as f64;
        self.rows += 1.0;
        let from_trigger = triggers - self.trigger;
        self.trigger += from_trigger / self.rows;
        self.late += (late - self.late) / self.rows;
        self.trigger_trigger += from_trigger * (triggers - self.trigger);
        self.trigger_late += from_trigger * (late - self.late);
    }

    /// What comes next has another beginning.
    pub fn pause(&mut self) {
        *self = Drift {
            before: self.sums(),
            ..Drift::default()
        };
    }

    /// All rows of `other` as well, which are those of another run.
    pub fn merge(&mut self, other: &Drift) {
        let (ours, theirs) = (self.sums(), other.sums());
        *self = Drift {
            before: (ours.0 + theirs.0, ours.1 + theirs.1),
            ..Drift::default()
        };
    }

    /// In ns a trigger; `None` without two rows.
    pub fn ns_per_trigger(&self) -> Option<f64> {
        let (trigger_trigger, trigger_late) = self.sums();
        (trigger_trigger > 0.0).then(|| trigger_late / trigger_trigger)
    }

    fn sums(&self) -> (f64, f64) {
        (
            self.before.0 + self.trigger_trigger,
            self.before.1 + self.trigger_late,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_late_at_the_end_is_no_drift() {
        let mut drift = Drift::default();
        for row in 0..3000 {
            let late = if row == 2999 { 50_000_000 } else { 0 };
            drift.add(row, 1_000_000 * row + late, 1_000_000);
        }
        let ppm = drift.ns_per_trigger().expect("a drift");
        assert!(ppm.abs() < 50.0, "{ppm} of 1e6 ns");
    }

    #[test]
    fn a_clock_that_is_a_little_slow_is_found_after_a_day() {
        let mut drift = Drift::default();
        let begin = 1_790_000_000_000_000_000;
        for second in 0..86_400 {
            drift.add(1000 * second, begin + 1_000_000_003 * second, 1_000_000);
        }
        let ns = drift.ns_per_trigger().expect("a drift");
        assert!((ns - 0.003).abs() < 1e-9, "{ns}");
    }
}
