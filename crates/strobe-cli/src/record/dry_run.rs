// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record --dry-run`: what would be recorded, and what it takes on this machine.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use strobe::channel::{Class, column_names};
use strobe::engine::DryRun;
use strobe::plan::Plan;
use strobe::quantity::show_ns;
use strobe_measure::preflight::{self, Preflight};

use super::{Error, Request};
use crate::choice;
use crate::report;
use crate::term::{self, answer, say};

/// The answer as JSON.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    dry: DryRun,
    measured: Preflight,
}

/// Measures, and says what it has found.
pub fn run(asked: &Request<'_>) -> Result<ExitCode, Error> {
    let Request { args, plan, .. } = asked;
    let chosen = choice::choose(&asked.selection, plan)?;
    let dry = chosen.dry_run(plan).map_err(choice::Error::from)?;
    asked.save()?;
    let create = |plan: &Plan| {
        let run = choice::create(&chosen, plan, asked.selection.cpu);
        run.map_err(Error::from)
    };
    let measured = preflight::measure(create, plan, &dry, args.with_outputs)?;
    let impossible = measured
        .highest_hz
        .filter(|_| measured.is_impossible(plan))
        .map(|highest| Error::TooFast(plan.event.to_string(), show_rate(highest)));
    if args.json {
        let answer_of = Answer { dry, measured };
        answer(&(serde_json::to_string(&answer_of).map_err(Error::Json)? + "\n"));
    } else {
        answer(&text(plan, &dry, &measured));
    }
    match impossible {
        Some(error) if !args.force => Err(error),
        Some(error) => {
            say(format_args!("strobe: {error}"));
            Ok(term::COMPLETE.into())
        }
        None => Ok(term::COMPLETE.into()),
    }
}

fn text(plan: &Plan, dry: &DryRun, measured: &Preflight) -> String {
    let names = column_names(&dry.channels);
    let pair = |key: &str, value: String| [key.to_owned(), value];
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let ring_s = measured
        .ring_s
        .map_or(String::new(), |s| format!(", {}", show_ns(s * 1e9)));
    let limit = plan.limit.map(|n| n.to_string());
    let mut lines = vec![
        pair("engine", dry.engine.to_owned()),
        pair("event", plan.event.to_string()),
        pair(
            "columns",
            format!("row, trigger, time, status, {}", names.join(", ")),
        ),
        pair("row", format!("{} bytes", dry.row_bytes)),
        pair(
            "ring",
            format!("{} rows, {} bytes{ring_s}", dry.ring_rows, dry.ring_bytes),
        ),
        pair("rows", limit.unwrap_or_else(|| "until stopped".to_owned())),
        pair(
            "highest rate",
            or_unknown(measured.highest_hz.map(show_rate)),
        ),
    ];
    if plan.event.period_ns().is_some() {
        let percent = measured.cpu_percent.map(|p| format!("{p:.2} % of one"));
        lines.push(pair("CPU", or_unknown(percent)));
    }
    if let Some(rehearsal) = &measured.rehearsal {
        let rows = format!("{} rows, {} missed", rehearsal.rows, rehearsal.missed);
        lines.push(pair("rehearsal", rows));
    }
    let mut text = term::table("", &lines);
    let mut costs = vec![report::head("takes")];
    for step in &measured.steps {
        costs.push(report::line(&step.name, step.ns.as_ref()));
    }
    costs.push(report::line("row to row", measured.row_ns.as_ref()));
    if let Some(rehearsal) = &measured.rehearsal {
        costs.push(report::line("late", rehearsal.late_ns.as_ref()));
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "\n{}", term::table("", &costs));
    for channel in dry.channels.iter().filter(|c| c.class == Class::Async) {
        let _ = writeln!(
            text,
            "channel {}: its value arrives later; that time counts in the rate only",
            channel.name
        );
    }
    text
}

fn show_rate(hz: f64) -> String {
    match hz {
        hz if hz >= 1e6 => format!("{:.3} MHz", hz / 1e6),
        hz if hz >= 1e3 => format!("{:.3} kHz", hz / 1e3),
        hz => format!("{hz:.3} Hz"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_the_unit_that_suits_it() {
        assert_eq!(show_rate(12.5), "12.500 Hz");
        assert_eq!(show_rate(333_333.3), "333.333 kHz");
        assert_eq!(show_rate(1e6), "1.000 MHz");
    }
}
