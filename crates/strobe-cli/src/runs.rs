// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of both engines.

use serde::Serialize;
use strobe::catalogue::RunStatus;
use strobe::engine::kernel::Control;
use strobe::engine::user::registry::{Registry, Silent};
use strobe::engine::Error;

#[cfg(feature = "watch")]
mod name;
#[cfg(feature = "watch")]
pub use name::{Place, RunName};

/// The runs there are, of both engines.
#[derive(Serialize)]
pub struct Runs {
    /// What they do.
    pub runs: Vec<RunStatus>,
    /// Those of the user engine that do not say.
    pub silent: Vec<Silent>,
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
                notes.push(format!(
                    "runs of the kernel engine are not to be seen: {error}"
                ));
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
                notes.push(format!(
                    "runs of the user engine are not to be seen: {error}"
                ));
            }
        }
        Runs {
            runs,
            silent,
            notes,
        }
    }
}
