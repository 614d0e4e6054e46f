// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long it takes to wake a thread, by what it sleeps in and where it runs.

use std::io;
use std::time::Duration;

use serde::{Serialize, Serializer};
use strobe::stats::{Figures, Stats};
use strobe::stop::Stop;
use strobe_hw::rt::{self, Policy};

use crate::cpu::NoCpu;
use crate::machine::Machine;
use crate::turns::order;
use crate::wake::{self, Plan, WakeMechanism};

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to sleep in: spin, futex, eventfd, poll, epoll, pipe, socket, uring.
    pub ways: Vec<WakeMechanism>,
    /// Whether who wakes it runs on the same CPU.
    pub place: Vec<Place>,
    /// Policy of both threads.
    pub policy: Vec<Policy>,
    /// The CPU that the thread sleeps on.
    pub cpu: Option<usize>,
    /// From one wake to the next, at least, ns.
    pub rate: u64,
    /// How often it is woken in a round.
    pub count: u64,
    /// Rounds.
    pub rounds: u32,
}

/// Unless asked for.
const POLICY: Policy = Policy::Fifo(60);

/// Where the two threads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Both threads on one CPU.
    Same,
    /// Each on its own.
    Other,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The CPU cannot be had.
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    /// There is only one.
    #[error(
        "this process may use one CPU only, so both threads share it; start the program without taskset, or measure on \
         one CPU only"
    )]
    OneCpu,
    /// There is none.
    #[error("the CPUs of this process are not known: sched_getaffinity fails")]
    NoCpu,
    /// Who never sleeps would wait for itself.
    #[error(
        "spin: a thread that never sleeps would keep the waking thread from running on the same CPU; choose another \
         CPU for it, or another way"
    )]
    Spin,
    /// A case is there twice.
    #[error("{0}: given twice; name each once")]
    Twice(String),
    /// A way cannot be used.
    #[error(
        "{0}: this process may not use it: {1}; name other ways, or allow it (io_uring: sysctl \
         kernel.io_uring_disabled=0, and the container's seccomp filter)"
    )]
    Way(&'static str, io::Error),
    /// The system's reason.
    #[error("{0}: {1}")]
    Measure(&'static str, io::Error),
}

/// One way, in one place, with one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// What the thread sleeps in.
    pub way: WakeMechanism,
    /// Where who wakes it runs.
    pub place: Place,
    /// Policy of both threads.
    #[serde(serialize_with = "as_text")]
    pub policy: Policy,
    /// CPU of the thread that sleeps, and of the one that wakes it.
    pub cpus: [usize; 2],
}

/// A case, in all rounds.
#[derive(Serialize)]
pub struct CaseResult {
    /// What was measured.
    #[serde(flatten)]
    pub case: Case,
    /// All rounds together, ns; null if there was none.
    pub all: Option<Figures>,
    /// Each round.
    pub rounds: Vec<Option<Figures>>,
    /// What was got of the real-time set-up of the two threads.
    pub set_up: Vec<rt::Step>,
    #[serde(rename = "histogram")]
    stats: Stats,
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcome {
    /// A signal came: this is what there was until then.
    pub interrupted: bool,
    /// Where it was measured.
    pub machine: Machine,
    /// Each case.
    pub ways: Vec<CaseResult>,
    /// Ways that this process may not use, and why.
    #[serde(skip)]
    pub without: Vec<String>,
}

/// Measures all cases in turn, each once a round, in another order each time.
///
/// # Errors
/// Nothing was measured; why.
pub fn measure(asked: &Options, stop: &Stop) -> Result<Outcome, Error> {
    let mut without = Vec::new();
    let cases = cases(asked, &mut without)?;
    let machine = Machine::from_now();
    let mut measured: Vec<CaseResult> = cases.into_iter().map(CaseResult::new).collect();
    let turns = (0..asked.rounds).flat_map(|round| order(round, measured.len()));
    for turn in turns.collect::<Vec<_>>() {
        if stop.is_interrupted() {
            break;
        }
        if let Some(case) = measured.get_mut(turn) {
            case.round(asked, stop)?;
        }
    }
    Ok(Outcome {
        interrupted: stop.is_interrupted(),
        machine: machine.until_now(),
        ways: measured,
        without,
    })
}

/// All that is to be compared; what was not asked for by name, and cannot be had, is left out.
fn cases(asked: &Options, without: &mut Vec<String>) -> Result<Vec<Case>, Error> {
    let cpus = rt::cpus();
    let first = *cpus.first().ok_or(Error::NoCpu)?;
    let sleeper = asked.cpu.unwrap_or(first);
    if !cpus.contains(&sleeper) {
        return Err(NoCpu(sleeper).into());
    }
    let other = cpus.iter().find(|cpu| **cpu != sleeper).copied();
    let places = match asked.place.as_slice() {
        [] if other.is_none() => vec![Place::Same],
        [] => vec![Place::Same, Place::Other],
        named => named.to_vec(),
    };
    let policies = match asked.policy.as_slice() {
        [] => vec![POLICY],
        named => named.to_vec(),
    };
    let ways: Vec<WakeMechanism> = match asked.ways.as_slice() {
        [] => usual_ways(without),
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
            if place == Place::Same && *way == WakeMechanism::Spin {
                match asked.ways.is_empty() {
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
            way.check().map_err(|error| Error::Way(way.name(), error))?;
            cases.push(case);
        }
    }
    Ok(cases)
}

/// Those that this process may use.
fn usual_ways(without: &mut Vec<String>) -> Vec<WakeMechanism> {
    let ways = WakeMechanism::ALL.into_iter().filter(|way| {
        let may = way.check();
        if let Err(error) = &may {
            let error = io::Error::new(error.kind(), error.to_string());
            let why = Error::Way(way.name(), error);
            without.push(format!("{}: {why}", way.name()));
        }
        may.is_ok()
    });
    ways.collect()
}

impl Case {
    /// What the cases of one table have in common.
    pub fn table(&self) -> String {
        let place = match self.place {
            Place::Same => "same CPU",
            Place::Other => "other CPU",
        };
        format!("{place}, {}", self.policy)
    }
}

impl CaseResult {
    fn new(case: Case) -> CaseResult {
        CaseResult {
            case,
            all: None,
            rounds: Vec::new(),
            set_up: Vec::new(),
            stats: Stats::around(0),
        }
    }

    fn round(&mut self, asked: &Options, stop: &Stop) -> Result<(), Error> {
        let [sleeper, signaller] = self.case.cpus;
        let plan = Plan {
            way: self.case.way,
            policy: self.case.policy,
            sleeper,
            signaller,
            count: asked.count,
            pause: Duration::from_nanos(asked.rate),
        };
        let measured = wake::measure(&plan, &stop.interrupt);
        let measured = measured.map_err(|error| Error::Measure(plan.way.name(), error))?;
        self.stats.merge(&measured.took);
        self.all = self.stats.figures();
        self.rounds.push(measured.took.figures());
        self.set_up = measured.set_up;
        Ok(())
    }
}

fn as_text<S: Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(policy)
}
