// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency`: how long the way from an event to its row takes.

use std::process::ExitCode;

mod delays;
mod hook;
mod wake;

/// Measure how long the way from an event to its row takes
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    way: Way,
}

#[derive(clap::Subcommand)]
enum Way {
    Hook(Box<hook::Args>),
    Wake(wake::Args),
}

pub fn run(args: &Args) -> ExitCode {
    match &args.way {
        Way::Hook(args) => hook::run(args),
        Way::Wake(args) => wake::run(args),
    }
}
