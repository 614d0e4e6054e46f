// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run is tuned while its machine has too much to do: each change is in the rows, from one of them on.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, process, thread};

use strobe::program::ProgramText;
use strobe::run::{OwnedRun, Run};
use strobe_ring::Snapshot;

use crate::account::{Account, begin, read_now, until};
use crate::engine::{Engine, plan};
use crate::machine::{Counting, timer};

/// A value that was set, and how many rows there were before and after that.
struct Change {
    value: u64,
    before: u64,
    after: u64,
}

/// Says that it is over when it is dropped, also by a test that fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does this while threads keep each CPU busy, one more the memory and one the files.
fn loaded<T>(work: impl FnOnce() -> T) -> T {
    let cpus = thread::available_parallelism().expect("CPUs").get();
    let busy: Vec<Counting> = (0..cpus).map(Counting::on).collect();
    let is_over = AtomicBool::new(false);
    let file = env::temp_dir().join(format!("load-{}", process::id()));
    let again = || !is_over.load(Ordering::Relaxed);
    thread::scope(|threads| {
        let _over = Over(&is_over);
        threads.spawn(|| {
            while again() {
                black_box(vec![1_u8; 8 << 20]);
            }
        });
        threads.spawn(|| {
            while again() {
                fs::write(&file, vec![1; 1 << 20]).expect("to write");
                fs::read(&file).expect("to read");
            }
            fs::remove_file(&file).expect("to remove");
        });
        let result = work();
        assert!(busy.iter().all(|thread| thread.count() > 0), "no load");
        result
    })
}

/// Beside a load a run at 10 kHz is tuned so many times, each time when it has made some more rows; how it has ended.
pub fn tuned(engine: &impl Engine, times: u64) -> Snapshot {
    let end = loaded(|| tune(engine, times));
    println!(
        "{times} changes in {} rows; {} skipped, {} missed",
        end.head,
        end.skipped,
        end.missed()
    );
    end
}

fn tune(engine: &impl Engine, times: u64) -> Snapshot {
    let mut plan = plan(&timer(100_000), &["sim.counter"]);
    plan.ring = Some(1 << 16);
    plan.program = ProgramText {
        tunables: vec!["x = 0 like sim.counter".into()],
        derive: vec!["seen = (x & 0xffff) ^ (sim.counter & 0xffff)".into()],
        keep: vec!["(sim.counter & 3) != 0".into()],
        ..ProgramText::default()
    };
    let run = engine.run(&plan);
    let (mut reader, mut account) = begin(&run);
    let mut changes = Vec::new();
    run.start().expect("to start");
    for n in 1..=times {
        // Of a value in pieces the halves do not belong together.
        let value = n << 32 | n;
        let before = reader.snapshot().head;
        run.tune_word(0, value).expect("to tune");
        let after = reader.snapshot().head;
        changes.push(Change {
            value,
            before,
            after,
        });
        until("rows", || reader.snapshot().head > after + 1 + n % 16);
        read_now(&mut reader, &mut account);
    }
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    // Triggers are rows, or missed, or skipped.
    account.settle(&end);
    assert_eq!(account.lost, 0, "the ring is too small for this test");
    for row in &account.rows {
        let [counter, x, seen] = row.values[..] else {
            panic!("{row:?}");
        };
        assert_eq!(counter, row.row + row.skipped, "{row:?}");
        assert_eq!(seen, (x ^ counter) & 0xffff, "computed with it: {row:?}");
    }
    are_there(&account, &changes);
    end
}

/// The rows have these values, each from a row on that began about when it was set, and no others.
fn are_there(account: &Account, changes: &[Change]) {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for row in &account.rows {
        let x = row.values[1];
        if found.last().map_or(0, |(_, last)| *last) != x {
            found.push((row.row, x));
        }
    }
    let values: Vec<u64> = found.iter().map(|(_, x)| *x).collect();
    let set: Vec<u64> = changes.iter().map(|change| change.value).collect();
    assert_eq!(values, set, "each once, and in their order");
    for ((row, x), change) in found.iter().zip(changes) {
        // The row that is being made then may have it, the next one must.
        assert!(
            (change.before..=change.after + 1).contains(row),
            "{x:#x} is there from row {row} on, and was set between {} and {}",
            change.before,
            change.after
        );
    }
}
