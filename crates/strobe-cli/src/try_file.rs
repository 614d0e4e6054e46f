// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe try`: a program on the rows of a recording.

use std::path::PathBuf;
use std::process::ExitCode;

use strobe::computed_rows::ComputedRows;
use strobe::program::ProgramText;
use strobe::stop::Stop;
use strobe_files::convert;
use strobe_files::record::{Options, record_rows};
use strobe_files::sink;

use crate::record::{self, exit_status};
use crate::term::fail;
use crate::{existing, program};

/// Run a row program on a recording, to see what it would have computed, kept and left out
///
/// The rows that it keeps are written as `strobe record` would have written them.
/// Rows that it leaves out count as skipped.
#[derive(clap::Args)]
pub struct Args {
    /// The recording: an .arrows or .h5 file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    program: program::Args,

    /// Where the rows go, as with strobe record; without any, they are only counted
    #[arg(short = 'o', long = "sink", value_name = "SINK")]
    sinks: Vec<String>,

    #[command(flatten)]
    existing: existing::Args,

    /// Print the account as one JSON object
    #[arg(long)]
    json: bool,

    /// Exit with 0 even if something was missed, lost or failed
    #[arg(long)]
    allow_loss: bool,
}

pub fn run(args: &Args) -> ExitCode {
    try_file(args).unwrap_or_else(fail)
}

fn try_file(args: &Args) -> Result<ExitCode, record::Error> {
    for name in &args.sinks {
        sink::check(name)?;
        if convert::is_same(&args.file, name.as_ref()) {
            return Err(convert::Error::Same(name.clone()).into());
        }
    }
    let stop = Stop::default();
    record::handle_signals(&stop).map_err(record::Error::Signals)?;
    let mut text = ProgramText::default();
    args.program.change(&mut text);
    let mut rows = ComputedRows::new(strobe_files::open(&args.file)?, &text)?;
    let options = Options {
        sinks: args.sinks.clone(),
        existing: args.existing.existing(),
        ..Options::default()
    };
    let summary = record_rows(&mut rows, &options, &stop, &mut |_| {})?;
    record::show(args.json, &args.sinks, &summary, None);
    Ok(exit_status(&summary, args.allow_loss).into())
}
