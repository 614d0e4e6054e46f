// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe jitter`: how regular rows are, by one way to wait or by several in turn, or in a recording.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use strobe::plan::WakeWithin;
use strobe::quantity::{duration_ns, period_ns};
use strobe::stop::Stop;
use strobe_files::journal::{self, Journal};
use strobe_files::record::{self as recording, Options};
use strobe_measure::jitter::{Jitter, Report, Target};
use strobe_measure::late::{self, Found, Late, Which};
use strobe_measure::machine::Machine;

use crate::record::handle_signals;
use crate::term::{self, fail};
use crate::why;

mod band;
mod contender;
mod load;
mod relative;
pub(crate) mod round;
mod table;
pub(crate) mod way;

use band::Band;
use contender::Contender;
use load::{Load, Stressor};
use round::{Counts, Round};
use way::{Asked, Policy};

/// Unless asked for: 1 kHz.
const PERIOD_NS: u64 = 1_000_000;

/// Measure how regular rows are, by several ways to wait in turn, or in a recording
///
/// Each way makes rows of nothing but their stamps. Several are measured in
/// turn, each once a round, in another order each time: compare the ranges over
/// the rounds, not the greatest values, which are the machine's. Periods are
/// judged against a band around the one asked for, as a counter in hardware
/// does it. A trigger that is missed makes a long period, and is counted.
#[derive(clap::Args)]
pub struct Args {
    /// A recording (.arrows) to look at, instead of measuring
    #[arg(conflicts_with_all = ["wait", "versus", "policy", "cpu", "wake_within", "slack", "load", "duration", "rounds", "worst", "stop_on"])]
    file: Option<PathBuf>,

    /// Rows a second, or the time between them: 100Hz, 250us (default: 1kHz; of a recording, its own)
    #[arg(long, value_name = "RATE", value_parser = period_ns)]
    rate: Option<u64>,

    /// How to wait for the next row, and with which policy: hybrid, hybrid/other
    #[arg(long, value_name = "WAY", default_value = "block")]
    wait: Contender,

    /// Other ways to compare it with
    #[arg(long = "vs", value_name = "WAY,...", value_delimiter = ',')]
    versus: Vec<Contender>,

    /// Policy of the user engine's thread: fifo:1 to fifo:99, other, deadline
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,

    /// The CPU to work on
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// How long CPUs may take to wake from sleep: 10us; any, to save power; 0, to
    /// let none sleep
    #[arg(long, value_name = "TIME", default_value_t)]
    wake_within: WakeWithin,

    /// How much later than its point the thread of kernel:loop may wake, so that the kernel
    /// can wake several at once: 100us
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    slack: Option<u64>,

    /// How far a period may be from the one asked for: 3%, 100us
    #[arg(long, value_name = "BAND", default_value = "3%")]
    band: Band,

    /// What stress-ng is to do meanwhile
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    load: Vec<Load>,

    /// How long each way is measured in a round: 10s, 500ms, 30min
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration_ns)]
    duration: u64,

    /// Rounds (default: 1, or 3 with --vs)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Find out why the N latest rows of each way were late
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    worst: Option<u32>,

    /// End with the first row later than this, and find out why it was: 500us
    #[arg(long, value_name = "TIME", value_parser = duration_ns, conflicts_with = "worst")]
    stop_on: Option<u64>,

    #[command(flatten)]
    keep: why::Keep,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "--band {0}: is not less than the period, so nothing could be under it; name a smaller one"
    )]
    Band(String),
    #[error("{0}: its event has no period; say which one is meant with --rate")]
    NoPeriod(String),
    #[error("--policy: none of these ways has a thread of the user engine; leave it out")]
    Policy,
    #[error("{0}: given twice; each way is measured once a round")]
    Twice(String),
    #[error(transparent)]
    Cpu(#[from] round::NoCpu),
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    Load(#[from] load::Error),
    #[error("{0}: {1}")]
    Way(String, way::Error),
    #[error(transparent)]
    Record(#[from] recording::Error),
    #[error("{0}: {1}")]
    Late(String, late::Error),
    #[error(transparent)]
    Keep(late::Error),
    #[error(transparent)]
    Input(#[from] journal::Error),
}

/// One way, in all rounds.
#[derive(Serialize)]
pub struct Measured {
    way: String,
    /// All rounds together.
    all: Report,
    rounds: Vec<Round>,
    /// Why rows were late, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "verdicts")]
    late_rows: Option<Found>,
    /// All of the rounds, to be drawn or merged.
    #[serde(rename = "histogram", serialize_with = "histograms")]
    jitter: Jitter,
}

fn histograms<S: serde::Serializer>(jitter: &Jitter, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("period", jitter.period()), ("late", jitter.late())])
}

fn verdicts<S: serde::Serializer>(found: &Option<Found>, to: S) -> Result<S::Ok, S::Error> {
    found.as_ref().map(|found| &found.verdicts).serialize(to)
}

/// What the rounds of a way have given so far.
type Rounds = (Jitter, Vec<Round>, Option<Found>);

/// All that was measured.
#[derive(Serialize)]
pub struct Outcome {
    /// A signal came: this is what there was until then.
    interrupted: bool,
    target: Target,
    machine: Machine,
    load: Vec<Load>,
    ways: Vec<Measured>,
}

pub fn run(args: &Args) -> ExitCode {
    let outcome = match &args.file {
        Some(file) => of_file(args, file),
        None => measure(args),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    for found in outcome.ways.iter().filter_map(|way| way.late_rows.as_ref()) {
        why::complain(found);
    }
    let is_whole = |way: &Measured| way.rounds.iter().all(Round::is_whole);
    let status = term::status(outcome.interrupted, outcome.ways.iter().all(is_whole));
    term::found(&outcome, args.json, table::text, status)
}

fn target(args: &Args, period_ns: u64) -> Result<Target, Error> {
    let band_ns = args.band.of(period_ns);
    if band_ns >= period_ns {
        return Err(Error::Band(args.band.to_string()));
    }
    Ok(Target { period_ns, band_ns })
}

fn of_file(args: &Args, file: &std::path::Path) -> Result<Outcome, Error> {
    let name = || file.display().to_string();
    let mut journal = Journal::open(file)?;
    let period = args.rate.or(journal.info().period_ns);
    let target = target(args, period.ok_or_else(|| Error::NoPeriod(name()))?)?;
    let mut jitter = Jitter::new(journal.info(), target);
    let mut counts = Counts::default();
    while let Some(rows) = journal.read()? {
        for row in rows {
            jitter.add(row);
            counts.add(&row);
        }
    }
    let totals = journal.totals().filter(|_| !journal.is_torn());
    let round = Round::of_file(journal.info(), totals, &counts, &jitter);
    Ok(Outcome {
        interrupted: false,
        target,
        machine: Machine::unknown(&journal.info().kernel),
        load: Vec::new(),
        ways: vec![Measured {
            way: name(),
            all: round.report.clone(),
            rounds: vec![round],
            late_rows: None,
            jitter,
        }],
    })
}

fn measure(args: &Args) -> Result<Outcome, Error> {
    let period_ns = args.rate.unwrap_or(PERIOD_NS);
    let target = target(args, period_ns)?;
    let mut ways = vec![args.wait];
    for way in &args.versus {
        if ways.contains(way) {
            return Err(Error::Twice(way.to_string()));
        }
        ways.push(*way);
    }
    if args.policy.is_some() && !ways.iter().any(Contender::has_thread) {
        return Err(Error::Policy);
    }
    round::check_cpu(args.cpu)?;
    let asked = Asked {
        period_ns,
        policy: args.policy,
        cpu: args.cpu,
        wake_within: args.wake_within,
        slack_ns: args.slack.unwrap_or(0),
    };
    // Before anything is loaded: what cannot be had is said at once.
    for way in &ways {
        way.run(&asked)
            .map_err(|error| Error::Way(way.to_string(), error))?;
    }
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let options = Options {
        duration: Some(Duration::from_nanos(args.duration)),
        ..Options::default()
    };
    let rounds = args
        .rounds
        .unwrap_or(if args.versus.is_empty() { 1 } else { 3 });
    let mut load = Stressor::new(&args.load)?;
    let which = args
        .worst
        .map(|count| Which::Worst(count as usize))
        .or(args.stop_on.map(Which::First));
    let machine = Machine::from_now();
    let mut measured: Vec<Option<Rounds>> = ways.iter().map(|_| None).collect();
    let turns = (0..rounds).flat_map(|round| round::order(round, ways.len()));
    for turn in turns.take_while(|_| !round::is_over(&stop)) {
        let (Some(way), Some(slot)) = (ways.get(turn), measured.get_mut(turn)) else {
            continue;
        };
        let run = way
            .run(&asked)
            .map_err(|error| Error::Way(way.to_string(), error))?;
        let late = which.map(|which| Late::of(run.as_ref(), which)).transpose();
        let late = late.map_err(|error| Error::Late(way.to_string(), error))?;
        let (jitter, round, found) = Round::measure(run.as_ref(), target, &options, &stop, late)?;
        if !round::is_interrupted(&stop) {
            load.is_there()?;
        }
        match slot {
            Some((all, rounds, late_rows)) => {
                all.merge(&jitter);
                rounds.push(round);
                if let Some((all, found)) = late_rows.as_mut().zip(found) {
                    all.merge_worst(found, args.worst.unwrap_or(1) as usize);
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
        let kept = late_rows.as_mut().map(|found| args.keep.keep(found, &name));
        Some(kept.unwrap_or(Ok(())).map(|()| Measured {
            way: way.to_string(),
            all: jitter.report(missed),
            rounds,
            late_rows,
            jitter,
        }))
    });
    let ways: Result<Vec<Measured>, _> = ways.collect();
    Ok(Outcome {
        interrupted: round::is_interrupted(&stop),
        target,
        machine,
        load: args.load.clone(),
        ways: ways.map_err(Error::Keep)?,
    })
}
