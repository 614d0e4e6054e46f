// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody who watches a run has seen of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use strobe_ring::{Snapshot, State};

use crate::block::Block;
use crate::channel::{Channel, column_names};
use crate::info::RunInfo;
use crate::info::failure;
use crate::quantity::show_ns;
use crate::source::Live;
use crate::timing::Timing;

/// Values that are kept of each channel, one a picture.
pub const TRACE: usize = 600;
/// Time over which the rate is taken.
const RATE_OVER: Duration = Duration::from_secs(2);
/// A picture is not kept waiting for longer than this, however many rows there are.
const READ_FOR: Duration = Duration::from_millis(100);

/// The last row that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct LastRow {
    /// Its number.
    pub row: u64,
    /// Its words.
    pub words: Vec<u64>,
    /// Channels and outputs that failed, as numbers of [`RunInfo::fault_names`].
    pub failed: Vec<usize>,
}

/// All that is shown of a run.
pub struct Figures {
    /// `user:3`.
    pub name: String,
    /// The run.
    pub info: RunInfo,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// State and counters, when they were last looked at.
    pub now: Option<Snapshot>,
    /// Why nothing more will be seen of a run that has not ended.
    pub gone: Option<String>,
    /// Since the start of the run.
    pub elapsed_ns: u64,
    /// Rows a second.
    pub rate: f64,
    /// Rows in the ring that this reader had not read, when it came to read.
    pub waiting: u64,
    /// Rows that were overwritten before this reader read them.
    pub lost: u64,
    /// Periods and latenesses, once the run has begun.
    pub timing: Option<Timing>,
    /// The last row.
    pub last: Option<LastRow>,
    /// Of each channel, its last values.
    pub traces: Vec<VecDeque<f64>>,
    heads: VecDeque<(Instant, u64)>,
}

impl Figures {
    /// Nothing was seen yet.
    pub fn new(name: String, info: RunInfo) -> Self {
        Figures {
            name,
            columns: column_names(&info.channels),
            traces: vec![VecDeque::new(); info.channels.len()],
            info,
            now: None,
            gone: None,
            elapsed_ns: 0,
            rate: 0.0,
            waiting: 0,
            lost: 0,
            timing: None,
            last: None,
            heads: VecDeque::new(),
        }
    }

    /// Reads what is there.
    pub fn update(&mut self, run: &mut dyn Live) {
        let was_live = self.is_live();
        let before = run.snapshot();
        if before.state != State::Ready && self.timing.is_none() {
            self.info.start = before.start;
            self.timing = Some(Timing::joining(&self.info));
        }
        self.read(run, before.head);
        if self.gone.is_none() {
            self.gone = run.gone();
        }
        let now = run.snapshot();
        if self.is_live() {
            self.elapsed_ns = match now.state {
                State::Ready => 0,
                state if state.is_final() => now.end_time.saturating_sub(now.start.time),
                _ => run.now().saturating_sub(now.start.time),
            };
        }
        self.now = Some(now);
        self.measure_rate(Instant::now(), now.head);
        if let Some(last) = self.last.as_ref().filter(|_| was_live) {
            for (index, trace) in self.traces.iter_mut().enumerate() {
                if trace.len() == TRACE {
                    trace.pop_front();
                }
                trace.push_back(value(&self.info.channels, last, index).unwrap_or(f64::NAN));
            }
        }
    }

    /// The rows that are there; the run had made so many when it came to read.
    fn read(&mut self, run: &mut dyn Live, made: u64) {
        let begun = Instant::now();
        self.waiting = 0;
        let mut is_first = true;
        while let Ok(Some(block)) = run.next(Duration::ZERO) {
            if block.is_empty() && block.lost() == 0 {
                return;
            }
            if std::mem::take(&mut is_first) {
                self.waiting = made.saturating_sub(block.first());
            }
            self.lost += block.lost();
            self.take(&block);
            if begun.elapsed() > READ_FOR {
                return;
            }
        }
    }

    fn take(&mut self, block: &Block) {
        if let Some(timing) = &mut self.timing {
            for row in block.rows() {
                timing.add(row);
            }
        }
        if let Some(row) = block.rows().last() {
            self.last = Some(LastRow {
                row: row.row,
                words: row.values.to_vec(),
                failed: row.faults.iter().collect(),
            });
        }
    }

    fn measure_rate(&mut self, now: Instant, head: u64) {
        if !self.is_live() {
            // What was last measured is what stays on the screen.
            return;
        }
        self.heads.push_back((now, head));
        while let Some((then, before)) = self.heads.front() {
            let passed = now.saturating_duration_since(*then);
            if passed > RATE_OVER && self.heads.len() > 2 {
                self.heads.pop_front();
                continue;
            }
            if !passed.is_zero() {
                self.rate = head.saturating_sub(*before) as f64 / passed.as_secs_f64();
            }
            return;
        }
    }

    /// Whether more may come.
    pub fn is_live(&self) -> bool {
        self.gone.is_none() && !self.now.is_some_and(|now| now.state.is_final())
    }

    /// The state in words; if it has failed, why.
    pub fn state(&self) -> String {
        match (&self.now, &self.gone) {
            (Some(now), _) if now.error != 0 => format!("failed: {}", failure(now)),
            (Some(now), _) if now.state.is_final() && now.state != State::Failed => {
                now.state.name().to_owned()
            }
            (_, Some(why)) => format!("failed: {why}"),
            (Some(now), None) => now.state.name().to_owned(),
            (None, None) => String::new(),
        }
    }

    /// Value and unit of a channel in the last row; `None` if it could not be read, or there is no row.
    pub fn value(&self, index: usize) -> Option<f64> {
        value(&self.info.channels, self.last.as_ref()?, index)
    }

    /// One line, for when the terminal is as it was.
    pub fn last_words(&self) -> String {
        let Some(now) = &self.now else {
            return String::new();
        };
        format!(
            "{} {}: {}, {} rows in {}, missed {}, skipped {}, errors {}; this view lost {}\n",
            self.name,
            self.info.event,
            self.state(),
            now.head,
            show_ns(self.elapsed_ns as f64),
            now.missed(),
            now.skipped,
            now.errors,
            self.lost
        )
    }
}

fn value(channels: &[Channel], row: &LastRow, index: usize) -> Option<f64> {
    if row.failed.contains(&index) {
        return None;
    }
    let channel = channels.get(index)?;
    Some(channel.value(*row.words.get(index)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{OwnedRun, Run};
    use crate::samples::watched_soft as soft;

    #[test]
    fn what_is_seen_is_what_the_run_did() {
        let (run, mut reader, mut figures) = soft(&["sim.counter", "sim.ramp"], 10);
        figures.update(&mut reader);
        let now = figures.now.expect("a look");
        assert_eq!(
            (now.head, now.missed(), figures.lost, figures.waiting),
            (10, 0, 0, 10)
        );
        assert_eq!(figures.last.as_ref().map(|row| row.row), Some(9));
        assert_eq!(figures.value(0), Some(9.0));
        assert_eq!(figures.timing.as_ref().map(|t| t.period.count()), Some(9));
        assert_eq!(figures.traces[0], [9.0]);
        assert!(figures.is_live());
        assert_eq!(figures.state(), "running");
        run.stop().expect("a stop");
        figures.update(&mut reader);
        assert!(!figures.is_live());
        assert_eq!((figures.state().as_str(), figures.waiting), ("stopped", 0));
        assert!(
            figures
                .last_words()
                .starts_with("user:1 soft: stopped, 10 rows in ")
        );
    }

    #[test]
    fn rows_that_were_overwritten_are_lost_to_the_view_and_no_more() {
        let (run, mut reader, mut figures) = soft(&["sim.counter"], 1000);
        figures.update(&mut reader);
        let ring = reader.ring();
        assert_eq!(figures.lost + ring.delivered(), 1000);
        assert!(figures.lost > 900, "{}", figures.lost);
        assert_eq!(run.reader().expect("a reader").snapshot().missed(), 0);
    }

    #[test]
    fn an_owner_that_goes_is_said() {
        let (run, mut reader, mut figures) = soft(&["sim.counter"], 1);
        figures.update(&mut reader);
        drop(run);
        figures.update(&mut reader);
        let state = figures.state();
        assert!(
            state.starts_with("failed: the run's program ended or closed it"),
            "{state}"
        );
        assert_eq!(figures.value(0), Some(0.0), "the last figures stay");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let (_run, mut reader, mut figures) = soft(&["sim.counter"], 1);
        figures.update(&mut reader);
        figures.heads.clear();
        let start = Instant::now();
        for tenth in 0..=50_u32 {
            let rows = if tenth < 25 {
                0
            } else {
                u64::from(tenth - 25) * 100
            };
            figures.measure_rate(start + tenth * Duration::from_millis(100), rows);
        }
        assert!((figures.rate - 1000.0).abs() < 1.0, "{}", figures.rate);
    }
}
