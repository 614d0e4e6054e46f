// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which engine makes the rows.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use strobe::channel::Class;
use strobe::engine;
use strobe::engine::user::WaitMode;
use strobe::event::EventSpec;
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe::select::{self, EnginePreference, SelectedEngine, Selection};
use strobe_board::{Faults, NotFound};
use strobe_files::recipe::Recipe;
use strobe_measure::cpu::{NoCpu, StartedOn, check_cpu};

use crate::term::say;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The kernel module if it is loaded and can make this run, else the user engine
    Auto,
    /// The kernel module
    Kernel,
    /// A real-time thread of this program
    User,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitChoice {
    /// Sleep until the event
    Block,
    /// Sleep, and spin for the last moments
    Hybrid,
    /// Never sleep; this takes a whole CPU
    Spin,
}

impl From<WaitChoice> for WaitMode {
    fn from(choice: WaitChoice) -> WaitMode {
        match choice {
            WaitChoice::Block => WaitMode::Block,
            WaitChoice::Hybrid => WaitMode::Hybrid,
            WaitChoice::Spin => WaitMode::Spin,
        }
    }
}

impl From<EngineChoice> for EnginePreference {
    fn from(choice: EngineChoice) -> EnginePreference {
        match choice {
            EngineChoice::Auto => EnginePreference::Auto,
            EngineChoice::Kernel => EnginePreference::Kernel,
            EngineChoice::User => EnginePreference::User,
        }
    }
}

/// The options that choose an engine.
#[derive(clap::Args)]
// Its name would be that of the arguments it is a part of.
#[group(skip)]
pub struct Args {
    /// What makes the rows (default: auto)
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<EngineChoice>,

    /// How the user engine waits for the event
    #[arg(long, value_name = "HOW")]
    pub wait: Option<WaitChoice>,

    /// Board for the user engine: its file, or its name, which is looked for as
    /// NAME.toml here, in the folder boards, and where boards are installed
    #[arg(long, value_name = "FILE|NAME")]
    pub board: Option<String>,
}

/// Why there is no engine for a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "--wait: only the user engine can choose how it waits; leave the option out, or use --engine user"
    )]
    Wait,
    #[error(
        "--board {}: board files are for the user engine; for the kernel engine install it once, \
         as root: strobe board install {}", .0.display(), .0.display()
    )]
    Board(PathBuf),
    #[error(
        "--board {}: only the user engine can reach the registers and files of this board; leave out \
         --engine kernel", .0.display()
    )]
    UserBoard(PathBuf),
    #[error("--policy: {0}")]
    Policy(select::Error),
    #[error("--cpu: {0}")]
    Cpu(select::Error),
    #[error(
        "--cpu: channel {0} sleeps, so a kernel thread makes the rows, and its CPU cannot be chosen; leave the option \
         out, or use --engine user"
    )]
    Thread(String),
    #[error("--cpu: {0}")]
    NoCpu(#[from] NoCpu),
    #[error("--board: {0}")]
    NoBoard(#[from] NotFound),
    #[error("{0}")]
    Faults(#[from] Faults),
    #[error("{}{}", .0, option(.0))]
    Engine(engine::Error),
    #[error(transparent)]
    Other(select::Error),
}

/// The option of this program that the remedy of an engine's error is about.
fn option(error: &engine::Error) -> &'static str {
    match error {
        engine::Error::NotOfKernel(_) | engine::Error::ProgramOfKernel(_) => {
            " (option: --engine user)"
        }
        engine::Error::Memory(_) | engine::Error::NoMemory(_) => " (option: --ring)",
        engine::Error::Priority(_) => " (option: --priority)",
        _ => "",
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Error {
        Error::Engine(error)
    }
}

impl Error {
    /// Whether it may be otherwise when a device is plugged in, or a module loaded.
    pub fn may_pass(&self) -> bool {
        use engine::Error::{NoModule, NotHere, Unusable};
        matches!(
            self,
            Error::Engine(NotHere { .. } | NoModule { .. } | Unusable { .. })
        )
    }
}

impl From<select::Error> for Error {
    fn from(error: select::Error) -> Error {
        match error {
            select::Error::Wait => Error::Wait,
            select::Error::Board(path) => Error::Board(path),
            select::Error::UserBoard(path) => Error::UserBoard(path),
            error @ select::Error::Policy(_) => Error::Policy(error),
            error @ select::Error::Cpu(_) => Error::Cpu(error),
            select::Error::Faults(faults) => Error::Faults(faults),
            select::Error::Engine(error) => Error::Engine(error),
            error => Error::Other(error),
        }
    }
}

impl Args {
    /// What was asked for.
    pub fn selection(&self) -> Result<Selection, Error> {
        let mut recipe = Recipe::new(EventSpec::soft());
        self.change(&mut recipe);
        Ok(recipe.selection()?)
    }

    /// Which of these options were given.
    pub fn given(&self) -> [(&'static str, bool); 3] {
        [
            ("--engine", self.engine.is_some()),
            ("--wait", self.wait.is_some()),
            ("--board", self.board.is_some()),
        ]
    }

    /// Writes what was given into a recipe.
    pub fn change(&self, recipe: &mut Recipe) {
        recipe.engine = self.engine.map_or(recipe.engine, EnginePreference::from);
        recipe.wait = self.wait.map(WaitMode::from).or(recipe.wait);
        recipe.board = self.board.clone().or(recipe.board.take());
    }
}

/// The engine that was asked for, or the one that can do this.
pub fn choose(selection: &Selection, plan: &Plan) -> Result<SelectedEngine, Error> {
    check_cpu(selection.cpu)?;
    let chosen = selection.choose(plan)?;
    complain(&chosen);
    Ok(chosen)
}

/// The run, which begins on this CPU if one was asked for.
pub fn create(
    chosen: &SelectedEngine,
    plan: &Plan,
    cpu: Option<usize>,
) -> Result<Arc<dyn OwnedRun>, Error> {
    let run = chosen.create(plan)?;
    if let (SelectedEngine::Kernel(_), Some(_)) = (chosen, cpu) {
        let mut channels = run.info().channels.iter();
        let sleeps = channels.find(|c| c.class == Class::Sleep);
        return match sleeps {
            Some(channel) => Err(Error::Thread(channel.name.clone())),
            None => Ok(Arc::new(StartedOn::new(run, cpu))),
        };
    }
    Ok(run)
}

/// Says why the kernel engine does not make the rows, if it might.
pub fn complain(chosen: &SelectedEngine) {
    if let SelectedEngine::User(_, Some(error)) = chosen {
        say(format_args!(
            "strobe: {error}; until then the user engine makes the rows"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_that_helps_is_named_by_the_program_and_not_by_the_library() {
        for (error, option) in [
            (
                engine::Error::NotOfKernel("uio:edu".into()),
                "--engine user",
            ),
            (engine::Error::NoMemory(1 << 40), "--ring"),
            (engine::Error::Memory(1 << 40), "--ring"),
            (engine::Error::Priority(99), "--priority"),
        ] {
            assert!(!error.to_string().contains("--"), "{error}");
            let said = Error::from(error).to_string();
            assert!(said.ends_with(&format!(" (option: {option})")), "{said}");
        }
    }
}
