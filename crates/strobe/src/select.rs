// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which engine makes the rows of a plan: the one that was asked for, or the one that can.

use std::path::PathBuf;
use std::sync::Arc;

use strobe_board::{Board, Faults};
use strobe_hw::rt::Policy;

use crate::engine::kernel::{self, Control};
use crate::engine::user::{Lock, Settings, User, WaitMode};
use crate::engine::{self, DryRun};
use crate::event::Event;
use crate::plan::Plan;
use crate::run::OwnedRun;

/// The engine that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
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
    pub engine: Wanted,
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
    #[error("only the user engine has a choice of waiting")]
    Wait,
    /// The kernel engine, and a board file.
    #[error("{}: board files are for the user engine; a board is installed for the kernel engine", .0.display())]
    Board(PathBuf),
    /// The kernel engine, and a board file that it can do nothing with.
    #[error("{}: this board is for the user engine only", .0.display())]
    UserBoard(PathBuf),
    /// The kernel engine, and a policy that its threads do not have.
    #[error("policy {0}: threads of the kernel engine have fifo:1 to fifo:99; use the user engine")]
    Policy(Policy),
    /// The kernel engine, a CPU, and an event that has its own.
    #[error(
        "event {0}: the kernel engine makes its rows where its interrupt is, which is chosen with \
         /proc/irq/N/smp_affinity_list; use a timer, or the user engine"
    )]
    Cpu(String),
    /// What is wrong with the board file.
    #[error("{0}")]
    Faults(#[from] Faults),
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

/// The engine of a run.
pub enum Chosen {
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
    pub fn choose(&self, plan: &Plan) -> Result<Chosen, Error> {
        let chosen = self.engine(plan)?;
        match (&chosen, self.cpu, plan.event.event()) {
            (Chosen::User(..), ..) | (_, None, _) | (_, _, Event::Timer { .. }) => Ok(chosen),
            _ => Err(Error::Cpu(plan.event.to_string())),
        }
    }

    fn engine(&self, plan: &Plan) -> Result<Chosen, Error> {
        match self.engine {
            Wanted::Kernel if self.wait.is_some() => Err(Error::Wait),
            Wanted::Kernel => {
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
                Ok(Chosen::Kernel(Control::open()?))
            }
            Wanted::Auto
                if self.wait.is_none()
                    && self.board.is_none()
                    && self.policy_of_user().is_none() =>
            {
                self.auto(plan)
            }
            Wanted::Auto | Wanted::User => self.user(),
        }
    }

    /// A policy that only a thread of the user engine can have.
    fn policy_of_user(&self) -> Option<Policy> {
        self.policy
            .filter(|policy| !matches!(policy, Policy::Fifo(_)))
    }

    fn user(&self) -> Result<Chosen, Error> {
        let mut user = User::new(self.settings());
        if let Some(board) = &self.board {
            user = user.with_board(Board::read(board)?);
        }
        Ok(Chosen::User(user, None))
    }

    fn settings(&self) -> Settings {
        Settings {
            wait: self.wait.unwrap_or_default(),
            lock: self.lock,
            cpu: self.cpu,
            policy: self.policy,
        }
    }

    fn auto(&self, plan: &Plan) -> Result<Chosen, Error> {
        let user = || User::new(self.settings());
        let control = match kernel::check(plan).and_then(|()| Control::open()) {
            Ok(control) => control,
            // The event is one of the user engine, or there is no module.
            Err(engine::Error::NotOfKernel(_) | engine::Error::NoModule { .. }) => {
                return Ok(Chosen::User(user(), None));
            }
            Err(error) => return Ok(Chosen::User(user(), Some(error))),
        };
        let is_line = matches!(plan.event.event(), Event::Gpio { .. });
        Ok(match control.dry_run(plan) {
            // Something that this engine has not; the other may have all of it, and of lines it knows best what is wrong.
            Err(engine::Error::NotHere { .. }) if is_line || user().dry_run(plan).is_ok() => {
                Chosen::User(user(), None)
            }
            _ => Chosen::Kernel(control),
        })
    }
}

impl Chosen {
    /// Makes the run.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn create(&self, plan: &Plan) -> Result<Arc<dyn OwnedRun>, engine::Error> {
        Ok(match self {
            Chosen::Kernel(control) => Arc::new(control.create(plan)?),
            Chosen::User(user, _) => Arc::new(user.create(plan)?),
        })
    }

    /// What the run would be.
    ///
    /// # Errors
    /// The run would be refused; the reason.
    pub fn dry_run(&self, plan: &Plan) -> Result<DryRun, engine::Error> {
        Ok(match self {
            Chosen::Kernel(control) => control.dry_run(plan)?,
            Chosen::User(user, _) => user.dry_run(plan)?,
        })
    }
}
