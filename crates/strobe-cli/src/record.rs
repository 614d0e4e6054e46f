// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record`: one run, into sinks.

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use strobe::event::Event;
use strobe::info::{End, RunInfo};
use strobe::plan::Plan;
use strobe::quantity::show_ns;
use strobe::ring::Row;
use strobe::run::OwnedRun;
use strobe::select::Selection;
use strobe::stop::Stop;
use strobe_board::Faults;
use strobe_files::recipe::{Recipe, WriteError};
use strobe_files::record::{Observer, Options, Progress, record};
use strobe_files::summary::Summary;
use strobe_files::{record, sink};
use strobe_measure::doctor;
use strobe_measure::late::{self, Late, LateRows, LateSelection};
use strobe_measure::preflight::too_long;

use crate::choice;
use crate::existing;
use crate::progress::Line;
use crate::report;
use crate::rows;
use crate::term::{self, answer, fail, say};
use crate::why;

mod args;
mod dry_run;
mod other;
#[cfg(feature = "remote")]
mod remote;

pub use args::Args;

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("signals cannot be handled: {0}")]
    Signals(io::Error),
    #[error(
        "event {0}: a row takes {1} by what the drivers of its channels declare, and the period is shorter; use a \
         longer period or fewer channels, measure it with --dry-run, or try it with --force"
    )]
    TooLong(String, String),
    #[error(
        "event {0}: this machine makes these rows at {1} at most, as just measured; use a longer period or fewer channels"
    )]
    TooFast(String, String),
    #[error("the answer cannot be written as JSON: {0}")]
    Json(serde_json::Error),
    #[error(transparent)]
    Choice(#[from] choice::Error),
    #[error("{}", existing::words(.0))]
    Sink(#[from] sink::Error),
    #[error(transparent)]
    Record(record::Error),
    #[error("{0}: {1}")]
    Option(&'static str, record::Error),
    #[error(transparent)]
    Recipe(#[from] Faults),
    #[error("{}{}", .0, instead(.0))]
    Save(#[from] WriteError),
    #[error(transparent)]
    Rows(#[from] rows::Error),
    #[error(transparent)]
    Machine(#[from] strobe::error::Error),
    #[error(transparent)]
    Recording(#[from] strobe_files::journal::Error),
    #[error(transparent)]
    Convert(#[from] strobe_files::convert::Error),
    #[error("--trace-late: {}{}", .0, why::instead(.0))]
    Late(#[from] late::Error),
}

/// The option that helps where a recipe is there already.
fn instead(error: &WriteError) -> &'static str {
    match error {
        WriteError::Exists(_) => ", or replace it with --overwrite",
        _ => "",
    }
}

impl From<record::Error> for Error {
    fn from(error: record::Error) -> Error {
        match error {
            record::Error::Sink(error) => Error::Sink(error),
            record::Error::NoJournal | record::Error::SyncAndLast => Error::Option("--sync", error),
            record::Error::Last { .. } => Error::Option("--last", error),
            error => Error::Record(error),
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    run_recipe(args).unwrap_or_else(fail)
}

fn run_recipe(args: &Args) -> Result<ExitCode, Error> {
    if let Some(name) = &args.run {
        return other::run(args, name);
    }
    let recipe = args.recipe()?;
    for name in &recipe.sinks {
        sink::check(name)?;
    }
    #[cfg(feature = "remote")]
    if let Some(server) = args.at.server()? {
        return remote::run(args, &recipe, &server);
    }
    let asked = Request {
        args,
        plan: recipe.plan(),
        selection: recipe.selection().map_err(choice::Error::from)?,
        recipe,
    };
    if let Some(path) = &args.save {
        Recipe::may_write(path, args.existing.existing())?;
    }
    match args.dry_run {
        true => dry_run::run(&asked),
        false => record_run(&asked),
    }
}

/// What was asked for, by the arguments and a recipe together.
struct Request<'a> {
    args: &'a Args,
    recipe: Recipe,
    plan: Plan,
    selection: Selection,
}

impl Request<'_> {
    /// Writes the recipe, if that was asked for: it can be run, as is known by now.
    fn save(&self) -> Result<(), Error> {
        match &self.args.save {
            Some(path) => Ok(self.recipe.write(path, self.args.existing.existing())?),
            None => Ok(()),
        }
    }
}

fn record_run(asked: &Request<'_>) -> Result<ExitCode, Error> {
    let Request {
        args, plan, recipe, ..
    } = asked;
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let Some(run) = create(asked, &stop)? else {
        return Ok(term::INTERRUPTED.into());
    };
    if let Some(cost) = too_long(&run.info().channels, plan.event.period_ns()) {
        if !args.force {
            let cost = show_ns(cost as f64);
            return Err(Error::TooLong(plan.event.to_string(), cost));
        }
    }
    if *plan.event.event() == Event::Soft {
        let run = Arc::clone(&run);
        trigger_by_lines(move || run.trigger(1).is_ok(), stop.clone());
    }
    let options = Options {
        sinks: recipe.sinks.clone(),
        existing: args.existing.existing(),
        // Only files say it.
        notes: match recipe.sinks.is_empty() {
            true => Vec::new(),
            false => doctor::note(run.info()),
        },
        duration: recipe.duration_ns.map(Duration::from_nanos),
        last: recipe.last,
        sync: recipe.sync,
    };
    asked.save()?;
    let late = args
        .trace_late
        .map(|ns| Late::of(run.as_ref(), LateSelection::LaterThan(ns)));
    let mut view = View {
        line: Line::new(plan.limit, options.duration),
        late: late.transpose()?,
    };
    let summary = record(run.as_ref(), &options, &stop, &mut view);
    view.line.clear();
    let found = view.late.map(Late::end);
    let summary = summary?;
    let found = found.map(|mut found| {
        let kept = args
            .traces
            .keep(&mut found, &format!("run-{}", run.info().run));
        (found, kept)
    });
    let (found, kept) = found.map_or((None, Ok(())), |(found, kept)| (Some(found), kept));
    show(args.json, &recipe.sinks, &summary, found.as_ref());
    kept?;
    Ok(exit_status(&summary, args.allow_loss).into())
}

/// Looks on while the run is recorded.
struct View {
    line: Line,
    late: Option<Late>,
}

impl Observer for View {
    fn begun(&mut self, info: &RunInfo) {
        if let Some(late) = &mut self.late {
            late.begun(info);
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        if let Some(late) = &mut self.late {
            late.row(row);
        }
    }

    fn progress(&mut self, now: Progress) {
        self.line.show(now);
        if let Some(late) = &mut self.late {
            late.look();
        }
    }
}

/// The account, with what was found out about late rows, if it was asked for.
#[derive(serde::Serialize)]
struct Account<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_rows: Option<&'a [late::Verdict]>,
}

/// How often it is looked for what is not there yet.
const LOOK: Duration = Duration::from_millis(100);

/// Makes the run, when all that it needs is there; `None` if a signal came first.
fn create(asked: &Request<'_>, stop: &Stop) -> Result<Option<Arc<dyn OwnedRun>>, Error> {
    let Request {
        args,
        plan,
        selection,
        ..
    } = asked;
    let mut said = String::new();
    loop {
        let run = choice::choose(selection, plan)
            .and_then(|chosen| choice::create(&chosen, plan, selection.cpu));
        let missing = match run {
            Err(error) if args.wait_for_device && error.may_pass() => error.to_string(),
            run => return Ok(Some(run?)),
        };
        if missing != said {
            say(format_args!("strobe: waiting: {missing}"));
            said = missing;
        }
        if stop.interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// The first signal ends the recording in an orderly way, the second one at
/// once.
pub fn handle_signals(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let interrupt = || Arc::clone(&stop.interrupt);
        let status = term::INTERRUPTED.into();
        signal_hook::flag::register_conditional_shutdown(signal, status, interrupt())?;
        signal_hook::flag::register(signal, interrupt())?;
    }
    Ok(())
}

/// One trigger for each line on standard input; its end completes the run.
fn trigger_by_lines(trigger: impl Fn() -> bool + Send + 'static, stop: Stop) {
    std::thread::spawn(move || {
        let lines = io::stdin().lock().split(b'\n');
        for _ in lines.map_while(Result::ok) {
            // Fails when the run has ended, and before it was started.
            while !trigger() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        stop.finish.store(true, Ordering::Relaxed);
    });
}

/// Says how a recording went.
pub fn show(json: bool, sinks: &[String], summary: &Summary, found: Option<&LateRows>) {
    if json {
        let account = Account {
            summary,
            late_rows: found.map(|found| found.verdicts.as_slice()),
        };
        let json = serde_json::to_string(&account).unwrap_or_default();
        if sinks.iter().any(|name| name == "-") {
            say(json);
        } else {
            answer(&(json + "\n"));
        }
    } else {
        let late = found.map_or(String::new(), why::text);
        say((report::text(summary) + &late).trim_end_matches('\n'));
    }
    if let Some(found) = found {
        why::complain(found);
    }
    for sink in &summary.sinks {
        if let Some(error) = &sink.error {
            say(format_args!("strobe: sink {}: {error}", sink.path));
        }
    }
    if let End::Failed(why) = &summary.end {
        say(format_args!(
            "strobe: run on event {}: {why}",
            summary.event
        ));
    }
}

pub fn exit_status(summary: &Summary, allow_loss: bool) -> u8 {
    match summary.end {
        End::Stopped => term::INTERRUPTED,
        _ if summary.is_whole() || allow_loss => term::COMPLETE,
        _ => term::NOT_WHOLE,
    }
}
