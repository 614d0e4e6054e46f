// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe convert`: a recording in another format.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use strobe_files::convert::{Error, convert};

use crate::existing;
use crate::term::{self, fail, say};

/// Write a recording in another format
///
/// A recording that was cut off is converted up to its last whole batch; the
/// exit status is 3 then.
#[derive(clap::Args)]
pub struct Args {
    /// The recording: an .arrows or .h5 file
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The new file, whose extension chooses the format; or - for CSV on standard output
    #[arg(value_name = "OUT")]
    output: String,

    #[command(flatten)]
    existing: existing::Args,
}

pub fn run(args: &Args) -> ExitCode {
    let done = match convert(&args.input, &args.output, args.existing.existing()) {
        Ok(done) => done,
        // The reader of a pipe has seen enough.
        Err(Error::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            return term::INTERRUPTED.into();
        }
        Err(Error::Sink(error)) => return fail(existing::words(&error)),
        Err(error) => return fail(error),
    };
    if done.is_whole {
        return term::COMPLETE.into();
    }
    say(format_args!(
        "strobe: {}: the recording was cut off{}; converted {} rows",
        args.input.display(),
        match done.is_torn {
            true => ", and its last batch is not whole",
            false => "",
        },
        done.rows
    ));
    term::NOT_WHOLE.into()
}
