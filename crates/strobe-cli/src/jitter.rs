// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe jitter`: how regular rows are, by one way to wait or by several in turn; or those of a run or a recording.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use strobe::engine::user::Lock;
use strobe::plan::{CpuLatency, Step};
use strobe::quantity::{duration_ns, period_ns};
use strobe::select::Selection;
use strobe::stop::Stop;
use strobe_board::{Board, Faults, NotFound};
use strobe_files::recipe::setting;
use strobe_measure::jitter::band::Band;
use strobe_measure::jitter::compare::{self, Comparison, Outcome, PacingResult};
use strobe_measure::jitter::contender::Contender;
use strobe_measure::jitter::judge::Judge;
use strobe_measure::jitter::load::Load;
use strobe_measure::jitter::pacing::{PacingSettings, Policy};
use strobe_measure::jitter::round::Round;
use strobe_measure::late::LateSelection;

use crate::at;
use crate::progress::Rounds;
use crate::record::handle_signals;
use crate::rows::{self, RunOrFile};
use crate::term::{self, fail};
use crate::why;
use crate::with_parent;

pub mod table;

/// Unless asked for: 1 kHz.
const PERIOD_NS: u64 = 1_000_000;
/// Unless asked for: 10 s.
const DURATION_NS: u64 = 10_000_000_000;

/// [`Load`] on the command line.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LoadChoice {
    /// All CPUs compute
    Cpu,
    /// Memory is mapped, written and unmapped
    Vm,
    /// Files are synchronised with the disk
    Io,
    /// Processes wake each other
    Switch,
}

impl From<LoadChoice> for Load {
    fn from(choice: LoadChoice) -> Load {
        match choice {
            LoadChoice::Cpu => Load::Cpu,
            LoadChoice::Vm => Load::Vm,
            LoadChoice::Io => Load::Io,
            LoadChoice::Switch => Load::Switch,
        }
    }
}

/// Measure how regular rows are, by several ways to wait in turn, or those of a run
/// or a recording
///
/// The rows hold only their time stamps, unless --read and --set give the loop work
/// to do. Several ways are measured in turn, each once a round, in another order
/// each time: compare the ranges over the rounds; the greatest values depend on
/// what else the machine does. Periods are judged against a band around the one
/// asked for, as a hardware counter would do it. A missed trigger makes a long
/// period, and is counted.
#[derive(clap::Args)]
pub struct Args {
    /// A run (its number, as `strobe status` shows it) or a recording (.arrows or .h5)
    /// to look at, instead of measuring
    #[arg(value_name = "RUN|FILE", conflicts_with_all = ["wait", "versus", "policy", "cpu", "wake_within", "slack", "load", "rounds", "worst", "stop_on", "read", "set", "judge", "board"])]
    what: Option<RunOrFile>,

    #[command(flatten)]
    at: at::Args,

    /// Rows a second, or the time between them: 100Hz, 250us (default: 1kHz; of a run or a
    /// recording, its own)
    #[arg(long, value_name = "RATE", value_parser = period_ns)]
    rate: Option<u64>,

    /// How to wait for the next row, and with which policy: hybrid, hybrid/other
    #[arg(long, value_name = "WAY", default_value = "block")]
    wait: Contender,

    /// Other ways to compare it with
    #[arg(long = "vs", value_name = "WAY,...", value_delimiter = ',')]
    versus: Vec<Contender>,

    /// Policy of the user engine's thread: fifo:1 to fifo:99, other, deadline
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,

    /// The CPU to work on
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// How long CPUs may take to wake from sleep: 10us; any, to save power; 0, to
    /// let none sleep
    #[arg(long, value_name = "TIME", default_value_t)]
    wake_within: CpuLatency,

    /// How much later than its point the thread of kernel:loop may wake, so that the kernel
    /// can wake several at once: 100us
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    slack: Option<u64>,

    /// How far a period may be from the one asked for: 3%, 100us, +3%-100us
    #[arg(long, value_name = "BAND", default_value = "3%")]
    band: Band,

    /// Work of the loop: channels that each row reads
    #[arg(long, value_name = "CH", value_delimiter = ',')]
    read: Vec<String>,

    /// Work of the loop: values that each row writes, before the channels are read
    #[arg(long, value_name = "OUT=V", value_delimiter = ',', value_parser = setting)]
    set: Vec<Step>,

    /// Board of the user engine for these: its file, or its name
    #[arg(long, value_name = "FILE|NAME")]
    board: Option<String>,

    /// Let a hardware counter judge the rows, too: each row raises and lowers
    /// DEVICE.output, and the device counts the periods, as lab-counter does
    #[arg(long, value_name = "DEVICE")]
    judge: Option<String>,

    /// Load that stress-ng makes meanwhile
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    load: Vec<LoadChoice>,

    /// How long each way is measured in a round: 10s, 500ms, 30min (default: 10s; a run: to
    /// its end)
    #[arg(long = "for", value_name = "TIME", value_parser = duration_ns)]
    duration: Option<u64>,

    /// Rounds (default: 1, or 3 with --vs)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Find out why the N latest rows of each way were late
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    worst: Option<u32>,

    /// Stop at the first row later than this, such as 500us, and find out why it was late
    #[arg(long, value_name = "TIME", value_parser = duration_ns, conflicts_with = "worst")]
    stop_on: Option<u64>,

    #[command(flatten)]
    keep: why::Keep,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    let outcome = match &args.what {
        Some(what) => judged(args, what, &stop),
        None => measured(args, &stop),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return fail(error),
    };
    for found in outcome.ways.iter().filter_map(|way| way.late_rows.as_ref()) {
        why::complain(found);
    }
    let is_whole = |way: &PacingResult| way.rounds.iter().all(Round::is_whole);
    let status = term::status(outcome.interrupted, outcome.ways.iter().all(is_whole));
    term::found(&outcome, args.json, table::text, status)
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("--for: a recording is looked at to its end; leave it out")]
    Duration,
    #[error("--board: {0}")]
    Board(#[from] NoBoard),
    #[error(transparent)]
    Rows(#[from] rows::Error),
    #[error(transparent)]
    Machine(#[from] strobe::error::Error),
    #[error("{}{}{}", option(.0), .0, instead(.0))]
    Compare(#[from] compare::Error),
}

/// The option of this program that an error is about.
fn option(error: &compare::Error) -> &'static str {
    match error {
        compare::Error::Band(_) => "--band: ",
        compare::Error::NoPeriod(_) => "--rate: ",
        compare::Error::Policy => "--policy: ",
        compare::Error::Cpu(_) => "--cpu: ",
        compare::Error::Load(_) => "--load: ",
        compare::Error::Judge(..) => "--judge: ",
        _ => "",
    }
}

/// The option that helps.
fn instead(error: &compare::Error) -> &'static str {
    match error {
        compare::Error::Keep(error) => why::instead(error),
        _ => "",
    }
}

/// How regular the rows are that somebody else has made.
fn judged(args: &Args, what: &RunOrFile, stop: &Stop) -> Result<Outcome, Error> {
    if matches!(what, RunOrFile::File(_)) && args.duration.is_some() {
        return Err(Error::Duration);
    }
    let (mut rows, name) = what.rows(&args.at)?;
    let duration = args.duration.map(Duration::from_nanos);
    let line = Rounds::new(rows.info().limit);
    let show = |now| line.show(now);
    let (rate, band) = (args.rate, args.band);
    let outcome = compare::of_rows(rows.as_mut(), &name, rate, band, duration, stop, &show)?;
    Ok(outcome)
}

/// How regular the rows are that this program makes.
fn measured(args: &Args, stop: &Stop) -> Result<Outcome, Error> {
    args.at.refuse(&[("jitter without a run", true)])?;
    let comparison = comparison(args)?;
    let rows = comparison.duration.as_nanos() / u128::from(comparison.asked.period_ns.max(1));
    let line = Rounds::new(u64::try_from(rows).ok());
    let show = |now| line.show(now);
    Ok(compare::measure(
        &comparison,
        stop,
        with_parent::command,
        &show,
    )?)
}

/// Why a board is not there.
#[derive(Debug, thiserror::Error)]
enum NoBoard {
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error(transparent)]
    Faults(#[from] Faults),
}

fn comparison(args: &Args) -> Result<Comparison, NoBoard> {
    let board = args.board.as_deref();
    let file = board.map(|word| strobe_board::find(word, Path::new("")));
    let file = file.transpose()?;
    let board = file.as_deref().map(Board::read).transpose()?;
    let reads = args.read.iter().cloned().map(Step::Read);
    let several = if args.versus.is_empty() { 1 } else { 3 };
    let worst = args.worst.map(|count| LateSelection::Worst(count as usize));
    Ok(Comparison {
        ways: std::iter::once(args.wait)
            .chain(args.versus.iter().copied())
            .collect(),
        asked: PacingSettings {
            period_ns: args.rate.unwrap_or(PERIOD_NS),
            policy: args.policy,
            cpu: args.cpu,
            wake_within: args.wake_within,
            slack_ns: args.slack.unwrap_or(0),
            steps: args.set.iter().cloned().chain(reads).collect(),
            board,
            lock: Lock::Process,
        },
        judge: args.judge.clone().map(|device| Judge {
            device,
            engine: Selection {
                board: file,
                lock: Lock::Process,
                ..Selection::default()
            },
        }),
        band: args.band,
        load: args.load.iter().copied().map(Load::from).collect(),
        duration: Duration::from_nanos(args.duration.unwrap_or(DURATION_NS)),
        rounds: args.rounds.unwrap_or(several),
        late: worst.or(args.stop_on.map(LateSelection::First)),
        keep: args.keep.place().to_owned(),
    })
}
