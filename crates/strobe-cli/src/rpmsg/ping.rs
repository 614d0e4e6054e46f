// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg ping`: how long a message takes to a remote that sends it back.

use std::process::ExitCode;

use strobe::quantity::{duration_ns, show_ns};
use strobe::stop::Stop;
use strobe_measure::rpmsg::ping::{Options, Outcome, measure};

use super::Where;
use crate::record::handle_signals;
use crate::report;
use crate::term::{self, fail};

/// Send messages that the remote sends back, one at a time, and measure the round trip
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: Where,

    /// Messages
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    count: u64,

    /// Bytes of each
    #[arg(long, value_name = "BYTES", default_value = "16",
          value_parser = clap::value_parser!(u16).range(8..))]
    size: u16,

    /// How long to wait for one
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration_ns)]
    timeout: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    let endpoint = match args.place.endpoint() {
        Ok(endpoint) => endpoint,
        Err(error) => return fail(error),
    };
    let asked = Options {
        count: args.count,
        size: args.size,
        timeout: args.timeout,
    };
    let outcome = match measure(&endpoint, &asked, &stop) {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    let is_whole = outcome.back == outcome.sent && outcome.error.is_none();
    let status = term::status(outcome.interrupted, is_whole);
    term::found(&outcome, args.json, text, status)
}

fn text(outcome: &Outcome) -> String {
    let mut text = format!(
        "from 0x{:x}: {} sent, {} came back, {} strange\n",
        outcome.src, outcome.sent, outcome.back, outcome.strange
    );
    if let Some(figures) = &outcome.took_ns {
        let rows = [
            report::head("took"),
            report::line("there and back", Some(figures)),
        ];
        text += &term::table("", &rows);
        text += &format!("a message a {}\n", show_ns(figures.mean));
    }
    if let Some(error) = &outcome.error {
        text += &format!("ended: {error}\n");
    }
    text
}
