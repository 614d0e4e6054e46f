// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs on timers side by side, each read row by row for hours: what lab/cases/soak starts in a guest.
//!
//! `soak PERIOD_NS PIECE PIECES`: each run makes PIECE * PIECES rows, and its reader writes each PIECE of them to a
//! file, whose digest it prints before it deletes it. A row that is not what it must be ends the program, with status 1.
//!
//! ```text
//! sim.ramp piece 1 rows 3600000 missed 0 lost 0 late 1243 sha256 9f86d081...
//! sim.ramp end rows 86400000 triggers 86400000 missed 0 read 86400000 lost 0 errors 0
//! ```

use std::error::Error;
use std::fs::{File, remove_file};
use std::io::Write;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use strobe::engine::kernel::Control;
use strobe::plan::{Plan, Step};
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe_ring::{Row, Snapshot};

/// What a run reads, and its value in a row of that number: nobody else reads these channels.
type Channel = (&'static str, fn(u64) -> u64);
const CHANNELS: [Channel; 2] = [("sim.counter", |row| row), ("sim.ramp", |row| row % 1000)];
/// Rows of a ring: a minute at 1 kHz, for a digest takes both readers some ten seconds of the guest's only CPU.
const CAPACITY: u64 = 65536;
/// Rows for which a reader sleeps.
const BATCH: u64 = 8192;
/// A run of which no row comes for so long has stopped.
const PATIENCE: Duration = Duration::from_secs(600);

type Anything = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|word| word.parse()).collect();
    let Ok([period_ns, piece, pieces]) = numbers.as_deref() else {
        eprintln!("usage: soak PERIOD_NS PIECE PIECES");
        return ExitCode::FAILURE;
    };
    match soak(*period_ns, *piece, *pieces) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

fn soak(period_ns: u64, piece: u64, pieces: u64) -> Result<(), Anything> {
    let control = Control::open()?;
    let mut runs = Vec::new();
    for (name, _) in CHANNELS {
        let steps = [name, "clock.late"].map(|name| Step::Read(name.into()));
        runs.push(control.create(&Plan {
            steps: steps.into(),
            ring: Some(CAPACITY),
            limit: Some(piece * pieces),
            ..Plan::new(format!("timer:{period_ns}ns").parse()?)
        })?);
    }
    let mut readers = Vec::new();
    for (channel, run) in CHANNELS.into_iter().zip(&runs) {
        let reader = run.reader()?;
        run.start()?;
        readers.push(thread::spawn(move || {
            let account = Account::new(channel, reader.snapshot().start.first_due, period_ns);
            read_all(reader, account, piece)
        }));
    }
    for reader in readers {
        reader.join().map_err(|_| "a reader panicked")??;
    }
    Ok(())
}

/// Reads a run to its end, piece by piece.
fn read_all(mut reader: RunReader, mut account: Account, piece: u64) -> Result<(), Anything> {
    let row_words = reader.ring().row_words();
    let mut words = vec![0; BATCH as usize * row_words];
    let mut bytes = vec![0; 8 * words.len()];
    let name = account.channel.0;
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
    account.settle(&reader.snapshot())
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
    channel: Channel,
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
    fn new(channel: Channel, first_due: u64, period_ns: u64) -> Self {
        Account {
            channel,
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
        let (name, value) = self.channel;
        let missed = row.trigger.wrapping_sub(row.row).wrapping_sub(row.skipped);
        let due = self.first_due + row.trigger * self.period_ns;
        let late = row.time.wrapping_sub(due);
        let is_right = row.row == self.next()
            && missed >= self.missed
            && row.faults.is_empty()
            && !row.status.resumed()
            && row.status.late() == (late >= self.period_ns)
            && row.values == [value(row.row), late];
        if !is_right {
            return Err(format!("{name}: row {}, due at {due}, is {row:?}", self.next()).into());
        }
        self.read += 1;
        self.missed = missed;
        self.late = self.late.max(late);
        Ok(())
    }

    /// The whole account against the run's own.
    fn settle(&self, end: &Snapshot) -> Result<(), Anything> {
        let (name, missed) = (self.channel.0, end.missed());
        println!(
            "{name} end rows {} triggers {} missed {missed} read {} lost {} errors {}",
            end.head, end.triggers, self.read, self.lost, end.errors
        );
        if end.triggers != end.head + missed || self.missed != missed || self.next() != end.head {
            return Err(format!(
                "{name}: the account does not add up: missed {} by the rows, {end:?}",
                self.missed
            )
            .into());
        }
        Ok(())
    }
}
