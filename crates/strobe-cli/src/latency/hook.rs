// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency hook`: the measurements of the Hook paper, on any board.
//!
//! A. Homs, "Fast scalar data buffering interface in Linux 2.6 kernel" (ESRF),
//! reads a running counter several times, its value latched at the event, the
//! index of the event and the time, and prints tables of the differences.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use strobe::engine::{self, Source};
use strobe::event::{Event, EventSpec};
use strobe::plan::{Plan, Step};
use strobe::quantity::duration_ns;
use strobe::ring::Row;
use strobe::stop::Stop;
use strobe_files::record::{self as recording, record, Observer, Options, Progress};
use strobe_files::summary::Summary;

use super::delays::{self, Delays, Places, Report};
use crate::choice;
use crate::progress::Line;
use crate::record::{exit_status, handle_signals, setting};
use crate::report;
use crate::term::{self, answer, fail};

/// How often the running counter is in a row, and `clock.time`.
const RUNNING: usize = 4;
const TIMES: usize = 2;
/// The longest run, if nothing is said.
const FOR: &str = "10s";

/// Interrupt latency and read delays, by a counter of the board itself
///
/// A row has four readings of a counter that runs on, the same counter latched
/// by the board at the event, the board's count of its events, two readings of
/// clock.time, and what --read names. Of an event counter.full these channels
/// are counter.count, counter.latched and counter.index, as far as the board
/// has them. Several events are measured at the same time, each in a run of its
/// own.
#[derive(clap::Args)]
pub struct Args {
    /// What triggers a row, such as counter.full or timer:5kHz
    #[arg(value_name = "EV", required = true)]
    events: Vec<EventSpec>,

    /// The counter that runs on; in the order of the events
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    running: Vec<String>,

    /// The same counter, latched at the event; in the order of the events
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    latched: Vec<String>,

    /// The board's own count of the event; in the order of the events
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    index: Vec<String>,

    /// More channels of each row, such as those of an ADC
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    read: Vec<String>,

    /// Values to write once, before the runs begin, such as the period of a board's timer
    #[arg(long, value_name = "OUT=V", value_delimiter = ',', value_parser = setting)]
    set: Vec<Step>,

    #[command(flatten)]
    choice: choice::Args,

    /// End after so many rows of each event
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,

    /// End after this time: 10s, 500ms, 2min
    #[arg(long = "for", value_name = "TIME", default_value = FOR, value_parser = duration_ns)]
    duration: u64,

    /// Rows each ring holds at least; rounded up to a power of two
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    ring: Option<u64>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Exit with 0 also if something was missed, lost or failed
    #[arg(long)]
    allow_loss: bool,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}: {1} names for {2} events; name one for each event, in their order, or none")]
    Names(&'static str, usize, usize),
    #[error("--set: {0}")]
    Set(String),
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    Choice(#[from] choice::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Channels(#[from] delays::Error),
    #[error(transparent)]
    Record(#[from] recording::Error),
    #[error("the thread of a run came to no end")]
    Thread,
}

/// One event that is measured.
struct Measured {
    run: Arc<dyn Source>,
    delays: Delays,
}

/// What came out for one event.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    summary: Summary,
    delays: Report,
}

#[derive(Serialize)]
struct Outcomes {
    runs: Vec<Outcome>,
}

pub fn run(args: &Args) -> ExitCode {
    let outcomes = match measure(args) {
        Ok(outcomes) => outcomes,
        Err(error) => return fail(error),
    };
    let status = outcomes.runs.iter();
    let status = status.map(|outcome| exit_status(&outcome.summary, args.allow_loss));
    let status = status.max().unwrap_or(term::COULD_NOT_RUN);
    if args.json {
        match serde_json::to_string(&outcomes) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => return fail(error),
        };
    } else {
        let texts: Vec<String> = outcomes.runs.iter().map(text).collect();
        answer(&texts.join("\n"));
    }
    status.into()
}

fn measure(args: &Args) -> Result<Outcomes, Error> {
    for (option, names) in [
        ("--running", &args.running),
        ("--latched", &args.latched),
        ("--index", &args.index),
    ] {
        if !names.is_empty() && names.len() != args.events.len() {
            return Err(Error::Names(option, names.len(), args.events.len()));
        }
    }
    if !args.set.is_empty() {
        set_once(args)?;
    }
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let events = args.events.iter().enumerate();
    let measured: Result<Vec<Measured>, Error> = events
        .map(|(nth, event)| prepare(args, nth, event))
        .collect();
    let options = Options {
        duration: args
            .rows
            .is_none()
            .then_some(Duration::from_nanos(args.duration)),
        ..Options::default()
    };
    let (options, stop) = (&options, &stop);
    let runs: Result<Vec<Outcome>, Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = measured?
            .into_iter()
            .enumerate()
            .map(|(nth, it)| scope.spawn(move || it.measure(options, stop, nth == 0)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|end| end.map_err(|_| Error::Thread)?).collect()
    });
    runs.map(|runs| Outcomes { runs })
}

/// One row of the event `soft` writes what was to be written.
fn set_once(args: &Args) -> Result<(), Error> {
    let soft = |_| Error::Set("there is no event soft".to_owned());
    let clock = Step::Read("clock.time".to_owned());
    let plan = Plan {
        steps: args.set.iter().cloned().chain([clock]).collect(),
        limit: Some(1),
        ..Plan::new("soft".parse().map_err(soft)?)
    };
    let run = args.choice.choose(&plan)?.create(&plan)?;
    let reader = run.reader()?;
    run.start()?;
    run.trigger(1)?;
    run.stop()?;
    let end = reader.snapshot();
    match (end.head, end.errors) {
        (1, 0) => Ok(()),
        _ => Err(Error::Set(
            "an output could not be written; the kernel's log may say why".to_owned(),
        )),
    }
}

/// The run of an event, ready to start.
fn prepare(args: &Args, nth: usize, event: &EventSpec) -> Result<Measured, Error> {
    let device = match event.event() {
        Event::Device(name) => name.split_once('.').map(|(device, _)| device),
        _ => None,
    };
    // A channel that was named must be there; one that is only usual, need not.
    let channel = |named: &[String], usual: &str| -> Result<Option<String>, Error> {
        if let Some(name) = named.get(nth) {
            return Ok(Some(name.clone()));
        }
        let Some(device) = device else {
            return Ok(None);
        };
        let name = format!("{device}.{usual}");
        Ok(is_here(args, event, &name)?.then_some(name))
    };
    let running = channel(&args.running, "count")?;
    let latched = channel(&args.latched, "latched")?;
    let index = channel(&args.index, "index")?;
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: Option<String>, times: usize| {
        let begin = names.len();
        names.extend(name.into_iter().flat_map(|n| std::iter::repeat_n(n, times)));
        begin..names.len()
    };
    let places = Places {
        running: add(running, RUNNING),
        latched: add(latched, 1).next(),
        index: add(index, 1).next(),
        times: add(Some("clock.time".to_owned()), TIMES),
    };
    names.extend(args.read.iter().cloned());
    let by_time = event.period_ns().map(|ns| args.duration / ns.max(1));
    let plan = Plan {
        steps: names.into_iter().map(Step::Read).collect(),
        ring: args.ring,
        limit: args.rows.or(by_time.map(|rows| rows.max(1))),
        ..Plan::new(event.clone())
    };
    let run = args.choice.choose(&plan)?.create(&plan)?;
    let delays = Delays::new(&run.info().channels, places)?;
    Ok(Measured { run, delays })
}

fn is_here(args: &Args, event: &EventSpec, channel: &str) -> Result<bool, Error> {
    let plan = Plan {
        steps: vec![Step::Read(channel.to_owned())],
        ..Plan::new(event.clone())
    };
    match args.choice.choose(&plan)?.dry_run(&plan) {
        Ok(_) => Ok(true),
        Err(engine::Error::NotHere {
            what: "channel", ..
        }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Measured {
    fn measure(self, options: &Options, stop: &Stop, shown: bool) -> Result<Outcome, Error> {
        let limit = self.run.info().limit;
        let mut view = View {
            delays: self.delays,
            // One line for all: that of the first event.
            line: shown.then(|| Line::new(limit)),
        };
        let summary = record(self.run.as_ref(), options, stop, &mut view);
        if let Some(line) = &view.line {
            line.clear();
        }
        Ok(Outcome {
            summary: summary?,
            delays: view.delays.report(),
        })
    }
}

struct View {
    delays: Delays,
    line: Option<Line>,
}

impl Observer for View {
    fn row(&mut self, row: &Row<'_>) {
        self.delays.add(row);
    }

    fn progress(&mut self, now: Progress) {
        if let Some(line) = &self.line {
            line.show(now);
        }
    }
}

fn text(outcome: &Outcome) -> String {
    let Outcome { summary, delays } = outcome;
    let lines = [
        ("interrupt latency", &delays.interrupt_ns),
        ("late", &summary.late_ns),
        ("channel read delay", &delays.channel_ns),
        ("clock.time read delay", &delays.clock_ns),
        ("period", &summary.period_ns),
    ];
    let lines = lines
        .iter()
        .filter_map(|(what, figures)| Some(report::line(what, Some(figures.as_ref()?))));
    let head = report::head("");
    let table: Vec<[String; 9]> = std::iter::once(head).chain(lines).collect();
    let board = delays.board.map_or(String::new(), |account| {
        format!(
            "from the first row to the last the board counted {} events, strobe {} triggers: {} merged\n",
            account.events,
            account.triggers,
            account.merged()
        )
    });
    let overtaken = match delays.overtaken {
        0 => String::new(),
        rows => format!("in {rows} rows the counter was latched by the next event before it was read: no latency\n"),
    };
    report::account(summary) + &board + &overtaken + &term::table("", &table)
}
