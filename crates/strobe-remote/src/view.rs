// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as a server shows it.

use std::collections::BTreeMap;

use serde::Deserialize;
use strobe::catalogue::RunStatus;
use strobe::info::{End, RunInfo, Totals};
use strobe::ring::layout::MISSED_CAUSES;
use strobe::ring::{Missed, Snapshot, State};

/// What a server says of one of its runs.
#[derive(Debug, Clone, Deserialize)]
pub struct RunView {
    /// Its number there.
    pub id: u32,
    /// Its name there.
    #[serde(default)]
    pub name: String,
    /// Whether it is the server's own, so that it can be started and ended there.
    pub own: bool,
    /// Where it is, in a word.
    pub state: String,
    /// What is known of it.
    pub info: RunInfo,
    /// Rows made.
    pub rows: u64,
    /// Triggers known.
    pub triggers: u64,
    /// Triggers that should have made a row and did not.
    pub missed: u64,
    /// The same by cause.
    #[serde(default)]
    pub missed_by: BTreeMap<String, u64>,
    /// Triggers that were left out on purpose.
    pub skipped: u64,
    /// Rows in which a channel or an output failed.
    pub errors: u64,
    /// Rows that the ring had lost before the server had them.
    pub lost: u64,
    /// The oldest row that the server still has.
    pub oldest: u64,
    /// The row after the newest one that it has.
    pub next: u64,
    /// How it ended, if it has.
    pub end: Option<String>,
    /// Seconds since its start.
    pub elapsed_s: f64,
    /// How its rows are kept.
    pub spool: Option<SpoolView>,
    /// Its readers.
    #[serde(default)]
    pub readers: u32,
}

/// How the rows of a run are kept.
#[derive(Debug, Clone, Deserialize)]
pub struct SpoolView {
    /// Why rows are not on the disk.
    pub error: Option<String>,
}

impl RunView {
    /// Where it is.
    pub fn state(&self) -> State {
        let known = (0..=State::Failed.to_raw()).map(State::from_raw);
        let mut named = known.filter(|state| state.name() == self.state);
        // One of a later version: final, whatever it is.
        named.next().unwrap_or(State::Other(u32::MAX))
    }

    /// How it ended, if it has.
    pub fn end(&self) -> Option<End> {
        let end = self.end.as_deref()?;
        Some(match end {
            "complete" => End::Complete,
            "stopped" => End::Stopped,
            why => End::Failed(why.strip_prefix("failed: ").unwrap_or(why).to_owned()),
        })
    }

    /// Its counters, as a ring's header has them.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        Snapshot {
            state,
            head: self.rows,
            triggers: self.triggers,
            skipped: self.skipped,
            missed_by: self.missed_by(),
            errors: self.errors,
            error: 0,
            start: self.info.start,
            end_time: match state.is_final() {
                true => self.now(),
                false => 0,
            },
        }
    }

    /// The same as in the list of the runs of a machine.
    pub fn status(&self) -> RunStatus {
        let info = &self.info;
        RunStatus {
            run: self.id,
            engine: info.engine.name(),
            // With its period it is said below.
            event: match info.period_ns.and(info.event.split_once(':')) {
                Some((event, _)) => event.to_owned(),
                None => info.event.clone(),
            },
            program: self.name.clone(),
            state: self.state(),
            error: 0,
            channels: info.shape().channels,
            readers: self.readers,
            uid: 0,
            pid: 0,
            capacity: info.capacity,
            limit: info.limit,
            rows: self.rows,
            triggers: self.triggers,
            missed: self.missed,
            skipped: self.skipped,
            errors: self.errors,
            period_ns: info.period_ns.unwrap_or(0),
            elapsed_ns: (self.elapsed_s * 1e9) as u64,
        }
    }

    /// What the list does not say, and nobody may overlook.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!(
                "run {}: {} rows were lost before the server had them",
                self.id, self.lost
            ));
        }
        let error = self.spool.as_ref().and_then(|spool| spool.error.as_ref());
        if let Some(error) = error {
            notes.push(format!(
                "run {}: its rows are not on disk: {error}",
                self.id
            ));
        }
        notes
    }

    /// When this was said, on the clock of the run; when it ended, if it has.
    pub fn now(&self) -> u64 {
        self.info.start.time + (self.elapsed_s * 1e9).round() as u64
    }

    /// The account for a reader who has lost so many rows; `None` if the run has not ended.
    pub fn totals(&self, lost: u64) -> Option<Totals> {
        let end = self.end()?;
        Some(Totals {
            rows: self.rows,
            triggers: self.triggers,
            skipped: self.skipped,
            missed_by: self.missed_by(),
            lost,
            errors: self.errors,
            end_time_ns: self.now(),
            end,
        })
    }

    fn missed_by(&self) -> [u64; MISSED_CAUSES] {
        Missed::NAMES.map(|cause| self.missed_by.get(cause).copied().unwrap_or(0))
    }
}
