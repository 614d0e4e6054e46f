// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of both engines.

use serde::Serialize;

use crate::catalogue::RunStatus;
use crate::engine::kernel::Control;
use crate::engine::user::registry::{self, Registry, UnresponsiveRun};
use crate::error::{Error, Words};
use crate::run::Run;

mod name;

pub use name::{Place, RunName};

/// The runs there are, of both engines.
#[derive(Serialize)]
pub struct Runs {
    /// What they do.
    pub runs: Vec<RunStatus>,
    /// Those of the user engine that do not say.
    pub silent: Vec<UnresponsiveRun>,
    /// Why runs may be missing.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Runs {
    /// All there are now. An engine that is not there has none.
    pub fn now() -> Self {
        let mut notes = Vec::new();
        let mut runs = match Control::look().and_then(|control| control.catalogue()) {
            Ok(catalogue) => catalogue.runs,
            Err(Error::NoModule { .. }) => Vec::new(),
            Err(error) => {
                notes.push(format!("cannot list the kernel engine's runs: {error}"));
                Vec::new()
            }
        };
        let mut silent = Vec::new();
        match Registry::of_this_user().runs() {
            Ok(found) => {
                runs.extend(found.runs);
                silent = found.silent;
            }
            Err(error) => {
                notes.push(format!("cannot list the user engine's runs: {error}"));
            }
        }
        Runs {
            runs,
            silent,
            notes,
        }
    }
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The kernel engine's reason.
    #[error(transparent)]
    Engine(#[from] Error),
    /// The reason of the user engine's runs.
    #[error(transparent)]
    Registry(#[from] registry::Error),
}

impl From<&AttachError> for Words {
    fn from(error: &AttachError) -> Words {
        match error {
            AttachError::Engine(error) => error.words(),
            AttachError::Registry(error) => error.into(),
        }
    }
}

impl Place {
    /// The run that is there, to be read; it does not notice that.
    ///
    /// # Errors
    /// It has ended, or is another user's.
    pub fn attach(self) -> Result<Box<dyn Run>, AttachError> {
        Ok(match self.engine {
            "kernel" => Box::new(Control::look()?.attach(self.number)?),
            _ => Box::new(Registry::of_this_user().attach(self.number)?),
        })
    }
}
