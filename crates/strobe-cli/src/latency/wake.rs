// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency wake`: how long it takes to wake a thread, by what it sleeps in and where it runs.

use std::process::ExitCode;

use clap::ValueEnum;
use strobe::quantity::{period_ns, show_ns};
use strobe::rt::{self, Policy};
use strobe::stats::Figures;
use strobe::stop::Stop;
use strobe_measure::latency::wake::{CaseResult, Error, Options, Outcome, Place, measure};
use strobe_measure::wake::WakeMechanism;

use super::common;
use crate::report;
use crate::term::{self, say};

/// How long it takes to wake a thread, by the call it sleeps in, the CPU and the policy
///
/// One thread takes the time and signals; the other takes the time when it is
/// awake. All cases are measured in turn, once a round, in another order each time:
/// compare the ranges over the rounds, not the greatest values.
#[derive(clap::Args)]
pub struct Args {
    /// Calls to sleep in: spin, futex, eventfd, poll, epoll, pipe, socket, uring (default: all)
    #[arg(value_name = "WAY")]
    ways: Vec<WakeMechanism>,

    /// Whether the waking thread runs on the same CPU (default: both, if there are two CPUs)
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',')]
    place: Vec<PlaceChoice>,

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

/// [`Place`] on the command line.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlaceChoice {
    /// Both threads on one CPU
    Same,
    /// Each on its own
    Other,
}

impl From<PlaceChoice> for Place {
    fn from(choice: PlaceChoice) -> Place {
        match choice {
            PlaceChoice::Same => Place::Same,
            PlaceChoice::Other => Place::Other,
        }
    }
}

impl Args {
    fn asked(&self) -> Options {
        Options {
            ways: self.ways.clone(),
            place: self.place.iter().copied().map(Place::from).collect(),
            policy: self.policy.clone(),
            cpu: self.cpu,
            rate: self.rate,
            count: self.count,
            rounds: self.rounds,
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let measure = |stop: &Stop| {
        let outcome = measure(&args.asked(), stop);
        for why in outcome.iter().flat_map(|outcome| &outcome.without) {
            say(format_args!("strobe: without {why}"));
        }
        outcome.map_err(|error| format!("{}{error}", option(&error)))
    };
    let status = |outcome: &Outcome| (outcome.interrupted, true);
    common::run(args.json, measure, status, text)
}

/// The option of this program that an error is about.
fn option(error: &Error) -> &'static str {
    match error {
        Error::Cpu(_) => "--cpu: ",
        Error::OneCpu | Error::Spin => "--place: ",
        _ => "",
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
                over_rounds(it, |figures| figures.p50),
                over_rounds(it, |figures| figures.p99),
                over_rounds(it, |figures| Some(figures.max)),
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

/// From the least to the greatest of the rounds.
fn over_rounds(it: &CaseResult, of: fn(&Figures) -> Option<i64>) -> String {
    let each = || it.rounds.iter().flatten().filter_map(of);
    let ends = each().min().zip(each().max());
    ends.map_or("-".to_owned(), |(least, most)| {
        format!("{} .. {}", show_ns(least as f64), show_ns(most as f64))
    })
}
