// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe list`: what is here.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use strobe::catalogue::Catalogue;
use strobe::channel::Channel;
use strobe::engine::kernel::Control;
use strobe::engine::user::User;
use strobe::engine::user::registry::Registry;
use strobe_board::Board;

use crate::term::{answer, fail, say, table};

/// Show engines, devices, channels, outputs, events and runs
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show also what the user engine has of this board file
    #[arg(long, value_name = "FILE")]
    board: Option<PathBuf>,
}

#[derive(Serialize)]
struct Listing {
    engines: [Engine; 2],
}

#[derive(Serialize)]
struct Engine {
    name: &'static str,
    available: bool,
    /// Why it is not available.
    error: Option<String>,
    /// What it has, if it is available.
    catalogue: Option<Catalogue>,
}

impl Engine {
    fn new(name: &'static str, catalogue: Result<Catalogue, String>) -> Self {
        let error = catalogue.as_ref().err().cloned();
        Engine {
            name,
            available: error.is_none(),
            error,
            catalogue: catalogue.ok(),
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let kernel = Control::look().and_then(|control| control.catalogue());
    let mut user = User::default();
    if let Some(path) = &args.board {
        user = match Board::read(path) {
            Ok(board) => user.with_board(board),
            Err(faults) => return fail(faults),
        };
    }
    let mut user = user.catalogue();
    match Registry::of_this_user().runs() {
        Ok(found) => user.runs = found.runs,
        Err(error) => say(format_args!(
            "strobe: runs of the user engine are not to be seen: {error}"
        )),
    }
    let listing = Listing {
        engines: [
            Engine::new("kernel", kernel.map_err(|error| error.to_string())),
            Engine::new("user", Ok(user)),
        ],
    };
    if args.json {
        return match serde_json::to_string(&listing) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => fail(error),
        };
    }
    answer(&text(&listing))
}

fn text(listing: &Listing) -> String {
    let engines = listing.engines.each_ref().map(|engine| {
        let state = engine.error.clone().unwrap_or("available".to_owned());
        [engine.name.to_owned(), state]
    });
    let mut text = format!("engines\n{}", table("  ", &engines));
    let mut runs = Vec::new();
    for engine in &listing.engines {
        let Some(catalogue) = &engine.catalogue else {
            continue;
        };
        for (title, body) in sections(catalogue) {
            if !body.is_empty() {
                text.push_str(&format!("{title} ({} engine)\n{body}", engine.name));
            }
        }
        runs.extend(catalogue.runs.iter().cloned());
    }
    if !runs.is_empty() {
        text.push_str(&format!("runs\n{}", crate::status::table_of(&runs)));
    }
    text
}

/// What an engine has, but for its runs: titles and tables.
fn sections(catalogue: &Catalogue) -> [(&'static str, String); 4] {
    let devices = catalogue.devices.iter();
    let devices: Vec<_> = devices
        .map(|d| [d.name.clone(), d.description.clone()])
        .collect();
    let events = catalogue.events.iter();
    let events: Vec<_> = events
        .map(|e| {
            let period = if e.periodic { ":PERIOD" } else { "" };
            [format!("{}{period}", e.name), e.description.clone()]
        })
        .collect();
    [
        ("devices", table("  ", &devices)),
        ("channels", values(&catalogue.channels)),
        ("outputs", values(&catalogue.outputs)),
        ("events", table("  ", &events)),
    ]
}

fn values(channels: &[Channel]) -> String {
    let rows: Vec<_> = channels
        .iter()
        .map(|c| {
            [
                c.name.clone(),
                c.kind.name().to_owned(),
                c.unit.clone(),
                c.class.name().to_owned(),
                format!("{} ns", c.cost_ns),
                c.description.clone(),
            ]
        })
        .collect();
    table("  ", &rows)
}
