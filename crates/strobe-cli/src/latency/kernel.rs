// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency kernel`: from an event to its row, and to the program that reads it, in the kernel engine.

use std::process::ExitCode;

use strobe::event::EventSpec;
use strobe::quantity::duration_ns;
use strobe::rt::Policy;
use strobe::stop::Stop;
use strobe_measure::latency::kernel::{Asked, Outcome, measure};

use super::words;
use crate::record::handle_signals;
use crate::term::{self, fail};

/// From an event to its row, and to the program that reads it
///
/// The instants of each row: raised (when a timer was due; of a board's event,
/// by a counter of the board that runs on and is latched at the event),
/// interrupt (the row's stamp, in hard interrupt context), stored (all its
/// channels are read), visible (a program that waits for rows has it).
#[derive(clap::Args)]
pub struct Args {
    /// What triggers a row, such as timer:1kHz or counter.eoc
    #[arg(value_name = "EV")]
    event: EventSpec,

    /// More channels of each row
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    read: Vec<String>,

    /// The board's counter that runs on
    #[arg(long, value_name = "CH", requires = "latched")]
    running: Option<String>,

    /// The same counter, latched at the event
    #[arg(long, value_name = "CH", requires = "running")]
    latched: Option<String>,

    /// End after so many rows
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,

    /// End after this time, if there are not so many rows by then
    #[arg(long = "for", value_name = "TIME", default_value = "1min", value_parser = duration_ns)]
    duration: u64,

    /// Policy of the thread that reads: fifo:1 to fifo:99, other
    #[arg(long, value_name = "POLICY", default_value = "fifo:60")]
    policy: Policy,

    /// The CPU of the thread that reads, and of a timer
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// The thread that reads never sleeps
    #[arg(long)]
    spin: bool,

    /// Print the differences of each row, too
    #[arg(long)]
    list: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    fn asked(&self) -> Asked {
        Asked {
            event: self.event.clone(),
            read: self.read.clone(),
            running: self.running.clone(),
            latched: self.latched.clone(),
            rows: self.rows,
            duration: self.duration,
            policy: self.policy,
            cpu: self.cpu,
            spin: self.spin,
            list: self.list,
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    let outcome = match measure(&args.asked(), &stop) {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    let status = term::status(outcome.interrupted, outcome.account.is_whole());
    term::found(&outcome, args.json, text, status)
}

fn text(outcome: &Outcome) -> String {
    format!(
        "{}\n{}{}",
        outcome.machine,
        words::account(&outcome.account, &outcome.event),
        words::steps(&outcome.report, "")
    )
}
