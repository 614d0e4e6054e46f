// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe record`: one run, into sinks.

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use strobe::event::{Event, EventSpec};
use strobe::info::{End, RunInfo};
use strobe::plan::WakeWithin;
use strobe::plan::{Plan, Step};
use strobe::quantity::{duration_ns, show_ns};
use strobe::ring::Row;
use strobe::run::OwnedRun;
use strobe::stop::Stop;
use strobe_files::record::{Observer, Options, Progress, record};
use strobe_files::summary::Summary;
use strobe_files::{record, sink};
use strobe_measure::doctor;
use strobe_measure::late::{self, Found, Late, Which};
use strobe_measure::preflight::too_long;

use crate::choice;
use crate::existing;
use crate::progress::Line;
use crate::report;
use crate::term::{self, answer, fail, say};
use crate::why;

mod dry_run;

/// Record channels on every trigger of an event
///
/// Standard output gets the rows if a sink is `-`; else, with --json, the
/// account as one JSON object. With both, the account goes to standard error.
/// Without --json the account is text on standard error.
#[derive(clap::Args)]
pub struct Args {
    /// What triggers a row: timer:1kHz, timer:250us, device.event, uio:NAME,
    /// gpio:CHIP/LINE:rising (or falling, both), hpet:64Hz, eventfd:N, or soft
    /// (a row for each line on standard input)
    #[arg(long, value_name = "EV")]
    event: EventSpec,

    /// Channels of a row, in this order
    #[arg(long, value_name = "CH", value_delimiter = ',', required = true)]
    read: Vec<String>,

    /// Values to write at each trigger, before the channels are read
    #[arg(long, value_name = "OUT=V", value_delimiter = ',', value_parser = setting)]
    set: Vec<Step>,

    #[command(flatten)]
    choice: choice::Args,

    /// SCHED_FIFO priority of the thread that makes the rows, where one does
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// How long CPUs may take to wake from sleep: 10us; any, to save power; 0, to
    /// let none sleep
    #[arg(long, value_name = "TIME", default_value_t)]
    wake_within: WakeWithin,

    /// End after so many rows
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,

    /// End after this time: 10s, 500ms, 2min
    #[arg(long = "for", value_name = "TIME", value_parser = duration_ns)]
    duration: Option<u64>,

    /// Rows the ring holds at least; rounded up to a power of two
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    ring: Option<u64>,

    /// Where rows go: FILE.arrows, FILE.csv, or - for CSV on standard output;
    /// may be given several times. In a name {n} or {n:05} is the next free
    /// number, {date} the day, {event} the event
    #[arg(short = 'o', long = "sink", value_name = "SINK")]
    sinks: Vec<String>,

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
    #[error("--trace-late: {0}")]
    Late(#[from] late::Error),
}

impl From<record::Error> for Error {
    fn from(error: record::Error) -> Error {
        match error {
            record::Error::Sink(error) => Error::Sink(error),
            error => Error::Record(error),
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let plan = plan(args);
    let result = check(args).and_then(|()| match args.dry_run {
        true => dry_run::run(args, &plan),
        false => record_run(args, &plan),
    });
    result.unwrap_or_else(fail)
}

/// What is wrong with the arguments together, before anything is done.
fn check(args: &Args) -> Result<(), Error> {
    args.sinks
        .iter()
        .try_for_each(|name| Ok(sink::check(name)?))
}

fn plan(args: &Args) -> Plan {
    let reads = args.read.iter().cloned().map(Step::Read);
    let by_time = args.duration.zip(args.event.period_ns());
    Plan {
        steps: args.set.iter().cloned().chain(reads).collect(),
        ring: args.ring,
        priority: args.priority,
        wake_within: args.wake_within,
        // A timer makes a known number of rows in a time.
        limit: args
            .rows
            .or(by_time.map(|(time, period)| (time / period.max(1)).max(1))),
        ..Plan::new(args.event.clone())
    }
}

/// `OUT=V`.
pub fn setting(text: &str) -> Result<Step, String> {
    let (output, value) = text
        .split_once('=')
        .ok_or("write OUTPUT=VALUE, as in sim.level=1")?;
    let number = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        // A negative value is meant as its two's complement.
        None => value
            .parse()
            .ok()
            .or(value.parse::<i64>().ok().map(|v| v as u64)),
    };
    Ok(Step::Write {
        output: output.to_owned(),
        value: number
            .ok_or_else(|| format!("`{value}` is not a whole number; write 12, -1 or 0x1F"))?,
    })
}

fn record_run(args: &Args, plan: &Plan) -> Result<ExitCode, Error> {
    let stop = Stop::default();
    handle_signals(&stop).map_err(Error::Signals)?;
    let Some(run) = create(args, plan, &stop)? else {
        return Ok(term::INTERRUPTED.into());
    };
    if let Some(cost) = too_long(&run.info().channels, plan.event.period_ns()) {
        if !args.force {
            let cost = show_ns(cost as f64);
            return Err(Error::TooLong(plan.event.to_string(), cost));
        }
    }
    if *plan.event.event() == Event::Soft {
        trigger_by_lines(Arc::clone(&run), stop.clone());
    }
    let options = Options {
        sinks: args.sinks.clone(),
        existing: args.existing.existing(),
        // Only files say it.
        notes: match args.sinks.is_empty() {
            true => Vec::new(),
            false => doctor::note(run.info()),
        },
        duration: args.duration.map(Duration::from_nanos),
    };
    let late = args
        .trace_late
        .map(|ns| Late::of(run.as_ref(), Which::LaterThan(ns)));
    let mut view = View {
        line: Line::new(plan.limit),
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
    show(args, &summary, found.as_ref());
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
fn create(args: &Args, plan: &Plan, stop: &Stop) -> Result<Option<Arc<dyn OwnedRun>>, Error> {
    let mut said = String::new();
    loop {
        let run = args
            .choice
            .choose(plan)
            .and_then(|chosen| Ok(chosen.create(plan)?));
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
fn trigger_by_lines(run: Arc<dyn OwnedRun>, stop: Stop) {
    std::thread::spawn(move || {
        let lines = io::stdin().lock().split(b'\n');
        for _ in lines.map_while(Result::ok) {
            // Fails when the run has ended, and before it was started.
            while run.trigger(1).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        stop.finish.store(true, Ordering::Relaxed);
    });
}

fn show(args: &Args, summary: &Summary, found: Option<&Found>) {
    if args.json {
        let account = Account {
            summary,
            late_rows: found.map(|found| found.verdicts.as_slice()),
        };
        let json = serde_json::to_string(&account).unwrap_or_default();
        if args.sinks.iter().any(|name| name == "-") {
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
