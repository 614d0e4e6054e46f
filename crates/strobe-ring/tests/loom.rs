// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real reader and writer under the model checker: every order of their loads and stores that the
//! memory model allows, within the bounds given.
//!
//! RUSTFLAGS="--cfg loom" cargo test -p strobe-ring --release --test loom
#![cfg(loom)]

use loom::model::Builder;
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use strobe_ring::layout::{CLOCK_MONOTONIC, NO_LIMIT};
use strobe_ring::{
    AttachError, Begin, End, Engine, Geometry, Header, MemoryMut, Reader, RowShape, Rule,
    StartTimes, Writer, break_rule,
};

/// One producer that makes `rows` rows and ends, and readers that read `reads` times meanwhile.
#[derive(Clone, Copy)]
struct Model {
    capacity: u64,
    limit: u64,
    rows: u64,
    readers: usize,
    reads: usize,
    /// Rows that a reader has room for.
    room: usize,
    /// One trigger is skipped before each row, and an output fails that is named in a fault word: only the
    /// words of that are looked at.
    behind: bool,
    /// Each third row is absent, beginning with this one: then both places have rows that are there, rows that are not,
    /// and rows that follow one that is not.
    absent: Option<u64>,
    /// Preemptions, at most; none: all there are.
    preemptions: Option<usize>,
}

const SMALL: Model = Model {
    capacity: 2,
    limit: NO_LIMIT,
    rows: 3,
    readers: 1,
    reads: 1,
    room: 2,
    behind: false,
    absent: None,
    preemptions: None,
};

fn header(capacity: u64, limit: u64) -> Header {
    header_of(RowShape::default(), capacity, limit)
}

fn header_of(shape: RowShape, capacity: u64, limit: u64) -> Header {
    let geometry = Geometry::from_parts(shape, 64, capacity, limit, 256).unwrap();
    Header {
        geometry,
        clock: CLOCK_MONOTONIC,
        period_ns: 5,
        run: 1,
        engine: Engine::User,
        absent: false,
    }
}

/// The same, with words behind the values.
const BEHIND: Model = Model {
    behind: true,
    preemptions: Some(3),
    ..SMALL
};

/// The same, with rows that are absent.
const ABSENT: Model = Model {
    absent: Some(1),
    preemptions: Some(3),
    reads: 2,
    ..SMALL
};

/// What the reads of all executions brought: a model in which nothing happens proves nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Reads that brought rows, and no loss.
    whole: u64,
    /// Reads that brought rows after a loss.
    behind: u64,
    /// Reads that brought nothing but a loss: overtaken while copying.
    overtaken: u64,
    /// Reads that brought nothing.
    nothing: u64,
}

std::thread_local! {
    static SEEN: Cell<Seen> = Cell::default();
}

fn saw(what: impl Fn(&mut Seen)) {
    let mut seen = SEEN.get();
    what(&mut seen);
    SEEN.set(seen);
}

impl Model {
    /// Goes through all executions.
    fn check(self) -> Seen {
        SEEN.take();
        let mut builder = Builder::new();
        builder.preemption_bound = self.preemptions;
        builder.check(move || self.execution());
        SEEN.take()
    }

    fn execution(self) {
        let shape = RowShape {
            channels: 0,
            outputs: if self.behind { 33 } else { 0 },
            skipped: self.behind,
        };
        let header = Header {
            absent: self.absent.is_some(),
            ..header_of(shape, self.capacity, self.limit)
        };
        let memory = MemoryMut::zeroed(header.geometry.bytes() as usize);
        let mut writer = Writer::create(memory, &header).unwrap();
        writer.start(StartTimes::default()).unwrap();
        let readers: Vec<_> = (0..self.readers)
            .map(|_| Reader::attach(writer.for_reader(), Begin::Row(0)).unwrap())
            .collect();

        // A test that fails must not run the writer's drop in the middle of the unwinding.
        let mut writer = ManuallyDrop::new(writer);
        let producer = thread::spawn(move || {
            for number in 0..self.rows {
                if self.is_absent(number) {
                    writer.absent(1);
                    continue;
                }
                if self.behind {
                    writer.skip(1);
                }
                let mut row = writer.begin(number).unwrap();
                if self.behind && number % 2 == 0 {
                    row.output_failed(32);
                }
                row.commit(0);
            }
            let end = if writer.is_full() {
                End::Done
            } else {
                End::Stopped
            };
            writer.finish(end, self.rows);
        });
        let mut readers = readers.into_iter();
        let here = readers.next().unwrap();
        let others: Vec<_> = readers
            .map(|reader| thread::spawn(move || self.read_meanwhile(reader)))
            .collect();
        let mut readers = vec![self.read_meanwhile(here)];
        readers.extend(others.into_iter().map(|other| other.join().unwrap()));
        producer.join().unwrap();
        for reader in readers {
            self.read_to_the_end(reader);
        }
    }

    fn is_absent(self, row: u64) -> bool {
        self.absent.is_some_and(|first| row % 3 == first)
    }

    fn read_meanwhile(self, mut reader: Reader) -> Reader {
        for _ in 0..self.reads {
            self.read(&mut reader);
        }
        reader
    }

    fn read_to_the_end(self, mut reader: Reader) {
        while !reader.ended() {
            self.read(&mut reader);
        }
        if !reader.geometry().is_circular() {
            let absent = (0..self.rows).filter(|&row| self.is_absent(row)).count();
            assert_eq!(reader.lost(), absent as u64, "LOSS in a linear ring");
        }
    }

    fn read(self, reader: &mut Reader) {
        let mut buffer = vec![u64::MAX; self.room * reader.row_words()];
        let before = reader.next_row();
        let batch = reader.read(&mut buffer);
        assert_eq!(batch.first, before + batch.lost, "ACCOUNT");
        match (batch.is_empty(), batch.lost) {
            (false, 0) => saw(|seen| seen.whole += 1),
            (false, _) => saw(|seen| seen.behind += 1),
            (true, 0) => saw(|seen| seen.nothing += 1),
            (true, _) => saw(|seen| seen.overtaken += 1),
        }
        for (row, number) in batch.rows().zip(batch.first..) {
            assert!(!self.is_absent(number), "TORN: row {number} is absent");
            if self.behind {
                let behind = (row.skipped, row.faults.failed(32));
                assert_eq!(behind, (number + 1, number % 2 == 0), "TORN");
            } else {
                let words = [row.row, row.trigger, row.time, row.status.0];
                assert_eq!(words, [number, number, number, 0], "TORN");
            }
        }
        if reader.ended() {
            assert_eq!(reader.delivered() + reader.lost(), self.rows, "OVERLOOKED");
            assert!(reader.snapshot().state.is_final());
        }
    }
}

#[test]
fn a_row_that_is_delivered_is_whole_and_every_other_is_counted_as_lost() {
    let seen = SMALL.check();
    assert!(
        seen.whole > 0 && seen.behind > 0 && seen.overtaken > 0,
        "{seen:?}"
    );
}

#[test]
fn a_reader_goes_on_after_a_loss() {
    let seen = Model {
        reads: 2,
        preemptions: Some(4),
        ..SMALL
    }
    .check();
    assert!(
        seen.whole > 0 && seen.behind > 0 && seen.overtaken > 0,
        "{seen:?}"
    );
}

#[test]
fn a_reader_with_room_for_one_row_is_no_worse() {
    Model {
        reads: 3,
        room: 1,
        preemptions: Some(3),
        ..SMALL
    }
    .check();
}

#[test]
fn a_larger_ring_works_like_a_small_one() {
    Model {
        capacity: 4,
        rows: 6,
        room: 3,
        preemptions: Some(2),
        ..SMALL
    }
    .check();
}

#[test]
fn the_words_behind_the_values_are_as_whole_as_the_others() {
    let seen = BEHIND.check();
    assert!(
        seen.whole > 0 && seen.behind > 0 && seen.overtaken > 0,
        "{seen:?}"
    );
}

#[test]
fn a_row_that_is_absent_is_lost_and_no_other_is_taken_for_it() {
    for first in [0, 1] {
        let seen = Model {
            absent: Some(first),
            rows: 4,
            ..ABSENT
        }
        .check();
        assert!(
            seen.whole > 0 && seen.behind > 0 && seen.overtaken > 0,
            "{seen:?}"
        );
    }
}

#[test]
fn of_a_linear_ring_only_what_is_absent_is_lost() {
    for first in [0, 1, 2] {
        Model {
            capacity: 4,
            limit: 4,
            rows: 4,
            absent: Some(first),
            ..ABSENT
        }
        .check();
    }
}

#[test]
fn a_linear_ring_loses_nothing() {
    let seen = Model {
        limit: 2,
        rows: 2,
        reads: 2,
        ..SMALL
    }
    .check();
    assert_eq!((seen.behind, seen.overtaken), (0, 0), "{seen:?}");
}

#[test]
fn a_one_shot_ring_keeps_its_last_rows() {
    Model { limit: 3, ..SMALL }.check();
    Model {
        limit: 3,
        reads: 2,
        preemptions: Some(3),
        ..SMALL
    }
    .check();
}

#[test]
fn the_last_row_is_never_overlooked() {
    Model {
        rows: 1,
        reads: 3,
        ..SMALL
    }
    .check();
}

#[test]
fn two_readers_do_not_disturb_each_other() {
    Model {
        readers: 2,
        preemptions: Some(2),
        ..SMALL
    }
    .check();
}

/// The header is written in memory that a reader looks at already.
fn attach_early() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let header = header(2, NO_LIMIT);
        let memory = MemoryMut::zeroed(header.geometry.bytes() as usize);
        let early = memory.for_reader();
        let producer =
            thread::spawn(move || ManuallyDrop::new(Writer::create(memory, &header).unwrap()));
        match Reader::attach(early, Begin::Oldest) {
            Ok(reader) => assert_eq!(*reader.header(), header, "HALF MADE"),
            Err(error) => assert_eq!(error, AttachError::Magic { magic: 0 }, "HALF MADE"),
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_header_is_never_seen_half_made() {
    attach_early();
}

/// A reader that sleeps as with a futex, until the end of a run whose producer wakes once.
fn sleep_and_wake() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let header = header(2, NO_LIMIT);
        let memory = MemoryMut::zeroed(header.geometry.bytes() as usize);
        let mut writer = Writer::create(memory, &header).unwrap();
        writer.start(StartTimes::default()).unwrap();
        let mut reader = Reader::attach(writer.for_reader(), Begin::Row(0)).unwrap();
        let mut writer = ManuallyDrop::new(writer);
        // The kernel's queue of sleepers: a lock, under which FUTEX_WAIT compares and FUTEX_WAKE wakes.
        let queue = Arc::new(Mutex::new(()));
        let woken = Arc::new(AtomicBool::new(false));
        let (wake_queue, wake) = (queue.clone(), woken.clone());
        let producer = thread::spawn(move || {
            writer.push(0, 0, &[]);
            writer.finish(End::Stopped, 0);
            writer.change_wake();
            let _queue = wake_queue.lock().unwrap();
            wake.store(true, Relaxed);
        });
        let mut producer = Some(producer);
        let mut buffer = vec![0; reader.row_words()];
        while !reader.ended() {
            let value = reader.wake_value();
            if !reader.read(&mut buffer).is_empty() || reader.ended() {
                continue;
            }
            let queue = queue.lock().unwrap();
            if reader.wake_value() == value {
                assert!(!woken.load(Relaxed), "ASLEEP for ever");
                drop(queue);
                producer.take().unwrap().join().unwrap();
            }
        }
        if let Some(producer) = producer {
            producer.join().unwrap();
        }
    });
}

#[test]
fn no_wake_up_is_lost() {
    sleep_and_wake();
}

// Each rule that the ring rests upon, broken: the models above must notice.

const QUICK: Model = Model {
    preemptions: Some(3),
    reads: 2,
    ..SMALL
};

#[test]
fn without_barrier_a_a_torn_row_is_found() {
    catches(Rule::A, "TORN", || _ = QUICK.check());
}

#[test]
fn without_release_b_a_torn_row_is_found() {
    catches(Rule::B, "TORN", || _ = QUICK.check());
}

#[test]
fn without_fence_c_a_torn_row_is_found() {
    catches(Rule::C, "TORN", || _ = QUICK.check());
}

#[test]
fn without_fence_d_a_torn_row_is_found() {
    catches(Rule::D, "TORN", || _ = QUICK.check());
}

#[test]
fn without_guard_row_a_torn_row_is_found() {
    catches(Rule::Guard, "TORN", || _ = QUICK.check());
}

#[test]
fn without_any_of_them_a_word_behind_the_values_is_torn_too() {
    for rule in [Rule::A, Rule::B, Rule::C, Rule::D, Rule::Guard] {
        catches(rule, "TORN", || _ = BEHIND.check());
    }
}

#[test]
fn without_any_of_them_a_row_between_absent_ones_is_torn_too() {
    let model = Model { rows: 5, ..ABSENT };
    for rule in [Rule::A, Rule::B, Rule::C, Rule::D, Rule::Guard] {
        catches(rule, "TORN", || _ = model.check());
    }
}

#[test]
fn with_the_state_after_the_head_a_last_row_is_overlooked() {
    catches(Rule::StateFirst, "OVERLOOKED", || _ = QUICK.check());
}

#[test]
fn without_release_g_a_last_row_is_overlooked() {
    catches(Rule::EndRelease, "OVERLOOKED", || _ = QUICK.check());
}

#[test]
fn without_fence_g_a_last_row_is_overlooked() {
    catches(Rule::EndAcquire, "OVERLOOKED", || _ = QUICK.check());
}

#[test]
fn without_release_h_a_wake_up_is_lost() {
    catches(Rule::WakeRelease, "ASLEEP", sleep_and_wake);
}

#[test]
fn without_fence_h_a_wake_up_is_lost() {
    catches(Rule::WakeAcquire, "ASLEEP", sleep_and_wake);
}

#[test]
fn without_release_i_a_header_is_seen_half_made() {
    catches(Rule::MagicRelease, "HALF MADE", attach_early);
}

#[test]
fn without_fence_i_a_header_is_seen_half_made() {
    catches(Rule::MagicAcquire, "HALF MADE", attach_early);
}

/// Checks that the models find the fault when a rule is broken.
fn catches(rule: Rule, complaint: &str, models: impl Fn()) {
    break_rule(Some(rule));
    let result = catch_unwind(AssertUnwindSafe(models));
    break_rule(None);
    let panic = result.expect_err("nothing was noticed");
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("");
    assert!(
        message.contains(complaint),
        "noticed, but as something else: {message}"
    );
}
