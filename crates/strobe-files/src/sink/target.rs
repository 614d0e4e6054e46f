// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where sinks will be, before they are made: names are filled in, and nothing is there that must not be lost.
//!
//! Two steps, so that what cannot be recorded destroys nothing and leaves nothing behind: [`Targets::find`] looks,
//! and [`Targets::create`] makes, when the run has been started.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::Access;

#[cfg(feature = "hdf5")]
use super::hdf5;
#[cfg(feature = "parquet")]
use super::parquet;
use super::synced::Synced;
use super::template::{Template, Values};
use super::{Error, Format, Sink, arrow, csv, format_of};

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is left as it is, and the recording refused.
    #[default]
    Refuse,
    /// Its contents are replaced.
    Overwrite,
}

/// A sink and its name, filled in.
pub(crate) type Named = (String, Box<dyn Sink>);

/// How often names are filled in anew because somebody else has taken their number meanwhile.
const ATTEMPTS: u32 = 100;

/// The sinks of a recording.
pub(crate) struct Targets<'a> {
    templates: Vec<Template>,
    event: &'a str,
    existing: Existing,
    list: Vec<Target>,
}

/// One of them.
struct Target {
    name: String,
    format: Format,
    place: Place,
}

/// What is there now.
enum Place {
    /// Standard sink.
    Stdout,
    /// No regular file but a pipe or a device: opened at once, as there is nothing in it to lose.
    Special(File),
    /// Nothing.
    New,
    /// A file, to be replaced.
    Old,
}

impl<'a> Targets<'a> {
    /// Those of these names, for a run on this event. Changes nothing.
    ///
    /// # Errors
    /// A name cannot be used, a file exists or cannot be made, or two names are those of one file.
    pub(crate) fn find(
        names: &[String],
        event: &'a str,
        existing: Existing,
    ) -> Result<Self, Error> {
        let templates = names.iter().map(|name| Template::parse(name));
        let mut targets = Targets {
            templates: templates.collect::<Result<_, _>>()?,
            event,
            existing,
            list: Vec::new(),
        };
        targets.fill()?;
        Ok(targets)
    }

    /// Fills the names in; all have the same number.
    fn fill(&mut self) -> Result<(), Error> {
        let values = Values::now(self.event);
        let numbers = self.templates.iter().map(|t| t.next_number(&values));
        let number = numbers.max().unwrap_or(1);
        self.list.clear();
        let (mut names, mut files) = (HashSet::new(), HashSet::new());
        for template in &self.templates {
            let name = template.fill(&values, number);
            let target = Target::find(&name, self.existing)?;
            let file = target.file().map_err(|source| Error::Create {
                name: name.clone(),
                source,
            })?;
            // Devices may be there twice, for what anyone knows.
            if !names.insert(name.clone()) || file.is_some_and(|file| !files.insert(file)) {
                return Err(Error::Twice(name));
            }
            self.list.push(target);
        }
        Ok(())
    }

    /// Makes all of them, or none. With `sync`, journals are made safe against a power cut.
    ///
    /// # Errors
    /// One cannot be made; what was made is removed again.
    pub(crate) fn create(mut self, sync: bool) -> Result<Vec<Named>, Error> {
        let is_numbered = self.templates.iter().any(Template::is_numbered);
        for _ in 0..ATTEMPTS {
            match open(&self.list) {
                Err(Error::Exists { .. }) if is_numbered => self.fill()?,
                files => {
                    let files = files?;
                    return sinks(self.list, files, sync);
                }
            }
        }
        let files = open(&self.list)?;
        sinks(self.list, files, sync)
    }

    /// Makes the only one.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create_one(self) -> Result<Named, Error> {
        let nothing = || Error::Format(String::new());
        self.create(false)?.pop().ok_or_else(nothing)
    }
}

/// All files, or none.
fn open(list: &[Target]) -> Result<Vec<Option<File>>, Error> {
    let mut files = Vec::new();
    for (index, target) in list.iter().enumerate() {
        match target.open() {
            Ok(file) => files.push(file),
            Err(error) => {
                remove(list.iter().take(index));
                return Err(error);
            }
        }
    }
    Ok(files)
}

/// Files that were made for sinks that nothing is written into.
fn remove<'a>(list: impl Iterator<Item = &'a Target>) {
    for target in list.filter(|target| matches!(target.place, Place::New)) {
        // The error that made it useless is the one to report.
        let _ = std::fs::remove_file(&target.name);
    }
}

fn sinks(list: Vec<Target>, files: Vec<Option<File>>, sync: bool) -> Result<Vec<Named>, Error> {
    let mut sinks = Vec::new();
    for (target, file) in list.iter().zip(files) {
        let sink = target.begin(file, sync).map_err(|source| {
            remove(list.iter());
            target.cannot(source)
        })?;
        sinks.push((target.name.clone(), sink));
    }
    Ok(sinks)
}

impl Target {
    fn find(name: &str, existing: Existing) -> Result<Target, Error> {
        let format = format_of(name)?;
        let cannot = |source: io::Error| Error::Create {
            name: name.to_owned(),
            source,
        };
        let path = Path::new(name);
        let place = match path.metadata() {
            _ if format == Format::Stdout => Place::Stdout,
            Ok(there) if !there.is_file() => {
                Place::Special(File::options().write(true).open(path).map_err(cannot)?)
            }
            Ok(_) if existing == Existing::Refuse => {
                return Err(Error::Exists {
                    name: name.to_owned(),
                });
            }
            Ok(_) => {
                rustix::fs::access(path, Access::WRITE_OK).map_err(|e| cannot(e.into()))?;
                Place::Old
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            // A link that leads nowhere.
            Err(_) if path.symlink_metadata().is_ok() => {
                return Err(Error::Exists {
                    name: name.to_owned(),
                });
            }
            Err(_) => {
                let access = Access::WRITE_OK | Access::EXEC_OK;
                rustix::fs::access(folder(path), access).map_err(|e| cannot(e.into()))?;
                Place::New
            }
        };
        Ok(Target {
            name: name.to_owned(),
            format,
            place,
        })
    }

    fn cannot(&self, source: io::Error) -> Error {
        Error::Create {
            name: self.name.clone(),
            source,
        }
    }

    /// What tells its file from others, whatever it is called: the file itself, or its folder and its name there. `None`
    /// for what is no regular file.
    fn file(&self) -> io::Result<Option<(u64, u64, OsString)>> {
        let path = Path::new(&self.name);
        let of = |file: Metadata, name: &OsStr| (file.dev(), file.ino(), name.to_owned());
        Ok(match &self.place {
            Place::Special(_) => None,
            Place::Stdout => {
                let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
                let stdout = stdout.metadata()?;
                stdout.is_file().then(|| of(stdout, OsStr::new("")))
            }
            Place::Old => Some(of(path.metadata()?, OsStr::new(""))),
            Place::New => {
                let name = path.file_name().unwrap_or_default();
                Some(of(folder(path).metadata()?, name))
            }
        })
    }

    /// Its file, with all that is in it; `None` if there is a file descriptor already.
    fn open(&self) -> Result<Option<File>, Error> {
        let mut options = File::options();
        options.write(true);
        let options = match &self.place {
            Place::Stdout | Place::Special(_) => return Ok(None),
            Place::New => options.create_new(true),
            Place::Old => &options,
        };
        let file = options
            .open(&self.name)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists {
                    name: self.name.clone(),
                },
                _ => self.cannot(error),
            });
        file.map(Some)
    }

    /// The sink, in its file, which is emptied.
    fn begin(&self, file: Option<File>, sync: bool) -> io::Result<Box<dyn Sink>> {
        let file = match (&self.place, file) {
            (Place::Special(file), _) => file.try_clone()?,
            (_, Some(file)) => {
                file.set_len(0)?;
                file
            }
            (_, None) => {
                let stdout = io::stdout().as_fd().try_clone_to_owned()?;
                return Ok(Box::new(csv::Csv::shared(File::from(stdout))));
            }
        };
        Ok(match self.format {
            Format::Arrow if sync && !matches!(self.place, Place::Special(_)) => {
                let journal = arrow::ArrowFile::new(file.try_clone()?);
                let folder = folder(Path::new(&self.name));
                Box::new(Synced::new(Box::new(journal), file, folder)?)
            }
            Format::Arrow => Box::new(arrow::ArrowFile::new(file)),
            #[cfg(feature = "hdf5")]
            Format::Hdf5 => {
                // The library opens files by their names.
                drop(file);
                let path = Path::new(&self.name);
                Box::new(match &self.place {
                    Place::New => hdf5::Hdf5File::replace(path)?,
                    _ => hdf5::Hdf5File::create(path)?,
                })
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => Box::new(parquet::ParquetFile::new(file)),
            Format::Csv | Format::Stdout => Box::new(csv::Csv::new(file)),
        })
    }
}

/// Where a file is to be made.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
