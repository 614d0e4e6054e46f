// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe status`: the runs.

use std::process::ExitCode;

use strobe::catalogue::RunStatus;
use strobe::engine::user::registry::UnresponsiveRun;
use strobe::quantity::show_ns;

use crate::at;
use crate::term::{answer, fail, say, table};

/// Show the runs of both engines
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: at::Args,
}

pub fn run(args: &Args) -> ExitCode {
    let found = match args.at.machine().and_then(|machine| machine.runs()) {
        Ok(found) => found,
        Err(error) => return fail(error),
    };
    for note in &found.notes {
        say(format_args!("strobe: {note}"));
    }
    if args.json {
        return match serde_json::to_string(&found) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => fail(error),
        };
    }
    let mut text = table_of(&found.runs);
    for UnresponsiveRun { run, why, .. } in &found.silent {
        text.push_str(&format!("user:{run} {why}\n"));
    }
    if text.is_empty() {
        text = "no runs\n".to_owned();
    }
    answer(&text)
}

/// The runs as a table with a heading; empty if there are none.
pub fn table_of(runs: &[RunStatus]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let heading = [
        "run", "engine", "state", "event", "channels", "rows", "missed", "skipped", "errors",
        "ring", "limit", "elapsed", "readers", "program",
    ];
    let rows = runs.iter().map(|run| {
        [
            run.run.to_string(),
            run.engine.to_owned(),
            run.state.name().to_owned(),
            event(run),
            run.channels.to_string(),
            run.rows.to_string(),
            run.missed.to_string(),
            run.skipped.to_string(),
            run.errors.to_string(),
            run.capacity.to_string(),
            run.limit
                .map_or("none".to_owned(), |limit| limit.to_string()),
            show_ns(run.elapsed_ns as f64),
            run.readers.to_string(),
            program(run),
        ]
    });
    let lines: Vec<_> = std::iter::once(heading.map(String::from))
        .chain(rows)
        .collect();
    table("  ", &lines)
}

fn event(run: &RunStatus) -> String {
    match run.period_ns {
        0 => run.event.clone(),
        ns => format!("{}:{}", run.event, show_ns(ns as f64).replace(' ', "")),
    }
}

/// Who has made it; of a server's run, the name that it has there.
fn program(run: &RunStatus) -> String {
    match run.pid {
        0 => run.program.clone(),
        pid => format!("{} ({pid}, user {})", run.program, run.uid),
    }
}
