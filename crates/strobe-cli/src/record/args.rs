// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe record` is asked for, by its arguments and a recipe together.

use std::path::PathBuf;

use clap::ValueEnum;
use strobe::event::EventSpec;
use strobe::info::Clock;
use strobe::plan::CpuLatency;
use strobe::quantity::duration_ns;
use strobe::rt::Policy;
use strobe::runs::RunName;
use strobe_board::Faults;
use strobe_files::recipe::Recipe;

use crate::{at, choice, existing, program, rules, why};

/// Options that say what a run of one's own is like.
const OF_OWN_RUNS: [&str; 28] = [
    "recipe",
    "event",
    "read",
    "set",
    "let",
    "tune",
    "when",
    "then",
    "derive",
    "keep",
    "every",
    "engine",
    "wait",
    "board",
    "cpu",
    "policy",
    "priority",
    "wake_within",
    "clock",
    "shared",
    "rows",
    "ring",
    "save",
    "trace_late",
    "trace_to",
    "dry_run",
    "force",
    "wait_for_device",
];

/// Clock of all times.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum ClockChoice {
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
    /// A recipe, as --save writes it; options given as well override it
    #[arg(value_name = "RECIPE")]
    pub(super) recipe: Option<PathBuf>,

    /// What triggers a row: timer:1kHz, timer:250us, device.event, uio:NAME,
    /// gpio:CHIP/LINE:rising (or falling, both), hpet:64Hz, run:ID.row (or
    /// run:ID.row:100, every hundredth), eventfd:N, or soft (a row for each line
    /// on standard input)
    #[arg(long, value_name = "EV", required_unless_present_any = ["recipe", "run"])]
    pub(super) event: Option<EventSpec>,

    /// Channels of a row, in this order
    #[arg(
        long,
        value_name = "CH",
        value_delimiter = ',',
        required_unless_present_any = ["recipe", "run"]
    )]
    pub(super) read: Vec<String>,

    /// Record a run that another program made, or a replay: its number as `strobe
    /// status` shows it. The run goes on afterwards
    #[arg(long, value_name = "RUN", conflicts_with_all = OF_OWN_RUNS)]
    pub(super) run: Option<RunName>,

    #[command(flatten)]
    pub(super) rules: rules::Args,

    #[command(flatten)]
    pub(super) program: program::Args,

    #[command(flatten)]
    pub(super) choice: choice::Args,

    #[command(flatten)]
    pub(super) at: at::Args,

    /// CPU that makes the rows: the user engine's thread or the kernel's timer runs there
    #[arg(long, value_name = "N")]
    pub(super) cpu: Option<usize>,

    /// Policy of the thread that makes the rows, if a thread does: fifo:60, or other
    #[arg(long, value_name = "POLICY")]
    pub(super) policy: Option<Policy>,

    /// The same as --policy fifo:N
    #[arg(long, value_name = "1..99", conflicts_with = "policy", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(super) priority: Option<u8>,

    /// How long CPUs may take to wake from sleep: 10us; any, to save power; 0, to
    /// let none sleep
    #[arg(long, value_name = "TIME")]
    pub(super) wake_within: Option<CpuLatency>,

    /// Clock of all times
    #[arg(long, value_name = "CLOCK")]
    pub(super) clock: Option<ClockChoice>,

    /// Allow everybody who may read runs to read this one
    #[arg(long)]
    pub(super) shared: bool,

    /// End after so many rows
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rows: Option<u64>,

    /// End after this time: 10s, 500ms, 2min
    #[arg(long = "for", value_name = "TIME", value_parser = duration_ns)]
    pub(super) duration: Option<u64>,

    /// Keep only the last N rows; they are written when the run has ended
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) last: Option<u64>,

    /// Smallest number of rows that the ring holds; rounded up to a power of two
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) ring: Option<u64>,

    /// Where rows go: a file .arrows, .h5, .parquet or .csv, or - for CSV on
    /// standard output; may be given several times. In a name {n:05} is the
    /// next free number with five digits, {date} the day, {event} the event
    #[arg(short = 'o', long = "sink", value_name = "SINK")]
    pub(super) sinks: Vec<String>,

    /// Make .arrows files safe against a power cut: rows reach the disk within a second
    #[arg(long)]
    pub(super) sync: bool,

    /// Write these options into a recipe; strobe record RECIPE then does the same again
    #[arg(long, value_name = "RECIPE")]
    pub(super) save: Option<PathBuf>,

    #[command(flatten)]
    pub(super) existing: existing::Args,

    /// Find out why rows are later than this, such as 200us. The kernel's trace
    /// around each is kept; the recording goes on
    #[arg(long, value_name = "TIME", value_parser = duration_ns, conflicts_with = "dry_run")]
    pub(super) trace_late: Option<u64>,

    #[command(flatten)]
    pub(super) traces: why::Keep,

    /// Print the account as one JSON object
    #[arg(long)]
    pub(super) json: bool,

    /// Show what would be recorded and measure what it takes; record nothing
    ///
    /// Some thousand rows of the channels are read for it. Outputs are left alone.
    #[arg(long)]
    pub(super) dry_run: bool,

    /// With --dry-run: write the outputs, too, but for those of rules
    #[arg(long, requires = "dry_run")]
    pub(super) with_outputs: bool,

    /// Record even if a row takes longer than the event's period
    #[arg(long)]
    pub(super) force: bool,

    /// Wait for devices, channels and events that do not exist yet
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) wait_for_device: bool,

    /// Exit with 0 even if something was missed, lost or failed
    #[arg(long)]
    pub(super) allow_loss: bool,
}
impl Args {
    /// The recipe that was given, if one was, with what was given beside it.
    pub(super) fn recipe(&self) -> Result<Recipe, Faults> {
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
        self.rules.change(&mut recipe);
        self.program.change(&mut recipe.program);
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
