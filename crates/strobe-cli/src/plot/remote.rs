// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe plot RUN --at URL`: the rows that a server has of a run.

use strobe::runs::RunName;
use strobe_remote::rows::{Begin, Part};
use strobe_remote::server::Server;

use super::Error;
use super::trace::Trace;
use crate::rows::place;

/// What is drawn of the run of this name, and what it is called.
pub(super) fn trace(server: &Server, name: &RunName) -> Result<(Trace, String), Error> {
    let run = server.run(place(server, name)?.number)?;
    let trace = Trace::read(&mut |to| {
        let part = Part {
            from: Begin::Row(0),
            to,
            follow: false,
        };
        Ok(Box::new(run.rows(part)))
    })?;
    Ok((trace, run.name()))
}
