// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that are missing, and why: a step from one row to the next does not say whose loss it was, so that is written beside
//! the rows. A daemon that goes on with a run counts on from there.
//!
//! It is written before the rows that follow, each sum with the row from which on it holds. So it is right whenever the daemon
//! is killed: the rows that are there say which of the sums is theirs.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::recent::Piece;

/// How many, before the first of the steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Losses {
    /// Rows that the ring lost before they were drained.
    pub(super) lost: u64,
    /// Rows that had left the memory before they could be written.
    pub(super) unwritten: u64,
    /// Rows before this one are nobody's loss: the run was another's, and was older than its spool.
    #[serde(default)]
    pub(super) begun: u64,
    /// What there is more of, in the order of the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
}

/// The sums from a row on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    row: u64,
    lost: u64,
    unwritten: u64,
}

impl Losses {
    /// What this folder says of rows before this one, which are there; without a word there were none.
    pub(super) fn read(folder: &Path, end: u64) -> Losses {
        let text = fs::read(folder.join(NAME)).ok();
        let losses = text.and_then(|text| serde_json::from_slice::<Losses>(&text).ok());
        losses.unwrap_or_default().up_to(end)
    }

    /// With these rows, which come after those before `end`, of a run that begins with the row `begun`. In all, `unwritten` were
    /// to be written before them.
    pub(super) fn with(&self, begun: u64, end: u64, pieces: &[Piece], unwritten: u64) -> Losses {
        let mut losses = Losses {
            begun,
            ..self.clone()
        };
        let (mut lost, mut end) = (self.lost, end.max(begun));
        for piece in pieces {
            if piece.first > end {
                let of_disk = match losses.steps.is_empty() {
                    true => unwritten.saturating_sub(self.unwritten),
                    false => 0,
                };
                lost += (piece.first - end).saturating_sub(of_disk);
                losses.steps.push(Step {
                    row: piece.first,
                    lost,
                    unwritten,
                });
            }
            end = piece.end();
        }
        losses
    }

    /// Those of the rows before this one.
    pub(super) fn up_to(self, end: u64) -> Losses {
        let last = self.steps.iter().rfind(|step| step.row < end);
        let (lost, unwritten) = last.map_or((self.lost, self.unwritten), |last| {
            (last.lost, last.unwritten)
        });
        Losses {
            lost,
            unwritten,
            begun: self.begun,
            steps: Vec::new(),
        }
    }

    /// Says so in this folder: as a whole, or not at all.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let new = folder.join("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, folder.join(NAME))
    }
}

const NAME: &str = "losses.json";
