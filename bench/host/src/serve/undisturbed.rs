// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether clients of the daemon disturb a run: what a timer's rows miss, and how late they are, with and without clients that
//! read all of them as they come.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;
use strobe_measure::machine::Machine;

use super::daemon::Daemon;
use super::protocol::{self, Protocol, Source};
use super::report;

/// How many clients there are.
const CLIENTS: [u64; 2] = [0, 20];
/// They come by these ways, one after the other.
const PROTOCOLS: [Protocol; 3] = [Protocol::Arrow, Protocol::Panda, Protocol::WebSocket];
/// Bytes of rows in the daemon's memory, as it is when nobody has said.
const RECENT: u64 = 16 << 20;

/// How it is measured.
#[derive(clap::Args)]
pub struct Words {
    /// How long a run is, in seconds; 0: none is measured
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Triggers a second
    #[arg(long, default_value_t = 10_000)]
    rate: u64,
    /// Runs without clients, and as many with them, in turn
    #[arg(long, default_value_t = 5)]
    turns: u32,
    /// Who makes the rows: user or kernel
    #[arg(long, default_value = "user")]
    engine: String,
}

/// Only this.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    words: Words,
    /// All figures, as JSON, instead of the table
    #[arg(long)]
    json: bool,
}

/// What was measured with so many clients, over all turns.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub engine: String,
    pub rate: u64,
    pub clients: u64,
    pub triggers: u64,
    pub rows: u64,
    pub missed: u64,
    /// Rows that the daemon lost.
    pub lost: u64,
    /// From due to stamp, ns: of so many ten thousandths of the rows no more than that.
    pub late_ns: [u64; 4],
    #[serde(skip)]
    late: Vec<u64>,
}

/// Of the rows, in ten thousandths, whose lateness is said.
pub const SHARES: [usize; 4] = [5000, 9900, 9990, 10_000];

pub fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let before = Machine::from_now();
    let figures = measure(&options.words)?;
    let machine = before.until_now();
    match options.json {
        true => println!("{}", serde_json::to_string(&(machine, figures))?),
        false => print!(
            "{}{}",
            crate::report::machine(&machine),
            report::undisturbed(&figures)
        ),
    }
    Ok(true)
}

/// Each run has a daemon of its own: what one has left in memory is nothing to the next.
pub fn measure(words: &Words) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut figures = CLIENTS.map(|clients| Figure::new(words, clients));
    if words.seconds == 0 {
        return Ok(Vec::new());
    }
    for _ in 0..words.turns {
        for figure in &mut figures {
            figure.turn(words)?;
        }
    }
    for figure in &mut figures {
        figure.late.sort_unstable();
        let last = figure.late.len().saturating_sub(1);
        figure.late_ns =
            SHARES.map(|share| figure.late.get(last * share / 10_000).copied().unwrap_or(0));
    }
    Ok(figures.into())
}

impl Figure {
    fn new(words: &Words, clients: u64) -> Self {
        Figure {
            engine: words.engine.clone(),
            rate: words.rate,
            clients,
            triggers: 0,
            rows: 0,
            missed: 0,
            lost: 0,
            late_ns: [0; 4],
            late: Vec::new(),
        }
    }

    fn turn(&mut self, words: &Words) -> Result<(), Box<dyn Error>> {
        let rows = words.rate * words.seconds;
        let mut daemon = Daemon::start(&words.engine, RECENT, "")?;
        let (limit, period) = (
            format!("PCAP.NUM_TRIG={rows}"),
            format!("EVENT1.PERIOD={}", 1.0 / words.rate as f64),
        );
        // It begins when its gate opens: its clients are there then.
        let event = [
            "EVENT1.SOURCE=timer",
            &period,
            &limit,
            "PCAP.ENABLE=BITS.OUTA",
            "BITS.A=0",
        ];
        let run = daemon.arm("CLOCK.LATE", &event)?;
        let source = Source {
            raw: daemon.panda,
            panda: daemon.panda,
            http: daemon.http,
            run,
        };
        let ways = PROTOCOLS.into_iter().cycle().zip(0..self.clients);
        let clients: Vec<_> = ways
            .map(|(way, _)| std::thread::spawn(move || protocol::read(way, source, rows)))
            .collect();
        sleep(Duration::from_millis(500));
        daemon.say("BITS.A=1")?;
        for client in clients {
            let done = client.join().map_err(|_| "a client has panicked")?;
            done.map_err(|error| error.to_string())?;
        }
        let view = daemon.until(run, |view| view.end.is_some())?;
        if view.triggers != view.rows + view.missed + view.skipped || view.rows != rows {
            return Err(format!("{rows} rows were asked for: {view:?}").into());
        }
        self.triggers += view.triggers;
        self.rows += view.rows;
        self.missed += view.missed;
        self.lost += view.lost;
        let path = format!("/api/runs/{run}/rows?columns=clock.late&format=csv");
        let late = self.late.len() as u64;
        for line in daemon
            .get(&path)?
            .lines()
            .skip(1)
            .filter(|line| !line.starts_with('#'))
        {
            let word = line.rsplit(',').next().unwrap_or_default();
            self.late
                .push(word.parse().map_err(|_| format!("{line}: no time"))?);
        }
        match self.late.len() as u64 - late == view.rows - view.lost {
            true => Ok(()),
            false => Err(format!("{} rows of {view:?}", self.late.len() as u64 - late).into()),
        }
    }
}
