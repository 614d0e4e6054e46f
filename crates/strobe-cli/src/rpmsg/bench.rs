// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg bench`: what it takes to make and end an endpoint, as a file and, where the stock driver is, as a node.

use std::process::ExitCode;

use strobe::quantity::show_ns;
use strobe::stop::Stop;
use strobe_measure::rpmsg::bench::{EndpointKind, Options, Outcome, measure};

use crate::record::handle_signals;
use crate::report;
use crate::term::{self, fail};

/// Measure what it takes to make and end an endpoint: as a file, and as a node
///
/// As a file: one call to the control node of strobe_rpmsg. As a node, if the stock
/// driver is loaded: a call to its control node, then opening the node that
/// appears. Both take turns, in another order each round.
#[derive(clap::Args)]
pub struct Args {
    /// The control node, such as strobe_rpmsg0 (default: the only one)
    #[arg(long, value_name = "NODE")]
    control: Option<String>,

    /// The stock driver's control node (default: rpmsg_ctrl0, if it may be opened)
    #[arg(long, value_name = "NODE", conflicts_with = "threads")]
    stock: Option<String>,

    /// Endpoints in a round
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,

    /// Rounds
    #[arg(long, value_name = "N", default_value = "10",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Make the endpoints of a round with so many threads at once; files only
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,

    /// Keep so many other endpoints open meanwhile, and measure the memory that each takes
    #[arg(long, value_name = "N", default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    live: u32,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    fn asked(&self) -> Options {
        Options {
            control: self.control.clone(),
            stock: self.stock.clone(),
            count: self.count,
            rounds: self.rounds,
            threads: self.threads,
            live: self.live,
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    match measure(&args.asked(), &stop) {
        Ok(outcome) => {
            let status = term::status(outcome.interrupted, outcome.error.is_none());
            term::found(&outcome, args.json, text, status)
        }
        Err(error) => fail(error),
    }
}

fn text(outcome: &Outcome) -> String {
    let mut rows = vec![report::head("")];
    for it in &outcome.ways {
        let way = if it.way == EndpointKind::Node {
            "node"
        } else {
            "file"
        };
        for (step, figures) in it.steps.iter().filter(|(_, figures)| figures.is_some()) {
            rows.push(report::line(&format!("{way}: {step}"), figures.as_ref()));
        }
    }
    let mut text = format!("{}\n{}", outcome.machine, term::table("", &rows));
    text += &format!(
        "from each step, the {} that reading the clock takes are subtracted\n",
        show_ns(outcome.clock_ns.0 as f64)
    );
    for it in &outcome.ways {
        let Some((least, most)) = range(&it.each_ns) else {
            continue;
        };
        let way = if it.way == EndpointKind::Node {
            "node"
        } else {
            "file"
        };
        text += &format!(
            "{way}: an endpoint in {} .. {} over the rounds, {} a round\n",
            show_ns(least),
            show_ns(most),
            outcome.count
        );
    }
    if let Some((ratio, (least, most))) = outcome.ratio.zip(range(&outcome.round_ratios)) {
        text += &format!(
            "a node takes {ratio:.1} times as long, by the medians; {least:.1} .. {most:.1} over the rounds\n"
        );
    }
    if let Some(bytes) = outcome.bytes {
        text += &format!(
            "an endpoint takes {bytes} bytes, with {} of them there\n",
            outcome.live
        );
    }
    if let Some(why) = &outcome.without_nodes {
        text += &format!("without nodes: {why}\n");
    }
    if let Some(error) = &outcome.error {
        text += &format!("ended: {error}\n");
    }
    text
}

/// The least and the greatest, if there is any.
fn range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    Some((least, values.iter().copied().reduce(f64::max)?))
}
