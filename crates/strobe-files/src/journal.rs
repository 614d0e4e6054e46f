// SPDX-License-Identifier: MIT OR Apache-2.0
//! `.arrows` files, read again: the run, its rows, and its account. A connection over which the same bytes come is read
//! in the same way.
//!
//! A file whose end is torn, because its writer was killed or its disk was
//! full, is read up to its last whole batch.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};
use serde_json::Value;
use strobe::block::Block;
use strobe::channel::Type;
use strobe::engine;
use strobe::error::Words;
use strobe::info::{End, RunInfo, Totals};
use strobe::source::RowSource;
use strobe_ring::layout::{MISSED_CAUSES, ROW_HEADER_WORDS};
use strobe_ring::{Missed, Rows};

use crate::fields::{self, Fields};
use crate::sink::{FORMAT, SKIPPED};

mod blocks;
mod columns;
#[cfg(feature = "hdf5")]
mod hdf5;
mod messages;
mod part;
mod rows;
mod segment;

use blocks::Blocks;
pub use columns::Columns;
use messages::Messages;
use rows::interleave;
pub use segment::{ReadBatch, Segment, StoredBatch, has_batch};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system's reason.
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// It is something else.
    Foreign {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// It was written by a strobe that had other columns.
    Format {
        /// The file.
        path: String,
        /// Its format.
        format: String,
        /// The version that has made it.
        version: String,
    },
}

impl Error {
    /// The object, the reason and the remedy.
    pub fn words(&self) -> Words {
        match self {
            Error::File { path, source } => Words::new(path, source.to_string()),
            Error::Foreign { path, why } => {
                Words::new(path, format!("not a recording of strobe: {why}"))
                    .mend("give a file that strobe has recorded")
            }
            Error::Format {
                path,
                format,
                version,
            } => Words::new(
                path,
                format!(
                    "a recording in format {format}, made by strobe {version}; this strobe reads format {FORMAT}"
                ),
            )
            .mend(format!(
                "convert it with the strobe that made it, or read it with pyarrow or polars{}",
                remark(format)
            )),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}

/// What is to be known of recordings that are not read.
fn remark(format: &str) -> &'static str {
    match format {
        FIRST_FORMAT => {
            "; in that format a channel that failed is 0, and a row names only the first one that failed"
        }
        _ => "",
    }
}

/// The number of the format that has none.
const FIRST_FORMAT: &str = "1";

/// An `.arrows` file, or such a stream, that is read from its start.
pub struct Journal {
    path: String,
    stream: StreamReader<Messages<BufReader<Box<dyn Read + Send>>>>,
    info: RunInfo,
    totals: Option<Totals>,
    is_torn: bool,
    words: Vec<u64>,
    blocks: Blocks,
}

/// Opens a recording, whatever its format: `.arrows`, or `.h5` with feature `hdf5`.
///
/// # Errors
/// It cannot be read, or is no recording.
pub fn open(path: &Path) -> Result<Box<dyn RowSource>, Error> {
    #[cfg(feature = "hdf5")]
    if hdf5::is_one(path) {
        return Ok(Box::new(hdf5::Hdf5Recording::open(path)?));
    }
    Ok(Box::new(Journal::open(path)?))
}

impl Journal {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is no recording.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::File {
            path: name.clone(),
            source,
        })?;
        Self::of(name, Box::new(file), 0)
    }

    /// Reads such a stream from anywhere. `name` is for what is said about it. Rows are wanted from the number `from` on:
    /// what is missing between it and the first row was lost.
    ///
    /// # Errors
    /// It cannot be read, or is no recording.
    pub fn of(name: String, stream: Box<dyn Read + Send>, from: u64) -> Result<Self, Error> {
        Self::of_stream(name, stream, None, from)
    }

    /// Reads such a stream that is here as a whole. Nothing in it takes more memory than it has.
    ///
    /// # Errors
    /// It is no recording.
    pub fn of_bytes(name: String, bytes: Vec<u8>) -> Result<Self, Error> {
        let length = bytes.len() as u64;
        Self::of_stream(name, Box::new(io::Cursor::new(bytes)), Some(length), 0)
    }

    fn of_stream(
        name: String,
        stream: Box<dyn Read + Send>,
        length: Option<u64>,
        from: u64,
    ) -> Result<Self, Error> {
        let foreign = |why| Error::Foreign {
            path: name.clone(),
            why,
        };
        let stream = Messages::new(BufReader::new(stream), length);
        let stream = StreamReader::try_new(stream, None).map_err(|error| match error {
            ArrowError::IoError(_, source) if is_failure(&source) => {
                let path = name.clone();
                Error::File { path, source }
            }
            ArrowError::IoError(why, _) => foreign(why),
            error => foreign(error.to_string()),
        })?;
        let schema = stream.schema();
        check_format(&name, schema.metadata())?;
        let info = run(&schema).map_err(foreign)?;
        Ok(Journal {
            blocks: Blocks::new(&info, from),
            info,
            totals: totals(schema.metadata()).map_err(foreign)?,
            stream,
            path: name,
            is_torn: false,
            words: Vec::new(),
        })
    }

    /// The run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Its account; `None` if the recording did not come to its end.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_ref()
    }

    /// Whether the file ended within a batch; known when all rows were read.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// The next rows; `None` after the last ones.
    ///
    /// # Errors
    /// The file cannot be read, or its columns are not those of a recording.
    pub fn read(&mut self) -> Result<Option<Rows<'_>>, Error> {
        if self.is_torn {
            return Ok(None);
        }
        let batch = match self.stream.next() {
            None => return Ok(None),
            Some(Ok(batch)) => batch,
            Some(Err(ArrowError::IoError(_, source))) if is_failure(&source) => {
                let path = self.path.clone();
                return Err(Error::File { path, source });
            }
            Some(Err(_)) => {
                self.is_torn = true;
                return Ok(None);
            }
        };
        let shape = self.info.shape();
        if interleave(&batch, shape, &mut self.words).is_none() {
            return Err(Error::Foreign {
                path: self.path.clone(),
                why: "a column has the wrong type, or has nulls where nothing can fail".to_owned(),
            });
        }
        Ok(Some(Rows::new(&self.words, shape)))
    }
}

/// Whether it cannot be read; otherwise it can, and something else is there.
fn is_failure(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    !matches!(error.kind(), InvalidData | UnexpectedEof)
}

impl RowSource for Journal {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, _: Duration) -> Result<Option<Block>, engine::Error> {
        loop {
            if let Some(block) = self.blocks.take() {
                return Ok(Some(block));
            }
            match self.read()? {
                Some(rows) => {
                    let words = rows.words().to_vec();
                    self.blocks.fill(words);
                }
                None => return Ok(None),
            }
        }
    }

    fn totals(&self) -> Option<Totals> {
        // The account of a torn file would be of rows that are not there.
        self.totals.clone().filter(|_| !self.is_torn)
    }

    fn is_torn(&self) -> bool {
        self.is_torn
    }
}

impl From<Error> for engine::Error {
    fn from(error: Error) -> Self {
        engine::Error::Rows(error.words())
    }
}

type Metadata = HashMap<String, String>;

/// Whether this version knows what the columns mean.
fn check_format(path: &str, about: &Metadata) -> Result<(), Error> {
    let format = text(about, "strobe.format").unwrap_or(FIRST_FORMAT);
    if !about.contains_key("strobe.engine") || format == FORMAT {
        return Ok(());
    }
    Err(Error::Format {
        path: path.to_owned(),
        format: format.to_owned(),
        version: text(about, "strobe.version").unwrap_or("?").to_owned(),
    })
}

/// The value of a key, if it has one.
fn text<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    let value = metadata.get(key)?.trim();
    (!value.is_empty()).then_some(value)
}

fn number<T: std::str::FromStr>(metadata: &Metadata, key: &str) -> Result<T, String> {
    let value = text(metadata, key).ok_or_else(|| format!("it has no {key}"))?;
    value
        .parse()
        .map_err(|_| format!("its {key} is `{value}`, not a number"))
}

fn optional<T: std::str::FromStr>(metadata: &Metadata, key: &str) -> Result<Option<T>, String> {
    text(metadata, key)
        .map(|_| number(metadata, key))
        .transpose()
}

fn run(schema: &Schema) -> Result<RunInfo, String> {
    let about = schema.metadata();
    let (header, steps) = schema
        .fields()
        .split_at_checked(ROW_HEADER_WORDS)
        .ok_or("it has too few columns")?;
    if !header.iter().all(|f| f.data_type() == &DataType::UInt64) {
        return Err("its first columns are not row, trigger, time, status".to_owned());
    }
    let (skips, steps) = match steps {
        [first, steps @ ..] if first.name() == SKIPPED => (true, steps),
        steps => (false, steps),
    };
    let is_output = |f: &&FieldRef| f.metadata().contains_key("output");
    let (outputs, channels): (Vec<_>, Vec<_>) = steps.iter().partition(is_output);
    if text(about, "strobe.engine").is_none() {
        return Err("it has no strobe.engine".to_owned());
    }
    let fields = about.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix("strobe.")?;
        Some((name.to_owned(), Value::from(value.as_str())))
    });
    let channels = channels.into_iter().map(|field| channel(field));
    let outputs = (outputs.into_iter()).filter_map(|f| f.metadata().get("output").cloned());
    let channels = channels.collect::<Result<_, _>>()?;
    fields::run(fields.collect(), channels, outputs.collect(), skips)
}

fn channel(field: &Field) -> Result<Fields, String> {
    let about = field.metadata().iter();
    let mut fields: Fields = about
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let kind = match field.data_type() {
        DataType::UInt64 => Type::U64,
        DataType::Int64 => Type::S64,
        DataType::Float64 => Type::F64,
        other => return Err(format!("its column {} is of type {other}", field.name())),
    };
    fields.insert("type".to_owned(), kind.name().into());
    let name = || Value::from(field.name().as_str());
    fields.entry("channel").or_insert_with(name);
    Ok(fields)
}

fn totals(about: &Metadata) -> Result<Option<Totals>, String> {
    if text(about, "strobe.complete") != Some("1") {
        return Ok(None);
    }
    let mut missed_by = [0; MISSED_CAUSES];
    for (cause, count) in Missed::NAMES.iter().zip(&mut missed_by) {
        *count = optional(about, &format!("strobe.missed.{cause}"))?.unwrap_or(0);
    }
    Ok(Some(Totals {
        rows: number(about, "strobe.rows")?,
        triggers: number(about, "strobe.triggers")?,
        missed_by,
        skipped: number(about, "strobe.skipped")?,
        lost: number(about, "strobe.lost")?,
        errors: number(about, "strobe.errors")?,
        end_time_ns: number(about, "strobe.end_time_ns")?,
        end: End::of_word(text(about, "strobe.end").unwrap_or_default()),
    }))
}

#[cfg(test)]
mod tests;
