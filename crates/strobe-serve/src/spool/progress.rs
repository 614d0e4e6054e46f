// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a run and its rows at any moment.

use strobe::info::Totals;
use strobe::ring::{Snapshot, State};

use super::losses::Losses;
use super::segments::Segments;

/// Where a run and its spool are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The first row that it was to have: of another's run, who served it may have come later than its first row.
    pub begun: u64,
    /// The oldest row that can be read.
    pub oldest: u64,
    /// The row after the newest one.
    pub next: u64,
    /// Rows that the ring lost before they were drained.
    pub lost: u64,
    /// Counters of the run, as they were when rows came last, at most 100 ms old; `None` if it was not of this process.
    pub run: Option<Snapshot>,
    /// The account of the run, if it has ended and all its rows are here.
    pub totals: Option<Totals>,
    /// Why no more rows come, if that is not the end of the run.
    pub failed: Option<String>,
    /// When that was, on the clock of the run, as far as it is known.
    pub failed_at: u64,
    /// The row after the newest one on the disk.
    pub written: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Rows that had left the memory before they could be written to the disk.
    pub unwritten: u64,
    /// Why rows are not written to the disk, if they should be.
    pub error: Option<String>,
}

impl Progress {
    /// Whether no more rows will come.
    pub fn is_over(&self) -> bool {
        self.totals.is_some() || self.failed.is_some()
    }

    /// Whether the run was started.
    pub fn has_started(&self) -> bool {
        let is_waiting = |run: &Snapshot| matches!(run.state, State::Ready);
        self.run.as_ref().is_some_and(|run| !is_waiting(run)) || self.next > 0 || self.is_over()
    }

    /// That of a run of which there is nothing but files.
    pub(super) fn of_files(segments: &Segments, losses: &Losses) -> Progress {
        Progress {
            oldest: segments.first().unwrap_or(0),
            next: segments.end(),
            written: segments.end(),
            bytes: segments.bytes(),
            begun: losses.begun,
            lost: losses.lost,
            unwritten: losses.unwritten,
            ..Progress::default()
        }
    }
}
