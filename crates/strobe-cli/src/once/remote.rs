// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe get --at URL` and `strobe set --at URL`: a server reads and writes.

use std::collections::HashSet;

use serde_json::{Map, Value};
use strobe::channel::Channel;
use strobe::error::{Error, Words};
use strobe::plan::Step;
use strobe_remote::server::Server;

use super::{ReadResult, Reading, WriteResult, Writing};

/// What was read.
pub(super) fn got(server: &Server, names: &[String]) -> Result<ReadResult, Error> {
    let engines = server.engines()?;
    let once = server.get(names)?;
    let catalogues = engines.kernel.iter().chain([&engines.user]);
    let known: Vec<&Channel> = catalogues.flat_map(|c| &c.channels).collect();
    let readings = names.iter().map(|name| {
        let channel = known.iter().find(|channel| channel.name == *name);
        Reading {
            channel: name.clone(),
            value: once.values.get(name).cloned().unwrap_or(Value::Null),
            unit: channel.map_or(String::new(), |channel| channel.unit.clone()),
        }
    });
    Ok(ReadResult {
        time_ns: once.time_ns,
        channels: readings.collect(),
    })
}

/// What was written.
pub(super) fn done(server: &Server, settings: &[Step]) -> Result<WriteResult, Error> {
    let values = settings.iter().filter_map(|step| match step {
        Step::Write { output, value } => Some((output.clone(), *value)),
        Step::Read(_) | Step::Act { .. } => None,
    });
    let values: Vec<(String, u64)> = values.collect();
    let mut seen = HashSet::new();
    if let Some((output, _)) = values.iter().find(|(output, _)| !seen.insert(output)) {
        let words = Words::new(
            format!("output {output}"),
            "it is given twice, and a server writes each output once",
        );
        return Err(Error::Server(
            words.mend("write the values with one command after the other"),
        ));
    }
    let wanted: Map<String, Value> = values.iter().cloned().map(|(o, v)| (o, v.into())).collect();
    let once = server.set(&wanted)?;
    let writings = values.into_iter().map(|(output, value)| Writing {
        written: once.values.get(&output) == Some(&Value::Bool(true)),
        output,
        value,
    });
    Ok(WriteResult {
        time_ns: once.time_ns,
        outputs: writings.collect(),
    })
}
