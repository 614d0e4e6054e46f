// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the rows of a run say about time: their period and their lateness.
//!
//! A *period* is the difference between the times of two rows that were made
//! one after the other. If triggers were missed between them it is long, and
//! stays so: a stall of the machine must show. Where triggers were skipped it is
//! long on purpose. Where this reader lost rows, or
//! the run was paused, there is no period: that would be about something else.
//!
//! *Late* is the time of a row minus the time at which its trigger was due. It
//! comes from `clock.late` if that channel is in the row, else from the grid
//! of the timer; an event that is never due has none, and no row in which that
//! channel failed.

use strobe_ring::Row;

use crate::info::RunInfo;
use crate::stats::Stats;

/// The channel that holds the lateness of a row.
const LATE_CHANNEL: &str = "clock.late";

/// Streaming statistics over the rows of one run.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Difference of time of consecutive rows.
    pub period: Stats,
    /// Time from due to row.
    pub late: Stats,
    source: LateSource,
    last: Option<(u64, u64)>,
    last_late: Option<i64>,
    /// The rows may begin after a pause that this does not know of.
    joins: bool,
}

#[derive(Debug, Clone)]
enum LateSource {
    /// This value of the row.
    Value(usize),
    /// Trigger 0 of the grid was due at `first_due`.
    Grid {
        first_due: u64,
        period_ns: u64,
    },
    Unknown,
}

impl Timing {
    /// For the rows of this run.
    pub fn new(info: &RunInfo) -> Self {
        let value = info.channels.iter().position(|c| c.name == LATE_CHANNEL);
        let source = match (value, info.first_due_ns(), info.period_ns) {
            (Some(index), _, _) => LateSource::Value(index),
            (None, Some(first_due), Some(period_ns)) if period_ns > 0 => LateSource::Grid {
                first_due,
                period_ns,
            },
            _ => LateSource::Unknown,
        };
        let expected = info
            .period_ns
            .and_then(|ns| i64::try_from(ns).ok())
            .unwrap_or(0);
        Timing {
            period: Stats::around(expected),
            late: Stats::around(0),
            source,
            last: None,
            last_late: None,
            joins: false,
        }
    }

    /// For the rows of this run from somewhere in the middle: it may have been paused before. A row to begin
    /// with that is more than a period late is taken for one after a pause.
    pub fn joining(info: &RunInfo) -> Self {
        Timing {
            joins: true,
            ..Timing::new(info)
        }
    }

    /// The next row that was delivered. Answers the period that ends with it, if there is one.
    pub fn add(&mut self, row: Row<'_>) -> Option<i64> {
        let Row { trigger, time, .. } = row;
        let before = self
            .last
            .filter(|(last_row, _)| row.row == last_row + 1 && !row.status.resumed());
        let period = before.map(|(_, last_time)| between(last_time, time));
        if let Some(period) = period {
            self.period.add(period);
        }
        let first = self.last.replace((row.row, time)).is_none();
        self.last_late = match &mut self.source {
            LateSource::Value(index) => {
                let value = row.values.get(*index);
                let value = value.filter(|_| !row.faults.failed(*index));
                value.map(|word| *word as i64)
            }
            LateSource::Grid {
                first_due,
                period_ns,
            } => {
                let since_first = trigger.wrapping_mul(*period_ns);
                let late = between(first_due.wrapping_add(since_first), time);
                let apart = first && self.joins && late.unsigned_abs() >= *period_ns;
                if row.status.resumed() || apart {
                    // The grid went on during the pause, the triggers did not:
                    // this one belongs to the grid point before its time.
                    let passed = time.saturating_sub(*first_due);
                    let due = time.wrapping_sub(passed % *period_ns);
                    *first_due = due.wrapping_sub(since_first);
                }
                Some(between(first_due.wrapping_add(since_first), time))
            }
            LateSource::Unknown => None,
        };
        if let Some(late) = self.last_late {
            self.late.add(late);
        }
        period
    }

    /// How late the last row was, ns, if that is known.
    pub fn last_late(&self) -> Option<i64> {
        self.last_late
    }
}

/// Signed nanoseconds from one time to another.
fn between(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Type;
    use crate::samples::channel;
    use crate::samples::info;
    use strobe_ring::layout::ROW_RESUMED as RESUMED;
    use strobe_ring::{RowShape, Rows};

    fn timing(info: &RunInfo, rows: &[[u64; 5]]) -> Timing {
        let mut timing = Timing::new(info);
        for words in rows {
            Rows::new(words, RowShape::of_channels(1)).for_each(|row| {
                timing.add(row);
            });
        }
        timing
    }

    fn min_max(stats: &Stats) -> Option<(i64, i64)> {
        stats.figures().map(|f| (f.min, f.max))
    }

    /// A timer of 100 ns, first due at 1000.
    fn timer() -> RunInfo {
        let mut info = info(vec![channel("sim.counter", Type::U64)]);
        info.period_ns = Some(100);
        info.start.first_due = 1000;
        info
    }

    #[test]
    fn lateness_is_measured_against_the_grid() {
        let rows = [[0, 0, 1003, 0, 0], [1, 1, 1105, 0, 0], [2, 2, 1200, 0, 0]];
        let t = timing(&timer(), &rows);
        assert_eq!(min_max(&t.late), Some((0, 5)));
        assert_eq!(min_max(&t.period), Some((95, 102)));
    }

    #[test]
    fn missed_triggers_make_a_long_period_but_lost_rows_make_none() {
        let rows = [
            [0, 0, 1000, 0, 0],
            [1, 3, 1301, 0, 0],
            [4, 6, 1602, 0, 0],
            [5, 7, 1702, 0, 0],
        ];
        let t = timing(&timer(), &rows);
        assert_eq!(t.period.count(), 2);
        assert_eq!(min_max(&t.period), Some((100, 301)));
        assert_eq!(min_max(&t.late), Some((0, 2)));
    }

    #[test]
    fn after_a_pause_lateness_goes_on_with_the_next_grid_point() {
        let rows = [
            [0, 0, 1001, 0, 0],
            [1, 1, 9507, RESUMED, 0],
            [2, 2, 9602, 0, 0],
        ];
        let t = timing(&timer(), &rows);
        assert_eq!(t.period.count(), 1);
        assert_eq!(min_max(&t.late), Some((1, 7)));
    }

    #[test]
    fn who_joins_after_a_pause_begins_with_the_grid_point_before() {
        let rows = [[50, 50, 99_507, 0, 0], [51, 51, 99_603, 0, 0]];
        let mut timing = Timing::joining(&timer());
        for words in rows {
            Rows::new(&words, RowShape::of_channels(1)).for_each(|row| {
                timing.add(row);
            });
        }
        assert_eq!(min_max(&timing.late), Some((3, 7)));
        let mut timing = Timing::joining(&timer());
        let late = [5, 5, 1599, 0, 0];
        Rows::new(&late, RowShape::of_channels(1)).for_each(|row| {
            timing.add(row);
        });
        assert_eq!(min_max(&timing.late), Some((99, 99)), "there was no pause");
    }

    #[test]
    fn the_channel_clock_late_is_believed_before_the_grid() {
        let mut info = timer();
        info.channels = vec![channel("clock.late", Type::S64)];
        let t = timing(&info, &[[0, 0, 1003, 0, 42]]);
        assert_eq!(min_max(&t.late), Some((42, 42)));
    }

    #[test]
    fn a_row_whose_clock_late_failed_has_no_lateness() {
        let mut info = timer();
        info.channels = vec![channel("clock.late", Type::S64)];
        let t = timing(&info, &[[0, 0, 1003, 0, 42], [1, 1, 1103, 1 << 32, 0]]);
        assert_eq!((t.late.count(), min_max(&t.late)), (1, Some((42, 42))));
    }

    #[test]
    fn an_event_that_is_never_due_has_no_lateness() {
        let mut info = timer();
        info.period_ns = None;
        let t = timing(&info, &[[0, 0, 1003, 0, 0], [1, 1, 1103, 0, 0]]);
        assert_eq!(t.late.figures(), None);
        assert_eq!(t.period.count(), 1);
    }
}
