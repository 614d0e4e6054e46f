// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency uio`: the measurement of the UIO paper, and what has become of each part of it.

use std::path::PathBuf;
use std::process::ExitCode;

use strobe::event::EventSpec;
use strobe::stop::Stop;
use strobe_measure::latency::uio::{Error, Options, Outcome, Side, measure};

use super::{common, words};

/// From the interrupt of a UIO device to its row, traced and untraced
///
/// This makes two runs of the user engine on uio:NAME: one without and one with the
/// kernel's trace events, in a tracing instance that is removed however this
/// program ends. Then it runs cyclictest, if that is installed.
#[derive(clap::Args)]
pub struct Args {
    /// The device: the name that its driver gives it, or uioN
    #[arg(value_name = "NAME")]
    device: String,

    /// A board file for the device; --event then names an event of it, such as edu.irq
    #[arg(long, value_name = "FILE", requires = "event")]
    board: Option<PathBuf>,

    /// The event of the rows (default: uio:NAME)
    #[arg(long, value_name = "EV")]
    event: Option<EventSpec>,

    /// A channel that holds the time of the interrupt by the device: CLOCK_MONOTONIC in ns
    #[arg(long, value_name = "CH")]
    raised: Option<String>,

    /// Do not trace
    #[arg(long)]
    no_trace: bool,

    #[command(flatten)]
    common: common::Args,
}

impl Args {
    fn asked(&self) -> Options {
        Options {
            device: self.device.clone(),
            board: self.board.clone(),
            event: self.event.clone(),
            raised: self.raised.clone(),
            no_trace: self.no_trace,
            common: self.common.common(),
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let measure = |stop: &Stop| {
        measure(&args.asked(), stop)
            .map_err(|error| format!("{}{error}{}", option(&error), remedy(&error)))
    };
    let status = |outcome: &Outcome| {
        let sides = [Some(&outcome.untraced), outcome.traced.as_ref()];
        let is_whole = sides.iter().flatten().all(|side| side.account.is_whole());
        (outcome.interrupted, is_whole)
    };
    common::run(args.common.json, measure, status, text)
}

/// The option of this program that an error is about.
fn option(error: &Error) -> &'static str {
    match error {
        Error::Cpu(_) => "--cpu: ",
        _ => "",
    }
}

/// The option that helps.
fn remedy(error: &Error) -> &'static str {
    match error {
        Error::Trace(_) | Error::NoThread => " (option: --no-trace)",
        _ => "",
    }
}

fn side(side: &Side, what: &str) -> String {
    let overtaken = match side.overtaken {
        0 => String::new(),
        rows => format!(
            "{rows} rows have no interrupt time: another interrupt came before it was read\n"
        ),
    };
    words::account(&side.account, what) + &overtaken + &words::steps(&side.own, "")
}

fn text(outcome: &Outcome) -> String {
    let mut text = format!("{}; {}\n\n", outcome.device, outcome.machine);
    text += &side(&outcome.untraced, "untraced");
    if let Some(it) = &outcome.traced {
        text += &format!("\n{}", side(it, "traced"));
        if let Some(traced) = &it.traced {
            text += &format!(
                "\nby the kernel's trace events, in whole microseconds: {} of {} rows; {} disagree with the row's \
                 stamp\n",
                traced.rows, it.account.rows, traced.disagree
            );
            if !traced.missing.is_empty() {
                text += &format!("this kernel does not have {}\n", traced.missing.join(", "));
            }
            text += &words::steps(&traced.report, "");
            text += &format!("\nas in the paper\n{}", words::steps(&traced.paper, ""));
        }
    }
    text += "\n";
    text += &match (&outcome.cyclictest, &outcome.without_cyclictest) {
        (Some(it), _) => format!(
            "cyclictest: min {} us, avg {} us, max {} us\n",
            it.min_us, it.avg_us, it.max_us
        ),
        (None, why) => format!("{}\n", why.as_deref().unwrap_or("cyclictest: nothing")),
    };
    text
}
