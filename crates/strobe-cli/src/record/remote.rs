// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record --at URL`: a run that a server makes, recorded here.

use std::process::ExitCode;
use std::time::Duration;

use strobe::event::Event;
use strobe::source::RowSource;
use strobe::stop::Stop;
use strobe_files::recipe::Recipe;
use strobe_files::record::{Options, record_rows};
use strobe_remote::server::Server;

use super::{Args, Error, View, exit_status, handle_signals, show, trigger_by_lines};
use crate::progress::Line;
use crate::term::say;

pub(super) fn run(args: &Args, recipe: &Recipe, server: &Server) -> Result<ExitCode, Error> {
    args.at.refuse(&[
        ("--trace-late", args.trace_late.is_some()),
        ("--dry-run", args.dry_run),
        ("--force", args.force),
        ("--wait-for-device", args.wait_for_device),
    ])?;
    if let Some(path) = &args.save {
        Recipe::may_write(path, args.existing.existing())?;
    }
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let options = Options {
        sinks: recipe.sinks.clone(),
        existing: args.existing.existing(),
        last: recipe.last,
        sync: recipe.sync,
        // The run ends when the time is over, and all its rows come.
        duration: None,
        // Of this machine there is nothing to say.
        notes: Vec::new(),
    };
    let duration = recipe.duration_ns.map(Duration::from_nanos);
    let run = server.create(recipe)?;
    say(format_args!("strobe: recording {}", run.name()));
    let mut rows = run.clone().recorded(stop.clone(), duration);
    if let Some(path) = &args.save {
        recipe.write(path, args.existing.existing())?;
    }
    if *recipe.event.event() == Event::Soft {
        trigger_by_lines(move || run.trigger(1).is_ok(), stop);
    }
    let mut view = View {
        line: Line::new(rows.info().limit, duration),
        late: None,
    };
    let summary = record_rows(&mut rows, &options, &Stop::default(), &mut view);
    view.line.clear();
    let summary = summary?;
    show(args.json, &recipe.sinks, &summary, None);
    Ok(exit_status(&summary, args.allow_loss).into())
}
