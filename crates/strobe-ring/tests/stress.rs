// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real threads: one producer as fast as it can, readers as fast as they can. Every word of every row
//! delivered is compared. On x86 this says little about barriers (see loom.rs for them), under miri and on
//! arm64 it does.

mod common;

use common::running;
use std::thread;
use strobe_ring::layout::NO_LIMIT;
use strobe_ring::{Begin, End, Missed, Reader};

const CHANNELS: u32 = if cfg!(miri) { 2 } else { 12 };
const CAPACITY: u64 = if cfg!(miri) { 4 } else { 1024 };
const ROWS: u64 = if cfg!(miri) { 60 } else { 1_000_000 };

/// Reads until the end; what was delivered and what was lost.
fn read_all(mut reader: Reader, room: usize) -> (u64, u64) {
    let mut buffer = vec![0; room * reader.row_words()];
    let (mut delivered, mut lost) = (0, 0);
    while !reader.ended() {
        let batch = reader.read(&mut buffer);
        lost += batch.lost;
        for (row, number) in batch.rows().zip(batch.first..) {
            assert_eq!(row.row, number);
            assert_eq!(row.trigger, number + number / 10);
            assert_eq!((row.time, row.status.0), (3 * number, 0));
            assert!(
                row.values.iter().all(|&value| value == !number),
                "torn: {row:?}"
            );
            delivered += 1;
        }
        if batch.is_empty() {
            thread::yield_now();
        }
    }
    assert_eq!((delivered, lost), (reader.delivered(), reader.lost()));
    (delivered, lost)
}

fn run(limit: u64, capacity: u64, rows: u64) -> Vec<(u64, u64)> {
    let mut writer = running(CHANNELS, capacity, limit);
    let readers: Vec<_> = [1, 3, 64]
        .map(|room| {
            let reader = Reader::attach(writer.for_reader(), Begin::Row(0)).unwrap();
            thread::spawn(move || read_all(reader, room))
        })
        .into();
    for number in 0..rows {
        if number > 0 && number % 10 == 0 {
            writer.miss(Missed::Busy, 1);
        }
        let mut row = writer.begin(3 * number).unwrap();
        for _ in 0..CHANNELS {
            row.value(!number);
        }
        row.commit(0);
    }
    writer.finish(
        if writer.is_full() {
            End::Done
        } else {
            End::Stopped
        },
        0,
    );
    readers
        .into_iter()
        .map(|reader| reader.join().unwrap())
        .collect()
}

#[test]
fn delivered_and_lost_rows_are_all_rows() {
    for (delivered, lost) in run(NO_LIMIT, CAPACITY, ROWS) {
        assert_eq!(delivered + lost, ROWS);
        // At the end it may just have skipped half a ring.
        assert!(delivered >= CAPACITY / 2);
    }
}

#[test]
fn a_one_shot_run_ends_with_all_of_its_ring_readable() {
    for (delivered, lost) in run(ROWS, CAPACITY, ROWS) {
        assert_eq!(delivered + lost, ROWS);
        assert!(delivered >= CAPACITY);
    }
}

#[test]
fn a_linear_run_loses_nothing() {
    for (delivered, lost) in run(CAPACITY, CAPACITY, CAPACITY) {
        assert_eq!((delivered, lost), (CAPACITY, 0));
    }
}
