// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency gpio`: from an edge of a line to its row, or to the answer on another line.

use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use strobe::clock::monotonic;
use strobe::engine::user::gpio::{Drive, Gpio};
use strobe::engine::user::provider::WriteOutput;
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::engine::{self, Source};
use strobe::event::{Event, EventSpec};
use strobe::plan::{Plan, Step};
use strobe::quantity::{duration_ns, period_ns};
use strobe::rt::{self, Policy};
use strobe::stop::Stop;
use strobe_measure::machine::Machine;

use super::steps::{Report, Steps};
use super::words;
use crate::record::handle_signals;
use crate::term::{self, fail};
use strobe::follow::{self, follow, Account, Reading};
use strobe_measure::cpu::{check_cpu, NoCpu};

mod inverter;

use inverter::Observer;

/// From an edge of a GPIO line to its row, or to the answer on another line
///
/// The instants: driven (with --drive: just before this program drives the
/// other line), edge (the kernel's stamp of it), stamp (the thread of the run is
/// awake), visible (a reader has the row). With --answer there is no run, but a
/// thread that answers each edge by driving a line to the other level: edge,
/// stamp, answered.
#[derive(clap::Args)]
pub struct Args {
    /// The line whose edges are waited for
    #[arg(value_name = "CHIP/IN")]
    input: Line,

    /// Make the edges: drive this line, and wire it to the other one
    #[arg(long, value_name = "CHIP/OUT", conflicts_with = "answer")]
    drive: Option<Line>,

    /// Edges a second that are driven
    #[arg(long, value_name = "RATE", default_value = "1kHz", value_parser = period_ns)]
    rate: u64,

    /// Answer each edge on this line, by the other level
    #[arg(long, value_name = "CHIP/OUT")]
    answer: Option<Line>,

    /// End after so many edges
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rows: u64,

    /// End after this time, if there are not so many edges by then
    #[arg(long = "for", value_name = "TIME", default_value = "1min", value_parser = duration_ns)]
    duration: u64,

    /// Policy of the thread that waits: fifo:1 to fifo:99, other
    #[arg(long, value_name = "POLICY", default_value = "fifo:60")]
    policy: Policy,

    /// The CPU that it works on
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// It never sleeps: it asks for edges all the time
    #[arg(long)]
    spin: bool,

    /// Print the differences of each edge, too
    #[arg(long)]
    list: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A line of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    chip: String,
    line: String,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    #[error("{0}: given twice; an edge comes in by one line and goes out by another")]
    Same(Line),
    #[error("line {0}: {1}")]
    Line(Line, String),
    #[error("line {0}: no edge came; is its source running{1}?")]
    Silent(Line, &'static str),
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
    #[error("the thread that drives a line cannot be had: {0}")]
    Thread(std::io::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error("{0}: {1}")]
    Follow(String, follow::Error),
}

#[derive(Serialize)]
struct Outcome {
    line: String,
    /// A signal came: this is what there was until then.
    interrupted: bool,
    machine: Machine,
    #[serde(flatten)]
    account: Account,
    #[serde(flatten)]
    report: Report,
    /// What the chip says of the answers, if it observes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    observer: Option<Observer>,
}

pub fn run(args: &Args) -> ExitCode {
    let outcome = match measure(args) {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    let status = term::status(outcome.interrupted, outcome.account.is_whole());
    term::found(&outcome, args.json, text, status)
}

fn measure(args: &Args) -> Result<Outcome, Error> {
    check_cpu(args.cpu)?;
    let other = args.drive.as_ref().or(args.answer.as_ref());
    if let Some(line) = other.filter(|line| **line == args.input) {
        return Err(Error::Same(line.clone()));
    }
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let machine = Machine::from_now();
    let (account, steps, observer) = match &args.answer {
        Some(output) => inverter::invert(args, output, &stop)?,
        None => {
            let (account, steps) = rows(args, &stop)?;
            (account, steps, None)
        }
    };
    if account.rows == 0 && !stop.is_interrupted() {
        let wire = match args.drive {
            Some(_) => ", and is there a wire between the two lines",
            None => "",
        };
        return Err(Error::Silent(args.input.clone(), wire));
    }
    Ok(Outcome {
        line: args.input.to_string(),
        interrupted: stop.is_interrupted(),
        machine: machine.until_now(),
        account,
        report: steps.report(),
        observer,
    })
}

/// What is known of an edge: its row, the kernel's stamp, that of the row, and when it was seen.
type Seen = (u64, u64, u64, u64);

fn rows(args: &Args, stop: &Stop) -> Result<(Account, Steps), Error> {
    let wait = match args.spin {
        true => WaitMode::Spin,
        false => WaitMode::Block,
    };
    let user = User::new(Settings {
        wait,
        cpu: args.cpu,
        policy: Some(args.policy),
    });
    let drive = args.drive.as_ref().map(drive).transpose()?;
    let event: Result<EventSpec, _> = format!("gpio:{}:both", args.input).parse();
    let event = event.map_err(|_| Error::Line(args.input.clone(), FORM.to_owned()))?;
    let plan = Plan {
        steps: vec![Step::Read("event.time".to_owned())],
        limit: Some(args.rows),
        ..Plan::new(event)
    };
    let run = user.create(&plan)?;
    let mut seen: Vec<Seen> = Vec::with_capacity(usize::try_from(args.rows).unwrap_or(0));
    let (account, driven) = followed(args, &run, drive, stop, &mut seen)?;
    let points: &[&str] = match args.drive {
        Some(_) => &["driven", "edge", "stamp", "visible"],
        None => &["edge", "stamp", "visible"],
    };
    let mut steps = Steps::new(points, args.list);
    for (row, edge, stamp, visible) in seen {
        // The last one before: edges are further apart than the machine takes for one.
        let before = driven.partition_point(|time| *time <= edge);
        let by = before
            .checked_sub(1)
            .and_then(|nth| driven.get(nth))
            .copied();
        let times = [by, Some(edge), Some(stamp), Some(visible)];
        let known = times.get(times.len() - points.len()..).unwrap_or(&times);
        steps.add(row, known);
    }
    Ok((account, steps))
}

/// Follows the run, and makes its edges meanwhile; answers when each was driven.
fn followed(
    args: &Args,
    run: &dyn Source,
    drive: Option<Drive>,
    stop: &Stop,
    seen: &mut Vec<Seen>,
) -> Result<(Account, Vec<u64>), Error> {
    let reading = Reading {
        policy: None,
        cpu: None,
        spin: false,
        duration: Duration::from_nanos(args.duration),
    };
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let driver = drive.map(|mut drive| {
            let work = move || {
                // Below the thread of the run: where there is one CPU, that one is to have it.
                let _ = rt::set_up_thread(None, Policy::Other);
                let mut driven = Vec::with_capacity(usize::try_from(args.rows).unwrap_or(0));
                let mut level = 1;
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_nanos(args.rate));
                    driven.push(monotonic());
                    // A line that cannot be driven makes no edge, which is said in the end.
                    let _ = drive.write(level);
                    level ^= 1;
                }
                driven
            };
            std::thread::Builder::new().spawn_scoped(scope, work)
        });
        let driver = driver.transpose().map_err(Error::Thread)?;
        let account = follow(run, &reading, stop, |row, visible| {
            let edge = row.values.first().copied().unwrap_or(0);
            seen.push((row.row, edge, row.time, visible));
        });
        done.store(true, Ordering::Relaxed);
        let driven = match driver {
            Some(driver) => driver.join().unwrap_or_default(),
            None => Vec::new(),
        };
        let account = account.map_err(|error| Error::Follow(args.input.to_string(), error))?;
        Ok((account, driven))
    })
}

/// A line to drive, which is low now.
fn drive(line: &Line) -> Result<Drive, Error> {
    let wrong = |why| Error::Line(line.clone(), why);
    let mut drive = Gpio::default()
        .drive(&line.chip, &line.line)
        .map_err(wrong)?;
    drive
        .write(0)
        .map_err(|error| wrong(format!("it cannot be driven: {error}")))?;
    Ok(drive)
}

fn text(outcome: &Outcome) -> String {
    let observer = outcome.observer.as_ref();
    format!(
        "{}\n{}{}{}",
        outcome.machine,
        words::account(&outcome.account, &format!("line {}", outcome.line)),
        outcome.report.text(""),
        observer.map_or(String::new(), Observer::text)
    )
}

const FORM: &str = "write CHIP/LINE, as in gpiochip0/4";

impl FromStr for Line {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Line, Self::Err> {
        // As in events: those have an edge behind it, which is not asked for here.
        let event: Result<EventSpec, _> = format!("gpio:{text}:both").parse();
        match event.map_err(|_| FORM)?.event() {
            Event::Gpio { chip, line, .. } => Ok(Line {
                chip: chip.clone(),
                line: line.clone(),
            }),
            _ => Err(FORM),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.chip, self.line)
    }
}
