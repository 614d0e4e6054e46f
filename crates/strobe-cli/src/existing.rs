// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are there already, for the commands that write some.

use strobe_files::sink::{Error, Existing};

/// The option of these commands.
#[derive(clap::Args)]
// Its name would be that of the arguments it is a part of.
#[group(skip)]
pub struct Args {
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
}

impl Args {
    /// What becomes of them.
    pub fn existing(&self) -> Existing {
        match self.overwrite {
            true => Existing::Overwrite,
            false => Existing::Refuse,
        }
    }
}

/// The error, with the option that would help.
pub fn words(error: &Error) -> String {
    match error {
        Error::Exists { .. } => format!("{error}, or replace it with --overwrite"),
        error => error.to_string(),
    }
}
