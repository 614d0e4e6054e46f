// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose rows a command reads: those of a recording, or of a run of this machine or of another one.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use strobe::machine::Machine;
use strobe::runs::{AttachError, Place, RunName};
use strobe::source::RowSource;

use crate::at;

/// What is named on the command line.
#[derive(Debug, Clone)]
pub enum RunOrFile {
    /// A run.
    Run(RunName),
    /// A recording.
    File(PathBuf),
}

impl FromStr for RunOrFile {
    type Err = &'static str;

    /// Runs have numbers. What is not one is a file, if it has an extension or is there.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = Path::new(text);
        match text.parse() {
            Ok(run) => Ok(RunOrFile::Run(run)),
            Err(_) if path.extension().is_some() || path.exists() => {
                Ok(RunOrFile::File(path.into()))
            }
            Err(why) => Err(why),
        }
    }
}

/// Why there are no rows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Name(String),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Machine(#[from] strobe::error::Error),
}

impl RunOrFile {
    /// Its rows, from the oldest one on that is there, and what it is called.
    pub fn rows(&self, at: &at::Args) -> Result<(Box<dyn RowSource>, String), Error> {
        match self {
            RunOrFile::Run(name) => {
                let machine = at.machine()?;
                let place = place(machine.as_ref(), name)?;
                Ok((machine.rows(place)?, place.to_string()))
            }
            RunOrFile::File(file) => {
                at.refuse(&[("a recording", true)])?;
                let recording = strobe_files::open(file).map_err(strobe::error::Error::from)?;
                Ok((recording, file.display().to_string()))
            }
        }
    }
}

/// Where the run of this name is.
pub fn place(machine: &dyn Machine, name: &RunName) -> Result<Place, Error> {
    machine.runs()?.find(name).map_err(Error::Name)
}
