// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which engine makes the rows of a plan: the one that was asked for, or the one that can.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strobe_board::{Board, Faults};
use strobe_hw::rt::Policy;

use crate::engine::kernel::{self, Control};
use crate::engine::user::{Lock, Settings, User, WaitMode};
use crate::engine::{self, DryRun};
use crate::error::Words;
use crate::event::Event;
use crate::plan::Plan;
use crate::run::OwnedRun;

/// The engine that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnginePreference {
    /// The kernel module where it is loaded and has what the plan asks for, else the user engine.
    #[default]
    Auto,
    /// The kernel module.
    Kernel,
    /// A real-time thread of this process.
    User,
}

/// What is asked for beside the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Who is to make the rows.
    pub engine: EnginePreference,
    /// How the user engine is to wait; only it has a choice.
    pub wait: Option<WaitMode>,
    /// What the user engine locks in memory.
    pub lock: Lock,
    /// A board file for the user engine.
    pub board: Option<PathBuf>,
    /// The CPU on which rows are made.
    pub cpu: Option<usize>,
    /// Policy of the thread of the user engine; `None`: SCHED_FIFO, with the priority that the plan says.
    pub policy: Option<Policy>,
}

/// Why there is no engine for a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel engine, and a way to wait.
    Wait,
    /// The kernel engine, and a board file.
    Board(PathBuf),
    /// The kernel engine, and a board file that it can do nothing with.
    UserBoard(PathBuf),
    /// The kernel engine, and a policy that its threads do not have.
    Policy(Policy),
    /// The kernel engine, a CPU, and an event that has its own.
    Cpu(String),
    /// What is wrong with the board file.
    Faults(#[from] Faults),
    /// The engine's reason.
    Engine(#[from] engine::Error),
}

impl From<&Error> for Words {
    fn from(error: &Error) -> Words {
        let board = |path: &Path, reason| Words::new(path.display().to_string(), reason);
        let kernel = "the kernel engine";
        match error {
            Error::Wait => Words::new(kernel, "it cannot choose how it waits")
                .mend("leave out the way to wait, or use the user engine"),
            Error::Board(path) => board(path, "only the user engine reads board files")
                .mend("install the board for the kernel engine, or use the user engine"),
            Error::UserBoard(path) => {
                board(path, "only the user engine can use this board").mend("use the user engine")
            }
            Error::Policy(policy) => Words::new(
                format!("policy {policy}"),
                "threads of the kernel engine have fifo:1 to fifo:99",
            )
            .mend("use the user engine"),
            Error::Cpu(event) => Words::new(
                format!("event {event}"),
                "the kernel engine makes its rows on the CPU that serves its interrupt; choose that with \
                 /proc/irq/N/smp_affinity_list",
            )
            .mend("use a timer, or the user engine"),
            // They are a list, and each has its own remedy.
            Error::Faults(faults) => Words::new("board file", faults.to_string()),
            Error::Engine(error) => error.words(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Each line says its file.
            Error::Faults(faults) => faults.fmt(f),
            error => Words::from(error).fmt(f),
        }
    }
}

/// The engine of a run.
pub enum SelectedEngine {
    /// The kernel module.
    Kernel(Control),
    /// A thread of this process. Of the kernel engine, why it cannot be used, though it is there.
    User(User, Option<engine::Error>),
}

impl Selection {
    /// The engine that was asked for, or the one that can do this.
    ///
    /// # Errors
    /// There is none, or what was asked for does not fit together.
    pub fn choose(&self, plan: &Plan) -> Result<SelectedEngine, Error> {
        let chosen = self.engine(plan)?;
        match (&chosen, self.cpu, plan.event.event()) {
            (SelectedEngine::User(..), ..) | (_, None, _) | (_, _, Event::Timer { .. }) => {
                Ok(chosen)
            }
            _ => Err(Error::Cpu(plan.event.to_string())),
        }
    }

    fn engine(&self, plan: &Plan) -> Result<SelectedEngine, Error> {
        match self.engine {
            EnginePreference::Kernel if self.wait.is_some() => Err(Error::Wait),
            EnginePreference::Kernel => {
                if let Some(path) = &self.board {
                    let board = Board::read(path);
                    let is_for_user = board.is_ok_and(|board| board.is_for_user_engine_only());
                    return Err(match is_for_user {
                        true => Error::UserBoard(path.clone()),
                        false => Error::Board(path.clone()),
                    });
                }
                if let Some(policy) = self.policy_of_user() {
                    return Err(Error::Policy(policy));
                }
                kernel::check(plan)?;
                Ok(SelectedEngine::Kernel(Control::open()?))
            }
            EnginePreference::Auto
                if self.wait.is_none()
                    && self.board.is_none()
                    && self.policy_of_user().is_none() =>
            {
                self.auto(plan)
            }
            EnginePreference::Auto | EnginePreference::User => self.user(),
        }
    }

    /// A policy that only a thread of the user engine can have.
    fn policy_of_user(&self) -> Option<Policy> {
        self.policy
            .filter(|policy| !matches!(policy, Policy::Fifo(_)))
    }

    fn user(&self) -> Result<SelectedEngine, Error> {
        let mut user = User::new(self.settings());
        if let Some(board) = &self.board {
            user = user.with_board(Board::read(board)?);
        }
        Ok(SelectedEngine::User(user, None))
    }

    fn settings(&self) -> Settings {
        Settings {
            wait: self.wait.unwrap_or_default(),
            lock: self.lock,
            cpu: self.cpu,
            policy: self.policy,
        }
    }

    fn auto(&self, plan: &Plan) -> Result<SelectedEngine, Error> {
        let user = || User::new(self.settings());
        let control = match kernel::check(plan).and_then(|()| Control::open()) {
            Ok(control) => control,
            // The event is one of the user engine, or there is no module.
            Err(engine::Error::NotOfKernel(_) | engine::Error::NoModule { .. }) => {
                return Ok(SelectedEngine::User(user(), None));
            }
            Err(error) => return Ok(SelectedEngine::User(user(), Some(error))),
        };
        let is_line = matches!(plan.event.event(), Event::Gpio { .. });
        // Of a run without the name of its engine, the user engine knows whether there are two.
        let is_any_run = matches!(plan.event.event(), Event::Run { run, .. } if !run.contains(':'));
        if is_any_run {
            return Ok(SelectedEngine::User(user(), None));
        }
        Ok(match control.dry_run(plan) {
            // Something that this engine has not; the other may have all of it, and of lines it knows best what is wrong.
            Err(engine::Error::NotHere { .. }) if is_line || user().dry_run(plan).is_ok() => {
                SelectedEngine::User(user(), None)
            }
            // A module that cannot follow runs.
            Err(engine::Error::NotOfKernel(_)) => SelectedEngine::User(user(), None),
            Err(engine::Error::ProgramOfKernel(_)) if user().dry_run(plan).is_ok() => {
                SelectedEngine::User(user(), None)
            }
            _ => SelectedEngine::Kernel(control),
        })
    }
}

impl SelectedEngine {
    /// Makes the run.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn create(&self, plan: &Plan) -> Result<Arc<dyn OwnedRun>, engine::Error> {
        Ok(match self {
            SelectedEngine::Kernel(control) => Arc::new(control.create(plan)?),
            SelectedEngine::User(user, _) => Arc::new(user.create(plan)?),
        })
    }

    /// What the run would be.
    ///
    /// # Errors
    /// The run would be refused; the reason.
    pub fn dry_run(&self, plan: &Plan) -> Result<DryRun, engine::Error> {
        Ok(match self {
            SelectedEngine::Kernel(control) => control.dry_run(plan)?,
            SelectedEngine::User(user, _) => user.dry_run(plan)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_together_is_said_with_the_remedy_and_without_options_of_a_program() {
        for error in [
            Error::Wait,
            Error::Board("a.toml".into()),
            Error::UserBoard("a.toml".into()),
            Error::Policy(Policy::Other),
            Error::Cpu("counter.eoc".into()),
        ] {
            let words = Words::from(&error);
            assert!(words.remedy.is_some(), "{words}");
            assert_eq!(error.to_string(), words.to_string());
            assert!(!words.to_string().contains("--"), "{words}");
        }
    }

    #[test]
    fn the_reason_of_an_engine_is_passed_on_as_it_is() {
        let words = Words::from(&Error::Engine(engine::Error::NoRun(7)));
        assert_eq!(words.object, "run kernel:7");
        assert_eq!(words, engine::Error::NoRun(7).words());
    }
}
