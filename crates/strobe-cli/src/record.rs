// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record`: one run, into sinks.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::ValueEnum;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use strobe::event::{Event, EventSpec};
use strobe::info::{Clock, End, RunInfo};
use strobe::plan::WakeWithin;
use strobe::plan::{Plan, Step};
use strobe::quantity::{duration_ns, show_ns};
use strobe::ring::Row;
use strobe::rt::Policy;
use strobe::run::OwnedRun;
use strobe::runs::{AttachError, RunName};
use strobe::select::Selection;
use strobe::stop::Stop;
use strobe_board::Faults;
use strobe_files::recipe::{self, Recipe, WriteError};
use strobe_files::record::{Observer, Options, Progress, record};
use strobe_files::summary::Summary;
use strobe_files::{record, sink};
use strobe_measure::doctor;
use strobe_measure::late::{self, Found, Late, Which};
use strobe_measure::preflight::too_long;

use crate::at;
use crate::choice;
use crate::existing;
use crate::progress::Line;
use crate::report;
use crate::term::{self, answer, fail, say};
use crate::why;

mod dry_run;
mod other;
#[cfg(feature = "remote")]
mod remote;

/// Clock of all times.
#[derive(Clone, Copy, ValueEnum)]
enum ClockChoice {
    /// It never jumps, and stands still while the machine sleeps
    Monotonic,
    /// International atomic time, as PTP keeps it: the same on all machines that are synchronised
    Tai,
}

/// Record channels on every trigger of an event
///
/// Standard output gets the rows if a sink is `-`; else, with --json, the
/// account as one JSON object. With both, the account goes to standard error.
/// Without --json the account is text on standard error.
#[derive(clap::Args)]
pub struct Args {
    /// A recipe, as --save writes it; what is given beside it comes before what it says
    #[arg(value_name = "RECIPE")]
    recipe: Option<PathBuf>,

    /// What triggers a row: timer:1kHz, timer:250us, device.event, uio:NAME,
    /// gpio:CHIP/LINE:rising (or falling, both), hpet:64Hz, eventfd:N, or soft
    /// (a row for each line on standard input)
    #[arg(long, value_name = "EV", required_unless_present_any = ["recipe", "run"])]
    event: Option<EventSpec>,

    /// Channels of a row, in this order
    #[arg(
        long,
        value_name = "CH",
        value_delimiter = ',',
        required_unless_present_any = ["recipe", "run"]
    )]
    read: Vec<String>,

    /// Record a run of somebody else, or a replay: its number as `strobe status`
    /// shows it. It is not ended
    #[arg(long, value_name = "RUN", conflicts_with_all = other::OF_OWN_RUNS)]
    run: Option<RunName>,

    /// Values to write at each trigger, before the channels are read
    #[arg(long, value_name = "OUT=V", value_delimiter = ',', value_parser = recipe::setting)]
    set: Vec<Step>,

    #[command(flatten)]
    choice: choice::Args,

    #[command(flatten)]
    at: at::Args,

    /// CPU on which the rows are made: of the thread of the user engine, or of the
    /// kernel's timer
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Policy of the thread that makes the rows, where one does: fifo:60, or other
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,

    /// The same as --policy fifo:N
    #[arg(long, value_name = "1..99", conflicts_with = "policy", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// How long CPUs may take to wake from sleep: 10us; any, to save power; 0, to
    /// let none sleep
    #[arg(long, value_name = "TIME")]
    wake_within: Option<WakeWithin>,

    /// Clock of all times
    #[arg(long, value_name = "CLOCK")]
    clock: Option<ClockChoice>,

    /// Let anybody who may read runs read the ring of this one
    #[arg(long)]
    shared: bool,

    /// End after so many rows
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,

    /// End after this time: 10s, 500ms, 2min
    #[arg(long = "for", value_name = "TIME", value_parser = duration_ns)]
    duration: Option<u64>,

    /// Keep only the last N rows; they are written when the run has ended
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,

    /// Rows the ring holds at least; rounded up to a power of two
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    ring: Option<u64>,

    /// Where rows go: a file .arrows, .h5, .parquet or .csv, or - for CSV on
    /// standard output; may be given several times. In a name {n} or {n:05} is the
    /// next free number, {date} the day, {event} the event
    #[arg(short = 'o', long = "sink", value_name = "SINK")]
    sinks: Vec<String>,

    /// Make .arrows files safe against a power cut: rows are on the disk a second
    /// after they were made
    #[arg(long)]
    sync: bool,

    /// Write all of this into a recipe: strobe record RECIPE does the same again
    #[arg(long, value_name = "RECIPE")]
    save: Option<PathBuf>,

    #[command(flatten)]
    existing: existing::Args,

    /// Find out why rows are later than this: 200us. The kernel's events around
    /// each are kept, and it goes on
    #[arg(long, value_name = "TIME", value_parser = duration_ns, conflicts_with = "dry_run")]
    trace_late: Option<u64>,

    #[command(flatten)]
    keep: why::Keep,

    /// Print the account as one JSON object
    #[arg(long)]
    json: bool,

    /// Say what would be recorded, and measure what it takes; record nothing
    ///
    /// Some thousand rows of the channels are read for it. Outputs are left alone.
    #[arg(long)]
    dry_run: bool,

    /// With --dry-run: write the outputs, too
    #[arg(long, requires = "dry_run")]
    with_outputs: bool,

    /// Try it also if rows take longer than the event leaves them
    #[arg(long)]
    force: bool,

    /// If a device, channel or event is not there yet, wait for it
    #[arg(long, conflicts_with = "dry_run")]
    wait_for_device: bool,

    /// Exit with 0 also if something was missed, lost or failed
    #[arg(long)]
    allow_loss: bool,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("signals cannot be handled: {0}")]
    Signals(io::Error),
    #[error(
        "event {0}: a row takes {1}, as the drivers of its channels say, which is more than the period; use a longer \
         one or fewer channels, measure it with --dry-run, or try it with --force"
    )]
    TooLong(String, String),
    #[error(
        "event {0}: rows of these steps can be made at {1} at most, as was measured; use a longer period or fewer channels"
    )]
    TooFast(String, String),
    #[error("the answer as JSON: {0}")]
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
    #[error("{0}")]
    Name(String),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Machine(#[from] strobe::error::Error),
    #[error("--trace-late: {0}")]
    Late(#[from] late::Error),
}

/// The option that helps where a recipe is there already.
fn instead(error: &WriteError) -> &'static str {
    match error {
        WriteError::Exists(_) => ", or replace it with --overwrite",
        WriteError::Write(..) => "",
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
    let asked = Asked {
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
struct Asked<'a> {
    args: &'a Args,
    recipe: Recipe,
    plan: Plan,
    selection: Selection,
}

impl Asked<'_> {
    /// Writes the recipe, if that was asked for: it can be run, as is known by now.
    fn save(&self) -> Result<(), Error> {
        match &self.args.save {
            Some(path) => Ok(self.recipe.write(path, self.args.existing.existing())?),
            None => Ok(()),
        }
    }
}

impl Args {
    /// The recipe that was given, if one was, with what was given beside it.
    fn recipe(&self) -> Result<Recipe, Error> {
        let mut recipe = match (&self.recipe, &self.event) {
            (Some(path), _) => Recipe::read(path)?,
            // Without either the arguments are not understood.
            (None, event) => Recipe::new(event.clone().unwrap_or_else(EventSpec::soft)),
        };
        if let Some(event) = &self.event {
            recipe.event = event.clone();
        }
        for (given, list) in [
            (&self.read, &mut recipe.read),
            (&self.sinks, &mut recipe.sinks),
        ] {
            if !given.is_empty() {
                list.clone_from(given);
            }
        }
        if !self.set.is_empty() {
            recipe.set.clone_from(&self.set);
        }
        self.choice.change(&mut recipe);
        // Of the board that the recipe is to find again, wherever it is run.
        if let (Some(word), true) = (&self.choice.board, self.save.is_some()) {
            if word.contains('/') || word.ends_with(".toml") {
                let path = std::path::absolute(word).ok();
                recipe.board = path
                    .and_then(|path| Some(path.to_str()?.to_owned()))
                    .or(recipe.board);
            }
        }
        recipe.cpu = self.cpu.or(recipe.cpu);
        recipe.policy = self
            .policy
            .or(self.priority.map(Policy::Fifo))
            .or(recipe.policy);
        recipe.wake_within = self.wake_within.unwrap_or(recipe.wake_within);
        recipe.clock = self.clock.map_or(recipe.clock, |clock| match clock {
            ClockChoice::Monotonic => Clock::Monotonic,
            ClockChoice::Tai => Clock::Tai,
        });
        recipe.shared |= self.shared;
        if self.rows.or(self.duration).is_some() {
            (recipe.rows, recipe.duration_ns) = (self.rows, self.duration);
        }
        recipe.last = self.last.or(recipe.last);
        recipe.ring = self.ring.or(recipe.ring);
        recipe.sync |= self.sync;
        Ok(recipe)
    }
}

fn record_run(asked: &Asked<'_>) -> Result<ExitCode, Error> {
    let Asked {
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
        .map(|ns| Late::of(run.as_ref(), Which::LaterThan(ns)));
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
            .keep
            .keep(&mut found, &format!("run-{}", run.info().run));
        (found, kept)
    });
    let (found, kept) = found.map_or((None, Ok(())), |(found, kept)| (Some(found), kept));
    show(args, &recipe.sinks, &summary, found.as_ref());
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
fn create(asked: &Asked<'_>, stop: &Stop) -> Result<Option<Arc<dyn OwnedRun>>, Error> {
    let Asked {
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

fn show(args: &Args, sinks: &[String], summary: &Summary, found: Option<&Found>) {
    if args.json {
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
