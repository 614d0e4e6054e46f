// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe convert`: a recording in another format.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strobe_files::journal::{self, Journal};
use strobe_files::output;

use crate::term::{self, fail, say};

/// Write a recording in another format
///
/// A recording that was cut off is converted up to its last whole batch; the
/// exit status is 3 then.
#[derive(clap::Args)]
pub struct Args {
    /// The recording: an .arrows file
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The new file; its format by its extension, or - for CSV on standard output
    #[arg(value_name = "OUT")]
    output: String,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}: is both input and output; give the output another name")]
    Same(String),
    #[error(transparent)]
    Input(#[from] journal::Error),
    #[error(transparent)]
    Output(#[from] output::Error),
    #[error("output {name}: {source}")]
    Write { name: String, source: io::Error },
}

pub fn run(args: &Args) -> ExitCode {
    match convert(args) {
        Ok(code) => code.into(),
        // The reader of a pipe has seen enough.
        Err(Error::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            term::INTERRUPTED.into()
        }
        Err(error) => fail(error),
    }
}

fn convert(args: &Args) -> Result<u8, Error> {
    output::check(&args.output)?;
    let mut journal = Journal::open(&args.input)?;
    if is_same(&args.input, Path::new(&args.output)) {
        return Err(Error::Same(args.output.clone()));
    }
    let mut output = output::create(&args.output)?;
    let failed = |source| Error::Write {
        name: args.output.clone(),
        source,
    };
    output.begin(journal.info()).map_err(failed)?;
    while let Some(rows) = journal.read()? {
        output.write(rows).map_err(failed)?;
    }
    // The account of a torn file would be of rows that are not there.
    let totals = journal.totals().filter(|_| !journal.is_torn());
    output.finish(totals).map_err(failed)?;
    if totals.is_some() {
        return Ok(term::COMPLETE);
    }
    let rows = output.written().rows;
    say(format_args!(
        "strobe: {}: the recording was cut off{}; converted {rows} rows",
        args.input.display(),
        match journal.is_torn() {
            true => ", and its last batch is not whole",
            false => "",
        }
    ));
    Ok(term::NOT_WHOLE)
}

/// Whether both names are those of one file: creating it would empty it.
fn is_same(input: &Path, output: &Path) -> bool {
    let id = |path: &Path| path.metadata().map(|m| (m.dev(), m.ino())).ok();
    id(input).is_some_and(|file| Some(file) == id(output))
}
