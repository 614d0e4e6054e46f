// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where rows go: files, by their extension, and standard output.
//!
//! | name | format |
//! |---|---|
//! | `*.arrows` | Arrow IPC stream, see [`arrow`] |
//! | `*.h5` | HDF5 with NeXus names, with feature `hdf5` |
//! | `*.parquet` | Parquet, with feature `parquet` |
//! | `*.csv` | CSV, see [`csv`] |
//! | `-` | CSV on standard output |

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use strobe::info::{RunInfo, Totals};
use strobe_ring::Rows;

pub mod arrow;
pub mod csv;
#[cfg(test)]
mod faults;
#[cfg(feature = "hdf5")]
pub mod hdf5;
#[cfg(feature = "parquet")]
pub mod parquet;
mod table;

pub(crate) use table::{FORMAT, SKIPPED};

/// Something that takes the rows of one run.
///
/// Calls come in this order: `begin` once, `write` and `flush` any number of
/// times, `finish` once. After an error nothing more is called.
pub trait Output: Send {
    /// The run has been started.
    ///
    /// # Errors
    /// Those of the file.
    fn begin(&mut self, info: &RunInfo) -> io::Result<()>;

    /// The next rows. They may stay in memory until `flush`.
    ///
    /// # Errors
    /// Those of the file.
    fn write(&mut self, rows: Rows<'_>) -> io::Result<()>;

    /// All rows so far are to survive the end of this process. Called at least
    /// ten times a second; an output for which that is too often says so.
    ///
    /// # Errors
    /// Those of the file.
    fn flush(&mut self) -> io::Result<()>;

    /// There are no more rows. Without an account, the rows came from a
    /// recording that was cut off, and the file says that it is not complete.
    ///
    /// # Errors
    /// Those of the file.
    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()>;

    /// What is in the file by now, also after an error.
    fn written(&self) -> Written;
}

/// Part of the rows that an output was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows that are in the file.
    pub rows: u64,
    /// Bytes that are in the file.
    pub bytes: u64,
}

/// The formats of this program, in words.
const KNOWN: &str = match (cfg!(feature = "hdf5"), cfg!(feature = "parquet")) {
    (true, true) => ".arrows, .h5, .parquet or .csv",
    (true, false) => ".arrows, .h5 or .csv",
    (false, true) => ".arrows, .parquet or .csv",
    (false, false) => ".arrows or .csv",
};

/// Why an output cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name does not say which format.
    #[error(
        "output {0}: unknown format; end the name in {KNOWN}, or use - for CSV on standard output"
    )]
    Format(String),
    /// A format that this program was built without.
    #[error("output {name}: this strobe cannot write {extension} files; use {KNOWN}")]
    NotBuilt {
        /// The output.
        name: String,
        /// Its extension.
        extension: String,
    },
    /// The file cannot be made.
    #[error("output {name}: cannot be created: {source}")]
    Create {
        /// The output.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Arrow,
    #[cfg(feature = "hdf5")]
    Hdf5,
    #[cfg(feature = "parquet")]
    Parquet,
    Csv,
    Stdout,
}

fn format_of(name: &str) -> Result<Format, Error> {
    if name == "-" {
        return Ok(Format::Stdout);
    }
    match Path::new(name).extension().and_then(|e| e.to_str()) {
        Some("arrows") => Ok(Format::Arrow),
        Some("csv") => Ok(Format::Csv),
        #[cfg(feature = "hdf5")]
        Some("h5") => Ok(Format::Hdf5),
        #[cfg(feature = "parquet")]
        Some("parquet") => Ok(Format::Parquet),
        #[cfg(not(all(feature = "hdf5", feature = "parquet")))]
        Some(extension @ ("h5" | "parquet")) => Err(Error::NotBuilt {
            name: name.to_owned(),
            extension: format!(".{extension}"),
        }),
        _ => Err(Error::Format(name.to_owned())),
    }
}

/// Whether `name` is an output at all, without creating anything.
///
/// # Errors
/// The name does not say which format, or one that is not built in.
pub fn check(name: &str) -> Result<(), Error> {
    format_of(name).map(|_| ())
}

/// The output of this name, created anew.
///
/// # Errors
/// The format is unknown, or the file cannot be created.
pub fn create(name: &str) -> Result<Box<dyn Output>, Error> {
    let failed = |source| Error::Create {
        name: name.to_owned(),
        source,
    };
    Ok(match format_of(name)? {
        Format::Arrow => Box::new(arrow::ArrowFile::new(File::create(name).map_err(failed)?)),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => Box::new(hdf5::Hdf5File::create(Path::new(name)).map_err(failed)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(parquet::ParquetFile::new(
            File::create(name).map_err(failed)?,
        )),
        Format::Csv => Box::new(csv::Csv::new(File::create(name).map_err(failed)?)),
        Format::Stdout => {
            let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
            Box::new(csv::Csv::new(File::from(stdout)))
        }
    })
}

/// A file that ends with something whole, whatever happens: each append is one
/// write, and one that fails half-way is taken back.
struct Appender {
    file: File,
    written: Written,
    /// Can be cut and written at a place; a pipe cannot.
    is_regular: bool,
}

impl Appender {
    fn new(file: File) -> Self {
        let is_regular = file.metadata().is_ok_and(|m| m.is_file());
        Appender {
            file,
            written: Written::default(),
            is_regular,
        }
    }

    /// Appends bytes that complete so many rows.
    fn append(&mut self, bytes: &[u8], rows: u64) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            if self.is_regular {
                // The write's error is the one to report. If this fails too,
                // readers will find the end torn, which they can handle.
                let _ = self.file.set_len(self.written.bytes);
            }
            return Err(error);
        }
        self.written.bytes += bytes.len() as u64;
        self.written.rows += rows;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_the_format() {
        assert_eq!(format_of("-").ok(), Some(Format::Stdout));
        assert_eq!(format_of("dir.csv/a.arrows").ok(), Some(Format::Arrow));
        assert_eq!(format_of("a.csv").ok(), Some(Format::Csv));
        let not_built = |name| matches!(format_of(name), Err(Error::NotBuilt { .. }));
        assert_eq!(not_built("a.h5"), !cfg!(feature = "hdf5"));
        assert_eq!(not_built("a.parquet"), !cfg!(feature = "parquet"));
        for name in ["a", "a.arrow", "a.txt", "csv", ""] {
            assert!(matches!(format_of(name), Err(Error::Format(_))), "{name}");
        }
    }

    #[test]
    fn an_output_that_cannot_be_created_is_named() {
        let error = create("/nonexistent/a.csv").err().map(|e| e.to_string());
        assert_eq!(
            error.as_deref(),
            Some(
                "output /nonexistent/a.csv: cannot be created: No such file or directory (os error 2)"
            )
        );
    }

    #[test]
    fn an_append_that_fails_is_a_failure() {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let error = Appender::new(full).append(b"x", 1).map_err(|e| e.kind());
        assert_eq!(error, Err(io::ErrorKind::StorageFull));
    }
}
