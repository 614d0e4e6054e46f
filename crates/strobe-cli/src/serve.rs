// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe serve` and `strobe subscribe`: the program strobe-serve, which is installed beside this one. What it takes to
//! speak to a network stays out of this one.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::term::fail;

/// The program.
const NAME: &str = "strobe-serve";

/// Serve runs of this machine to others: a live page, HTTP, PandA, NATS
///
/// All options are those of the program strobe-serve: strobe serve --help shows
/// them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Serve {
    /// What strobe-serve is told
    #[arg(
        value_name = "CONFIG",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    rest: Vec<OsString>,
}

/// Record the runs that a server publishes on NATS
///
/// All options are those of the program strobe-serve: strobe subscribe --help
/// shows them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Subscribe {
    /// What strobe-serve is told
    #[arg(
        value_name = "URL",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    rest: Vec<OsString>,
}

pub fn serve(args: &Serve) -> ExitCode {
    become_server(None, &args.rest)
}

pub fn subscribe(args: &Subscribe) -> ExitCode {
    become_server(Some("subscribe"), &args.rest)
}

/// Answers only if there is no such program.
fn become_server(word: Option<&str>, rest: &[OsString]) -> ExitCode {
    let mut command = Command::new(program());
    let error = command.args(word).args(rest).exec();
    match error.kind() {
        io::ErrorKind::NotFound => fail(format_args!(
            "{NAME}: not found beside this program or in PATH; install it (make install)"
        )),
        _ => fail(format_args!("{NAME}: cannot be started: {error}")),
    }
}

/// Beside this program, or somewhere in PATH.
fn program() -> PathBuf {
    let beside = std::env::current_exe().map(|path| path.with_file_name(NAME));
    let beside = beside.ok().filter(|path| path.is_file());
    beside.unwrap_or_else(|| NAME.into())
}
