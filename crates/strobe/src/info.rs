// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a run: before its first row, and after its last.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize, Serializer};
use strobe_hw::rt::Step;
use strobe_ring::layout::MISSED_CAUSES;
use strobe_ring::{Engine, Missed, RowShape, Snapshot, StartTimes, State};

use crate::accounting::Accounting;
use crate::channel::{Channel, column_names, numbered};
use crate::fields;
use crate::note::Note;
use crate::quantity::show_ns;

/// Clock of all times of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_TAI.
    Tai,
}

impl Clock {
    /// Its name, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Monotonic => "monotonic",
            Clock::Tai => "tai",
        }
    }
}

/// A run, as it is known when it has been started. All of it goes into files.
///
/// Its names and values by serde are the encoding of the project: in the registry, in `.arrows` files and in `.h5` files.
/// Where a format has nothing but text, numbers are read from their decimal digits, and lists from JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Who makes the rows.
    #[serde(with = "fields::engine")]
    pub engine: Engine,
    /// Release of the kernel it runs on.
    #[serde(default)]
    pub kernel: String,
    /// The event, as it was asked for.
    #[serde(default)]
    pub event: String,
    /// Number of the run.
    #[serde(deserialize_with = "fields::number")]
    pub run: u32,
    /// Clock of all times.
    pub clock: Clock,
    /// Distance of triggers, if the event has one.
    #[serde(default, deserialize_with = "fields::optional")]
    pub period_ns: Option<u64>,
    /// Rows in the ring.
    #[serde(deserialize_with = "fields::number")]
    pub capacity: u64,
    /// Rows the run will make at most; `None`: until it is stopped.
    #[serde(default, deserialize_with = "fields::optional")]
    pub limit: Option<u64>,
    /// When it was started, and when its first trigger was due; all 0 before.
    #[serde(flatten, with = "fields::Start")]
    pub start: StartTimes,
    /// The values of a row, in their order.
    pub channels: Vec<Channel>,
    /// Names of the outputs that a row writes, in the order of their steps.
    #[serde(with = "fields::named")]
    pub outputs: Vec<String>,
    /// Names of the columns whose values can be set while the run goes on, in their order: [`Run::tune`](crate::run::Run::tune).
    #[serde(
        default,
        deserialize_with = "fields::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tunables: Vec<String>,
    /// Whether the event may leave out triggers on purpose.
    #[serde(default)]
    pub skips: bool,
    /// How the event accounts for what its source drops.
    #[serde(default)]
    pub accounting: Accounting,
    /// Real-time set-up: what was got, and what was refused.
    #[serde(default, deserialize_with = "fields::list")]
    pub set_up: Vec<Step>,
    /// How the machine was when it was recorded; nothing of a run that is not.
    #[serde(default, deserialize_with = "fields::list")]
    pub doctor: Vec<Note>,
}

impl RunInfo {
    /// What a row consists of.
    pub fn shape(&self) -> RowShape {
        // Their sum is at most STEPS_MAX.
        RowShape {
            channels: self.channels.len() as u32,
            outputs: self.outputs.len() as u32,
            skipped: self.skips,
        }
    }

    /// When trigger 0 was due, if the event is ever due. An HPET has a period, but no phase that the run's
    /// clock knows.
    pub fn first_due_ns(&self) -> Option<u64> {
        let due = self.start.first_due;
        self.period_ns.and((due != 0).then_some(due))
    }

    /// Names of all that can fail in a row, in the order of [`strobe_ring::Faults`]. An output is told from a channel
    /// of the same name.
    pub fn fault_names(&self) -> Vec<String> {
        let outputs: Vec<_> = self.outputs.iter().map(String::as_str).collect();
        let outputs = numbered(&outputs).into_iter();
        let outputs = outputs.map(|name| format!("output {name}"));
        column_names(&self.channels)
            .into_iter()
            .chain(outputs)
            .collect()
    }
}

/// Causes of missed triggers that this version knows, in the order of their counters.
#[doc(hidden)]
pub fn known_causes() -> impl Iterator<Item = &'static str> {
    Missed::NAMES
        .into_iter()
        .take(Missed::Suspended as usize + 1)
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All that was asked for was done.
    Complete,
    /// It was interrupted.
    Stopped,
    /// The run failed; the text says why.
    Failed(String),
}

impl Serialize for End {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            End::Failed(why) => to.collect_str(&format_args!("failed: {why}")),
            end => to.serialize_str(end.word()),
        }
    }
}

impl End {
    /// How a run of so many rows ended whose last counters these are, and that was asked to end like this, if it was.
    #[doc(hidden)]
    pub fn of(last: &Snapshot, limit: Option<u64>, asked: Option<End>) -> End {
        match (last.state, asked) {
            (State::Failed, _) => End::Failed(failure(last)),
            (_, Some(failed @ End::Failed(_))) => failed,
            // The limit may be reached before the run notices that it is asked to end; then there is nothing that was
            // cut off.
            (State::Done, _) => End::Complete,
            (_, Some(asked)) => asked,
            // By somebody else, or since nothing more can come: rows that were asked for are not there.
            (_, None) if limit.is_some() => End::Stopped,
            (_, None) => End::Complete,
        }
    }

    /// That of a recording, which has nothing but its [word](End::word).
    #[doc(hidden)]
    pub fn of_word(word: &str) -> End {
        match word {
            "complete" => End::Complete,
            "stopped" => End::Stopped,
            _ => End::Failed("when it was recorded".to_owned()),
        }
    }

    /// In one word.
    pub fn word(&self) -> &'static str {
        match self {
            End::Complete => "complete",
            End::Stopped => "stopped",
            End::Failed(_) => "failed",
        }
    }
}

/// The reason of a run that failed, in words.
#[doc(hidden)]
pub fn failure(last: &Snapshot) -> String {
    let after = last.end_time.saturating_sub(last.start.time);
    let after = show_ns(after as f64);
    match Errno::from_raw_os_error(last.error.saturating_neg()) {
        Errno::NODEV => format!("a device of the run was removed after {after}"),
        Errno::PIPE => format!("the run's program ended or closed it after {after}"),
        errno => format!("after {after}: {}", io::Error::from(errno)),
    }
}

/// The account of a run that has ended, for one reader of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Rows the run made.
    pub rows: u64,
    /// Triggers there were.
    pub triggers: u64,
    /// Triggers that were left out on purpose: no loss.
    pub skipped: u64,
    /// Triggers that should have made a row and did not, by cause.
    pub missed_by: [u64; MISSED_CAUSES],
    /// Rows that were overwritten before this reader came.
    pub lost: u64,
    /// Rows in which a channel or an output failed.
    pub errors: u64,
    /// When the run ended, on its clock.
    pub end_time_ns: u64,
    /// How it ended.
    pub end: End,
}

impl Totals {
    /// That of a run whose last counters these are, for a reader that has lost so many rows; as if it were complete.
    #[doc(hidden)]
    pub fn of(last: &Snapshot, lost: u64) -> Totals {
        Totals {
            rows: last.head,
            triggers: last.triggers,
            skipped: last.skipped,
            missed_by: last.missed_by,
            lost,
            errors: last.errors,
            end_time_ns: last.end_time,
            end: End::Complete,
        }
    }

    /// Triggers that should have made a row and did not.
    pub fn missed(&self) -> u64 {
        (self.triggers)
            .saturating_sub(self.rows)
            .saturating_sub(self.skipped)
    }

    /// Causes by name. Those that this version knows are always there, others
    /// if they occurred.
    pub fn missed_by_name(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let known = known_causes().count();
        let causes = Missed::NAMES.into_iter().zip(self.missed_by).enumerate();
        causes
            .filter(move |(cause, (_, count))| *cause < known || *count > 0)
            .map(|(_, named)| named)
    }

    /// Whether each trigger that was not skipped made a row, each row arrived and each channel of
    /// it was read.
    pub fn is_whole(&self) -> bool {
        self.missed() == 0 && self.lost == 0 && self.errors == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::totals;

    #[test]
    fn unknown_causes_are_named_once_they_occur() {
        let mut totals = totals(10);
        assert_eq!(totals.missed(), 3);
        let names = |t: &Totals| t.missed_by_name().map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(
            names(&totals),
            ["overrun", "busy", "throttled", "source", "suspended"]
        );
        totals.missed_by[6] = 1;
        assert_eq!(names(&totals).last(), Some(&"cause6"));
    }

    #[test]
    fn whole_means_nothing_missed_lost_or_failed() {
        let whole = Totals {
            triggers: 10,
            missed_by: [0; 8],
            lost: 0,
            ..totals(10)
        };
        assert!(whole.is_whole());
        assert!(!totals(10).is_whole());
        let skipped = Totals {
            triggers: 15,
            skipped: 5,
            ..whole.clone()
        };
        assert!(
            skipped.is_whole(),
            "what was left out on purpose is no loss"
        );
        assert!(
            !Totals {
                lost: 1,
                ..whole.clone()
            }
            .is_whole()
        );
        assert!(
            !Totals {
                errors: 1,
                ..whole.clone()
            }
            .is_whole()
        );
        assert!(
            !Totals {
                triggers: 11,
                ..whole
            }
            .is_whole()
        );
    }
}
