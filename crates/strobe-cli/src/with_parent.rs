// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that is started for a measurement and goes with this one, however that ends.
//!
//! The kernel tells a process of its parent's end if the process asks for it after it has been forked. So this program
//! is started again, asks, and becomes the other one.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::term::fail;

/// The subcommand for it, which is for this program alone.
pub const NAME: &str = "with-parent";

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// The process that started it, as a number
    parent: i32,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// `program`, to be started by this process; it is asked to end (SIGTERM) when the thread that starts it has ended.
pub fn command(program: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(NAME)
        .arg(rustix::process::getpid().as_raw_nonzero().to_string())
        .arg(program);
    command
}

/// Becomes the program. Only an error comes back.
pub fn run(args: &Args) -> ExitCode {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return fail(format_args!("{}: {error}", args.words.join(" ")));
    }
    // Who had gone before can no longer tell.
    if Pid::as_raw(getppid()) != args.parent {
        return ExitCode::SUCCESS;
    }
    let Some((program, words)) = args.words.split_first() else {
        return fail("no program");
    };
    fail(format_args!(
        "{program}: {}",
        Command::new(program).args(words).exec()
    ))
}
