// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe plot RUN --at URL`: the rows that a server has of a run.

use std::path::Path;

use strobe::machine::Machine;
use strobe_remote::rows::{Begin, Part};
use strobe_remote::server::Server;

use super::Error;
use super::trace::Trace;

/// What is drawn of the run of this name, and what it is called.
pub(super) fn trace(server: &Server, name: &Path) -> Result<(Trace, String), Error> {
    let name = name.display().to_string();
    let meant = name.parse().map_err(|why| Error::Run(name, why))?;
    let place = server.runs()?.find(&meant).map_err(Error::Name)?;
    let run = server.run(place.number)?;
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
