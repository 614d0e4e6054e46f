// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the configuration says of HTTP, of tokens, and of what clients can have.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::tls;

/// What the configuration can say in `[http]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Addresses to listen at.
    pub listen: Vec<String>,
    /// A socket in the file system to listen at.
    pub unix: Option<PathBuf>,
    /// Certificate and key, for encrypted connections.
    pub tls: Option<tls::Config>,
    /// Names that clients know this machine by, beside its own.
    pub hosts: Vec<String>,
    /// Web sites whose pages may use this server, such as `https://lab.example.org`.
    pub origins: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: vec!["127.0.0.1:8000".to_owned()],
            unix: None,
            tls: None,
            hosts: Vec::new(),
            origins: Vec::new(),
        }
    }
}

/// What the configuration can say in `[tokens]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokensConfig {
    /// The file, which nobody else can read. Without one, everybody who can reach the server may do everything.
    pub file: Option<PathBuf>,
}

/// What the configuration can say in `[limits]`: how much one client, and all clients, may have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections of all clients.
    pub clients: usize,
    /// Connections of one client.
    pub per_client: usize,
    /// Requests a second of one client; for a moment it can have as many at once.
    pub requests: u32,
    /// Runs that there can be at once; those that have ended do not count.
    pub runs: usize,
    /// How long a client may take for what it has begun to say, and to take what is sent.
    #[serde(deserialize_with = "super::duration")]
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            clients: 512,
            per_client: 256,
            requests: 200,
            runs: 64,
            patience: Duration::from_secs(30),
        }
    }
}
