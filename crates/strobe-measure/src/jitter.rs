// SPDX-License-Identifier: MIT OR Apache-2.0
//! How regular the rows of a run are: each period against a band around the one that was asked for, as a counter in
//! hardware would judge it, and the lateness of each row.

use serde::Serialize;
use strobe::info::RunInfo;
use strobe::stats::{Figures, Stats};
use strobe::timing::Timing;
use strobe_ring::Row;

pub mod band;
pub mod compare;
pub mod contender;
mod drift;
pub mod judge;
pub mod load;
pub mod pacing;
mod relative;
pub mod round;
pub mod timeline;

use drift::Drift;
use timeline::Timeline;

/// What a period is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Target {
    /// ns; more than 0.
    pub period_ns: u64,
    /// How much longer a period may be and still be in range, ns.
    pub band_ns: u64,
    /// How much shorter, ns.
    pub under_ns: u64,
}

/// Periods, as a counter counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeriodCounts {
    /// In the band.
    pub in_range: u64,
    /// Longer.
    pub over: u64,
    /// Shorter.
    pub under: u64,
}

/// The rows of a run, or of several that had the same target.
#[derive(Debug, Clone)]
pub struct Jitter {
    target: Target,
    timing: Timing,
    in_range: u64,
    over: u64,
    under: u64,
    drift: Drift,
    last: Option<Last>,
    timeline: Timeline,
}

/// Of the row before.
#[derive(Debug, Clone, Copy)]
struct Last {
    row: u64,
    trigger: u64,
    skipped: u64,
}

/// The same in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Periods in the band.
    pub in_range: u64,
    /// Longer ones.
    pub over: u64,
    /// Shorter ones.
    pub under: u64,
    /// Triggers between the rows that should have made one.
    pub missed: u64,
    /// How much longer the time from trigger to trigger is than the period, in millionths. `None` without two rows.
    pub drift_ppm: Option<f64>,
    /// Time from row to row, ns.
    pub period_ns: Option<Figures>,
    /// Time from due to row, ns; `None` if that is not known.
    pub late_ns: Option<Figures>,
}

impl Jitter {
    /// For the rows of this run.
    pub fn new(info: &RunInfo, target: Target) -> Self {
        let mut timing = Timing::new(info);
        // Quantiles are best near the value that is expected.
        timing.period = Stats::around(i64::try_from(target.period_ns).unwrap_or(i64::MAX));
        Jitter {
            target,
            timing,
            in_range: 0,
            over: 0,
            under: 0,
            drift: Drift::default(),
            last: None,
            timeline: Timeline::new(target.period_ns),
        }
    }

    /// The next row that was delivered.
    pub fn add(&mut self, row: Row<'_>) {
        let this = Last {
            row: row.row,
            trigger: row.trigger,
            skipped: row.skipped,
        };
        if row.status.resumed() {
            self.drift.pause();
        }
        self.drift.add(row.trigger, row.time, self.target.period_ns);
        let before = self.last.replace(this);
        let before = before.filter(|_| !row.status.resumed());
        let (mut missed, mut skipped) = (0, 0);
        if let Some(before) = before {
            let triggers = this.trigger.saturating_sub(before.trigger);
            skipped = this.skipped.saturating_sub(before.skipped);
            let made = this.row.saturating_sub(before.row);
            missed = triggers.saturating_sub(made).saturating_sub(skipped);
        }
        let mut off_ns = 0;
        if let Some(period) = self.timing.add(row) {
            // Triggers that were skipped are periods, too.
            let periods = i128::from(skipped) + 1;
            let from_target = i128::from(period) - periods * i128::from(self.target.period_ns);
            let count = match from_target {
                far if far > i128::from(self.target.band_ns) => &mut self.over,
                far if far < -i128::from(self.target.under_ns) => &mut self.under,
                _ => &mut self.in_range,
            };
            *count += 1;
            off_ns = from_target.unsigned_abs() as u64;
        }
        self.timeline.add(row.time, missed, off_ns);
    }

    /// All rows of `other` as well, which had the same target.
    pub fn merge(&mut self, other: &Jitter) {
        self.timing.period.merge(&other.timing.period);
        self.timing.late.merge(&other.timing.late);
        self.in_range += other.in_range;
        self.over += other.over;
        self.under += other.under;
        self.drift.merge(&other.drift);
    }

    /// The counts so far.
    pub fn counted(&self) -> PeriodCounts {
        PeriodCounts {
            in_range: self.in_range,
            over: self.over,
            under: self.under,
        }
    }

    /// How the run went on; of merged ones, the first.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// All periods.
    pub fn period(&self) -> &Stats {
        &self.timing.period
    }

    /// All latenesses.
    pub fn late(&self) -> &Stats {
        &self.timing.late
    }

    /// In figures; `missed` is what the run says.
    pub fn report(&self, missed: u64) -> Report {
        let period = self.target.period_ns as f64;
        let drift = self.drift.ns_per_trigger();
        Report {
            in_range: self.in_range,
            over: self.over,
            under: self.under,
            missed,
            drift_ppm: drift.map(|ns| 1e6 * ns / period),
            period_ns: self.timing.period.figures(),
            late_ns: self.timing.late.figures(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::samples::info;
    use strobe_ring::layout::ROW_RESUMED as RESUMED;
    use strobe_ring::{RowShape, Rows};

    const TARGET: Target = Target {
        period_ns: 1000,
        band_ns: 30,
        under_ns: 30,
    };

    fn jitter(rows: &[[u64; 4]]) -> Jitter {
        let mut info = info(Vec::new());
        info.period_ns = Some(1000);
        info.start.first_due = 1000;
        let mut jitter = Jitter::new(&info, TARGET);
        for words in rows {
            Rows::new(words, RowShape::default()).for_each(|row| jitter.add(row));
        }
        jitter
    }

    #[test]
    fn triggers_that_were_skipped_are_neither_missed_nor_out_of_range() {
        let mut info = info(Vec::new());
        info.skips = true;
        let mut jitter = Jitter::new(&info, TARGET);
        let rows = [
            [0, 1, 2000, 0, 1],
            [1, 3, 4010, 0, 2],
            [2, 6, 7000, 0, 3],
            [3, 8, 9005, 0, 4],
        ];
        for words in rows {
            Rows::new(&words, info.shape()).for_each(|row| jitter.add(row));
        }
        let report = jitter.report(1);
        assert_eq!((report.in_range, report.over, report.under), (2, 1, 0));
        let missed = jitter.timeline().parts.iter().map(|part| part.missed);
        assert_eq!(missed.sum::<u64>(), 1);
    }

    #[test]
    fn a_period_on_the_edge_of_the_band_is_in_range_and_one_beyond_is_not() {
        let times = [1000, 2000, 3030, 4061, 5031, 6000];
        let rows: Vec<[u64; 4]> = (0..).zip(times).map(|(n, time)| [n, n, time, 0]).collect();
        let report = jitter(&rows).report(0);
        assert_eq!((report.in_range, report.over, report.under), (3, 1, 1));
    }

    #[test]
    fn drift_is_of_triggers_and_a_missed_one_is_none() {
        let rows = [[0, 0, 1000, 0], [1, 1, 2001, 0], [2, 4, 5004, 0]];
        let report = jitter(&rows).report(2);
        let drift = report.drift_ppm.expect("a drift");
        assert!((drift - 1000.0).abs() < 1e-6, "{drift}");
        assert_eq!((report.over, report.missed), (1, 2));
    }

    #[test]
    fn the_timeline_tells_missed_triggers_from_lost_rows() {
        let rows = [[0, 0, 1000, 0], [1, 3, 4000, 0], [4, 6, 7000, 0]];
        let jitter = jitter(&rows);
        let parts = &jitter.timeline().parts;
        let missed: Vec<u64> = parts.iter().map(|part| part.missed).collect();
        assert_eq!(missed, [0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(parts[3].worst_ns, 2000);
    }

    #[test]
    fn a_pause_is_neither_a_period_nor_a_drift() {
        let rows = [[0, 0, 1000, 0], [1, 1, 90_000, RESUMED], [2, 2, 91_000, 0]];
        let report = jitter(&rows).report(0);
        assert_eq!((report.in_range, report.over), (1, 0));
        assert_eq!(report.drift_ppm, Some(0.0));
    }

    #[test]
    fn runs_of_the_same_target_are_merged() {
        let mut all = jitter(&[[0, 0, 1000, 0], [1, 1, 2000, 0]]);
        all.merge(&jitter(&[[0, 0, 1100, 0], [1, 1, 2200, 0]]));
        let report = all.report(0);
        assert_eq!((report.in_range, report.over), (1, 1));
        let drift = report.drift_ppm.expect("a drift");
        assert!((drift - 50_000.0).abs() < 1e-6, "{drift}");
        let late = report.late_ns.expect("it is known");
        assert_eq!((late.min, late.max), (0, 200));
    }

    #[test]
    fn one_row_says_nothing_of_periods() {
        let report = jitter(&[[0, 0, 1000, 0]]).report(0);
        assert_eq!((report.period_ns, report.drift_ppm), (None, None));
    }
}
