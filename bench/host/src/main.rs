// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user engine and its ring cost on this machine, each beside the least that could do the same: a bare
//! loop, a pipe, a socket, a copy of memory, a bare write. What is compared is measured in turn, round by round, in one run.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use indicatif::ProgressBar;
use serde::Serialize;
use strobe::rt;
use strobe_measure::machine::Machine;

mod consumer;
mod files;
mod lines;
mod moving;
mod period;
mod reads;
mod report;
mod rows;
mod serve;
mod visible;
mod words;

/// Measures the user engine and its ring on this machine.
///
/// Exit status: 0 if all targets are met, 3 if one is not, 1 if something could not be measured.
#[derive(Parser)]
#[command(name = "strobe-bench")]
struct Options {
    /// Rounds of moving rows
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Rows of a round
    #[arg(long, default_value_t = 4_000_000)]
    rows: u64,
    /// How long each way to wait is measured at each rate, in seconds, in ten turns; 0: not at all
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// The two CPUs to work on: of the producer and of the consumer
    #[arg(long, num_args = 2, default_values_t = [1, 0])]
    cpus: Vec<usize>,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    part: Option<Part>,
}

/// Where figures go.
#[derive(Args)]
struct Output {
    /// All figures, as JSON, instead of the table
    #[arg(long)]
    json: bool,
    /// Writes all figures into this file too, as JSON
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Puts the table into this document, between its marks
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
}

impl Output {
    /// Figures, and the tables that are made of them; `name` is that of the marks.
    fn put(
        &self,
        name: &str,
        figures: &impl Serialize,
        tables: &str,
    ) -> Result<(), Box<dyn Error>> {
        let json = serde_json::to_string_pretty(figures)?;
        if let Some(file) = &self.save {
            std::fs::write(file, &json).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        match self.json {
            true => println!("{json}"),
            false => print!("{tables}"),
        }
        match &self.into {
            Some(document) => report::write_into(document, name, tables),
            None => Ok(()),
        }
    }
}

/// What is measured by itself, and what this program runs as a process of its own.
#[derive(Subcommand)]
enum Part {
    /// Measures the daemon: how fast clients get rows, beside raw TCP, and whether they disturb a run
    Serve(serve::Options),
    /// Measures only whether clients of the daemon disturb a run
    Undisturbed(serve::undisturbed::Options),
    /// Reads a ring to its end, and says what it got.
    #[command(hide = true)]
    Ring {
        /// The ring.
        ring: i32,
        /// Where to say how far it is.
        progress: i32,
        cpu: usize,
        /// What a row's number is to be multiplied with to know its values.
        step: u64,
    },
    /// Reads rows from its standard input, and says what it got.
    #[command(hide = true)]
    Pipe { cpu: usize },
    /// Reads a run from its first row on, once for each line of its standard input, and says how long that took.
    #[command(hide = true)]
    Reads { run: String },
    /// Sends bytes to all who come.
    #[command(hide = true)]
    Raw { bytes: usize },
}

/// Everything that was measured.
#[derive(Serialize)]
struct Figures {
    machine: Machine,
    moving: Vec<moving::Figure>,
    engine: rows::Figure,
    files: Vec<files::Figure>,
    periods: Vec<period::Figure>,
    visible: Vec<visible::Figure>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(error) => {
            eprintln!("strobe-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    match &options.part {
        &Some(Part::Ring {
            ring,
            progress,
            cpu,
            step,
        }) => return consumer::ring(ring, progress, cpu, step).map(|()| true),
        &Some(Part::Pipe { cpu }) => return consumer::pipe(cpu).map(|()| true),
        &Some(Part::Raw { bytes }) => return serve::raw::serve(bytes).map(|()| true),
        Some(Part::Reads { run }) => return reads::passes(run).map(|()| true),
        Some(Part::Serve(options)) => return serve::run(options),
        Some(Part::Undisturbed(options)) => return serve::undisturbed::run(options),
        None => {}
    }
    let &[producer, consumer] = options.cpus.as_slice() else {
        return Err("--cpus: two CPUs are needed".into());
    };
    // On one CPU, real-time threads that wait for each other would wait for ever.
    let usable = rt::cpus();
    if producer == consumer || ![producer, consumer].iter().all(|cpu| usable.contains(cpu)) {
        let text = format!("--cpus {producer} {consumer}: name two of the CPUs {usable:?}");
        return Err(text.into());
    }
    let before = Machine::from_now();
    let turns = period::turns(options.seconds) + visible::turns(options.seconds);
    let bar = ProgressBar::new(u64::from(options.rounds) + turns);
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut moving = moving::Measurement::default();
    let mut engine = rows::Measurement::default();
    let mut files = files::Measurement::default();
    for _ in 0..options.rounds {
        moving.round(options.rows, producer, consumer)?;
        engine.round(options.rows, producer, consumer)?;
        files.round(options.rows / 8)?;
        bar.inc(1);
    }
    let periods = period::measure(options.seconds, producer, || bar.inc(1))?;
    let visible = visible::measure(options.seconds, producer, consumer, || bar.inc(1))?;
    bar.finish_and_clear();
    let figures = Figures {
        machine: before.until_now(),
        moving: moving.figures(),
        engine: engine.figure(),
        files: files.figures(),
        periods,
        visible,
    };
    let tables = report::markdown(&figures);
    options.output.put("host", &figures, &tables)?;
    Ok(report::met(&figures))
}
