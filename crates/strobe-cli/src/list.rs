// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe list`: what is here.

use std::process::ExitCode;

use serde::Serialize;
use strobe::catalogue::Catalogue;
use strobe::channel::Channel;
use strobe::engine::kernel::Control;

use crate::term::{answer, fail, table};

/// Show engines, devices, channels, outputs, events and runs
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listing {
    engines: [EngineState; 2],
    #[serde(flatten)]
    catalogue: Catalogue,
}

#[derive(Serialize)]
struct EngineState {
    name: &'static str,
    available: bool,
    /// Why it is not available.
    error: Option<String>,
}

pub fn run(args: &Args) -> ExitCode {
    // As long as there is one engine, without it nothing is here.
    let catalogue = match Control::open().and_then(|control| control.catalogue()) {
        Ok(catalogue) => catalogue,
        Err(error) => return fail(error),
    };
    let listing = Listing {
        engines: [
            EngineState {
                name: "kernel",
                available: true,
                error: None,
            },
            EngineState {
                name: "user",
                available: false,
                error: Some("this strobe has no user engine yet".to_owned()),
            },
        ],
        catalogue,
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
    let catalogue = &listing.catalogue;
    let engines = listing.engines.each_ref().map(|engine| {
        let state = engine.error.clone().unwrap_or("available".to_owned());
        [engine.name.to_owned(), state]
    });
    let devices: Vec<_> = catalogue
        .devices
        .iter()
        .map(|d| [d.name.clone(), d.description.clone()])
        .collect();
    let events: Vec<_> = catalogue
        .events
        .iter()
        .map(|e| {
            let period = if e.periodic { ":PERIOD" } else { "" };
            [format!("{}{period}", e.name), e.description.clone()]
        })
        .collect();
    let mut text = String::new();
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            text.push_str(&format!("{title}\n{body}"));
        }
    };
    section("engines", table("  ", &engines));
    section("devices", table("  ", &devices));
    section("channels", values(&catalogue.channels));
    section("outputs", values(&catalogue.outputs));
    section("events", table("  ", &events));
    section("runs", crate::status::table_of(&catalogue.runs));
    text
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
