// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency gpio`: from an edge of a line to its row, or to the answer on another line.

use std::process::ExitCode;

use strobe::quantity::{period_ns, show_ns};
use strobe::stop::Stop;
use strobe_measure::latency::gpio::{Error, Line, Observer, Options, Outcome, measure};

use super::{common, words};

/// From an edge of a GPIO line to its row, or to the answer on another line
///
/// The instants: driven (with --drive: just before this program drives the other
/// line), edge (the kernel's time stamp), stamp (the run's thread is awake),
/// visible (a reader has the row). With --answer there is no run: a thread answers
/// each edge by driving a line to the other level, and the instants are edge,
/// stamp, answered.
#[derive(clap::Args)]
pub struct Args {
    /// The line whose edges trigger rows
    #[arg(value_name = "CHIP/IN")]
    input: Line,

    /// Make the edges by driving this line, which must be wired to the other one
    #[arg(long, value_name = "CHIP/OUT", conflicts_with = "answer")]
    drive: Option<Line>,

    /// Edges to drive each second
    #[arg(long, value_name = "RATE", default_value = "1kHz", value_parser = period_ns)]
    rate: u64,

    /// Answer each edge by switching the level of this line
    #[arg(long, value_name = "CHIP/OUT")]
    answer: Option<Line>,

    /// Never sleep: ask for edges all the time
    #[arg(long)]
    spin: bool,

    #[command(flatten)]
    common: common::Args,
}

impl Args {
    fn asked(&self) -> Options {
        Options {
            input: self.input.clone(),
            drive: self.drive.clone(),
            rate: self.rate,
            answer: self.answer.clone(),
            spin: self.spin,
            common: self.common.common(),
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let measure = |stop: &Stop| {
        measure(&args.asked(), stop).map_err(|error| format!("{}{error}", option(&error)))
    };
    let status = |outcome: &Outcome| (outcome.interrupted, outcome.account.is_whole());
    common::run(args.common.json, measure, status, text)
}

/// The option of this program that an error is about.
fn option(error: &Error) -> &'static str {
    match error {
        Error::Cpu(_) => "--cpu: ",
        _ => "",
    }
}

fn text(outcome: &Outcome) -> String {
    let observer = outcome.observer.as_ref();
    format!(
        "{}\n{}{}{}",
        outcome.machine,
        words::account(&outcome.account, &format!("line {}", outcome.line)),
        words::steps(&outcome.report, ""),
        observer.map_or(String::new(), observed)
    )
}

/// What the chip says of the answers.
fn observed(observer: &Observer) -> String {
    let show = |ns: u64| show_ns(ns as f64);
    format!(
        "as the chip measured it: {} answered, {} not; best {}, typical {}, worst {}, mean {}\n",
        observer.answered,
        observer.unanswered,
        show(observer.best_ns),
        show(observer.typical_ns),
        show(observer.worst_ns),
        show(observer.mean_ns)
    )
}
