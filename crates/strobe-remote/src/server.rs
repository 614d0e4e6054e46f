// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server, and what can be asked of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strobe::catalogue::Catalogue;
use strobe::error::Error;

pub use crate::access::{Access, Hints};
use crate::link::Link;
use crate::view::RunView;

/// A server. A clone is the same one.
#[derive(Clone)]
pub struct Server {
    pub(crate) link: Arc<Link>,
}

/// What the engines of its machine have.
#[derive(Debug, Clone, Deserialize)]
pub struct Engines {
    /// The kernel engine, if it is there.
    pub kernel: Option<Catalogue>,
    /// The user engine.
    pub user: Catalogue,
}

/// What was read, or written, once.
#[derive(Debug, Clone, Deserialize)]
pub struct Once {
    /// When, ns on the clock of the machine.
    pub time_ns: u64,
    /// Each channel, and its value; `null`: reading it has failed. Or each output, and whether it was written.
    #[serde(alias = "outputs")]
    pub values: Map<String, Value>,
}

#[derive(Deserialize)]
struct Views {
    runs: Vec<RunView>,
}

#[derive(Serialize)]
struct Settings<'a> {
    outputs: &'a Map<String, Value>,
}

impl Server {
    /// The server at this URL, such as `http://127.0.0.1:8000`. It is not spoken to yet.
    ///
    /// # Errors
    /// It is no such URL, there are no such certificates, or everybody could read the token.
    pub fn at(url: &str, access: &Access) -> Result<Self, Error> {
        let link = Arc::new(Link::new(url, access)?);
        Ok(Server { link })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        self.link.url()
    }

    /// What the engines of its machine have.
    ///
    /// # Errors
    /// Its reason, or that of the way to it.
    pub fn engines(&self) -> Result<Engines, Error> {
        self.link.get("/api/catalogue", &[])
    }

    /// Its runs.
    ///
    /// # Errors
    /// Its reason, or that of the way to it.
    pub fn views(&self) -> Result<Vec<RunView>, Error> {
        Ok(self.link.get::<Views>("/api/runs", &[])?.runs)
    }

    /// Reads channels once, now.
    ///
    /// # Errors
    /// One of them is not there, or another reason.
    pub fn get(&self, channels: &[String]) -> Result<Once, Error> {
        let channels = channels.join(",");
        self.link.get("/api/get", &[("channels", &channels)])
    }

    /// Writes outputs once, now, in their order.
    ///
    /// # Errors
    /// One of them is not there, or another reason; none was written then.
    pub fn set(&self, outputs: &Map<String, Value>) -> Result<Once, Error> {
        self.link.post("/api/set", &Settings { outputs })
    }
}
