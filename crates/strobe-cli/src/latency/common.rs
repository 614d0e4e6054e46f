// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ways of `strobe latency` have in common: options, and how they are measured and shown.

use std::fmt::Display;
use std::process::ExitCode;

use serde::Serialize;
use strobe::quantity::duration_ns;
use strobe::rt::Policy;
use strobe::stop::Stop;
use strobe_measure::latency::Common;

use crate::record::handle_signals;
use crate::term::{self, fail};

/// Options of the ways that follow rows.
#[derive(clap::Args)]
pub struct Args {
    /// End after so many rows, or edges
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rows: u64,

    /// End after this time at the latest
    #[arg(long = "for", value_name = "TIME", default_value = "1min", value_parser = duration_ns)]
    duration: u64,

    /// Policy of the thread that is measured: fifo:1 to fifo:99, other
    #[arg(long, value_name = "POLICY", default_value = "fifo:60")]
    policy: Policy,

    /// The CPU that it works on
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Print the differences of each row as well
    #[arg(long)]
    list: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// What was asked for.
    pub fn common(&self) -> Common {
        Common {
            rows: self.rows,
            duration: self.duration,
            policy: self.policy,
            cpu: self.cpu,
            list: self.list,
        }
    }
}

/// Measures until a signal comes, and shows what was found; `status`: whether it was interrupted, and is whole.
pub fn run<T: Serialize, E: Display>(
    json: bool,
    measure: impl FnOnce(&Stop) -> Result<T, E>,
    status: impl FnOnce(&T) -> (bool, bool),
    text: impl FnOnce(&T) -> String,
) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    match measure(&stop) {
        Ok(outcome) => {
            let (interrupted, is_whole) = status(&outcome);
            term::found(&outcome, json, text, term::status(interrupted, is_whole))
        }
        Err(error) => fail(error),
    }
}
