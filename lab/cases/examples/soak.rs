// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs side by side, on timers or on the interrupts of two cards, each read row by row for hours: what
//! lab/cases/soak starts in a guest.
//!
//! `soak PERIOD_NS PIECE PIECES [boards]`: each run makes PIECE * PIECES rows, and its reader writes each PIECE of them
//! to a file, whose digest it prints before it deletes it. A row that is not what it must be ends the program, with
//! status 1. A card stops by itself after as many interrupts; how many it has raised, and how many of them it has merged
//! with the one before, is printed, too.
//!
//! ```text
//! sim.ramp piece 1 rows 3600000 missed 0 lost 0 late 1243 sha256 9f86d081...
//! sim.ramp end rows 86400000 triggers 86400000 missed 0 read 86400000 lost 0 errors 0
//! counter.eoc end rows 17280000 triggers 17280000 missed 0 read 17280000 lost 0 errors 0 raised 17280000 merged 0
//! ```

use std::error::Error;
use std::fs::{File, remove_file};
use std::io::Write;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use strobe::engine::kernel::KernelRun;
use strobe::plan::{Plan, Step};
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe_cases::pci::{counted, get, put};
use strobe_cases::{Engine, Kernel};
use strobe_ring::{Row, Snapshot};

/// What a run on a timer reads, and its value in a row of that number: nobody else reads these channels.
type Channel = (&'static str, fn(u64) -> u64);
const CHANNELS: [Channel; 2] = [("sim.counter", |row| row), ("sim.ramp", |row| row % 1000)];
/// Cards of boards/lab-counter.toml, and by how many millionths the second's oscillator is slower: sooner or later their
/// interrupts have come at every distance.
const CARDS: [(&str, u64); 2] = [("counter", 0), ("counter2", 77)];
/// Rows of a ring: a minute at 1 kHz, for a digest takes both readers some ten seconds of the guest's only CPU.
const CAPACITY: u64 = 65536;
/// Rows for which a reader sleeps.
const BATCH: u64 = 8192;
/// A run of which no row comes for so long has stopped.
const PATIENCE: Duration = Duration::from_secs(600);

type Anything = Box<dyn Error + Send + Sync>;

/// What triggers a run.
#[derive(Clone, Copy)]
enum Source {
    Timer(Channel),
    /// The end of count of a card's timer.
    Card(&'static str),
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let is_of_cards = words.get(3).is_some_and(|word| word == "boards");
    words.truncate(if is_of_cards { 3 } else { words.len() });
    let numbers: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
    let Ok([period_ns, piece, pieces]) = numbers.as_deref() else {
        eprintln!("usage: soak PERIOD_NS PIECE PIECES [boards]");
        return ExitCode::FAILURE;
    };
    let sources: [(Source, u64); 2] = match is_of_cards {
        false => CHANNELS.map(|channel| (Source::Timer(channel), *period_ns)),
        true => CARDS.map(|(card, slower)| {
            let period = period_ns + period_ns * slower / 1_000_000;
            (Source::Card(card), period)
        }),
    };
    match soak(sources, *piece, *pieces) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

fn soak(sources: [(Source, u64); 2], piece: u64, pieces: u64) -> Result<(), Anything> {
    let engine = Kernel::open();
    let mut runs = Vec::new();
    for (source, period) in sources {
        runs.push((source, period, source.run(&engine, period, piece * pieces)?));
    }
    let mut readers = Vec::new();
    for (source, period, run) in &runs {
        let reader = run.reader()?;
        run.start()?;
        let first_due = source.start(&engine, *period, &reader);
        let account = Account::new(*source, first_due, *period);
        readers.push(thread::spawn(move || read_all(reader, account, piece)));
    }
    for reader in readers {
        let (account, end) = reader.join().map_err(|_| "a reader panicked")??;
        account.settle(&engine, &end)?;
    }
    Ok(())
}

impl Source {
    fn name(self) -> String {
        match self {
            Source::Timer((channel, _)) => channel.into(),
            Source::Card(card) => format!("{card}.eoc"),
        }
    }

    fn run(self, engine: &Kernel, period: u64, rows: u64) -> Result<KernelRun, Anything> {
        let (event, channels) = match self {
            Source::Timer((channel, _)) => (
                format!("timer:{period}ns"),
                vec![channel.to_owned(), "clock.late".to_owned()],
            ),
            Source::Card(card) => (
                self.name(),
                ["index", "latched", "count"]
                    .map(|what| format!("{card}.{what}"))
                    .into(),
            ),
        };
        if let Source::Card(card) = self {
            for (output, value) in [("clear", 1), ("period", period), ("limit", rows)] {
                put(engine, &[(&format!("{card}.{output}"), value)]);
            }
        }
        Ok(engine.create(&Plan {
            steps: channels.into_iter().map(Step::Read).collect(),
            ring: Some(CAPACITY),
            limit: Some(rows),
            ..Plan::new(event.parse()?)
        })?)
    }

    /// Lets triggers come to a run that has started; when the first is due, on the clock that they are made by.
    fn start(self, engine: &Kernel, period: u64, reader: &RunReader) -> u64 {
        match self {
            Source::Timer(_) => reader.snapshot().start.first_due,
            Source::Card(card) => {
                put(engine, &[(&format!("{card}.run"), 1)]);
                get(engine, &format!("{card}.start")) + period
            }
        }
    }
}

/// Reads a run to its end, piece by piece.
fn read_all(
    mut reader: RunReader,
    mut account: Account,
    piece: u64,
) -> Result<(Account, Snapshot), Anything> {
    let row_words = reader.ring().row_words();
    let mut words = vec![0; BATCH as usize * row_words];
    let mut bytes = vec![0; 8 * words.len()];
    let name = account.source.name();
    let path = format!("/tmp/{name}");
    let mut number = 0;
    while !reader.ring().ended() {
        number += 1;
        let mut file = File::create(&path)?;
        let end = number * piece;
        while account.next() < end && !reader.ring().ended() {
            let wanted = BATCH.min(end - account.next());
            reader.wait(wanted, PATIENCE)?;
            let batch = reader.read(&mut words[..wanted as usize * row_words]);
            if batch.is_empty() && batch.lost == 0 && !reader.ring().ended() {
                return Err(
                    format!("{name}: no row after {} for {PATIENCE:?}", account.next()).into(),
                );
            }
            account.lost += batch.lost;
            for row in batch.rows() {
                account.add(&row)?;
            }
            let filled = 8 * batch.rows.words().len();
            for (to, word) in bytes.chunks_exact_mut(8).zip(batch.rows.words()) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            file.write_all(&bytes[..filled])?;
        }
        let digest = sha256(&path)?;
        remove_file(&path)?;
        println!(
            "{name} piece {number} rows {} missed {} lost {} late {} sha256 {digest}",
            account.read, account.missed, account.lost, account.late
        );
    }
    let end = reader.snapshot();
    Ok((account, end))
}

fn sha256(path: &str) -> Result<String, Anything> {
    let said = Command::new("sha256sum").arg(path).output()?;
    let said = String::from_utf8(said.stdout)?;
    Ok(said
        .split_whitespace()
        .next()
        .ok_or("sha256sum says nothing")?
        .into())
}

/// What a reader has got of its run.
struct Account {
    source: Source,
    first_due: u64,
    period_ns: u64,
    read: u64,
    lost: u64,
    /// By the trigger numbers of the rows that were read.
    missed: u64,
    /// The greatest delay of a row so far, in ns.
    late: u64,
}

impl Account {
    fn new(source: Source, first_due: u64, period_ns: u64) -> Self {
        Account {
            source,
            first_due,
            period_ns,
            read: 0,
            lost: 0,
            missed: 0,
            late: 0,
        }
    }

    /// Number of the next row.
    fn next(&self) -> u64 {
        self.read + self.lost
    }

    /// Takes the next row: its numbers, its time and its values have to be what they must be.
    fn add(&mut self, row: &Row<'_>) -> Result<(), Anything> {
        let missed = row.trigger.wrapping_sub(row.row).wrapping_sub(row.skipped);
        let due = self.first_due + row.trigger * self.period_ns;
        let (late, is_its_own) = match (self.source, row.values) {
            (Source::Timer((_, value)), [read, late]) => {
                let is_late = *late >= self.period_ns;
                let is_right = *read == value(row.row) && *late == row.time.wrapping_sub(due);
                (*late, is_right && row.status.late() == is_late)
            }
            // The card has latched the very instant, and the next has not come yet.
            (Source::Card(_), [index, latched, count]) => {
                let late = count.wrapping_sub(due);
                let is_right = *index == row.trigger + 1 && *latched == due;
                (
                    late,
                    is_right && late < self.period_ns && !row.status.late(),
                )
            }
            _ => (0, false),
        };
        let is_right = is_its_own
            && row.row == self.next()
            && missed >= self.missed
            && row.faults.is_empty()
            && !row.status.resumed();
        if !is_right {
            let name = self.source.name();
            return Err(format!("{name}: row {}, due at {due}, is {row:?}", self.next()).into());
        }
        self.read += 1;
        self.missed = missed;
        self.late = self.late.max(late);
        Ok(())
    }

    /// The whole account against the run's own, and against the card's.
    fn settle(&self, engine: &Kernel, end: &Snapshot) -> Result<(), Anything> {
        let (name, missed) = (self.source.name(), end.missed());
        let of_card = match self.source {
            Source::Timer(_) => None,
            Source::Card(card) => Some(counted(engine, card, "eoc")),
        };
        let card = of_card.map(|(raised, merged)| format!(" raised {raised} merged {merged}"));
        println!(
            "{name} end rows {} triggers {} missed {missed} read {} lost {} errors {}{}",
            end.head,
            end.triggers,
            self.read,
            self.lost,
            end.errors,
            card.unwrap_or_default()
        );
        let is_whole = end.triggers == end.head + missed
            && self.missed == missed
            && self.next() == end.head
            && of_card.is_none_or(|(raised, merged)| raised == end.triggers + merged);
        is_whole.then_some(()).ok_or_else(|| {
            format!(
                "{name}: the account does not add up: missed {} by the rows, {end:?}",
                self.missed
            )
            .into()
        })
    }
}
