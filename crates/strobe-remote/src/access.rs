// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it takes to be let in.

use std::path::PathBuf;
use std::time::Duration;

/// What a server wants to know before it answers, whom to trust, and for how long to wait.
#[derive(Debug, Clone)]
pub struct Access {
    /// The token of a client, if the server has such.
    pub token: Option<String>,
    /// A PEM file with the certificates of the authorities to trust, instead of those that the system trusts.
    pub ca: Option<PathBuf>,
    /// So long a server may be silent. It sends something every 10 s.
    pub patience: Duration,
    /// How the users of a program give these: added to remedies.
    pub hints: Hints,
}

/// Words behind a remedy, such as ` (--token FILE)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints {
    /// How a token is given.
    pub token: &'static str,
    /// How a certificate is given.
    pub ca: &'static str,
}

impl Default for Access {
    fn default() -> Self {
        Access {
            token: None,
            ca: None,
            patience: Duration::from_secs(30),
            hints: Hints::default(),
        }
    }
}
