// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recipes: the whole configuration of a recording in a text file.
//!
//! A recipe is TOML, one key for each thing that can be said of a recording; docs/reference/command-line.md explains
//! them. [`Recipe::read`] reads one and answers either the recipe or all that is wrong with it, [`Recipe::check`] also
//! looks whether it can be run on this machine, and [`Recipe::write`] writes one.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use strobe::engine::user::{Lock, WaitMode};
use strobe::error::Words;
use strobe::event::EventSpec;
use strobe::info::Clock;
use strobe::plan::{CpuLatency, Plan, Step};
use strobe::program::ProgramText;
use strobe::rt::Policy;
use strobe::select::{EnginePreference, Selection};
use strobe_board::{Faults, NotFound};

use crate::sink::Existing;

mod check;
mod parse;
mod show;

/// The page that explains a recipe.
const REFERENCE: &str = "docs/reference/command-line.md";

/// The configuration of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// What makes rows.
    pub event: EventSpec,
    /// Channels of a row.
    pub read: Vec<String>,
    /// What a row writes before they are read: steps that write.
    pub set: Vec<Step>,
    /// What is computed from a row, whether it is kept, and what is done where.
    pub program: ProgramText,
    /// What the rules of the program write: steps that act.
    pub acts: Vec<Step>,
    /// Who makes the rows.
    pub engine: EnginePreference,
    /// How the user engine waits; `None`: as it likes.
    pub wait: Option<WaitMode>,
    /// A board of the user engine: its name, or the path of its file.
    pub board: Option<String>,
    /// The CPU on which rows are made; `None`: any.
    pub cpu: Option<usize>,
    /// Policy of the thread that makes the rows; `None`: the engine's choice.
    pub policy: Option<Policy>,
    /// How long CPUs may take to wake.
    pub wake_within: CpuLatency,
    /// Clock of all times.
    pub clock: Clock,
    /// Rows the ring is to hold; `None`: the engine's choice.
    pub ring: Option<u64>,
    /// Whether anybody who can see the run may read its ring.
    pub shared: bool,
    /// End after so many rows.
    pub rows: Option<u64>,
    /// End after this time, ns.
    pub duration_ns: Option<u64>,
    /// Keep only so many rows, the last ones.
    pub last: Option<u64>,
    /// Where rows go, see [`crate::sink`].
    pub sinks: Vec<String>,
    /// Whether rows are to survive a power cut, see [`crate::record::Options::sync`].
    pub sync: bool,
}

/// Why a recipe was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There is a file of this name, which is not to be overwritten.
    Exists(PathBuf),
    /// The file cannot be written.
    Write(PathBuf, std::io::Error),
}

impl WriteError {
    /// The object, the reason and the remedy.
    pub fn words(&self) -> Words {
        let recipe = |path: &Path, reason| Words::new(format!("recipe {}", path.display()), reason);
        match self {
            WriteError::Exists(path) => {
                recipe(path, "the file exists".to_owned()).mend("give it another name")
            }
            WriteError::Write(path, error) => recipe(path, format!("cannot be written: {error}")),
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}

impl Recipe {
    /// Nothing but rows on this event, until stopped, into no file.
    pub fn new(event: EventSpec) -> Self {
        Recipe {
            event,
            read: Vec::new(),
            set: Vec::new(),
            program: ProgramText::default(),
            acts: Vec::new(),
            engine: EnginePreference::Auto,
            wait: None,
            board: None,
            cpu: None,
            policy: None,
            wake_within: CpuLatency::default(),
            clock: Clock::Monotonic,
            ring: None,
            shared: false,
            rows: None,
            duration_ns: None,
            last: None,
            sinks: Vec::new(),
            sync: false,
        }
    }

    /// Reads a recipe's file. A board that it says by a path is then one from the folder of the file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(path: &Path) -> Result<Recipe, Faults> {
        let (name, text) = text_of(path)?;
        Recipe::from_toml(&name, &text).map(|recipe| recipe.beside(path))
    }

    /// Reads a recipe's text; `file` names it in what is said about it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn from_toml(file: &str, text: &str) -> Result<Recipe, Faults> {
        parse::recipe(file, text, |_, _| {})
    }

    /// Reads a recipe's file, and looks whether this machine has what it needs. Nothing is changed.
    ///
    /// # Errors
    /// All that is wrong, with the lines.
    pub fn check(path: &Path) -> Result<Recipe, Faults> {
        let (name, text) = text_of(path)?;
        parse::recipe(&name, &text, |recipe, places| {
            check::check(&recipe.clone().beside(path), places);
        })
    }

    /// Writes the recipe into a file.
    ///
    /// # Errors
    /// The file exists and is not to be overwritten, or it cannot be written.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<(), WriteError> {
        Recipe::may_write(path, existing)?;
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => WriteError::Exists(path.to_owned()),
            _ => WriteError::Write(path.to_owned(), error),
        };
        let text = self.to_toml();
        let done = match existing {
            Existing::Overwrite if path.is_file() => replace(path, text.as_bytes()),
            Existing::Overwrite => {
                File::create(path).and_then(|mut file| file.write_all(text.as_bytes()))
            }
            Existing::Refuse => {
                File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()))
            }
        };
        done.map_err(failed)
    }

    /// Whether a recipe may be written there, as far as that can be known before.
    ///
    /// # Errors
    /// The file exists and is not to be overwritten.
    pub fn may_write(path: &Path, existing: Existing) -> Result<(), WriteError> {
        match existing == Existing::Refuse && path.symlink_metadata().is_ok() {
            true => Err(WriteError::Exists(path.to_owned())),
            false => Ok(()),
        }
    }

    /// The recipe as text; [`Recipe::from_toml`] reads it.
    pub fn to_toml(&self) -> String {
        show::text(self)
    }

    /// How many rows its run makes, if that is known: a timer makes a known number in a time, unless a program chooses rows.
    fn limit(&self) -> Option<u64> {
        let by_time = self.duration_ns.zip(self.event.period_ns());
        let by_time = by_time.filter(|_| !self.program.skips());
        let rows = by_time.map(|(time, period)| (time / period.max(1)).max(1));
        self.rows.or(rows)
    }

    /// Whether its `for` is no number of rows: its run does not end by itself, and who makes it must look at a clock.
    pub fn needs_a_clock(&self) -> bool {
        self.duration_ns.is_some() && self.limit().is_none()
    }

    /// The run of this recipe.
    pub fn plan(&self) -> Plan {
        let reads = self.read.iter().cloned().map(Step::Read);
        Plan {
            steps: (self.set.iter().cloned().chain(reads))
                .chain(self.acts.iter().cloned())
                .collect(),
            program: self.program.clone(),
            ring: self.ring,
            limit: self.limit(),
            clock: self.clock,
            priority: match self.policy {
                Some(Policy::Fifo(priority)) => Some(priority),
                _ => None,
            },
            shared: self.shared,
            wake_within: self.wake_within,
            ..Plan::new(self.event.clone())
        }
    }

    /// The engine of this recipe. Its board is looked for in the working folder, unless the recipe says a path.
    ///
    /// # Errors
    /// There is no such board.
    pub fn selection(&self) -> Result<Selection, NotFound> {
        let board = self.board.as_deref();
        let board = board.map(|word| strobe_board::find(word, Path::new("")));
        Ok(Selection {
            engine: self.engine,
            wait: self.wait,
            lock: Lock::Process,
            board: board.transpose()?,
            cpu: self.cpu,
            policy: self.policy,
        })
    }

    /// The recipe of a file in another folder: its board is found from there.
    fn beside(mut self, file: &Path) -> Recipe {
        let folder = file.parent().unwrap_or(Path::new(""));
        if let Some(Ok(found)) =
            (self.board.as_deref()).map(|word| strobe_board::find(word, folder))
        {
            self.board = found.to_str().map(str::to_owned).or(self.board);
        }
        self
    }
}

fn text_of(path: &Path) -> Result<(String, String), Faults> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((name, text)),
        Err(error) => {
            let message = format!("{error}; give the name of a recipe that can be read");
            Err(Faults::whole(&name, message))
        }
    }
}

/// `OUTPUT=VALUE`: a step that writes.
///
/// # Errors
/// What to write instead.
pub fn setting(text: &str) -> Result<Step, String> {
    let (output, value) = text
        .split_once('=')
        .ok_or("write OUTPUT=VALUE, as in sim.level=1")?;
    let number = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        // A negative value is meant as its two's complement.
        None => value
            .parse()
            .ok()
            .or(value.parse::<i64>().ok().map(|v| v as u64)),
    };
    Ok(Step::Write {
        output: output.to_owned(),
        value: number
            .ok_or_else(|| format!("`{value}` is not a whole number; write 12, -1 or 0x1F"))?,
    })
}

/// A file that is there gets this content, or keeps the one it has: written beside it, it takes its place when it is whole.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // Where a link leads to.
    let path = path.canonicalize()?;
    let old = File::options().write(true).open(&path)?.metadata()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let in_use = |error| std::io::Error::other(format!("{}: {error}", beside.display()));
    let mut file = File::create_new(&beside).map_err(in_use)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.set_permissions(old.permissions()))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&beside, &path));
    written.inspect_err(|_| {
        // What is complained about is the writing.
        let _ = std::fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests;
