// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run with two instruments that follows a run of the kernel engine at 10 kHz: their rows match by number, and the fast
//! one does not wait, whatever an instrument does. `$STROBE_SECONDS` (10) is how long, of the guest's time.

use std::env;
use std::time::Duration;

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::instrument::{FAULTS, instrument};
use strobe_cases::{Account, Engine, Kernel, plan};
use strobe_ring::State;

/// Every so many rows of the fast run the slow one makes one.
const EVERY: u64 = 100;
/// Of the row that is followed, in each row of the slow run.
const PARTS: [&str; 4] = ["row", "time", "sim.ramp", "clock.time"];
/// How each question to an instrument may end.
const ENDS: [&str; 2] = ["answers", "absent"];

/// The first channels of the run that is followed, by number: each so many rows of it.
struct Kept {
    rows: Vec<Vec<u64>>,
    next: u64,
}

impl Kept {
    /// What has come since.
    fn read(&mut self, reader: &mut strobe::reader::RunReader, buffer: &mut [u64]) {
        loop {
            let batch = reader.read(buffer);
            assert_eq!(batch.lost, 0, "before row {}", self.next);
            for row in batch.rows() {
                assert_eq!(row.row, self.next);
                self.next += 1;
                if row.row % EVERY == 0 {
                    self.rows.push([&[row.row, row.time], row.values].concat());
                }
            }
            if batch.is_empty() {
                return;
            }
        }
    }
}

/// The counters of both instruments, as channels: questions, and how they end.
fn counters(name: &str) -> impl Iterator<Item = String> {
    let all = ["questions"].into_iter().chain(ENDS).chain(FAULTS);
    all.map(move |counter| format!("{name}.{counter}"))
}

#[test]
fn a_run_with_two_instruments_follows_each_hundredth_row_of_a_fast_one_and_matches_it() {
    let seconds = env::var("STROBE_SECONDS").map_or(10, |text| text.parse().expect("seconds"));
    let rows = seconds * 10_000;
    let fast = Kernel::open().run(&Plan {
        limit: Some(rows),
        ring: Some(1 << 15),
        ..plan("timer:10kHz", &PARTS[2..])
    });
    let followed = format!("run:kernel:{}", fast.info().run);
    let channels: Vec<String> = PARTS
        .iter()
        .map(|part| format!("{followed}.{part}"))
        .chain(["psu.x".to_owned(), "dmm.x".to_owned()])
        .chain(counters("psu"))
        .chain(counters("dmm"))
        .collect();
    let names: Vec<&str> = channels.iter().map(String::as_str).collect();
    let slow = User::default()
        .with_board(instrument("psu"))
        .with_board(instrument("dmm"))
        .create(&plan(&format!("{followed}.row:{EVERY}"), &names))
        .unwrap_or_else(|why| panic!("{why}"));
    let (mut slow_reader, mut account): (_, Account) = begin(&slow);
    slow.start().expect("to start");

    let mut reader = fast.reader().expect("a reader");
    let mut buffer = vec![0; 1024 * reader.ring().row_words()];
    let mut theirs = Kept {
        rows: Vec::new(),
        next: 0,
    };
    fast.start().expect("to start");
    while !reader.ring().ended() {
        reader
            .wait(1000, Duration::from_millis(100))
            .expect("to wait");
        theirs.read(&mut reader, &mut buffer);
        read_now(&mut slow_reader, &mut account);
    }
    let end = reader.snapshot();
    assert_eq!(
        (end.state, end.head, theirs.next),
        (State::Done, rows, rows)
    );
    assert_eq!(end.triggers, end.head + end.missed());
    // A guest's only CPU now and then has its interrupts off for longer than a period; nobody waits for an instrument there.
    assert!(end.missed() <= rows / 10_000, "{end:?}");
    let missed = end.missed();

    until("the end of what follows", || {
        slow_reader.snapshot().state.is_final()
    });
    read_now(&mut slow_reader, &mut account);
    let end = slow_reader.snapshot();
    account.settle(&end);
    assert_eq!((end.state, end.error), (State::Stopped, 0));
    assert_eq!(end.triggers, rows.div_ceil(EVERY));
    for row in &account.rows {
        let their = &theirs.rows[row.trigger as usize];
        assert_eq!(row.values[..PARTS.len()], their[..], "{row:?}");
    }
    let last = account.rows.last().expect("rows");
    let counts = &last.values[PARTS.len() + 2..];
    for (column, counts) in (PARTS.len()..).zip(counts.chunks(counts.len() / 2)) {
        let [questions, answers, absent, faults @ ..] = counts else {
            panic!("{last:?}");
        };
        let wrong = faults.iter().sum::<u64>();
        assert!(faults.iter().all(|count| *count > 0), "{last:?}");
        assert_eq!(*questions, answers + absent + wrong, "{last:?}");
        // Each row asks, and its answer is its own.
        assert_eq!(*questions, account.rows.len() as u64);
        let values = account
            .rows
            .iter()
            .filter(|row| !row.faults.contains(&column));
        let values: Vec<u64> = values.map(|row| row.values[column]).collect();
        assert_eq!(values.len() as u64, *answers);
        assert!(
            values.windows(2).all(|pair| pair[0] < pair[1]),
            "an answer of before"
        );
    }
    println!(
        "{seconds} s: {rows} rows, {missed} missed; of {} triggers {} rows and {} missed; {:?}",
        end.triggers,
        account.rows.len(),
        end.missed(),
        counts
    );
}
