// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of the user engine, of all processes of a user: a directory with a socket for each run.
//!
//! The number of the socket is the number of the run. Who connects gets one message, in which there is what is
//! known of the run, and its ring; the connection lasts as long as the run's owner.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::catalogue::RunStatus;
use crate::error::Words;

mod attached_run;
mod claim;
mod directory;
mod handshake;
mod message;
mod server;

pub use attached_run::AttachedRun;
pub(super) use claim::Claim;
pub(super) use server::{ServedRun, Server};

use directory::Directory;
use handshake::Handshake;

/// How long an owner may take for its answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Owners that are asked at the same time.
const AT_ONCE: usize = 64;

/// Where the runs of a user are.
pub struct Registry {
    /// `None`: the user's runtime directory.
    path: Option<PathBuf>,
}

/// A run whose owner does not answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnresponsiveRun {
    /// Number of the run.
    pub run: u32,
    /// Process that owns it; 0 if that is not known.
    pub pid: i32,
    /// Why there is nothing known of it.
    pub why: String,
}

/// The runs there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// What they do, by number.
    pub runs: Vec<RunStatus>,
    /// Those that do not say.
    pub silent: Vec<UnresponsiveRun>,
}

/// Why a run is not visible, or not to be seen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody but its owner may have its directory.
    Owner {
        /// The directory.
        path: PathBuf,
        /// Who has it.
        uid: u32,
        /// Who would use it.
        me: u32,
    },
    /// Others can put what they want there.
    Mode {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The system's reason.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// Somebody holds the directory's lock, and does not go on.
    Locked(PathBuf),
    /// There is no such run.
    NoRun(u32),
    /// It does not answer.
    Silent {
        /// Number of the run.
        run: u32,
        /// What it does instead.
        why: String,
    },
}

impl From<&Error> for Words {
    fn from(error: &Error) -> Words {
        let words = |path: &Path, reason: String| Words::new(path.display().to_string(), reason);
        let elsewhere = "set STROBE_RUNTIME_DIR to a directory of your own";
        match error {
            Error::Owner { path, uid, me } => {
                words(path, format!("belongs to user {uid}, not to user {me}"))
                    .mend(format!("remove it, or {elsewhere}"))
            }
            Error::Mode { path, mode } => words(
                path,
                format!("other users may write there (mode {mode:03o})"),
            )
            .mend("chmod 700 it"),
            Error::Directory { path, source } => words(path, source.to_string()).mend(elsewhere),
            Error::Locked(path) => {
                words(path, "locked by another process for a long time".to_owned())
                    .mend(format!("see which: fuser {}", path.display()))
            }
            Error::NoRun(run) => Words::new(format!("user:{run}"), "no such run")
                .mend("`strobe status` shows the runs"),
            Error::Silent { run, why } => Words::new(format!("user:{run}"), why),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Words::from(self).fmt(f)
    }
}

impl Registry {
    /// That of the user of this process.
    pub fn of_this_user() -> Self {
        Registry { path: None }
    }

    /// That in this directory, which is made if it is not there.
    #[cfg(any(test, feature = "internals"))]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Registry {
            path: Some(path.into()),
        }
    }

    /// What all the runs do. Sockets that killed owners have left are removed.
    ///
    /// # Errors
    /// The directory is not to be trusted, or cannot be read.
    pub fn runs(&self) -> Result<Runs, Error> {
        let mut found = Runs::default();
        let Some(directory) = self.directory()? else {
            return Ok(found);
        };
        for numbers in directory.numbers()?.chunks(AT_ONCE) {
            let handshakes: Vec<_> = numbers
                .iter()
                .map(|run| (*run, Handshake::to(&directory, *run)))
                .collect();
            let until = Instant::now() + PATIENCE;
            for (run, handshake) in handshakes {
                let answer = handshake.and_then(|handshake| handshake.receive(until));
                match answer.map_err(|error| error.or_ended(&directory, run)) {
                    Ok(attached) => found.runs.push(attached.status()),
                    Err(handshake::Error::NoRun | handshake::Error::HungUp(_)) => {}
                    Err(handshake::Error::Gone) => directory.remove_stale(run),
                    Err(handshake::Error::Silent { pid, why }) => {
                        found.silent.push(UnresponsiveRun { run, pid, why });
                    }
                }
            }
        }
        Ok(found)
    }

    /// A run, to read its ring.
    ///
    /// # Errors
    /// There is no such run, or it does not answer.
    pub fn attach(&self, run: u32) -> Result<AttachedRun, Error> {
        let directory = self.directory()?.ok_or(Error::NoRun(run))?;
        let handshake = Handshake::to(&directory, run)
            .and_then(|handshake| handshake.receive(Instant::now() + PATIENCE));
        let handshake = handshake.map_err(|error| error.or_ended(&directory, run));
        let attached = handshake.map_err(|error| match error {
            handshake::Error::Silent { why, .. } => Error::Silent { run, why },
            handshake::Error::NoRun | handshake::Error::Gone | handshake::Error::HungUp(_) => {
                Error::NoRun(run)
            }
        })?;
        attached.stay();
        Ok(attached)
    }

    /// The smallest number that is free, for a run of this process.
    pub(super) fn claim(&self, shared: bool) -> Result<Claim, Error> {
        let path = self.named().unwrap_or_else(directory::usual);
        Claim::new(Directory::make(path)?, shared)
    }

    /// The directory, if it is there.
    fn directory(&self) -> Result<Option<Directory>, Error> {
        match self.named() {
            Some(path) => Directory::find(path, true),
            // In /tmp, anybody could have made it.
            None => Directory::find(directory::usual(), false),
        }
    }

    /// The directory, if somebody has said which.
    fn named(&self) -> Option<PathBuf> {
        self.path.clone().or_else(directory::named)
    }
}

#[cfg(test)]
mod tests;
