// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency kernel`: from an event to its row, and to the program that reads it, in the kernel engine.

use std::process::ExitCode;

use strobe::event::EventSpec;
use strobe::stop::Stop;
use strobe_measure::latency::kernel::{Error, Options, Outcome, measure};

use super::{common, words};

/// From an event to its row, and to the program that reads it
///
/// The instants of each row: raised (when a timer was due; for a board's event, by
/// a free-running counter of the board that the event latches), interrupt (the
/// row's stamp, in hard interrupt context), stored (all its channels are read),
/// visible (a program that waits for rows has it).
#[derive(clap::Args)]
pub struct Args {
    /// What triggers a row, such as timer:1kHz or counter.eoc
    #[arg(value_name = "EV")]
    event: EventSpec,

    /// More channels of each row
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    read: Vec<String>,

    /// The board's free-running counter
    #[arg(long, value_name = "CH", requires = "latched")]
    running: Option<String>,

    /// The same counter, latched at the event
    #[arg(long, value_name = "CH", requires = "running")]
    latched: Option<String>,

    /// The reading thread never sleeps
    #[arg(long)]
    spin: bool,

    #[command(flatten)]
    common: common::Args,
}

impl Args {
    fn asked(&self) -> Options {
        Options {
            event: self.event.clone(),
            read: self.read.clone(),
            running: self.running.clone(),
            latched: self.latched.clone(),
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
        Error::Channels(_) => "--running, --latched: ",
        _ => "",
    }
}

fn text(outcome: &Outcome) -> String {
    format!(
        "{}\n{}{}",
        outcome.machine,
        words::account(&outcome.account, &outcome.event),
        words::steps(&outcome.report, "")
    )
}
