// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in another format.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::journal::{self, Journal};
use crate::sink::{self, Existing};

/// Why a recording was not converted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Both are one file.
    #[error("{0}: is both input and output; give the output another name")]
    Same(String),
    /// The recording cannot be read.
    #[error(transparent)]
    Input(#[from] journal::Error),
    /// The new file cannot be made.
    #[error(transparent)]
    Sink(#[from] sink::Error),
    /// The new file cannot be written.
    #[error("sink {name}: {source}")]
    Write {
        /// The new file.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

/// What was converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Converted {
    /// Rows that are in the new file.
    pub rows: u64,
    /// The recording has its account; else it was cut off.
    pub is_whole: bool,
    /// Its last batch is not whole.
    pub is_torn: bool,
}

/// Writes a recording in another format, up to its last whole batch.
///
/// # Errors
/// One of the two cannot be used.
pub fn convert(input: &Path, name: &str, existing: Existing) -> Result<Converted, Error> {
    sink::check(name)?;
    let mut journal = Journal::open(input)?;
    if is_same(input, name.as_ref()) {
        return Err(Error::Same(name.to_owned()));
    }
    let (name, mut sink) = sink::create(name, &journal.info().event, existing)?;
    let failed = |source| Error::Write {
        name: name.clone(),
        source,
    };
    sink.begin(journal.info()).map_err(failed)?;
    while let Some(rows) = journal.read()? {
        sink.write(rows).map_err(failed)?;
    }
    // The account of a torn file would be of rows that are not there.
    let totals = journal.totals().filter(|_| !journal.is_torn());
    sink.finish(totals).map_err(failed)?;
    Ok(Converted {
        rows: sink.written().rows,
        is_whole: totals.is_some(),
        is_torn: journal.is_torn(),
    })
}

/// Whether both names are those of one file: creating it would empty it.
fn is_same(input: &Path, sink: &Path) -> bool {
    let id = |path: &Path| path.metadata().map(|m| (m.dev(), m.ino())).ok();
    id(input).is_some_and(|file| Some(file) == id(sink))
}
