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
//!
//! In a name `{n}` or `{n:05}` stands for the next free number, `{date}` for the day (UTC), and `{event}` for the run's
//! event.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Seek, Write};
use std::path::Path;

use rustix::fs::OFlags;
use strobe::error::Words;
use strobe::info::{RunInfo, Totals};
use strobe_ring::{RowShape, Rows};

pub mod arrow;
pub mod csv;
#[cfg(test)]
mod faults;
#[cfg(feature = "hdf5")]
pub mod hdf5;
mod last;
#[cfg(feature = "parquet")]
pub mod parquet;
mod synced;
pub(crate) mod table;
mod target;
mod template;

pub(crate) use last::Last;
pub(crate) use table::{FORMAT, SKIPPED};
pub use target::Existing;
pub(crate) use target::{Named, Targets};

use template::Template;

/// Something that takes the rows of one run.
///
/// Calls come in this order: `begin` once, `write` and `flush` any number of
/// times, `finish` once. After an error nothing more is called.
pub trait Sink: Send {
    /// The run has been started.
    ///
    /// # Errors
    /// Those of the file.
    fn begin(&mut self, info: &RunInfo) -> io::Result<()>;

    /// The next rows. They may stay in memory until `flush`.
    ///
    /// # Errors
    /// Those of the file; or the rows are not those of the run.
    fn write(&mut self, rows: Rows<'_>) -> io::Result<()>;

    /// All rows so far are to survive the end of this process. Called at least
    /// ten times a second; a sink for which that is too often says so.
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
    fn written(&self) -> SinkProgress;

    /// Rows that survive the end of this process by now; `None`: before `finish`, none does.
    fn safe(&self) -> Option<u64> {
        Some(self.written().rows)
    }
}

/// Part of the rows that a sink was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinkProgress {
    /// Rows that are in the file.
    pub rows: u64,
    /// Bytes that are in the file.
    pub bytes: u64,
}

/// That rows have the columns of the run; what is in the wrong column would be believed.
fn check_shape(rows: Rows<'_>, shape: RowShape) -> io::Result<()> {
    match rows.fit(shape) {
        true => Ok(()),
        false => Err(io::Error::other(
            "the rows have other columns than the run; record it again, and report this",
        )),
    }
}

/// The formats of this program, in words.
const KNOWN: &str = match (cfg!(feature = "hdf5"), cfg!(feature = "parquet")) {
    (true, true) => ".arrows, .h5, .parquet or .csv",
    (true, false) => ".arrows, .h5 or .csv",
    (false, true) => ".arrows, .parquet or .csv",
    (false, false) => ".arrows or .csv",
};

/// Why a sink cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name does not say which format.
    Format(String),
    /// A format that this program was built without.
    NotBuilt {
        /// The sink.
        name: String,
        /// Its extension.
        extension: String,
    },
    /// The name has a word in braces that cannot be filled in.
    Template {
        /// The sink.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is a file of this name, which is not to be overwritten.
    Exists {
        /// The sink.
        name: String,
    },
    /// Two sinks would be one file.
    Twice(String),
    /// The file cannot be made.
    Create {
        /// The sink.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// The object, the reason and the remedy.
    pub fn words(&self) -> Words {
        let words = |name: &str, reason: String| Words::new(format!("sink {name}"), reason);
        match self {
            Error::Format(name) => words(name, "unknown format".to_owned()).mend(format!(
                "end the name in {KNOWN}, or use - for CSV on standard output"
            )),
            Error::NotBuilt { name, extension } => {
                words(name, format!("this strobe cannot write {extension} files"))
                    .mend(format!("use {KNOWN}"))
            }
            Error::Template { name, why } => words(name, why.clone())
                .mend("use {n}, {n:05}, {date} or {event}, and {{ for a brace"),
            Error::Exists { name } => words(name, "the file exists".to_owned())
                .mend(format!("give it another name{}", numbered(name))),
            Error::Twice(name) => {
                words(name, "given twice".to_owned()).mend("each sink needs a file of its own")
            }
            Error::Create { name, source } => words(name, format!("cannot be created: {source}")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}

/// The name that would have been free, if there is one to suggest.
fn numbered(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !name.contains(['{', '}']) => {
            format!(", such as '{stem}-{{n}}.{extension}' for the next free number")
        }
        _ => String::new(),
    }
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
        #[cfg(not(feature = "hdf5"))]
        Some("h5") => Err(not_built(name, ".h5")),
        #[cfg(not(feature = "parquet"))]
        Some("parquet") => Err(not_built(name, ".parquet")),
        _ => Err(Error::Format(name.to_owned())),
    }
}

#[cfg(not(all(feature = "hdf5", feature = "parquet")))]
fn not_built(name: &str, extension: &str) -> Error {
    Error::NotBuilt {
        name: name.to_owned(),
        extension: extension.to_owned(),
    }
}

/// Whether `name` is a sink at all, without looking at any file.
///
/// # Errors
/// The name does not say which format, or one that is not built in, or it cannot be filled in.
pub fn check(name: &str) -> Result<(), Error> {
    Template::parse(name)?;
    format_of(name).map(|_| ())
}

/// Whether the sink of this name is a journal: rows are in it as they come, and it can be made safe against a power cut.
pub fn is_journal(name: &str) -> bool {
    matches!(format_of(name), Ok(Format::Arrow))
}

/// Whether the sink of this name has none of its rows before its end.
pub fn is_whole_or_nothing(name: &str) -> bool {
    (Path::new(name).extension()).is_some_and(|extension| extension == "parquet")
}

/// The sink of this name, for a run on this event; and its name, filled in.
///
/// # Errors
/// The name cannot be used, or the file exists or cannot be made.
pub fn create(
    name: &str,
    event: &str,
    existing: Existing,
) -> Result<(String, Box<dyn Sink>), Error> {
    Targets::find(&[name.to_owned()], event, existing)?.create_one()
}

/// A file that ends with something whole, whatever happens: each append is one
/// write, and one that fails half-way is taken back, where that harms nothing
/// of others.
struct Appender {
    file: File,
    written: SinkProgress,
    /// Where the first byte is, if the file is this writer's alone. Others may write into a pipe, into a file that was
    /// handed over, or one that is open for appending; what is there is left as it is.
    start: Option<u64>,
}

impl Appender {
    /// From where the file is now.
    fn new(mut file: File) -> Self {
        let is_regular = file.metadata().is_ok_and(|m| m.is_file());
        let appends = rustix::fs::fcntl_getfl(&file).is_ok_and(|f| f.contains(OFlags::APPEND));
        let start = (is_regular && !appends).then(|| file.stream_position());
        Appender {
            start: start.and_then(Result::ok),
            ..Appender::shared(file)
        }
    }

    /// From where the file is now; others may write into it, too.
    fn shared(file: File) -> Self {
        Appender {
            file,
            written: SinkProgress::default(),
            start: None,
        }
    }

    /// Appends bytes that complete so many rows.
    fn append(&mut self, bytes: &[u8], rows: u64) -> io::Result<()> {
        self.append_parts(&[bytes], rows)
    }

    /// The same with bytes that lie in several places.
    fn append_parts(&mut self, parts: &[&[u8]], rows: u64) -> io::Result<()> {
        if let Err(error) = write_parts(&mut self.file, parts) {
            self.take_back();
            return Err(error);
        }
        self.written.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        self.written.rows += rows;
        Ok(())
    }

    /// Cuts off what the last append has written, if it has failed.
    fn take_back(&self) {
        if let Some(start) = self.start {
            // The append's error is the one to report. If this fails too,
            // readers will find the end torn, which they can handle.
            let _ = self.file.set_len(start + self.written.bytes);
        }
    }
}

/// All of these, one after the other, by one call if the system takes them all at once.
fn write_parts(file: &mut File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut left = &mut slices[..];
    // Slices without a byte would look like a file that takes nothing.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut left, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::SeekFrom;

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
    fn a_sink_that_cannot_be_created_is_named() {
        let error = create("/nonexistent/a.csv", "soft", Existing::Refuse)
            .err()
            .map(|e| e.to_string());
        assert_eq!(
            error.as_deref(),
            Some(
                "sink /nonexistent/a.csv: cannot be created: No such file or directory (os error 2)"
            )
        );
    }

    /// A file that has text already, and its writer, which is at its end.
    fn begun(options: &mut std::fs::OpenOptions) -> (tempfile::NamedTempFile, File) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "older data").expect("text");
        let mut writer = options.open(file.path()).expect("a file");
        writer.seek(SeekFrom::End(0)).expect("its end");
        (file, writer)
    }

    /// What is in the file after two rows, and then what an append that failed takes back.
    fn after_a_failure(file: &tempfile::NamedTempFile, mut appender: Appender) -> String {
        appender.append(b"row 0\n", 1).expect("an append");
        appender.file.write_all(b"half of ro").expect("a write");
        appender.take_back();
        assert_eq!((appender.written.rows, appender.written.bytes), (1, 6));
        std::fs::read_to_string(file.path()).expect("text")
    }

    #[test]
    fn what_was_in_a_file_before_is_never_taken_back() {
        let (file, writer) = begun(File::options().write(true));
        let text = after_a_failure(&file, Appender::new(writer));
        assert_eq!(text, "older datarow 0\n");
    }

    #[test]
    fn a_file_that_others_append_to_is_never_cut() {
        let (file, writer) = begun(File::options().append(true));
        let text = after_a_failure(&file, Appender::new(writer));
        assert_eq!(text, "older datarow 0\nhalf of ro");
    }

    #[test]
    fn a_file_that_was_handed_over_is_never_cut() {
        let (file, writer) = begun(File::options().write(true));
        let text = after_a_failure(&file, Appender::shared(writer));
        assert_eq!(text, "older datarow 0\nhalf of ro");
    }

    #[test]
    fn parts_are_one_append_however_many_they_are() {
        let (file, writer) = begun(File::options().write(true));
        let mut appender = Appender::new(writer);
        // More than the system takes at once, and some without a byte.
        let parts: Vec<&[u8]> = (0..5000)
            .map(|n| if n % 3 == 0 { &b""[..] } else { b"ab" })
            .collect();
        appender.append_parts(&parts, 7).expect("an append");
        appender.append_parts(&[], 0).expect("nothing");
        let text = std::fs::read_to_string(file.path()).expect("text");
        assert_eq!(text, format!("older data{}", "ab".repeat(3333)));
        assert_eq!((appender.written.rows, appender.written.bytes), (7, 6666));
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
