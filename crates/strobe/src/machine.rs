// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where runs are: this machine, or another one, of which a server tells. Whoever lists, watches or records runs needs to
//! know no more of it.

use strobe_board::Board;

use crate::catalogue::Catalogue;
use crate::engine::kernel::Control;
use crate::engine::user::User;
use crate::engine::user::registry::Registry;
use crate::error::Error;
use crate::runs::{AttachError, Place, Runs};
use crate::source::{Live, RowSource};

/// What the engines of a machine have.
#[derive(Debug)]
pub struct Catalogues {
    /// The kernel engine; or why it is not available.
    pub kernel: Result<Catalogue, Error>,
    /// The user engine.
    pub user: Catalogue,
    /// Why runs may be missing.
    pub notes: Vec<String>,
}

/// A machine with engines and runs.
pub trait Machine {
    /// What its engines have.
    ///
    /// # Errors
    /// The machine does not say it.
    fn catalogues(&self) -> Result<Catalogues, Error>;

    /// The runs there are now.
    ///
    /// # Errors
    /// The machine does not say it.
    fn runs(&self) -> Result<Runs, Error>;

    /// The rows of a run from the oldest one on that is there. The run does not notice who reads.
    ///
    /// # Errors
    /// It has ended, or is another user's.
    fn rows(&self, run: Place) -> Result<Box<dyn RowSource>, AttachError>;

    /// A run as it is now: some rows that are there, those that come, and where it is.
    ///
    /// # Errors
    /// It has ended, or is another user's.
    fn live(&self, run: Place) -> Result<Box<dyn Live>, AttachError>;

    /// Gives a tunable of a run a new value: see [`Run::tune`](crate::run::Run::tune).
    ///
    /// # Errors
    /// It has ended, is another user's or has no such tunable; or the text is no such value.
    fn tune(&self, run: Place, tunable: &str, value: &str) -> Result<(), AttachError>;
}

/// The machine that this program runs on.
#[derive(Default)]
pub struct ThisMachine {
    board: Option<Board>,
}

impl ThisMachine {
    /// With what the user engine has of this board.
    #[must_use]
    pub fn with_board(self, board: Board) -> Self {
        ThisMachine { board: Some(board) }
    }
}

impl Machine for ThisMachine {
    fn catalogues(&self) -> Result<Catalogues, Error> {
        let user = match &self.board {
            Some(board) => User::default().with_board(board.clone()),
            None => User::default(),
        };
        let mut catalogues = Catalogues {
            kernel: Control::look().and_then(|control| control.catalogue()),
            user: user.catalogue(),
            notes: Vec::new(),
        };
        match Registry::of_this_user().runs() {
            Ok(found) => catalogues.user.runs = found.runs,
            Err(error) => catalogues
                .notes
                .push(format!("cannot list the user engine's runs: {error}")),
        }
        Ok(catalogues)
    }

    fn runs(&self) -> Result<Runs, Error> {
        Ok(Runs::now())
    }

    fn rows(&self, run: Place) -> Result<Box<dyn RowSource>, AttachError> {
        Ok(Box::new(run.attach()?.reader()?))
    }

    fn live(&self, run: Place) -> Result<Box<dyn Live>, AttachError> {
        Ok(Box::new(run.attach()?.reader()?))
    }

    fn tune(&self, run: Place, tunable: &str, value: &str) -> Result<(), AttachError> {
        Ok(run.attach()?.tune(tunable, value)?)
    }
}
