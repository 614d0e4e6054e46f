// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe get` and `strobe set`: once, now.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use strobe::once::{self, Once, once};
use strobe::plan::Step;
use strobe_files::recipe::setting;

use crate::at;
use crate::choice;
use crate::term::{self, found, say};

#[cfg(feature = "remote")]
mod remote;

/// Read channels once, now
#[derive(clap::Args)]
pub struct Get {
    /// Channels, read one after the other in this order
    #[arg(required = true, value_name = "CH", value_delimiter = ',')]
    channels: Vec<String>,

    #[command(flatten)]
    choice: choice::Args,

    #[command(flatten)]
    at: at::Args,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Write outputs once, now
///
/// They are written one after the other in this order; if one is refused, none is written.
#[derive(clap::Args)]
pub struct Set {
    /// Outputs and their values
    #[arg(required = true, value_name = "OUT=V", value_delimiter = ',', value_parser = setting)]
    settings: Vec<Step>,

    #[command(flatten)]
    choice: choice::Args,

    #[command(flatten)]
    at: at::Args,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why nothing was read or written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Choice(#[from] choice::Error),
    #[error(transparent)]
    Once(#[from] once::Error),
    #[error(transparent)]
    Machine(#[from] strobe::error::Error),
}

/// What was read.
#[derive(Serialize)]
struct ReadResult {
    time_ns: u64,
    channels: Vec<Reading>,
}

#[derive(Serialize)]
struct Reading {
    channel: String,
    /// A number; "NaN", "inf" or "-inf" of a real one that is none; null if reading it has failed.
    value: Value,
    unit: String,
}

/// What was written.
#[derive(Serialize)]
struct WriteResult {
    time_ns: u64,
    outputs: Vec<Writing>,
}

#[derive(Serialize)]
struct Writing {
    output: String,
    value: u64,
    written: bool,
}

/// Does what `strobe get` was asked for.
pub fn get(args: &Get) -> ExitCode {
    let got = match got(args) {
        Ok(got) => got,
        Err(error) => return term::fail(error),
    };
    let mut status = term::COMPLETE;
    for reading in got
        .channels
        .iter()
        .filter(|reading| reading.value.is_null())
    {
        say(format_args!(
            "strobe: channel {}: it cannot be read now",
            reading.channel
        ));
        status = term::NOT_WHOLE;
    }
    let text = |got: &ReadResult| {
        let line = |reading: &Reading| {
            let value = match &reading.value {
                Value::Null => "failed".to_owned(),
                Value::String(none) => none.clone(),
                value => value.to_string(),
            };
            [reading.channel.clone(), value, reading.unit.clone()]
        };
        let lines: Vec<_> = got.channels.iter().map(line).collect();
        term::table("", &lines)
    };
    found(&got, args.json, text, status)
}

/// Does what `strobe set` was asked for.
pub fn set(args: &Set) -> ExitCode {
    let done = match done(args) {
        Ok(done) => done,
        Err(error) => return term::fail(error),
    };
    let mut status = term::COMPLETE;
    for writing in done.outputs.iter().filter(|writing| !writing.written) {
        say(format_args!(
            "strobe: output {}: it cannot be written now",
            writing.output
        ));
        status = term::NOT_WHOLE;
    }
    found(&done, args.json, |_| String::new(), status)
}

/// What was read: here, or by a server.
fn got(args: &Get) -> Result<ReadResult, Error> {
    args.at.refuse(&args.choice.given())?;
    #[cfg(feature = "remote")]
    if let Some(server) = args.at.server()? {
        return Ok(remote::got(&server, &args.channels)?);
    }
    let steps = args.channels.iter().cloned().map(Step::Read).collect();
    let row = row(&args.choice, steps)?;
    let readings = row.values.into_iter().map(|(channel, word)| Reading {
        value: word.map_or(Value::Null, |word| channel.json(word)),
        channel: channel.name,
        unit: channel.unit,
    });
    Ok(ReadResult {
        time_ns: row.time_ns,
        channels: readings.collect(),
    })
}

/// What was written: here, or by a server.
fn done(args: &Set) -> Result<WriteResult, Error> {
    args.at.refuse(&args.choice.given())?;
    #[cfg(feature = "remote")]
    if let Some(server) = args.at.server()? {
        return Ok(remote::done(&server, &args.settings)?);
    }
    let row = row(&args.choice, args.settings.clone())?;
    let values = args.settings.iter().map(|step| match step {
        Step::Write { value, .. } | Step::Act { value, .. } => *value,
        Step::Read(_) => 0,
    });
    let writings = row.outputs.into_iter().zip(values);
    Ok(WriteResult {
        time_ns: row.time_ns,
        outputs: writings
            .map(|((output, written), value)| Writing {
                output,
                value,
                written,
            })
            .collect(),
    })
}

fn row(choice: &choice::Args, steps: Vec<Step>) -> Result<Once, Error> {
    let plan = once::plan(steps);
    let chosen = choice::choose(&choice.selection()?, &plan)?;
    let run = choice::create(&chosen, &plan, None)?;
    Ok(once(run.as_ref())?)
}
