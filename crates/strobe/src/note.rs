// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording says of the machine it was made on.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be; the evidence says what was seen.
    Ok,
    /// Not as it should be; there is a remedy.
    Advice,
    /// It could not be found out; the evidence says why.
    Unknown,
}

impl State {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Advice => "advice",
            State::Unknown => "unknown",
        }
    }
}

/// What a recording says of the machine it was made on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Name of the check.
    pub check: Cow<'static, str>,
    /// How it was.
    pub state: State,
    /// What was seen.
    pub evidence: String,
}
