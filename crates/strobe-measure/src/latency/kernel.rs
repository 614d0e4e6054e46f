// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an event to its row, and to the program that reads it, in the kernel engine.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use strobe::engine;
use strobe::engine::kernel::{self, Control};
use strobe::event::{Event, EventSpec};
use strobe::follow::{self, Account, FollowSettings, follow};
use strobe::plan::{Plan, Step};
use strobe::run::Run;
use strobe::stop::Stop;
use strobe_ring::Row;

use super::Common;
use super::delays::{self, Counter};
use super::steps::{Report, Steps};
use crate::cpu::{NoCpu, StartedOn, check_cpu};
use crate::machine::Machine;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// What triggers a row, such as timer:1kHz or counter.eoc.
    pub event: EventSpec,
    /// More channels of each row.
    pub read: Vec<String>,
    /// The board's counter that runs on.
    pub running: Option<String>,
    /// The same counter, latched at the event.
    pub latched: Option<String>,
    /// The thread that reads never sleeps.
    pub spin: bool,
    /// What is asked of every way.
    pub common: Common,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The CPU cannot be had.
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    /// An event that nobody raises.
    #[error(
        "soft: no device raises it; name a timer, such as timer:1kHz, or an event of a device (`strobe list` shows \
         them)"
    )]
    Soft,
    /// Nothing has happened.
    #[error("{0}: no event came; is its source running?")]
    Silent(String),
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The channels do not say what they would have to.
    #[error(transparent)]
    Channels(#[from] delays::Error),
    /// The rows could not be followed.
    #[error("{0}: {1}")]
    Follow(String, follow::Error),
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcome {
    /// What made the rows.
    pub event: String,
    /// A signal came: this is what there was until then.
    pub interrupted: bool,
    /// Where it was measured.
    pub machine: Machine,
    /// What became of the run.
    #[serde(flatten)]
    pub account: Account,
    /// From each instant of a row to the next.
    #[serde(flatten)]
    pub report: Report,
}

/// How it is known when a row's event was raised.
enum Raised {
    Unknown,
    /// `clock.late` says how long before the stamp; the first value.
    Due,
    /// The values are: time, the running counter, time, the latched counter.
    Counter(Counter),
}

impl Raised {
    /// CLOCK_MONOTONIC, ns.
    fn of(&self, row: &Row<'_>) -> Option<u64> {
        match (self, row.values) {
            (Raised::Due, [late, ..]) => Some(row.time.wrapping_sub(*late)),
            (Raised::Counter(counter), [before, running, after, latched, ..]) => {
                let ago = counter.ns(*latched, *running);
                // Below 0 it was latched again, by the next event, before it was read.
                let ago = u64::try_from(ago).ok()?;
                // It was read at some time between the two.
                let read = before + after.wrapping_sub(*before) / 2;
                read.checked_sub(ago)
            }
            _ => None,
        }
    }
}

/// Makes a run, and follows it.
///
/// # Errors
/// Nothing was measured; why.
pub fn measure(asked: &Options, stop: &Stop) -> Result<Outcome, Error> {
    check_cpu(asked.common.cpu)?;
    if *asked.event.event() == Event::Soft {
        return Err(Error::Soft);
    }
    let (run, raised) = create(asked)?;
    let machine = Machine::from_now();
    let points: &[&str] = match raised {
        Raised::Unknown => &["interrupt", "stored", "visible"],
        _ => &["raised", "interrupt", "stored", "visible"],
    };
    let mut steps = Steps::new(points, asked.common.list);
    let reading = FollowSettings {
        policy: Some(asked.common.policy),
        cpu: asked.common.cpu,
        spin: asked.spin,
        duration: Duration::from_nanos(asked.common.duration),
    };
    let account = follow(&run, &reading, stop, |row, visible| {
        if !row.faults.is_empty() {
            return;
        }
        let stored = row.values.last().copied();
        let times = [raised.of(row), Some(row.time), stored, Some(visible)];
        let known = times.get(times.len() - points.len()..).unwrap_or(&times);
        steps.add(row.row, known);
    });
    let name = asked.event.to_string();
    let account = account.map_err(|error| Error::Follow(name.clone(), error))?;
    if account.rows == 0 && !stop.is_interrupted() {
        return Err(Error::Silent(name));
    }
    Ok(Outcome {
        event: name,
        interrupted: stop.is_interrupted(),
        machine: machine.until_now(),
        account,
        report: steps.report(),
    })
}

fn create(asked: &Options) -> Result<(StartedOn, Raised), Error> {
    let is_timer = asked.event.period_ns().is_some();
    let counter = asked.running.as_ref().zip(asked.latched.as_ref());
    let first: Vec<&str> = match counter {
        Some((running, latched)) => vec!["clock.time", running, "clock.time", latched],
        None if is_timer => vec!["clock.late"],
        None => Vec::new(),
    };
    let names = first
        .into_iter()
        .chain(asked.read.iter().map(String::as_str));
    let names = names.chain(["clock.time"]);
    let plan = Plan {
        steps: names.map(|name| Step::Read(name.to_owned())).collect(),
        limit: Some(asked.common.rows),
        ..Plan::new(asked.event.clone())
    };
    kernel::check(&plan)?;
    let run = Control::open()?.create(&plan)?;
    let raised = match (counter, run.info().channels.as_slice()) {
        (Some(_), [_, running, _, latched, ..]) => {
            Raised::Counter(delays::counter_of(running, latched)?)
        }
        _ if is_timer => Raised::Due,
        _ => Raised::Unknown,
    };
    Ok((StartedOn::new(Arc::new(run), asked.common.cpu), raised))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe_ring::{RowShape, Rows};

    #[test]
    fn an_event_was_raised_as_long_before_the_reading_as_the_counter_has_counted_since() {
        let counter = Counter::of_bits(32, 10.0);
        let raised = |values: [u64; 5]| {
            let [a, b, c, d, e] = values;
            let words = [0, 0, 5000, 0, a, b, c, d, e];
            let rows: Vec<Option<u64>> = Rows::new(&words, RowShape::of_channels(5))
                .map(|row| Raised::Counter(counter).of(&row))
                .collect();
            rows[0]
        };
        assert_eq!(raised([5100, 207, 5200, 200, 5300]), Some(5150 - 70));
        assert_eq!(raised([5100, 3, 5200, 0xffff_fffe, 5300]), Some(5150 - 50));
        assert_eq!(raised([5100, 207, 5200, 208, 5300]), None, "latched again");
    }

    #[test]
    fn a_timer_was_due_as_long_before_the_stamp_as_the_row_was_late() {
        let words = [0, 0, 5000, 0, 30, 5100];
        let raised: Vec<_> = Rows::new(&words, RowShape::of_channels(2))
            .map(|row| Raised::Due.of(&row))
            .collect();
        assert_eq!(raised, [Some(4970)]);
    }
}
