// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that are missing, and why: a step from one row to the next does not say whose loss it was, so that is written beside
//! the rows. A daemon that goes on with a run counts on from there.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// How many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Losses {
    /// Rows that the ring lost before they were drained.
    pub(super) lost: u64,
    /// Rows that had left the memory before they could be written.
    pub(super) unwritten: u64,
    /// Rows before this one are nobody's loss: the run was another's, and was older than its spool.
    #[serde(default)]
    pub(super) begun: u64,
}

impl Losses {
    /// What this folder says; without a word there were none.
    pub(super) fn read(folder: &Path) -> Losses {
        let text = fs::read(folder.join(NAME)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Says so in this folder: as a whole, or not at all.
    pub(super) fn write(self, folder: &Path) -> io::Result<()> {
        let new = folder.join("new");
        fs::write(&new, serde_json::to_vec(&self)?)?;
        fs::rename(&new, folder.join(NAME))
    }
}

const NAME: &str = "losses.json";
