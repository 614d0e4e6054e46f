// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of a server.

use serde::Serialize;
use serde_json::{Value, json};
use strobe::error::Error;
use strobe::info::RunInfo;
use strobe_files::recipe::Recipe;

use crate::server::Server;
use crate::view::RunView;

/// A run of a server. It is the server's: it goes on when this is dropped.
#[derive(Clone)]
pub struct RemoteRun {
    pub(crate) server: Server,
    view: RunView,
}

#[derive(Serialize)]
struct NewRun {
    recipe: String,
    start: bool,
}

impl Server {
    /// That of its runs which has this number.
    ///
    /// # Errors
    /// There is none, or another reason.
    pub fn run(&self, id: u32) -> Result<RemoteRun, Error> {
        let view = self.link.get(&format!("/api/runs/{id}"), &[])?;
        Ok(RemoteRun::new(self.clone(), view))
    }

    /// Makes a run there, which waits for its start. It has no sinks: its rows go into the server's spool.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn create(&self, recipe: &Recipe) -> Result<RemoteRun, Error> {
        let of_run = Recipe {
            // What becomes of its rows is said here.
            sinks: Vec::new(),
            last: None,
            sync: false,
            ..recipe.clone()
        };
        let new = NewRun {
            recipe: of_run.to_toml(),
            start: false,
        };
        let view = self.link.post("/api/runs", &new)?;
        Ok(RemoteRun::new(self.clone(), view))
    }
}

impl RemoteRun {
    pub(crate) fn new(server: Server, view: RunView) -> Self {
        RemoteRun { server, view }
    }

    /// What is known of the run; its start if it was started when the server was asked.
    pub fn info(&self) -> &RunInfo {
        &self.view.info
    }

    /// As it was when the server was asked.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// Its name for people: the server, and its number there.
    pub fn name(&self) -> String {
        format!("{}: run {}", self.server.url(), self.view.id)
    }

    /// As it is now.
    ///
    /// # Errors
    /// The server has given it up, or another reason.
    pub fn look(&self) -> Result<RunView, Error> {
        self.server.link.get(&self.path(""), &[])
    }

    /// Triggers make rows from now on.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn start(&self) -> Result<RunView, Error> {
        self.tell("/start", &json!({}))
    }

    /// Ends the run; its rows stay at the server.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn stop(&self) -> Result<RunView, Error> {
        self.tell("/stop", &json!({}))
    }

    /// Triggers are not counted until it goes on.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn pause(&self) -> Result<RunView, Error> {
        self.tell("/pause", &json!({}))
    }

    /// A paused run goes on.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn resume(&self) -> Result<RunView, Error> {
        self.tell("/resume", &json!({}))
    }

    /// Triggers of the event `soft`.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn trigger(&self, count: u32) -> Result<RunView, Error> {
        self.tell("/trigger", &json!({"count": count}))
    }

    /// Gives a tunable of its program a new value.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn tune(&self, tunable: &str, value: &str) -> Result<RunView, Error> {
        self.tell("/tune", &json!({"name": tunable, "value": value}))
    }

    /// The server gives it up, with its rows.
    ///
    /// # Errors
    /// The server's reason, or that of the way to it.
    pub fn remove(&self) -> Result<(), Error> {
        self.server.link.delete(&self.path(""))
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/runs/{}{rest}", self.view.id)
    }

    fn tell(&self, what: &str, more: &Value) -> Result<RunView, Error> {
        self.server.link.post(&self.path(what), more)
    }
}
