// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe status`: the runs.

use std::process::ExitCode;

use serde::Serialize;
use strobe::catalogue::RunStatus;
use strobe::engine::kernel::Control;
use strobe::quantity::show_ns;

use crate::term::{answer, fail, table};

/// Show all runs
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Status {
    runs: Vec<RunStatus>,
}

pub fn run(args: &Args) -> ExitCode {
    let status = match Control::open().and_then(|control| control.catalogue()) {
        Ok(catalogue) => Status {
            runs: catalogue.runs,
        },
        Err(error) => return fail(error),
    };
    if args.json {
        return match serde_json::to_string(&status) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => fail(error),
        };
    }
    if status.runs.is_empty() {
        return answer("no runs\n");
    }
    answer(&table_of(&status.runs))
}

/// The runs as a table with a heading; empty if there are none.
pub fn table_of(runs: &[RunStatus]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let heading = [
        "run", "engine", "state", "event", "channels", "rows", "missed", "ring", "limit",
        "elapsed", "readers", "program",
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
            run.capacity.to_string(),
            run.limit
                .map_or("none".to_owned(), |limit| limit.to_string()),
            show_ns(run.elapsed_ns as f64),
            run.readers.to_string(),
            format!("{} ({}, user {})", run.program, run.pid, run.uid),
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
