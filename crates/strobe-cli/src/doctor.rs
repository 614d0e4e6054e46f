// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe doctor`: what stands in the way of regular rows, and what mends it.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use strobe::engine::user::WaitMode;
use strobe::note::State;
use strobe::quantity::duration_ns;
use strobe::stop::Stop;
use strobe_files::record::{self as recording};
use strobe_measure::cpu::{NoCpu, check_cpu};
use strobe_measure::doctor::prove::{Proof, prove};
use strobe_measure::doctor::{CHECKS, Check, CheckResult, Intent, System, When};

use crate::choice::WaitChoice;
use crate::progress::Rounds;
use crate::record::handle_signals;
use crate::term::{self, fail};

mod prove;

/// How long the machine is watched, for the checks that need that.
const WATCHED: Duration = Duration::from_secs(1);

/// Check for machine settings that disturb regular sampling, each with a fix
///
/// Each check says ok, advice or unknown, and what it saw; an advice comes with the
/// command that fixes it. Nothing is changed. A check that cannot see its setting
/// says unknown. The exit status is 0 if every check is ok, else 3. With --prove,
/// some advice is tried in turn with its opposite.
#[derive(clap::Args)]
pub struct Args {
    /// Only these checks (default: all)
    #[arg(value_name = "CHECK")]
    checks: Vec<String>,

    /// CPU that will make the rows (default: any that this program may use)
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// SCHED_FIFO priority of the thread that will make them
    #[arg(long, value_name = "1..99", default_value_t = Intent::default().priority,
          value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: u8,

    /// How that thread will wait
    #[arg(long, value_name = "HOW", default_value = "block")]
    wait: WaitChoice,

    /// Measure the effect of some advice: real-time policy, spinning for the last
    /// moments, no deep sleep, one CPU
    #[arg(long)]
    prove: bool,

    /// How long each side is measured in a round of --prove
    #[arg(long = "for", value_name = "TIME", default_value = "2s", value_parser = duration_ns, requires = "prove")]
    duration: u64,

    /// Rounds of --prove
    #[arg(long, value_name = "N", default_value_t = 5, requires = "prove",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why nothing was looked at.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}: no such check; there are {known}", known = names())]
    NoCheck(String),
    #[error("spinning: this check needs a run that never sleeps; add --wait spin")]
    NotSpinning,
    #[error("--cpu: {0}")]
    Cpu(#[from] NoCpu),
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
    #[error("--prove: {0}")]
    Prove(#[from] recording::Error),
}

fn names() -> String {
    let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    names.join(", ")
}

#[derive(Serialize)]
struct Report {
    interrupted: bool,
    cpu: Option<usize>,
    priority: u8,
    wait: String,
    ok: usize,
    advice: usize,
    unknown: usize,
    checks: Vec<CheckResult>,
    /// Null without --prove.
    proofs: Option<Vec<Proof>>,
}

pub fn run(args: &Args) -> ExitCode {
    let report = match report(args) {
        Ok(report) => report,
        Err(error) => return fail(error),
    };
    let status = term::status(report.interrupted, report.advice + report.unknown == 0);
    term::found(&report, args.json, |report| text(args, report), status)
}

fn report(args: &Args) -> Result<Report, Error> {
    let intent = Intent {
        cpu: args.cpu,
        priority: args.priority,
        wait: args.wait.into(),
    };
    check_cpu(args.cpu)?;
    let checks = chosen(args, &intent)?;
    let mut system = System::this_one();
    if checks.iter().any(|check| check.when == When::Watched) {
        system.watch(WATCHED);
    }
    let fitting = checks.iter().filter(|check| check.fits(&system, &intent));
    let lines = fitting.map(|check| check.result(&system, &intent));
    let checks: Vec<CheckResult> = lines.collect();
    let stop = Stop::default();
    let proofs = match args.prove {
        true => {
            handle_signals(&stop).map_err(Error::Signals)?;
            let time = Duration::from_nanos(args.duration);
            let line = Rounds::new(Some(args.duration / 1_000_000));
            let show = |now| line.show(now);
            Some(prove(&intent, time, args.rounds, &stop, &show)?)
        }
        false => None,
    };
    let count = |state| {
        let those = checks.iter().filter(|line| line.finding.state == state);
        those.count()
    };
    Ok(Report {
        interrupted: stop.is_interrupted(),
        cpu: intent.cpu,
        priority: intent.priority,
        wait: intent.wait.to_string(),
        ok: count(State::Ok),
        advice: count(State::Advice),
        unknown: count(State::Unknown),
        checks,
        proofs,
    })
}

/// Those that were named, or all.
fn chosen(args: &Args, intent: &Intent) -> Result<Vec<&'static Check>, Error> {
    if args.checks.is_empty() {
        return Ok(CHECKS.iter().collect());
    }
    let named = args.checks.iter().map(|name| {
        let check = CHECKS.iter().find(|check| check.name == name);
        let check = check.ok_or_else(|| Error::NoCheck(name.clone()))?;
        match check.when == When::Spinning && intent.wait != WaitMode::Spin {
            true => Err(Error::NotSpinning),
            false => Ok(check),
        }
    });
    named.collect()
}

fn text(args: &Args, report: &Report) -> String {
    let cell = |text: &str| text.to_owned();
    let mut rows = Vec::new();
    let mut subject = "";
    for line in &report.checks {
        if line.subject != subject {
            subject = line.subject;
            rows.push([cell(subject), String::new(), String::new()]);
        }
        let finding = &line.finding;
        let mark = format!("  {}", finding.state.word());
        rows.push([mark, cell(line.check), cell(&finding.evidence)]);
        if let Some(remedy) = &finding.remedy {
            rows.push([String::new(), String::new(), format!("-> {remedy}")]);
        }
    }
    let mut text = term::table("", &rows);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n{} ok, {} advice, {} unknown, for a run with --wait {} at fifo:{} on {}",
        report.ok,
        report.advice,
        report.unknown,
        report.wait,
        report.priority,
        report
            .cpu
            .map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}")),
    );
    if let Some(proofs) = &report.proofs {
        text.push_str(&prove::text(proofs, args.rounds, args.duration));
    }
    text
}
