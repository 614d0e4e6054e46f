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
    way: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Gpio(Box<gpio::Args>),
    Hook(Box<hook::Args>),
    Kernel(Box<kernel::Args>),
    Uio(Box<uio::Args>),
    Wake(wake::Args),
}

pub fn run(args: &Args) -> ExitCode {
    match &args.way {
        Kind::Gpio(args) => gpio::run(args),
        Kind::Hook(args) => hook::run(args),
        Kind::Kernel(args) => kernel::run(args),
        Kind::Uio(args) => uio::run(args),
        Kind::Wake(args) => wake::run(args),
    }
}
