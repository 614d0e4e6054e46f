// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an edge of a line to its row, or to the answer on another line.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use strobe::clock::monotonic;
use strobe::engine;
use strobe::engine::user::gpio::{Drive, Gpio};
use strobe::engine::user::provider::WriteOutput;
use strobe::engine::user::{Lock, Settings, User, WaitMode};
use strobe::event::{Event, EventSpec};
use strobe::follow::{self, Account, FollowSettings, follow};
use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe::stop::Stop;
use strobe_hw::rt::{self, Policy};

use super::Common;
use super::steps::{Report, Steps};
use crate::cpu::{NoCpu, check_cpu};
use crate::machine::Machine;

mod inverter;

pub use inverter::Observer;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The line whose edges are waited for.
    pub input: Line,
    /// Make the edges: drive this line, and wire it to the other one.
    pub drive: Option<Line>,
    /// From one edge that is driven to the next, ns.
    pub rate: u64,
    /// Answer each edge on this line, by the other level.
    pub answer: Option<Line>,
    /// It never sleeps: it asks for edges all the time.
    pub spin: bool,
    /// What is asked of every way.
    pub common: Common,
}

/// A line of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its chip.
    pub chip: String,
    /// The line whose edges made the rows.
    pub line: String,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The CPU cannot be had.
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    /// One line for both ends.
    #[error(
        "{0}: given twice; name one line for edges that come in and another for those that go out"
    )]
    Same(Line),
    /// A line cannot be used.
    #[error("line {0}: {1}")]
    Line(Line, String),
    /// Nothing has happened.
    #[error("line {0}: no edge came; is its source running{1}?")]
    Silent(Line, &'static str),
    /// A thread cannot be had, or has died.
    #[error("the thread that drives a line failed: {0}")]
    Thread(std::io::Error),
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The rows could not be followed.
    #[error("{0}: {1}")]
    Follow(String, follow::Error),
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcome {
    /// The line whose edges made the rows.
    pub line: String,
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
    /// What the chip says of the answers, if it observes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observer: Option<Observer>,
}

/// Follows the edges of a line, or answers them.
///
/// # Errors
/// Nothing was measured; why.
pub fn measure(asked: &Options, stop: &Stop) -> Result<Outcome, Error> {
    check_cpu(asked.common.cpu)?;
    let other = asked.drive.as_ref().or(asked.answer.as_ref());
    if let Some(line) = other.filter(|line| **line == asked.input) {
        return Err(Error::Same(line.clone()));
    }
    let machine = Machine::from_now();
    let (account, steps, observer) = match &asked.answer {
        Some(output) => inverter::invert(asked, output, stop)?,
        None => {
            let (account, steps) = rows(asked, stop)?;
            (account, steps, None)
        }
    };
    if account.rows == 0 && !stop.is_interrupted() {
        let wire = match asked.drive {
            Some(_) => ", and is there a wire between the two lines",
            None => "",
        };
        return Err(Error::Silent(asked.input.clone(), wire));
    }
    Ok(Outcome {
        line: asked.input.to_string(),
        interrupted: stop.is_interrupted(),
        machine: machine.until_now(),
        account,
        report: steps.report(),
        observer,
    })
}

/// What is known of an edge: its row, the kernel's stamp, that of the row, and when it was seen.
type EdgeInstants = (u64, u64, u64, u64);

fn rows(asked: &Options, stop: &Stop) -> Result<(Account, Steps), Error> {
    let wait = match asked.spin {
        true => WaitMode::Spin,
        false => WaitMode::Block,
    };
    let user = User::new(Settings {
        wait,
        lock: Lock::Process,
        cpu: asked.common.cpu,
        policy: Some(asked.common.policy),
    });
    let drive = asked.drive.as_ref().map(drive).transpose()?;
    let event: Result<EventSpec, _> = format!("gpio:{}:both", asked.input).parse();
    let event = event.map_err(|_| Error::Line(asked.input.clone(), FORM.to_owned()))?;
    let plan = Plan {
        steps: vec![Step::Read("event.time".to_owned())],
        limit: Some(asked.common.rows),
        ..Plan::new(event)
    };
    let run = user.create(&plan)?;
    let mut seen: Vec<EdgeInstants> =
        Vec::with_capacity(usize::try_from(asked.common.rows).unwrap_or(0));
    let (account, driven) = followed(asked, &run, drive, stop, &mut seen)?;
    let points: &[&str] = match asked.drive {
        Some(_) => &["driven", "edge", "stamp", "visible"],
        None => &["edge", "stamp", "visible"],
    };
    let mut steps = Steps::new(points, asked.common.list);
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
    asked: &Options,
    run: &dyn OwnedRun,
    drive: Option<Drive>,
    stop: &Stop,
    seen: &mut Vec<EdgeInstants>,
) -> Result<(Account, Vec<u64>), Error> {
    let reading = FollowSettings {
        policy: None,
        cpu: None,
        spin: false,
        duration: Duration::from_nanos(asked.common.duration),
    };
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let driver = drive.map(|mut drive| {
            let work = move || {
                // Below the thread of the run: where there is one CPU, that one is to have it.
                let _ = rt::set_up_thread(None, Policy::Other);
                let mut driven =
                    Vec::with_capacity(usize::try_from(asked.common.rows).unwrap_or(0));
                let mut level = 1;
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_nanos(asked.rate));
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
        let account = account.map_err(|error| Error::Follow(asked.input.to_string(), error))?;
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
