// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which engine makes the rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use strobe::engine::kernel::{self, Control};
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::engine::{self, DryRun, Source};
use strobe::plan::Plan;
use strobe_board::{Board, Faults};

use crate::term::say;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The kernel module where it is loaded and has what is asked for, else the user engine
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
    /// Never sleep; takes a whole CPU
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

/// The options that choose an engine.
#[derive(clap::Args)]
pub struct Args {
    /// Who makes the rows
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    engine: EngineChoice,

    /// How the user engine waits for the event
    #[arg(long, value_name = "HOW")]
    wait: Option<WaitChoice>,

    /// Board file for the user engine
    #[arg(long, value_name = "FILE")]
    board: Option<PathBuf>,
}

/// Why there is no engine for a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "--wait: only the user engine has a choice of waiting; leave it out, or use --engine user"
    )]
    Wait,
    #[error(
        "--board {}: board files are for the user engine; for the kernel engine install it once, \
         as root: strobe board install {}", .0.display(), .0.display()
    )]
    Board(PathBuf),
    #[error(
        "--board {}: this board is for the user engine only, which reaches its registers and files; \
         leave --engine kernel out", .0.display()
    )]
    UserBoard(PathBuf),
    #[error("{0}")]
    Faults(#[from] Faults),
    #[error(transparent)]
    Engine(#[from] engine::Error),
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

/// The engine of a run.
pub enum Chosen {
    Kernel(Control),
    User(User),
}

impl Args {
    /// The engine that was asked for, or the one that can do this.
    pub fn choose(&self, plan: &Plan) -> Result<Chosen, Error> {
        let (wait, board) = (self.wait, self.board.as_deref());
        match self.engine {
            EngineChoice::Kernel if wait.is_some() => Err(Error::Wait),
            EngineChoice::Kernel => {
                if let Some(path) = board {
                    let is_for_user =
                        Board::read(path).is_ok_and(|board| board.is_for_user_engine_only());
                    return Err(match is_for_user {
                        true => Error::UserBoard(path.to_owned()),
                        false => Error::Board(path.to_owned()),
                    });
                }
                kernel::check(plan)?;
                Ok(Chosen::Kernel(Control::open()?))
            }
            EngineChoice::Auto if wait.is_none() && board.is_none() => auto(plan),
            EngineChoice::Auto | EngineChoice::User => user(wait, board),
        }
    }
}

impl Chosen {
    /// Makes the run.
    pub fn create(&self, plan: &Plan) -> Result<Arc<dyn Source>, Error> {
        Ok(match self {
            Chosen::Kernel(control) => Arc::new(control.create(plan)?),
            Chosen::User(user) => Arc::new(user.create(plan)?),
        })
    }

    /// What the run would be.
    pub fn dry_run(&self, plan: &Plan) -> Result<DryRun, Error> {
        Ok(match self {
            Chosen::Kernel(control) => control.dry_run(plan)?,
            Chosen::User(user) => user.dry_run(plan)?,
        })
    }
}

fn auto(plan: &Plan) -> Result<Chosen, Error> {
    let control = match kernel::check(plan).and_then(|()| Control::open()) {
        Ok(control) => control,
        // The event is one of the user engine, or there is no module.
        Err(engine::Error::NotOfKernel(_) | engine::Error::NoModule { .. }) => {
            return user(None, None)
        }
        Err(error) => {
            say(format_args!(
                "strobe: {error}; until then the user engine makes the rows"
            ));
            return user(None, None);
        }
    };
    match control.dry_run(plan) {
        // Something that this engine has not; the other may have all of it.
        Err(engine::Error::NotHere { .. }) => {
            let user = User::new(Settings::default());
            Ok(match user.dry_run(plan) {
                Ok(_) => Chosen::User(user),
                Err(_) => Chosen::Kernel(control),
            })
        }
        _ => Ok(Chosen::Kernel(control)),
    }
}

fn user(wait: Option<WaitChoice>, board: Option<&Path>) -> Result<Chosen, Error> {
    let settings = Settings {
        wait: wait.map_or(WaitMode::Block, WaitMode::from),
        ..Settings::default()
    };
    let mut user = User::new(settings);
    if let Some(board) = board {
        user = user.with_board(Board::read(board)?);
    }
    Ok(Chosen::User(user))
}
