// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurements of the Hook paper, on any board.
//!
//! A. Homs, "Fast scalar data buffering interface in Linux 2.6 kernel" (ESRF),
//! reads a running counter several times, its value latched at the event, the
//! index of the event and the time, and prints tables of the differences.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use strobe::engine;
use strobe::event::{Event, EventSpec};
use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe::select::{self, SelectedEngine};
use strobe::stop::Stop;
use strobe_files::record::{self as recording, Observer, Progress, record};
use strobe_files::summary::Summary;
use strobe_ring::Row;

use super::delays::{self, DelayColumns, Delays, Report};
use crate::jitter::round::{Show, Shown};

/// How often the running counter is in a row, and `clock.time`.
const RUNNING: usize = 4;
const TIMES: usize = 2;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// What triggers a row, such as counter.full or timer:5kHz.
    pub events: Vec<EventSpec>,
    /// The counter that runs on; in the order of the events.
    pub running: Vec<String>,
    /// The same counter, latched at the event; in the order of the events.
    pub latched: Vec<String>,
    /// The board's own count of the event; in the order of the events.
    pub index: Vec<String>,
    /// More channels of each row, such as those of an ADC.
    pub read: Vec<String>,
    /// Values to write once, before the runs begin, such as the period of a board's timer.
    pub set: Vec<Step>,
    /// End after so many rows of each event.
    pub rows: Option<u64>,
    /// End after this time, ns.
    pub duration: u64,
    /// Rows each ring holds at least; rounded up to a power of two.
    pub ring: Option<u64>,
}

/// Chooses the engine of a plan.
pub type Choose<'a> = dyn Fn(&Plan) -> Result<SelectedEngine, select::Error> + 'a;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too few names, or too many.
    #[error("{0}: {1} names for {2} events; name one for each event, in their order, or none")]
    Names(&'static str, usize, usize),
    /// What was to be written cannot be.
    #[error("writing outputs before the runs: {0}")]
    Set(String),
    /// There is no engine for it.
    #[error(transparent)]
    Select(#[from] select::Error),
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The channels do not say what they would have to.
    #[error(transparent)]
    Channels(#[from] delays::Error),
    /// A run could not be started.
    #[error(transparent)]
    Record(#[from] recording::Error),
    /// A thread cannot be had, or has died.
    #[error("the thread of a run did not finish")]
    Thread,
}

/// One event that is measured.
struct MeasuredEvent {
    run: Arc<dyn OwnedRun>,
    delays: Delays,
}

/// What came out for one event.
#[derive(Serialize)]
pub struct Outcome {
    /// What became of the run.
    #[serde(flatten)]
    pub summary: Summary,
    /// What its rows say.
    pub delays: Report,
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcomes {
    /// One for each event.
    pub runs: Vec<Outcome>,
}

/// Makes a run for each event, and looks at the rows of all of them.
///
/// # Errors
/// Nothing was measured; why.
pub fn measure(
    asked: &Options,
    stop: &Stop,
    choose: &Choose<'_>,
    show: &Show<'_>,
) -> Result<Outcomes, Error> {
    for (what, names) in [
        ("running counters", &asked.running),
        ("latched counters", &asked.latched),
        ("counts of events", &asked.index),
    ] {
        if !names.is_empty() && names.len() != asked.events.len() {
            return Err(Error::Names(what, names.len(), asked.events.len()));
        }
    }
    if !asked.set.is_empty() {
        set_once(asked, choose)?;
    }
    let events = asked.events.iter().enumerate();
    let measured: Result<Vec<MeasuredEvent>, Error> = events
        .map(|(nth, event)| prepare(asked, nth, event, choose))
        .collect();
    let options = recording::Options {
        duration: asked
            .rows
            .is_none()
            .then_some(Duration::from_nanos(asked.duration)),
        ..recording::Options::default()
    };
    let options = &options;
    let runs: Result<Vec<Outcome>, Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = measured?
            .into_iter()
            .enumerate()
            .map(|(nth, it)| {
                scope.spawn(move || it.measure(options, stop, (nth == 0).then_some(show)))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|end| end.map_err(|_| Error::Thread)?).collect()
    });
    runs.map(|runs| Outcomes { runs })
}

/// One row of the event `soft` writes what was to be written.
fn set_once(asked: &Options, choose: &Choose<'_>) -> Result<(), Error> {
    let soft = |_| Error::Set("there is no event soft".to_owned());
    let clock = Step::Read("clock.time".to_owned());
    let plan = Plan {
        steps: asked.set.iter().cloned().chain([clock]).collect(),
        limit: Some(1),
        ..Plan::new("soft".parse().map_err(soft)?)
    };
    let run = choose(&plan)?.create(&plan)?;
    let reader = run.reader()?;
    run.start()?;
    run.trigger(1)?;
    run.stop()?;
    let end = reader.snapshot();
    match (end.head, end.errors) {
        (1, 0) => Ok(()),
        _ => Err(Error::Set(
            "an output could not be written; see the kernel's log (dmesg)".to_owned(),
        )),
    }
}

/// The run of an event, ready to start.
fn prepare(
    asked: &Options,
    nth: usize,
    event: &EventSpec,
    choose: &Choose<'_>,
) -> Result<MeasuredEvent, Error> {
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
        Ok(is_here(event, &name, choose)?.then_some(name))
    };
    let running = channel(&asked.running, "count")?;
    let latched = channel(&asked.latched, "latched")?;
    let index = channel(&asked.index, "index")?;
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: Option<String>, times: usize| {
        let begin = names.len();
        names.extend(name.into_iter().flat_map(|n| std::iter::repeat_n(n, times)));
        begin..names.len()
    };
    let places = DelayColumns {
        running: add(running, RUNNING),
        latched: add(latched, 1).next(),
        index: add(index, 1).next(),
        times: add(Some("clock.time".to_owned()), TIMES),
    };
    names.extend(asked.read.iter().cloned());
    let by_time = event.period_ns().map(|ns| asked.duration / ns.max(1));
    let plan = Plan {
        steps: names.into_iter().map(Step::Read).collect(),
        ring: asked.ring,
        limit: asked.rows.or(by_time.map(|rows| rows.max(1))),
        ..Plan::new(event.clone())
    };
    let run = choose(&plan)?.create(&plan)?;
    let delays = Delays::new(&run.info().channels, places)?;
    Ok(MeasuredEvent { run, delays })
}

fn is_here(event: &EventSpec, channel: &str, choose: &Choose<'_>) -> Result<bool, Error> {
    let plan = Plan {
        steps: vec![Step::Read(channel.to_owned())],
        ..Plan::new(event.clone())
    };
    match choose(&plan)?.dry_run(&plan) {
        Ok(_) => Ok(true),
        Err(engine::Error::NotHere {
            what: "channel", ..
        }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl MeasuredEvent {
    fn measure(
        self,
        options: &recording::Options,
        stop: &Stop,
        show: Option<&Show<'_>>,
    ) -> Result<Outcome, Error> {
        let mut view = View {
            delays: self.delays,
            // One line for all: that of the first event.
            show,
        };
        let summary = record(self.run.as_ref(), options, stop, &mut view);
        if let Some(show) = show {
            show(None);
        }
        Ok(Outcome {
            summary: summary?,
            delays: view.delays.report(),
        })
    }
}

struct View<'a> {
    delays: Delays,
    show: Option<&'a Show<'a>>,
}

impl Observer for View<'_> {
    fn row(&mut self, row: &Row<'_>) {
        self.delays.add(row);
    }

    fn progress(&mut self, now: Progress) {
        if let Some(show) = self.show {
            show(Some(Shown {
                progress: now,
                counted: None,
            }));
        }
    }
}
