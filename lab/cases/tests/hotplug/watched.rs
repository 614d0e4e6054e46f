// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs whose card goes, and all who read them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe_cases::Account;
use strobe_cases::account::{begin, read_now, until, until_rows};
use strobe_cases::machine::slowness;
use strobe_ring::State;

use super::machine::ID;

/// A run, and who reads it: each has an account of its own.
pub struct Watched {
    pub run: Box<dyn OwnedRun>,
    pub readers: Vec<(RunReader, Account)>,
}

impl Watched {
    pub fn new(run: impl OwnedRun + 'static, readers: usize) -> Watched {
        let readers = (0..readers).map(|_| begin(&run)).collect();
        run.start().expect("to start");
        Watched {
            run: Box::new(run),
            readers,
        }
    }

    pub fn until_rows(&self, rows: u64) {
        until_rows(&self.readers[0].0, rows);
    }

    /// It has failed because its device has gone; all that it made can be read, also after its owner has gone.
    pub fn settle(self, what: &str, sum: &mut Sum) -> Account {
        let Watched { run, mut readers } = self;
        until(what, || readers[0].0.snapshot().state.is_final());
        drop(run);
        for (reader, account) in &mut readers {
            let end = reader.snapshot();
            let gone = -Errno::NODEV.raw_os_error();
            assert_eq!((end.state, end.error), (State::Failed, gone), "{what}");
            read_now(reader, account);
            account.settle(&end);
            sum.lost += account.lost;
        }
        let end = readers[0].0.snapshot();
        sum.runs += 1;
        sum.rows += end.head;
        sum.missed += end.missed();
        readers.swap_remove(0).1
    }
}

/// What all rounds have made.
#[derive(Default)]
pub struct Sum {
    pub rounds: u64,
    pub runs: u64,
    pub rows: u64,
    pub missed: u64,
    /// Of all readers.
    pub lost: u64,
    /// How often a run was tuned.
    pub tuned: u64,
    /// How long it took to plug, to start the runs, ...
    pub phases: BTreeMap<&'static str, Duration>,
}

impl Sum {
    pub fn phase<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        *self.phases.entry(name).or_default() += begun.elapsed();
        done
    }
}

/// So many times a second; on a slow kernel as many times less, lest nothing is left of its CPUs.
pub fn timer(rate: u64) -> String {
    format!("timer:{}Hz", rate / slowness())
}

/// With a ring that holds all rows of a round, for they are read at its end.
pub fn long(plan: Plan) -> Plan {
    Plan {
        ring: Some(1 << 15),
        ..plan
    }
}

/// What a run has read of a card that has gone: what the card says that is there, but for the last row, which may say
/// that it is there no more.
pub fn rows_are_of_the_card(account: &Account, what: &str) {
    let Some((last, others)) = account.rows.split_last() else {
        return;
    };
    for row in others {
        assert!(row.faults.is_empty(), "{what}: {row:?}");
        assert_eq!(row.values[0], ID, "{what}: {row:?}");
    }
    // The word of a channel that failed means nothing.
    let failed = last.faults.first() == Some(&0);
    assert!(failed || last.values[0] == ID, "{what}: {last:?}");
}
