// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run went on, in bounded memory: its time in equal parts, which become twice as long when there are too many.

use serde::{Deserialize, Serialize};

/// Parts of a timeline, at most.
pub const PARTS: usize = 512;

/// From the first row on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Of a part, ns; more than 0.
    pub width_ns: u64,
    /// All up to the last one with a row.
    pub parts: Vec<Part>,
    #[serde(skip)]
    begin: Option<u64>,
}

/// What was in one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Rows.
    pub rows: u64,
    /// Triggers before them that made none.
    pub missed: u64,
    /// The greatest distance of a period from the one that was asked for, ns.
    pub worst_ns: u64,
}

impl Timeline {
    /// Of rows that come once a period.
    pub fn new(period_ns: u64) -> Self {
        Timeline {
            width_ns: period_ns.max(1),
            parts: Vec::new(),
            begin: None,
        }
    }

    /// A row at this time, before which so many were missed, and whose period was wrong by `off_ns`.
    pub fn add(&mut self, time: u64, missed: u64, off_ns: u64) {
        let since = time.saturating_sub(*self.begin.get_or_insert(time));
        while since / self.width_ns >= PARTS as u64 {
            self.halve();
        }
        // Less than PARTS.
        let index = (since / self.width_ns) as usize;
        if index >= self.parts.len() {
            self.parts.resize(index + 1, Part::default());
        }
        if let Some(part) = self.parts.get_mut(index) {
            part.add(&Part {
                rows: 1,
                missed,
                worst_ns: off_ns,
            });
        }
    }

    /// Half as many parts of twice the width.
    fn halve(&mut self) {
        let pairs = self.parts.chunks(2).map(|pair| {
            let mut sum = Part::default();
            pair.iter().for_each(|part| sum.add(part));
            sum
        });
        self.parts = pairs.collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }
}

impl Part {
    fn add(&mut self, other: &Part) {
        self.rows += other.rows;
        self.missed += other.missed;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_forgotten_however_long_it_takes() {
        let mut timeline = Timeline::new(10);
        for row in 0..5000 {
            let missed = u64::from(row % 100 == 50);
            timeline.add(777 + 10 * row, missed, row % 1000);
        }
        assert!(timeline.parts.len() <= PARTS);
        assert_eq!(
            timeline.width_ns, 160,
            "10, doubled until 512 parts are enough"
        );
        let sum = |of: fn(&Part) -> u64| timeline.parts.iter().map(of).sum::<u64>();
        assert_eq!((sum(|part| part.rows), sum(|part| part.missed)), (5000, 50));
        let worst = timeline.parts.iter().map(|part| part.worst_ns).max();
        assert_eq!(worst, Some(999));
        assert_eq!(timeline.parts[0].rows, 16);
    }

    #[test]
    fn a_time_without_rows_is_a_gap() {
        let mut timeline = Timeline::new(10);
        timeline.add(100, 0, 0);
        timeline.add(150, 4, 40);
        let rows: Vec<u64> = timeline.parts.iter().map(|part| part.rows).collect();
        assert_eq!(rows, [1, 0, 0, 0, 0, 1]);
        assert_eq!(timeline.parts[5].missed, 4);
    }

    #[test]
    fn a_leap_of_the_clock_costs_no_memory_and_no_time() {
        let mut timeline = Timeline::new(1);
        timeline.add(0, 0, 0);
        timeline.add(u64::MAX, 7, 1);
        assert!(timeline.parts.len() <= PARTS);
        assert_eq!(timeline.parts.last().map(|part| part.missed), Some(7));
    }
}
