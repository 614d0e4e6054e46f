// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several ways to wait, measured in turn; or rows from anywhere, judged the same way.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use strobe::source::RowSource;
use strobe::stop::Stop;
use strobe_files::record::{self as recording, Options};

use super::band::Band;
use super::contender::Contender;
use super::judge::{self, Judge};
use super::load::{self, Load, Stressor};
use super::pacing::{self, PacingSettings};
use super::round::{Round, Show};
use super::{Jitter, Report, Target};
use crate::cpu::{NoCpu, check_cpu};
use crate::late::{self, Late, LateRows, LateSelection};
use crate::machine::Machine;
use crate::turns::order;

/// What is to be measured.
pub struct Comparison {
    /// The ways, in the order in which they are shown.
    pub ways: Vec<Contender>,
    /// What they have in common.
    pub asked: PacingSettings,
    /// How far a period may be from the one asked for.
    pub band: Band,
    /// A counter in hardware that judges the rows, too.
    pub judge: Option<Judge>,
    /// What the machine is to do meanwhile.
    pub load: Vec<Load>,
    /// How long each way is measured in a round.
    pub duration: Duration,
    /// Rounds.
    pub rounds: u32,
    /// Which late rows are looked into.
    pub late: Option<LateSelection>,
    /// Where the kernel's events around them are kept.
    pub keep: PathBuf,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The band is as wide as the period, or wider.
    #[error(
        "a band of {0} is as long as the period or longer, so no period could be below it; name a smaller one"
    )]
    Band(String),
    /// Rows whose event has no period.
    #[error("{0}: its event has no period; name the period to judge by")]
    NoPeriod(String),
    /// A policy, and nobody who has one.
    #[error(
        "none of these ways uses a thread of the user engine, and only that has a policy; leave the policy out"
    )]
    Policy,
    /// A way is there twice.
    #[error("{0}: given twice; name each way once")]
    Twice(String),
    /// The CPU cannot be had.
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    /// The counter does not judge.
    #[error("{0}: {1}")]
    Judge(String, judge::Error),
    /// There is no load.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// A way cannot be had.
    #[error("{0}: {1}")]
    Pacing(String, pacing::Error),
    /// A run could not be started.
    #[error(transparent)]
    Record(#[from] recording::Error),
    /// Why rows are late cannot be found out.
    #[error("{0}: {1}")]
    Late(String, late::Error),
    /// Traces cannot be kept.
    #[error(transparent)]
    Keep(late::Error),
}

/// One way, in all rounds.
#[derive(Serialize)]
pub struct PacingResult {
    /// Its name.
    pub way: String,
    /// All rounds together.
    pub all: Report,
    /// Each round.
    pub rounds: Vec<Round>,
    /// Why rows were late, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "verdicts")]
    pub late_rows: Option<LateRows>,
    /// All of the rounds, to be drawn or merged.
    #[serde(rename = "histogram", serialize_with = "histograms")]
    pub jitter: Jitter,
}

fn histograms<S: serde::Serializer>(jitter: &Jitter, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("period", jitter.period()), ("late", jitter.late())])
}

fn verdicts<S: serde::Serializer>(found: &Option<LateRows>, to: S) -> Result<S::Ok, S::Error> {
    found.as_ref().map(|found| &found.verdicts).serialize(to)
}

/// What the rounds of a way have given so far.
type Rounds = (Jitter, Vec<Round>, Option<LateRows>);

/// All that was measured.
#[derive(Serialize)]
pub struct Outcome {
    /// A signal came: this is what there was until then.
    pub interrupted: bool,
    /// What periods are judged by.
    pub target: Target,
    /// Where it was measured.
    pub machine: Machine,
    /// What the machine had to do meanwhile.
    pub load: Vec<Load>,
    /// Each way.
    pub ways: Vec<PacingResult>,
}

fn target(band: Band, period_ns: u64) -> Result<Target, Error> {
    let (band_ns, under_ns) = (band.over(period_ns), band.under(period_ns));
    if band_ns >= period_ns || under_ns >= period_ns {
        return Err(Error::Band(band.to_string()));
    }
    Ok(Target {
        period_ns,
        band_ns,
        under_ns,
    })
}

/// How regular rows from anywhere are: to their end, to that of this time, or until it is to stop. The period is that of
/// their event, unless one is given.
///
/// # Errors
/// They cannot be read, or have no period.
pub fn of_rows(
    source: &mut dyn RowSource,
    name: &str,
    period_ns: Option<u64>,
    band: Band,
    duration: Option<Duration>,
    stop: &Stop,
    show: &Show<'_>,
) -> Result<Outcome, Error> {
    let period = period_ns.or(source.info().period_ns);
    let target = target(
        band,
        period.ok_or_else(|| Error::NoPeriod(name.to_owned()))?,
    )?;
    let options = Options {
        duration,
        ..Options::default()
    };
    let (jitter, round) = Round::of_rows(source, target, &options, stop, show)?;
    Ok(Outcome {
        interrupted: stop.is_interrupted(),
        target,
        machine: Machine::unknown(&source.info().kernel),
        load: Vec::new(),
        ways: vec![PacingResult {
            way: name.to_owned(),
            all: round.report.clone(),
            rounds: vec![round],
            late_rows: None,
            jitter,
        }],
    })
}

/// Measures all ways in turn, each once a round, in another order each time.
///
/// # Errors
/// Something of it cannot be had; nothing was measured then.
pub fn measure(
    comparison: &Comparison,
    stop: &Stop,
    command: fn(&str) -> Command,
    show: &Show<'_>,
) -> Result<Outcome, Error> {
    let mut asked = comparison.asked.clone();
    if let Some(judge) = &comparison.judge {
        // First of all: its edges are to be as near to the event as can be.
        asked.steps.splice(0..0, judge.steps());
    }
    let asked = &asked;
    let target = target(comparison.band, asked.period_ns)?;
    let ways = &comparison.ways;
    for (nth, way) in ways.iter().enumerate() {
        if ways.iter().take(nth).any(|before| before == way) {
            return Err(Error::Twice(way.to_string()));
        }
    }
    if asked.policy.is_some() && !ways.iter().any(Contender::has_thread) {
        return Err(Error::Policy);
    }
    check_cpu(asked.cpu)?;
    let judged = |result: Result<_, judge::Error>| {
        let device = comparison.judge.as_ref().map_or("", |judge| &judge.device);
        result.map_err(|error| Error::Judge(device.to_owned(), error))
    };
    if let Some(judge) = &comparison.judge {
        judged(judge.begin(target).map(|()| None))?;
    }
    // Before anything is loaded: what cannot be had is said at once.
    for way in ways {
        way.run(asked)
            .map_err(|error| Error::Pacing(way.to_string(), error))?;
    }
    let options = Options {
        duration: Some(comparison.duration),
        ..Options::default()
    };
    let mut load = Stressor::new(&comparison.load, command)?;
    let most = match comparison.late {
        Some(LateSelection::Worst(count)) => count,
        _ => 1,
    };
    let machine = Machine::from_now();
    let mut measured: Vec<Option<Rounds>> = ways.iter().map(|_| None).collect();
    let turns = (0..comparison.rounds).flat_map(|round| order(round, ways.len()));
    for turn in turns.take_while(|_| !stop.is_over()) {
        let (Some(way), Some(slot)) = (ways.get(turn), measured.get_mut(turn)) else {
            continue;
        };
        let run = way
            .run(asked)
            .map_err(|error| Error::Pacing(way.to_string(), error))?;
        let late = comparison
            .late
            .map(|which| Late::of(run.as_ref(), which))
            .transpose();
        let late = late.map_err(|error| Error::Late(way.to_string(), error))?;
        if let Some(judge) = &comparison.judge {
            judged(judge.begin(target).map(|()| None))?;
        }
        let (jitter, mut round, found) =
            Round::measure(run.as_ref(), target, &options, stop, late, show)?;
        drop(run);
        if let Some(judge) = &comparison.judge {
            round.judged = judged(judge.end().map(Some))?;
        }
        if !stop.is_interrupted() {
            load.is_there()?;
        }
        match slot {
            Some((all, rounds, late_rows)) => {
                all.merge(&jitter);
                rounds.push(round);
                if let Some((all, found)) = late_rows.as_mut().zip(found) {
                    all.merge_worst(found, most);
                }
            }
            None => *slot = Some((jitter, vec![round], found)),
        }
    }
    let machine = machine.until_now();
    let ways = ways.iter().zip(measured);
    let ways = ways.filter_map(|(way, measured)| {
        let (jitter, rounds, mut late_rows) = measured?;
        let missed = rounds.iter().map(|round| round.report.missed).sum();
        // In a file's name a colon is a nuisance.
        let name = way.to_string().replace(':', "-");
        let kept = late_rows
            .as_mut()
            .map(|found| found.keep(&comparison.keep, &name));
        Some(kept.unwrap_or(Ok(())).map(|()| PacingResult {
            way: way.to_string(),
            all: jitter.report(missed),
            rounds,
            late_rows,
            jitter,
        }))
    });
    let ways: Result<Vec<PacingResult>, _> = ways.collect();
    Ok(Outcome {
        interrupted: stop.is_interrupted(),
        target,
        machine,
        load: comparison.load.clone(),
        ways: ways.map_err(Error::Keep)?,
    })
}
