// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the configuration says of buses that rows are published to.

use serde::Deserialize;

/// `[publish]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Publish {
    /// NATS JetStream.
    pub nats: Option<Nats>,
}

/// `[publish.nats]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nats {
    /// Where the bus is: `nats://host:4222`, `tls://user:password@host`.
    pub url: String,
    /// The stream that keeps the rows; it is made if it is not there.
    #[serde(default = "stream")]
    pub stream: String,
    /// Names of the runs that are published; all, if none is named.
    #[serde(default)]
    pub runs: Vec<String>,
    /// What a stream that is made may keep, bytes; when it is full, rows wait in the spool.
    pub bytes: Option<i64>,
    /// What this machine is called on the bus; its own name, unless said.
    pub machine: Option<String>,
}

fn stream() -> String {
    "STROBE".to_owned()
}
