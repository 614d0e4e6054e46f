// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record --run`: the rows of a run that goes on elsewhere, or of a replay.

use std::process::ExitCode;
use std::time::Duration;

use strobe::info::End;
use strobe::runs::RunName;
use strobe::stop::Stop;
use strobe_files::record::{Options, record_rows};

use super::{Args, Error, View, exit_status, handle_signals, show};
use crate::progress::Line;
use crate::rows::RunOrFile;
use crate::term;

pub(super) fn run(args: &Args, name: &RunName) -> Result<ExitCode, Error> {
    let (mut rows, _) = RunOrFile::Run(name.clone()).rows(&args.at)?;
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let options = Options {
        sinks: args.sinks.clone(),
        existing: args.existing.existing(),
        duration: args.duration.map(Duration::from_nanos),
        last: args.last,
        sync: args.sync,
        // Of the machine it knows nothing: the run may have begun long ago.
        notes: Vec::new(),
    };
    let mut view = View {
        line: Line::new(rows.info().limit, options.duration),
        late: None,
    };
    let summary = record_rows(rows.as_mut(), &options, &stop, &mut view);
    view.line.clear();
    let summary = summary?;
    show(args.json, &args.sinks, &summary, None);
    let is_whole = summary.is_whole() || args.allow_loss;
    Ok(match summary.end {
        // Its owner has stopped it: all of it is there.
        End::Stopped if !stop.is_interrupted() && is_whole => term::COMPLETE.into(),
        End::Stopped if !stop.is_interrupted() => term::NOT_WHOLE.into(),
        _ => exit_status(&summary, args.allow_loss).into(),
    })
}
