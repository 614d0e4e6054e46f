// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency kernel`: from an event to its row, and to the program that reads it, in the kernel engine.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use strobe::engine::kernel::{self, Control};
use strobe::engine::{self, Source};
use strobe::event::{Event, EventSpec};
use strobe::plan::{Plan, Step};
use strobe::quantity::duration_ns;
use strobe::ring::Row;
use strobe::rt::Policy;
use strobe::stop::Stop;
use strobe_measure::machine::Machine;

use super::delays::{self, Counter};
use super::steps::{Report, Steps};
use super::words;
use crate::record::handle_signals;
use crate::term::{self, fail};
use strobe::follow::{self, follow, Account, Reading};
use strobe_measure::cpu::{check_cpu, NoCpu, StartedOn};

/// From an event to its row, and to the program that reads it
///
/// The instants of each row: raised (when a timer was due; of a board's event,
/// by a counter of the board that runs on and is latched at the event),
/// interrupt (the row's stamp, in hard interrupt context), stored (all its
/// channels are read), visible (a program that waits for rows has it).
#[derive(clap::Args)]
pub struct Args {
    /// What triggers a row, such as timer:1kHz or counter.eoc
    #[arg(value_name = "EV")]
    event: EventSpec,

    /// More channels of each row
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    read: Vec<String>,

    /// The board's counter that runs on
    #[arg(long, value_name = "CH", requires = "latched")]
    running: Option<String>,

    /// The same counter, latched at the event
    #[arg(long, value_name = "CH", requires = "running")]
    latched: Option<String>,

    /// End after so many rows
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,

    /// End after this time, if there are not so many rows by then
    #[arg(long = "for", value_name = "TIME", default_value = "1min", value_parser = duration_ns)]
    duration: u64,

    /// Policy of the thread that reads: fifo:1 to fifo:99, other
    #[arg(long, value_name = "POLICY", default_value = "fifo:60")]
    policy: Policy,

    /// The CPU of the thread that reads, and of a timer
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// The thread that reads never sleeps
    #[arg(long)]
    spin: bool,

    /// Print the differences of each row, too
    #[arg(long)]
    list: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    #[error("soft: nobody raises it; name a timer, such as timer:1kHz, or an event of a device (`strobe list` shows them)")]
    Soft,
    #[error("{0}: it has not happened; is its source running?")]
    Silent(String),
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Channels(#[from] delays::Error),
    #[error("{0}: {1}")]
    Follow(String, follow::Error),
}

#[derive(Serialize)]
struct Outcome {
    event: String,
    /// A signal came: this is what there was until then.
    interrupted: bool,
    machine: Machine,
    #[serde(flatten)]
    account: Account,
    #[serde(flatten)]
    report: Report,
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

pub fn run(args: &Args) -> ExitCode {
    let outcome = match measure(args) {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    let status = term::status(outcome.interrupted, outcome.account.is_whole());
    term::found(&outcome, args.json, text, status)
}

fn text(outcome: &Outcome) -> String {
    format!(
        "{}\n{}{}",
        outcome.machine,
        words::account(&outcome.account, &outcome.event),
        outcome.report.text("")
    )
}

fn measure(args: &Args) -> Result<Outcome, Error> {
    check_cpu(args.cpu)?;
    if *args.event.event() == Event::Soft {
        return Err(Error::Soft);
    }
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let (run, raised) = create(args)?;
    let machine = Machine::from_now();
    let points: &[&str] = match raised {
        Raised::Unknown => &["interrupt", "stored", "visible"],
        _ => &["raised", "interrupt", "stored", "visible"],
    };
    let mut steps = Steps::new(points, args.list);
    let reading = Reading {
        policy: Some(args.policy),
        cpu: args.cpu,
        spin: args.spin,
        duration: Duration::from_nanos(args.duration),
    };
    let account = follow(&run, &reading, &stop, |row, visible| {
        if !row.faults.is_empty() {
            return;
        }
        let stored = row.values.last().copied();
        let times = [raised.of(row), Some(row.time), stored, Some(visible)];
        let known = times.get(times.len() - points.len()..).unwrap_or(&times);
        steps.add(row.row, known);
    });
    let name = args.event.to_string();
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

fn create(args: &Args) -> Result<(StartedOn<kernel::Run>, Raised), Error> {
    let is_timer = args.event.period_ns().is_some();
    let counter = args.running.as_ref().zip(args.latched.as_ref());
    let first: Vec<&str> = match counter {
        Some((running, latched)) => vec!["clock.time", running, "clock.time", latched],
        None if is_timer => vec!["clock.late"],
        None => Vec::new(),
    };
    let names = first
        .into_iter()
        .chain(args.read.iter().map(String::as_str));
    let names = names.chain(["clock.time"]);
    let plan = Plan {
        steps: names.map(|name| Step::Read(name.to_owned())).collect(),
        limit: Some(args.rows),
        ..Plan::new(args.event.clone())
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
    Ok((StartedOn::new(run, args.cpu), raised))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::ring::{RowShape, Rows};

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
