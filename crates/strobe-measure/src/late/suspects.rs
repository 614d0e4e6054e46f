// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that are to be looked at.

use std::cmp::Reverse;

use strobe::info::RunInfo;
use strobe::timing::Timing;
use strobe_ring::Row;

use super::{LateSelection, MOST};
use crate::trace::cause::Delay;

/// A row to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspect {
    pub(super) row: u64,
    pub(super) trigger: u64,
    pub(super) missed: u64,
    pub(super) delay: Delay,
}

impl Suspect {
    pub(super) fn delay_ns(&self) -> u64 {
        self.delay.to.saturating_sub(self.delay.from)
    }
}

/// The rows that are to be looked at.
#[derive(Debug)]
pub(super) struct Suspects {
    pub(super) which: LateSelection,
    timing: Timing,
    period_ns: u64,
    /// Row, trigger of those that were not skipped, and stamp of the last one.
    last: Option<(u64, u64, u64)>,
    /// Those that were not looked at yet.
    pub(super) waiting: Vec<Suspect>,
    /// Delays up to this are of no interest.
    pub(super) bar_ns: u64,
    /// Rows that were looked at.
    pub(super) seen: usize,
    /// Rows beyond [`MOST`].
    pub(super) more: u64,
    /// From when on there are events to tell why.
    pub(super) since: u64,
    /// Delays of rows before that, among which the worst are not looked for: how many, and the greatest.
    pub(super) overlooked: (u64, u64),
}

impl Suspects {
    pub(super) fn new(info: &RunInfo, which: LateSelection) -> Suspects {
        Suspects {
            which,
            timing: Timing::new(info),
            period_ns: info.period_ns.unwrap_or(0),
            last: None,
            waiting: Vec::new(),
            bar_ns: match which {
                LateSelection::LaterThan(ns) | LateSelection::First(ns) => ns,
                LateSelection::Worst(_) => 0,
            },
            seen: 0,
            more: 0,
            since: 0,
            overlooked: (0, 0),
        }
    }

    /// The next row.
    pub(super) fn row(&mut self, row: &Row<'_>) {
        self.timing.add(*row);
        let triggers = row.trigger.saturating_sub(row.skipped);
        let last = self.last.replace((row.row, triggers, row.time));
        let Some(late) = self.timing.last_late() else {
            return;
        };
        let due = row.time.wrapping_sub(late.max(0) as u64);
        let mut suspect = Suspect {
            row: row.row,
            trigger: row.trigger,
            missed: 0,
            delay: Delay {
                from: due,
                due,
                to: row.time,
            },
        };
        // Triggers that the row before was too late for are its affair.
        let before = last.filter(|(last, ..)| last + 1 == row.row && !row.status.resumed());
        if let Some((_, before, time)) = before {
            let missed = triggers.saturating_sub(before + 1);
            let from = due.saturating_sub(missed.saturating_mul(self.period_ns));
            if missed > 0 && from > time {
                suspect.missed = missed;
                suspect.delay.from = from;
            }
        }
        if suspect.delay_ns() <= self.bar_ns {
            return;
        }
        match self.which {
            LateSelection::Worst(_) if suspect.delay.from <= self.since => {
                let (count, most) = self.overlooked;
                self.overlooked = (count + 1, most.max(suspect.delay_ns()));
                return;
            }
            LateSelection::Worst(count) if self.waiting.len() > 4 * count => self.keep_worst(count),
            LateSelection::First(_) if self.seen + self.waiting.len() > 0 => return,
            LateSelection::LaterThan(_) if self.seen + self.waiting.len() >= MOST => {
                self.more += 1;
                return;
            }
            _ => {}
        }
        self.waiting.push(suspect);
    }

    fn keep_worst(&mut self, count: usize) {
        self.waiting
            .sort_by_key(|suspect| Reverse(suspect.delay_ns()));
        self.waiting.truncate(count);
    }

    /// Those to be looked at now.
    pub(super) fn take(&mut self) -> Vec<Suspect> {
        if let LateSelection::Worst(count) = self.which {
            self.keep_worst(count);
        }
        self.seen += self.waiting.len();
        std::mem::take(&mut self.waiting)
    }
}
