// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writer and reader together, without a race: what each call means.

mod common;

use common::{header, running, Image};
use std::mem::offset_of;
use strobe_ring::layout::{RingHeader, NO_LIMIT, ROW_LATE};
use strobe_ring::{
    Begin, End, Memory, MemoryMut, Missed, Reader, Rows, Snapshot, StartTimes, State, Writer,
};

fn reader(writer: &Writer, begin: Begin) -> Reader {
    Reader::attach(writer.for_reader(), begin).unwrap()
}

fn push(writer: &mut Writer, rows: u64) {
    for _ in 0..rows {
        let row = writer.head();
        assert!(writer.push(1000 + row, 0, &[row]));
    }
}

/// Reads once, with room for `room` rows: how many were lost, and the numbers of those delivered.
fn read(reader: &mut Reader, room: usize) -> (u64, Vec<u64>) {
    let mut buffer = vec![0; room * reader.row_words()];
    let batch = reader.read(&mut buffer);
    for (row, number) in batch.rows().zip(batch.first..) {
        assert_eq!(
            (row.row, row.time, row.values),
            (number, 1000 + number, &[number][..])
        );
    }
    (batch.lost, batch.rows().map(|row| row.row).collect())
}

#[test]
fn rows_come_in_order_and_once() {
    let mut writer = running(1, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    assert_eq!(read(&mut reader, 4), (0, vec![]));
    push(&mut writer, 5);
    assert_eq!(read(&mut reader, 4), (0, vec![0, 1, 2, 3]));
    assert_eq!(read(&mut reader, 4), (0, vec![4]));
    assert_eq!(read(&mut reader, 4), (0, vec![]));
    push(&mut writer, 5);
    assert_eq!(read(&mut reader, 8), (0, vec![5, 6, 7, 8, 9]));
}

#[test]
fn a_full_ring_less_the_guard_row_can_be_read() {
    let mut writer = running(1, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    push(&mut writer, 7);
    assert_eq!(read(&mut reader, 8), (0, (0..7).collect()));
    push(&mut writer, 8);
    assert_eq!(read(&mut reader, 8), (1, (8..15).collect()));
}

#[test]
fn a_slow_reader_loses_exactly_what_was_overwritten() {
    let mut writer = running(1, 4, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    push(&mut writer, 100);
    assert_eq!(read(&mut reader, 2), (97, vec![97, 98]));
    assert_eq!(read(&mut reader, 2), (0, vec![99]));
    writer.finish(End::Stopped, 0);
    assert_eq!(read(&mut reader, 2), (0, vec![]));
    assert!(reader.ended());
    assert_eq!((reader.delivered(), reader.lost()), (3, 97));
}

#[test]
fn each_reader_has_its_own_account() {
    let mut writer = running(1, 4, NO_LIMIT);
    let mut quick = reader(&writer, Begin::Oldest);
    let mut slow = reader(&writer, Begin::Oldest);
    for row in 0..10 {
        push(&mut writer, 1);
        assert_eq!(read(&mut quick, 1), (0, vec![row]));
    }
    assert_eq!(read(&mut slow, 4), (7, vec![7, 8, 9]));
    assert_eq!((quick.lost(), slow.lost()), (0, 7));
}

#[test]
fn a_reader_begins_where_it_is_told() {
    let mut writer = running(1, 4, NO_LIMIT);
    push(&mut writer, 10);
    let mut oldest = reader(&writer, Begin::Oldest);
    let mut first = reader(&writer, Begin::Row(0));
    let mut now = reader(&writer, Begin::Now);
    let mut later = reader(&writer, Begin::Row(12));
    push(&mut writer, 1);
    // Row 7 was there when this reader came, and is gone since.
    assert_eq!(
        (oldest.begun_at(), read(&mut oldest, 4)),
        (7, (1, vec![8, 9, 10]))
    );
    assert_eq!(
        (first.begun_at(), read(&mut first, 4)),
        (0, (8, vec![8, 9, 10]))
    );
    assert_eq!((now.begun_at(), read(&mut now, 4)), (10, (0, vec![10])));
    assert_eq!((later.begun_at(), read(&mut later, 4)), (12, (0, vec![])));
    push(&mut writer, 2);
    assert_eq!(read(&mut later, 4), (0, vec![12]));
}

#[test]
fn a_reader_for_rows_that_are_never_made_ends_with_the_run() {
    let mut writer = running(1, 4, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Row(5));
    push(&mut writer, 2);
    writer.finish(End::Stopped, 0);
    assert_eq!(read(&mut reader, 4), (0, vec![]));
    assert!(reader.ended());
    assert_eq!((reader.delivered(), reader.lost()), (0, 0));
}

#[test]
fn a_run_has_ended_for_a_reader_only_when_it_has_read_all() {
    let mut writer = running(1, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    push(&mut writer, 3);
    writer.finish(End::Stopped, 0);
    assert_eq!(read(&mut reader, 2), (0, vec![0, 1]));
    assert!(!reader.ended());
    assert_eq!(read(&mut reader, 2), (0, vec![2]));
    assert!(reader.ended());
}

#[test]
fn a_linear_ring_keeps_all_rows_and_then_is_full() {
    let mut writer = running(1, 4, 4);
    push(&mut writer, 4);
    assert!(writer.is_full());
    assert!(!writer.push(0, 0, &[0]));
    writer.finish(End::Done, 9);
    let mut reader = reader(&writer, Begin::Row(0));
    assert_eq!(read(&mut reader, 8), (0, vec![0, 1, 2, 3]));
    assert!(reader.ended());
    assert_eq!(reader.snapshot().state, State::Done);
}

#[test]
fn a_one_shot_ring_keeps_its_last_rows_guard_included() {
    let mut writer = running(1, 4, 10);
    let mut reader = reader(&writer, Begin::Row(0));
    push(&mut writer, 10);
    assert_eq!(read(&mut reader, 8), (6, vec![6, 7, 8, 9]));
}

#[test]
#[should_panic = "room for one row of 5 words"]
fn a_buffer_too_small_for_one_row_is_refused_loudly() {
    let writer = running(1, 4, NO_LIMIT);
    let _ = reader(&writer, Begin::Oldest).read(&mut [0; 4]);
}

#[test]
fn missed_triggers_are_numbered_and_counted_by_cause() {
    let mut writer = running(0, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    writer.push(0, 0, &[]);
    writer.miss(Missed::Overrun, 3);
    writer.push(1, 0, &[]);
    writer.miss(Missed::Source, 1);
    let mut buffer = vec![0; 4 * reader.row_words()];
    let triggers: Vec<_> = reader
        .read(&mut buffer)
        .rows()
        .map(|row| (row.row, row.trigger))
        .collect();
    assert_eq!(triggers, [(0, 0), (1, 4)]);
    writer.finish(End::Stopped, 0);
    let now = reader.snapshot();
    assert_eq!((now.head, now.triggers), (2, 6));
    assert_eq!(now.missed_by, [3, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(now.missed(), now.triggers - now.head);
}

#[test]
fn a_channel_that_failed_is_zero_and_named_in_the_status() {
    let mut writer = running(3, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    let mut row = writer.begin(5).unwrap();
    row.value(1);
    row.failed();
    row.value(3);
    row.commit(ROW_LATE);
    assert!(writer.push(6, 0, &[1, 2]));
    assert!(writer.push(7, 0, &[1, 2, 3, 4]));
    let mut buffer = vec![0; 4 * reader.row_words()];
    let rows: Vec<_> = reader
        .read(&mut buffer)
        .rows()
        .map(|row| (row.values.to_vec(), row.status.fault(), row.status.late()))
        .collect();
    let expected = [
        (vec![1, 0, 3], Some(1), true),
        (vec![1, 2, 0], Some(2), false),
        (vec![1, 2, 3], None, false),
    ];
    assert_eq!(rows, expected);
    assert_eq!(reader.snapshot().errors, 2);
}

#[test]
fn a_row_that_is_not_committed_never_existed() {
    let mut writer = running(1, 2, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    push(&mut writer, 1);
    writer.begin(77).unwrap().value(77);
    writer.miss(Missed::Busy, 1);
    push(&mut writer, 1);
    let mut buffer = vec![0; 4 * reader.row_words()];
    let batch = reader.read(&mut buffer);
    let rows: Vec<_> = batch
        .rows()
        .map(|row| (row.row, row.trigger, row.values[0]))
        .collect();
    // Row 0 is the guard of row 2, and gone.
    assert_eq!((batch.lost, rows), (1, vec![(1, 2, 1)]));
}

#[test]
fn nothing_is_counted_but_while_the_run_is_running() {
    let header = header(0, 8, NO_LIMIT);
    let memory = MemoryMut::zeroed(header.geometry.bytes() as usize);
    let mut writer = Writer::create(memory, &header).unwrap();
    let mut reader = reader(&writer, Begin::Oldest);
    assert!(!writer.push(0, 0, &[]));
    assert!(writer.pause().is_err() && writer.resume().is_err());
    writer
        .start(StartTimes {
            time: 1,
            realtime: 2,
            tai: 3,
            first_due: 4,
        })
        .unwrap();
    assert!(writer.start(StartTimes::default()).is_err());
    writer.push(0, 0, &[]);
    writer.pause().unwrap();
    writer.miss(Missed::Busy, 9);
    assert!(!writer.push(0, 0, &[]));
    assert_eq!(reader.snapshot().state, State::Paused);
    writer.resume().unwrap();
    writer.push(1, 0, &[]);
    writer.push(2, 0, &[]);
    let mut buffer = vec![0; 4 * reader.row_words()];
    let resumed: Vec<_> = reader
        .read(&mut buffer)
        .rows()
        .map(|row| row.status.resumed())
        .collect();
    assert_eq!(resumed, [false, true, false]);
    writer.finish(End::Failed(19), 50);
    writer.miss(Missed::Busy, 9);
    writer.finish(End::Done, 60);
    assert!(writer.resume().is_err());
    let expected = Snapshot {
        state: State::Failed,
        head: 3,
        triggers: 3,
        missed_by: [0; 8],
        errors: 0,
        error: -19,
        start: StartTimes {
            time: 1,
            realtime: 2,
            tai: 3,
            first_due: 4,
        },
        end_time: 50,
    };
    assert_eq!(reader.snapshot(), expected);
    assert_eq!(reader.header(), &header);
}

#[test]
fn a_producer_that_goes_away_ends_its_run() {
    let mut writer = running(1, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    push(&mut writer, 1);
    let awake = reader.wake_value();
    drop(writer);
    assert_eq!(read(&mut reader, 8), (0, vec![0]));
    assert!(reader.ended());
    assert_ne!(reader.wake_value(), awake);
    let now = reader.snapshot();
    assert_eq!((now.state, now.error), (State::Failed, -32));
}

#[test]
fn a_state_of_a_later_version_is_final() {
    let mut image = Image::sound();
    image.put(offset_of!(RingHeader, state), 9u32);
    let mut reader = Reader::attach(Memory::from_words(image.words()), Begin::Oldest).unwrap();
    assert_eq!(read(&mut reader, 1), (0, vec![]));
    assert!(reader.ended());
    assert_eq!(reader.snapshot().state, State::Other(9));
}

#[test]
fn memory_smaller_than_the_ring_is_refused_to_the_producer() {
    let header = header(1, 8, NO_LIMIT);
    let bytes = header.geometry.bytes() as usize;
    assert!(Writer::create(MemoryMut::zeroed(bytes - 8), &header).is_err());
    assert!(Writer::create(MemoryMut::zeroed(bytes), &header).is_ok());
}

#[test]
fn rows_at_the_end_of_the_numbers_can_be_read() {
    let mut image = Image::sound();
    image.put(offset_of!(RingHeader, head), u64::MAX);
    image.put(offset_of!(RingHeader, state), 4u32);
    let last = u64::MAX - 1;
    let slot = 256 + 64 * (last % 2) as usize;
    image.put(slot, last);
    image.put(slot + 16, last.wrapping_add(1000));
    image.put(slot + 32, last);
    let memory = Memory::from_words(image.words());
    let mut buffer = [0; 10];
    let mut reader = Reader::attach(memory.clone(), Begin::Row(0)).unwrap();
    let batch = reader.read(&mut buffer);
    // Row 2^64 - 2 is within the last capacity rows of the limit, and so is the one before it.
    assert_eq!(
        (batch.lost, batch.first, batch.len()),
        (u64::MAX - 2, u64::MAX - 2, 2)
    );
    assert_eq!(batch.rows().last().unwrap().values, [last]);
    assert!(reader.ended());
    assert_eq!(reader.delivered() + reader.lost(), u64::MAX);
    let mut beyond = Reader::attach(memory, Begin::Row(u64::MAX)).unwrap();
    assert!(beyond.read(&mut buffer).is_empty());
    assert!(beyond.ended());
}

#[test]
fn words_that_are_no_whole_row_are_left_out() {
    let words: Vec<u64> = (0..12).collect();
    let rows: Vec<_> = Rows::new(&words, 1)
        .map(|row| (row.row, row.values[0]))
        .collect();
    assert_eq!(rows, [(0, 4), (5, 9)]);
    assert_eq!(Rows::new(&words, 1).words().len(), 10);
}
