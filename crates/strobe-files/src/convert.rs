// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in another format.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use strobe::engine;
use strobe::error::Words;
use strobe::source::RowSource;

use crate::journal;
use crate::sink::{self, Existing};

/// For rows of a run that goes on.
const WAIT: Duration = Duration::from_millis(100);

/// Why a recording was not converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Both are one file.
    Same(String),
    /// The recording cannot be read.
    Input(#[from] journal::Error),
    /// There are no more rows, though there should be.
    Rows(#[from] engine::Error),
    /// The new file cannot be made.
    Sink(#[from] sink::Error),
    /// The new file cannot be written.
    Write {
        /// The new file.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// The object, the reason and the remedy.
    pub fn words(&self) -> Words {
        match self {
            Error::Same(name) => Words::new(name, "it is both the input and the output")
                .mend("give the output another name"),
            Error::Input(error) => error.words(),
            Error::Rows(error) => error.words(),
            Error::Sink(error) => error.words(),
            Error::Write { name, source } => Words::new(format!("sink {name}"), source.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}

/// What was converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversionSummary {
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
pub fn convert(input: &Path, name: &str, existing: Existing) -> Result<ConversionSummary, Error> {
    sink::check(name)?;
    let mut source = journal::open(input)?;
    if is_same(input, name.as_ref()) {
        return Err(Error::Same(name.to_owned()));
    }
    copy(source.as_mut(), name, existing)
}

/// Writes all rows from anywhere into a sink.
///
/// # Errors
/// One of the two cannot be used.
pub fn copy(
    source: &mut dyn RowSource,
    name: &str,
    existing: Existing,
) -> Result<ConversionSummary, Error> {
    let (name, mut sink) = sink::create(name, &source.info().event, existing)?;
    let failed = |source| Error::Write {
        name: name.clone(),
        source,
    };
    let mut block = source.next(WAIT)?;
    sink.begin(source.info()).map_err(failed)?;
    while let Some(rows) = block {
        sink.write(rows.rows()).map_err(failed)?;
        block = source.next(WAIT)?;
    }
    let totals = source.totals();
    sink.finish(totals.as_ref()).map_err(failed)?;
    Ok(ConversionSummary {
        rows: sink.written().rows,
        is_whole: totals.is_some(),
        is_torn: source.is_torn(),
    })
}

/// Whether both names are those of one file: creating it would empty it.
pub fn is_same(input: &Path, sink: &Path) -> bool {
    let id = |path: &Path| path.metadata().map(|m| (m.dev(), m.ino())).ok();
    id(input).is_some_and(|file| Some(file) == id(sink))
}
