// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency wake`: how long it takes to wake a thread, by what it sleeps in and where it runs.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use strobe::quantity::{period_ns, show_ns};
use strobe::rt::{self, Policy};
use strobe::stats::{Figures, Stats};
use strobe::stop::Stop;
use strobe_measure::machine::Machine;
use strobe_measure::wake::{self, Plan};

use crate::record::handle_signals;
use crate::report;
use crate::term::{self, fail, say};
use strobe_measure::turns::order;

/// Unless asked for.
const POLICY: Policy = Policy::Fifo(60);

/// How long it takes to wake a thread: what it sleeps in, on which CPU, with which policy
///
/// One thread stamps and signals, the other stamps when it is back. All that is
/// to be compared is measured in turn, once a round, in another order each time:
/// compare the ranges over the rounds, not the greatest values.
#[derive(clap::Args)]
pub struct Args {
    /// What to sleep in: spin, futex, eventfd, poll, epoll, pipe, socket, uring (default: all)
    #[arg(value_name = "WAY")]
    ways: Vec<Way>,

    /// Whether who wakes it runs on the same CPU (default: both, if there are two CPUs)
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',')]
    place: Vec<Place>,

    /// Policy of both threads: fifo:1 to fifo:99, other (default: fifo:60)
    #[arg(long, value_name = "POLICY,...", value_delimiter = ',')]
    policy: Vec<Policy>,

    /// The CPU that the thread sleeps on
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Wakes a second, at most: 1kHz, 500us
    #[arg(long, value_name = "RATE", default_value = "5kHz", value_parser = period_ns)]
    rate: u64,

    /// How often it is woken in a round
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,

    /// Rounds
    #[arg(long, value_name = "N", default_value = "3",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// [`wake::Way`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way(wake::Way);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// Both threads on one CPU
    Same,
    /// Each on its own
    Other,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("--cpu {0}: there is none, or this group of processes may not use it; leave --cpu out, or name another")]
    Cpu(usize),
    #[error("--place other: this process may use one CPU only; leave it out, or start the program without taskset")]
    OneCpu,
    #[error("which CPUs there are cannot be known: sched_getaffinity fails")]
    NoCpu,
    #[error("spin: on the CPU of who wakes it, a thread that never sleeps keeps that from running; choose --place other, or another way")]
    Spin,
    #[error("{0}: given twice; each is measured once a round")]
    Twice(String),
    #[error("{0}: this process may not use it: {1}; name other ways, or lift it (io_uring: sysctl kernel.io_uring_disabled=0, and the filter of a container)")]
    Way(&'static str, io::Error),
    #[error("signals cannot be handled: {0}")]
    Signals(io::Error),
    #[error("{0}: {1}")]
    Measure(&'static str, io::Error),
}

/// One way, in one place, with one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Case {
    way: Way,
    place: Place,
    #[serde(serialize_with = "as_text")]
    policy: Policy,
    /// CPU of the thread that sleeps, and of the one that wakes it.
    cpus: [usize; 2],
}

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    case: Case,
    /// All rounds together, ns; null if there was none.
    all: Option<Figures>,
    rounds: Vec<Option<Figures>>,
    /// What was got of the real-time set-up of the two threads.
    set_up: Vec<rt::Step>,
    #[serde(skip)]
    stats: Stats,
}

#[derive(Serialize)]
struct Outcome {
    /// A signal came: this is what there was until then.
    interrupted: bool,
    machine: Machine,
    ways: Vec<Measured>,
}

pub fn run(args: &Args) -> ExitCode {
    let outcome = match measure(args) {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    let status = term::status(outcome.interrupted, true);
    term::found(&outcome, args.json, text, status)
}

fn measure(args: &Args) -> Result<Outcome, Error> {
    let cases = cases(args)?;
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let machine = Machine::from_now();
    let mut measured: Vec<Measured> = cases.into_iter().map(Measured::new).collect();
    let turns = (0..args.rounds).flat_map(|round| order(round, measured.len()));
    for turn in turns.collect::<Vec<_>>() {
        if stop.is_interrupted() {
            break;
        }
        if let Some(case) = measured.get_mut(turn) {
            case.round(args, &stop)?;
        }
    }
    Ok(Outcome {
        interrupted: stop.is_interrupted(),
        machine: machine.until_now(),
        ways: measured,
    })
}

/// All that is to be compared; what was not asked for by name, and cannot be had, is left out.
fn cases(args: &Args) -> Result<Vec<Case>, Error> {
    let cpus = rt::cpus();
    let first = *cpus.first().ok_or(Error::NoCpu)?;
    let sleeper = args.cpu.unwrap_or(first);
    if !cpus.contains(&sleeper) {
        return Err(Error::Cpu(sleeper));
    }
    let other = cpus.iter().find(|cpu| **cpu != sleeper).copied();
    let places = match args.place.as_slice() {
        [] if other.is_none() => vec![Place::Same],
        [] => vec![Place::Same, Place::Other],
        named => named.to_vec(),
    };
    let policies = match args.policy.as_slice() {
        [] => vec![POLICY],
        named => named.to_vec(),
    };
    let ways: Vec<Way> = match args.ways.as_slice() {
        [] => usual_ways(),
        named => named.to_vec(),
    };
    let mut cases = Vec::new();
    for (place, policy) in places
        .iter()
        .flat_map(|place| policies.iter().map(move |policy| (*place, *policy)))
    {
        let signaller = match place {
            Place::Same => sleeper,
            Place::Other => other.ok_or(Error::OneCpu)?,
        };
        for way in &ways {
            if place == Place::Same && way.0 == wake::Way::Spin {
                match args.ways.is_empty() {
                    true => continue,
                    false => return Err(Error::Spin),
                }
            }
            let case = Case {
                way: *way,
                place,
                policy,
                cpus: [sleeper, signaller],
            };
            if cases.contains(&case) {
                return Err(Error::Twice(format!("{way} {}", case.table())));
            }
            way.0
                .check()
                .map_err(|error| Error::Way(way.0.name(), error))?;
            cases.push(case);
        }
    }
    Ok(cases)
}

/// Those that this process may use.
fn usual_ways() -> Vec<Way> {
    let ways = wake::Way::ALL.into_iter().filter(|way| {
        let may = way.check();
        if let Err(error) = &may {
            say(format_args!(
                "strobe: without {}: {}",
                way.name(),
                Error::Way(way.name(), io::Error::new(error.kind(), error.to_string()))
            ));
        }
        may.is_ok()
    });
    ways.map(Way).collect()
}

impl Case {
    /// What the cases of one table have in common.
    fn table(&self) -> String {
        let place = match self.place {
            Place::Same => "same CPU",
            Place::Other => "other CPU",
        };
        format!("{place}, {}", self.policy)
    }
}

impl Measured {
    fn new(case: Case) -> Measured {
        Measured {
            case,
            all: None,
            rounds: Vec::new(),
            set_up: Vec::new(),
            stats: Stats::around(0),
        }
    }

    fn round(&mut self, args: &Args, stop: &Stop) -> Result<(), Error> {
        let [sleeper, signaller] = self.case.cpus;
        let plan = Plan {
            way: self.case.way.0,
            policy: self.case.policy,
            sleeper,
            signaller,
            count: args.count,
            pause: Duration::from_nanos(args.rate),
        };
        let measured = wake::measure(&plan, &stop.interrupt);
        let measured = measured.map_err(|error| Error::Measure(plan.way.name(), error))?;
        self.stats.merge(&measured.took);
        self.all = self.stats.figures();
        self.rounds.push(measured.took.figures());
        self.set_up = measured.set_up;
        Ok(())
    }

    /// From the least to the greatest of the rounds.
    fn range(&self, of: fn(&Figures) -> Option<i64>) -> String {
        let each = || self.rounds.iter().flatten().filter_map(of);
        let ends = each().min().zip(each().max());
        ends.map_or("-".to_owned(), |(least, most)| {
            format!("{} .. {}", show_ns(least as f64), show_ns(most as f64))
        })
    }
}

fn text(outcome: &Outcome) -> String {
    let mut text = format!("{}\n", outcome.machine);
    for measured in outcome
        .ways
        .chunk_by(|a, b| a.case.table() == b.case.table())
    {
        let name = measured.first().map_or(String::new(), |m| m.case.table());
        let mut table = vec![report::head(&name)];
        let mut ranges = vec![["over rounds", "p50", "p99", "max"].map(str::to_owned)];
        for it in measured {
            let way = it.case.way.to_string();
            table.push(report::line(&way, it.all.as_ref()));
            ranges.push([
                way,
                it.range(|figures| figures.p50),
                it.range(|figures| figures.p99),
                it.range(|figures| Some(figures.max)),
            ]);
        }
        text += &format!("\n{}", term::table("", &table));
        if measured.iter().any(|it| it.rounds.len() > 1) {
            text += &format!("\n{}", term::table("", &ranges));
        }
    }
    let mut refused: Vec<&rt::Step> = Vec::new();
    for step in outcome.ways.iter().flat_map(|it| &it.set_up) {
        if !step.ok && !refused.contains(&step) {
            refused.push(step);
            text += &format!("without {}: {}\n", step.what, step.got);
        }
    }
    text
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        let way = wake::Way::ALL.into_iter().find(|way| way.name() == text);
        way.map(Way).ok_or_else(|| {
            let names = wake::Way::ALL.map(wake::Way::name);
            format!("there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name())
    }
}

fn as_text<S: Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(policy)
}
