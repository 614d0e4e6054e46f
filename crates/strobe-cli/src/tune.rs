// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe tune`: a variable of a run's program gets a new value.

use std::process::ExitCode;

use strobe::runs::RunName;

use crate::at;
use crate::rows::{self, place};
use crate::term;

/// Set a variable of a run's program while the run goes on
///
/// The variable must have been made with --tune. The next row is computed with the new value; the column of its name shows
/// from which row on.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its number in `strobe status`, or ENGINE:NUMBER
    #[arg(value_name = "RUN")]
    run: RunName,

    /// The variable and its value: limit=2.5, in the unit of its column, or 'limit=2.5 V'
    #[arg(value_name = "NAME=VALUE", value_parser = setting)]
    setting: (String, String),

    #[command(flatten)]
    at: at::Args,
}

pub fn run(args: &Args) -> ExitCode {
    match tune(args) {
        Ok(()) => term::COMPLETE.into(),
        Err(error) => term::fail(error),
    }
}

fn tune(args: &Args) -> Result<(), rows::Error> {
    let machine = args.at.machine()?;
    let place = place(machine.as_ref(), &args.run)?;
    let (name, value) = &args.setting;
    Ok(machine.tune(place, name, value)?)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME=VALUE, as in limit=2.5".to_owned()),
    }
}
