// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact account of what one reader got of a run.

use std::thread;
use std::time::{Duration, Instant};

use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe_ring::{Row, Snapshot, State, Status};

use crate::machine::patience;

/// A row that the test looks at later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Number of the row.
    pub row: u64,
    /// Number of its trigger.
    pub trigger: u64,
    /// Its stamp.
    pub time: u64,
    /// Its flags.
    pub status: Status,
    /// The channels and outputs that failed: channels first.
    pub faults: Vec<usize>,
    /// Triggers that were skipped before it, since the start of the run.
    pub skipped: u64,
    /// Its channels.
    pub values: Vec<u64>,
}

/// How a reader reads.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Rows at once.
    pub rows: usize,
    /// Sleep after each read.
    pub pause: Duration,
}

impl Pace {
    /// Whatever is there, as soon as it is there.
    pub const FAST: Pace = Pace {
        rows: 1024,
        pause: Duration::ZERO,
    };

    /// Too slow for a short ring.
    pub const SLOW: Pace = Pace {
        rows: 16,
        pause: Duration::from_millis(20),
    };
}

/// What one reader got. Each row is checked as it comes, the sum at the end.
#[derive(Debug)]
pub struct Account {
    /// The row this reader began with.
    pub begun_at: u64,
    /// All rows it got, in their order.
    pub rows: Vec<Kept>,
    /// Rows that were overwritten before it read them.
    pub lost: u64,
    channels: usize,
}

impl Account {
    /// Nothing read yet.
    pub fn new(begun_at: u64, channels: usize) -> Self {
        Account {
            begun_at,
            rows: Vec::new(),
            lost: 0,
            channels,
        }
    }

    /// Number of the row that comes next if none is lost.
    pub fn next(&self) -> u64 {
        self.begun_at + self.rows.len() as u64 + self.lost
    }

    /// Takes a row that has come after `lost` others that did not.
    pub fn add(&mut self, row: Row<'_>, lost: u64) {
        assert_eq!(row.row, self.next() + lost, "{lost} lost before {row:?}");
        assert_eq!(row.values.len(), self.channels, "{row:?}");
        let known = row.row.checked_add(row.skipped);
        assert!(
            known.is_some_and(|known| row.trigger >= known),
            "more than triggers: {row:?}"
        );
        self.lost += lost;
        if let Some(last) = self.rows.last() {
            assert!(row.skipped >= last.skipped, "{row:?} after {last:?}");
            let missed = (row.trigger - row.row - row.skipped)
                .checked_sub(last.trigger - last.row - last.skipped);
            assert!(
                missed.is_some(),
                "{row:?} takes back what was missed before {last:?}"
            );
            assert!(row.time >= last.time, "{row:?} is older than {last:?}");
        }
        self.rows.push(Kept {
            row: row.row,
            trigger: row.trigger,
            time: row.time,
            status: row.status,
            faults: row.faults.iter().collect(),
            skipped: row.skipped,
            values: row.values.to_vec(),
        });
    }

    /// One column.
    pub fn column(&self, channel: usize) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().map(move |row| row.values[channel])
    }

    /// Triggers that the rows show to have been missed, up to the last one: every
    /// step of the trigger between two rows, less that of the row and of what was skipped.
    pub fn missed_shown(&self) -> u64 {
        let before = |row: &Kept| row.trigger - row.row - row.skipped;
        let first = self.rows.first().map_or(0, before);
        let steps = self.rows.windows(2).map(|w| before(&w[1]) - before(&w[0]));
        first + steps.sum::<u64>()
    }

    /// The whole account, which must add up, against the ring's counters.
    pub fn settle(&self, end: &Snapshot) {
        assert!(end.state.is_final(), "{end:?}");
        assert_eq!(
            end.triggers,
            end.head + end.missed() + end.skipped,
            "{end:?}"
        );
        let got = self.rows.len() as u64;
        assert_eq!(
            got + self.lost,
            end.head - self.begun_at,
            "got {got}, {end:?}"
        );
        let Some(last) = self.rows.last() else {
            assert_eq!(end.head, self.begun_at, "the last row can always be read");
            return;
        };
        assert_eq!(last.row + 1, end.head, "the last row can always be read");
        assert!(last.trigger < end.triggers, "{last:?}, {end:?}");
        let shown = self.missed_shown();
        assert!(shown <= end.missed(), "{shown} missed, {end:?}");
        if end.state == State::Done {
            assert_eq!(shown, end.missed(), "the last row ends the run: {end:?}");
            assert_eq!(
                last.skipped, end.skipped,
                "the last row ends the run: {end:?}"
            );
        }
        assert!(last.skipped <= end.skipped, "{last:?}, {end:?}");
        assert!(end.start.time <= self.rows[0].time, "{end:?}");
        assert!(last.time <= end.end_time, "{last:?}, {end:?}");
        let faults = self.rows.iter().filter(|r| !r.faults.is_empty());
        let faults = faults.count() as u64;
        if got == end.head {
            assert_eq!(faults, end.errors, "rows with a fault");
        }
        assert!(faults <= end.errors, "{faults} rows with a fault, {end:?}");
    }
}

/// What is there now, however much.
pub fn read_now(reader: &mut RunReader, account: &mut Account) {
    let mut buffer = vec![0; Pace::FAST.rows * reader.ring().row_words()];
    let mut lost = 0;
    loop {
        let batch = reader.read(&mut buffer);
        lost += batch.lost;
        for row in batch.rows() {
            account.add(row, std::mem::take(&mut lost));
        }
        if batch.is_empty() && batch.lost == 0 {
            break;
        }
    }
    assert_eq!(lost, 0, "a loss without a row after it");
}

/// Reads on until new rows have come, and the latest of them all have a fault, or all have none.
pub fn read_until(what: &str, has_fault: bool, reader: &mut RunReader, account: &mut Account) {
    let seen = account.rows.len();
    until(what, || {
        thread::sleep(Duration::from_millis(20));
        read_now(reader, account);
        let new = &account.rows[seen..];
        let mut latest = new.iter().rev().take(5);
        new.len() > 10 && latest.all(|row| row.faults.is_empty() != has_fault)
    });
}

/// Everything up to the end of the run.
pub fn read_to_end(reader: &mut RunReader, pace: Pace) -> Account {
    read_for(60, reader, pace)
}

/// The same of a run that may take so many seconds.
fn read_for(seconds: u64, reader: &mut RunReader, pace: Pace) -> Account {
    let ring = reader.ring();
    let mut account = Account::new(ring.begun_at(), ring.geometry().channels() as usize);
    let mut buffer = vec![0; pace.rows * ring.row_words()];
    let mut lost = 0;
    let give_up = Instant::now() + patience(seconds);
    loop {
        let batch = reader.read(&mut buffer);
        lost += batch.lost;
        for row in batch.rows() {
            account.add(row, std::mem::take(&mut lost));
        }
        if reader.ring().ended() {
            break;
        }
        assert!(Instant::now() < give_up, "no end: {:?}", reader.snapshot());
        if !pace.pause.is_zero() {
            thread::sleep(pace.pause);
        } else if batch.is_empty() {
            reader.wait(1, Duration::from_millis(100)).expect("to wait");
        }
    }
    assert_eq!(lost, 0, "a loss without a row after it");
    account.settle(&reader.snapshot());
    account
}

/// A reader that begins with what is there now, and its still empty account.
pub fn begin(run: &(impl OwnedRun + ?Sized)) -> (RunReader, Account) {
    let reader = run.reader().expect("a reader");
    let (begun_at, channels) = (
        reader.ring().begun_at(),
        reader.ring().geometry().channels(),
    );
    (reader, Account::new(begun_at, channels as usize))
}

/// Starts the run, and reads it from its first row to its end.
pub fn record(run: &(impl OwnedRun + ?Sized)) -> (Account, Snapshot) {
    record_for(60, run)
}

/// The same of a run that may take so many seconds.
pub fn record_for(seconds: u64, run: &(impl OwnedRun + ?Sized)) -> (Account, Snapshot) {
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    let account = read_for(seconds, &mut reader, Pace::FAST);
    (account, reader.snapshot())
}

/// Waits for something that has to happen.
pub fn until(what: &str, happened: impl FnMut() -> bool) {
    assert!(comes(happened), "in vain: {what}");
}

/// Waits until so many have been counted. How long that takes is the machine's affair: it gives up when there are no more
/// than before for as long as others wait.
pub fn until_counted(what: &str, all: u64, mut count: impl FnMut() -> u64) {
    let mut counted = 0;
    while counted < all {
        let more = comes(|| {
            let now = count();
            let more = now > counted;
            counted = now;
            more
        });
        assert!(more, "in vain: {what}: {counted} of {all}");
    }
}

/// Waits until the run has made so many rows.
pub fn until_rows(reader: &RunReader, rows: u64) {
    let made = comes(|| reader.snapshot().head >= rows);
    assert!(made, "in vain: {rows} rows: {:?}", reader.snapshot());
}

fn comes(mut happened: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + patience(60);
    while !happened() {
        if Instant::now() >= give_up {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
