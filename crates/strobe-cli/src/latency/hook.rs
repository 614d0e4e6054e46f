// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency hook`: the measurements of the Hook paper, on any board.

use std::process::ExitCode;

use strobe::event::EventSpec;
use strobe::plan::{Plan, Step};
use strobe::quantity::duration_ns;
use strobe::select;
use strobe::stop::Stop;
use strobe_files::recipe::setting;
use strobe_measure::latency::hook::{Error, Options, Outcome, measure};

use crate::choice;
use crate::progress::Rounds;
use crate::record::{exit_status, handle_signals};
use crate::report;
use crate::term::{self, answer, fail};

/// The longest run, if nothing is said.
const FOR: &str = "10s";

/// Interrupt latency and read delays, measured by a counter on the board
///
/// A row has four readings of a free-running counter, the same counter latched by
/// the board at the event, the board's count of its events, two readings of
/// clock.time, and the channels of --read. For an event counter.full the default
/// channels are counter.count, counter.latched and counter.index, if the board has
/// them. Several events are measured at the same time, each in a run of its own.
#[derive(clap::Args)]
pub struct Args {
    /// What triggers a row, such as counter.full or timer:5kHz
    #[arg(value_name = "EV", required = true)]
    events: Vec<EventSpec>,

    /// The free-running counters, in the order of the events
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    running: Vec<String>,

    /// The same counters latched at the event, in the order of the events
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    latched: Vec<String>,

    /// The board's own counts of the events, in the order of the events
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    index: Vec<String>,

    /// More channels of each row, such as those of an ADC
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    read: Vec<String>,

    /// Values to write once, before the runs begin, such as the period of a board's timer
    #[arg(long, value_name = "OUT=V", value_delimiter = ',', value_parser = setting)]
    set: Vec<Step>,

    #[command(flatten)]
    choice: choice::Args,

    /// End after so many rows of each event
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,

    /// End after this time: 10s, 500ms, 2min
    #[arg(long = "for", value_name = "TIME", default_value = FOR, value_parser = duration_ns)]
    duration: u64,

    /// Smallest number of rows that each ring holds; rounded up to a power of two
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    ring: Option<u64>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Exit with 0 even if something was missed, lost or failed
    #[arg(long)]
    allow_loss: bool,
}

impl Args {
    fn asked(&self) -> Options {
        Options {
            events: self.events.clone(),
            running: self.running.clone(),
            latched: self.latched.clone(),
            index: self.index.clone(),
            read: self.read.clone(),
            set: self.set.clone(),
            rows: self.rows,
            duration: self.duration,
            ring: self.ring,
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    // One line for all: that of the first event.
    let period = args.events.first().and_then(EventSpec::period_ns);
    let rows = args.rows.or(period.map(|ns| args.duration / ns.max(1)));
    let line = Rounds::new(rows);
    let selection = match args.choice.selection() {
        Ok(selection) => selection,
        Err(error) => return fail(error),
    };
    let choose = |plan: &Plan| -> Result<_, select::Error> {
        let chosen = selection.choose(plan)?;
        choice::complain(&chosen);
        Ok(chosen)
    };
    let outcomes = match measure(&args.asked(), &stop, &choose, &|now| line.show(now)) {
        Ok(outcomes) => outcomes,
        Err(Error::Select(error)) => return fail(choice::Error::from(error)),
        Err(error) => return fail(format_args!("{}{error}", option(&error))),
    };
    let status = outcomes.runs.iter();
    let status = status.map(|outcome| exit_status(&outcome.summary, args.allow_loss));
    let status = status.max().unwrap_or(term::COULD_NOT_RUN);
    if args.json {
        match serde_json::to_string(&outcomes) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => return fail(error),
        };
    } else {
        let texts: Vec<String> = outcomes.runs.iter().map(text).collect();
        answer(&texts.join("\n"));
    }
    status.into()
}

/// The option of this program that an error is about.
fn option(error: &Error) -> &'static str {
    match error {
        Error::Names("running counters", ..) => "--running: ",
        Error::Names("latched counters", ..) => "--latched: ",
        Error::Names(..) => "--index: ",
        Error::Set(_) => "--set: ",
        Error::Channels(_) => "--running, --latched: ",
        _ => "",
    }
}

fn text(outcome: &Outcome) -> String {
    let Outcome { summary, delays } = outcome;
    let lines = [
        ("interrupt latency", &delays.interrupt_ns),
        ("late", &summary.late_ns),
        ("channel read delay", &delays.channel_ns),
        ("clock.time read delay", &delays.clock_ns),
        ("period", &summary.period_ns),
    ];
    let lines = lines
        .iter()
        .filter_map(|(what, figures)| Some(report::line(what, Some(figures.as_ref()?))));
    let head = report::head("");
    let table: Vec<[String; 9]> = std::iter::once(head).chain(lines).collect();
    let board = delays.board.map_or(String::new(), |account| {
        format!(
            "from the first row to the last, the board counted {} events and strobe {} triggers: {} interrupts \
             merged\n",
            account.events,
            account.triggers,
            account.merged()
        )
    });
    let overtaken = match delays.overtaken {
        0 => String::new(),
        rows => format!(
            "{rows} rows have no latency: the next event latched the counter again before it was read\n"
        ),
    };
    report::account(summary) + &board + &overtaken + &term::table("", &table)
}
