// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe list`: what is here.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use strobe::catalogue::Catalogue;
use strobe::channel::Channel;
use strobe::error::Error;
use strobe::machine::ThisMachine;
use strobe_board::Board;

use crate::at;
use crate::term::{answer, fail, say, table};

/// Show engines, devices, channels, outputs, events and runs
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show what this board file gives the user engine, too
    #[arg(long, value_name = "FILE")]
    board: Option<PathBuf>,

    #[command(flatten)]
    at: at::Args,
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
    match listing(args) {
        Ok(listing) if args.json => match serde_json::to_string(&listing) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => fail(error),
        },
        Ok(listing) => answer(&text(&listing)),
        Err(words) => fail(words),
    }
}

/// What there is; or why that cannot be said.
fn listing(args: &Args) -> Result<Listing, String> {
    let words = |error: Error| error.to_string();
    args.at
        .refuse(&[("--board", args.board.is_some())])
        .map_err(words)?;
    let machine = match &args.board {
        Some(path) => {
            let board = Board::read(path).map_err(|faults| faults.to_string())?;
            Box::new(ThisMachine::default().with_board(board))
        }
        None => args.at.machine().map_err(words)?,
    };
    let found = machine.catalogues().map_err(words)?;
    for note in found.notes {
        say(format_args!("strobe: {note}"));
    }
    let kernel = found.kernel.map_err(words);
    Ok(Listing {
        engines: [
            Engine::new("kernel", kernel),
            Engine::new("user", Ok(found.user)),
        ],
    })
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

/// The lines of a GPIO chip are many, so one row stands for all of a chip: the first one, with LINE for its number.
fn fold<const N: usize>(rows: Vec<[String; N]>, event: &str) -> Vec<[String; N]> {
    let mut folded: Vec<[String; N]> = Vec::with_capacity(rows.len());
    for mut row in rows {
        if let [name, .., description] = &mut row[..] {
            let chip = name.rsplit_once('/');
            let is_number = |line: &str| line.starts_with(|c: char| c.is_ascii_digit());
            let chip = chip.filter(|(chip, line)| chip.starts_with("gpio:") && is_number(line));
            if let Some((chip, _)) = chip {
                *name = format!("{chip}/LINE{event}");
                "one of the lines of this chip".clone_into(description);
            }
        }
        if row.first() != folded.last().and_then(|last| last.first()) {
            folded.push(row);
        }
    }
    folded
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
            let name = format!("{}{period}", e.name);
            [name, e.accounting.name().to_owned(), e.description.clone()]
        })
        .collect();
    [
        ("devices", table("  ", &devices)),
        ("channels", values(&catalogue.channels)),
        ("outputs", values(&catalogue.outputs)),
        ("events", table("  ", &fold(events, ":both"))),
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
    table("  ", &fold(rows, ""))
}
