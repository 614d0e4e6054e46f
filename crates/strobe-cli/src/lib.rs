// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of strobe: one module a subcommand.
//!
//! A library only so that `strobe-assets` can write the manual pages and
//! completions from the same definitions.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod at;
mod board;
mod check;
mod choice;
mod convert;
mod doctor;
mod existing;
mod jitter;
mod latency;
mod list;
mod once;
#[cfg(feature = "plot")]
mod plot;
mod program;
mod progress;
mod record;
mod replay;
mod report;
mod rows;
mod rpmsg;
mod rules;
mod serve;
mod status;
mod term;
mod try_file;
mod tune;
mod uio;
#[cfg(feature = "watch")]
mod watch;
mod why;
mod with_parent;

/// Record any channels on any event into rows, and lose nothing silently.
#[derive(Parser)]
#[command(
    name = "strobe",
    version,
    after_help = "Exit status: 0 complete; 1 could not run; 3 something was missed, lost or failed; \
                  130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Get(once::Get),
    Set(once::Set),
    Record(Box<record::Args>),
    Try(try_file::Args),
    Tune(tune::Args),
    Replay(replay::Args),
    Check(check::Args),
    Status(status::Args),
    #[cfg(feature = "watch")]
    Watch(watch::Args),
    Jitter(Box<jitter::Args>),
    Latency(latency::Args),
    Doctor(doctor::Args),
    Board(board::Args),
    Uio(uio::Args),
    Rpmsg(rpmsg::Args),
    Serve(serve::Serve),
    Subscribe(serve::Subscribe),
    Convert(convert::Args),
    #[cfg(feature = "plot")]
    Plot(plot::Args),
    #[command(hide = true)]
    WithParent(with_parent::Args),
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Does what the arguments of this process say.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::List(args) => list::run(&args),
            Command::Get(args) => once::get(&args),
            Command::Set(args) => once::set(&args),
            Command::Record(args) => record::run(&args),
            Command::Try(args) => try_file::run(&args),
            Command::Tune(args) => tune::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Status(args) => status::run(&args),
            #[cfg(feature = "watch")]
            Command::Watch(args) => watch::run(&args),
            Command::Jitter(args) => jitter::run(&args),
            Command::Latency(args) => latency::run(&args),
            Command::Doctor(args) => doctor::run(&args),
            Command::Board(args) => board::run(args),
            Command::Uio(args) => uio::run(&args),
            Command::Rpmsg(args) => rpmsg::run(&args),
            Command::Serve(args) => serve::serve(&args),
            Command::Subscribe(args) => serve::subscribe(&args),
            Command::Convert(args) => convert::run(&args),
            #[cfg(feature = "plot")]
            Command::Plot(args) => plot::run(&args),
            Command::WithParent(args) => with_parent::run(&args),
        },
        // Help and version are answers, on standard output; all else is an
        // error. Neither can be reported any further if it cannot be printed.
        Err(message) => {
            let _ = message.print();
            if message.use_stderr() {
                term::COULD_NOT_RUN.into()
            } else {
                term::COMPLETE.into()
            }
        }
    }
}
