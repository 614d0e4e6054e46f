// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the daemon gives rows to clients, each way beside raw TCP of as many bytes, in turn; what that costs; and whether
//! clients disturb a run.

use std::error::Error;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Serialize;
use strobe_measure::machine::Machine;

mod bus;
mod daemon;
mod protocol;
pub mod raw;
mod report;
pub mod undisturbed;

use daemon::{Daemon, ROW_BYTES, cpu_s};
use protocol::{Protocol, Source};
use raw::Raw;

/// How many clients there are at once.
const CLIENTS: [u64; 2] = [1, 10];
const PROTOCOLS: [Protocol; 4] = [
    Protocol::Raw,
    Protocol::Panda,
    Protocol::Arrow,
    Protocol::WebSocket,
];

/// How it is measured.
#[derive(clap::Args)]
pub struct Options {
    /// Rounds, in each of which each way has its turn
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Rows that a client reads in a turn; few of them are read before a connection has its full speed
    #[arg(long, default_value_t = 4_000_000)]
    rows: u64,
    #[command(flatten)]
    undisturbed: undisturbed::Words,
    #[command(flatten)]
    output: crate::Output,
}

/// Where the rows are before they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the memory of the daemon.
    Memory,
    /// In its files, and the kernel's memory.
    Files,
}

/// What was measured of one way.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub place: Place,
    pub way: Protocol,
    pub clients: u64,
    /// Rows a second of all clients together, of each round.
    pub rows_per_s: Vec<f64>,
    /// The same as a share of what raw TCP has given in the same round.
    pub of_raw: Vec<f64>,
    /// How much of raw TCP it is to be.
    pub target: Option<f64>,
    /// Time of the server on CPUs, ns a row, over all rounds.
    pub cpu_ns: f64,
}

/// Everything.
#[derive(Serialize)]
pub struct Figures {
    pub machine: Machine,
    pub rows: u64,
    pub figures: Vec<Figure>,
    pub bus: Option<bus::Figure>,
    pub undisturbed: Vec<undisturbed::Figure>,
}

/// Measures, and says what came out; whether all targets are met.
pub fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let before = Machine::from_now();
    let turns = (2 * CLIENTS.len() as u64 + 1) * u64::from(options.rounds);
    let bar = ProgressBar::new(turns);
    bar.enable_steady_tick(Duration::from_millis(200));
    let raw = Raw::start(options.rows * ROW_BYTES)?;
    let figures = throughput(options.rounds, options.rows, &raw, &bar)?;
    let bus = published(options.rounds, options.rows, &raw, &bar)?;
    let undisturbed = undisturbed::measure(&options.undisturbed)?;
    bar.finish_and_clear();
    let figures = Figures {
        machine: before.until_now(),
        rows: options.rows,
        figures,
        bus,
        undisturbed,
    };
    options
        .output
        .put("serve", &figures, &report::markdown(&figures))?;
    Ok(report::met(&figures))
}

/// Of one run: while it goes on, its rows are in memory; when it has ended, in files.
fn throughput(
    rounds: u32,
    rows: u64,
    raw: &Raw,
    bar: &ProgressBar,
) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut daemon = Daemon::start("user", 2 * rows * ROW_BYTES, "")?;
    let run = daemon.arm("SIM.LATCH", &["EVENT1.SOURCE=soft"])?;
    daemon.trigger(run, rows)?;
    let source = Source {
        raw: raw.address,
        panda: daemon.panda,
        http: daemon.http,
        run,
    };
    let mut figures = Vec::new();
    for place in [Place::Memory, Place::Files] {
        if place == Place::Files {
            daemon.say("*PCAP.DISARM=")?;
            daemon.until(run, |view| view.end.is_some())?;
        }
        for clients in CLIENTS {
            let mut of = PROTOCOLS.map(|way| Figure::new(place, way, clients));
            for round in 0..rounds as usize {
                let mut speeds = [0.0; PROTOCOLS.len()];
                // Who comes first changes.
                for index in (0..PROTOCOLS.len()).map(|index| (index + round) % PROTOCOLS.len()) {
                    let pid = match PROTOCOLS[index] {
                        Protocol::Raw => raw.pid(),
                        _ => daemon.pid(),
                    };
                    let before = cpu_s(pid)?;
                    let took = turn(PROTOCOLS[index], source, rows, clients)?;
                    let all = (rows * clients) as f64;
                    speeds[index] = all / took.as_secs_f64();
                    of[index].cpu_ns += 1e9 * (cpu_s(pid)? - before) / all / f64::from(rounds);
                }
                for (figure, speed) in of.iter_mut().zip(speeds) {
                    figure.rows_per_s.push(speed);
                    figure.of_raw.push(speed / speeds[0]);
                }
                bar.inc(1);
            }
            figures.extend(of);
        }
    }
    Ok(figures)
}

/// How fast a bus has rows, and raw TCP as many, in turn.
fn published(
    rounds: u32,
    rows: u64,
    raw: &Raw,
    bar: &ProgressBar,
) -> Result<Option<bus::Figure>, Box<dyn Error>> {
    bus::measure(rows, rounds, || {
        bar.inc(1);
        let begun = Instant::now();
        protocol::raw(raw.address, rows * ROW_BYTES)?;
        Ok(begun.elapsed())
    })
}

/// All these clients at once, each on a thread of its own.
fn turn(way: Protocol, from: Source, rows: u64, clients: u64) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| scope.spawn(move || protocol::read(way, from, rows)))
            .collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.collect::<Result<Result<(), _>, _>>()
    });
    let done = done.map_err(|_| "a client has panicked")?;
    done.map_err(|error| format!("{way}: {error}"))?;
    Ok(begun.elapsed())
}

impl Figure {
    fn new(place: Place, way: Protocol, clients: u64) -> Self {
        Figure {
            place,
            way,
            clients,
            rows_per_s: Vec::new(),
            of_raw: Vec::new(),
            target: way.target(),
            cpu_ns: 0.0,
        }
    }
}
