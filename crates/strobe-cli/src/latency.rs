// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency`: how long the way from an event to its row takes.

use std::process::ExitCode;

mod common;
mod gpio;
mod hook;
mod kernel;
mod uio;
mod wake;
mod words;

/// Measure the latency from an event to its row
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    way: Way,
}

#[derive(clap::Subcommand)]
enum Way {
    Gpio(Box<gpio::Args>),
    Hook(Box<hook::Args>),
    Kernel(Box<kernel::Args>),
    Uio(Box<uio::Args>),
    Wake(wake::Args),
}

pub fn run(args: &Args) -> ExitCode {
    match &args.way {
        Way::Gpio(args) => gpio::run(args),
        Way::Hook(args) => hook::run(args),
        Way::Kernel(args) => kernel::run(args),
        Way::Uio(args) => uio::run(args),
        Way::Wake(args) => wake::run(args),
    }
}
