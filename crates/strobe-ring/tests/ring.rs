// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writer and reader together, without a race: what each call means.

mod common;

use common::{Image, Random, header, running, running_of, running_with_absent};
use std::mem::offset_of;
use strobe_ring::layout::{NO_LIMIT, ROW_LATE, RingHeader};
use strobe_ring::{
    AfterLoss, Begin, End, Memory, MemoryMut, Missed, Reader, RowShape, Rows, Snapshot, StartTimes,
    State, Writer,
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
fn after_a_loss_a_reader_goes_on_where_it_was_told() {
    for (after_loss, lost, rows) in [
        (AfterLoss::Half, 97, vec![97, 98]),
        (AfterLoss::Oldest, 97, vec![97, 98]),
        (AfterLoss::Newest, 99, vec![99]),
    ] {
        let mut writer = running(1, 4, NO_LIMIT);
        let mut reader = reader(&writer, Begin::Oldest).after_loss(after_loss);
        push(&mut writer, 100);
        assert_eq!(read(&mut reader, 2), (lost, rows), "{after_loss:?}");
        push(&mut writer, 1);
        writer.finish(End::Stopped, 0);
        while !reader.ended() {
            assert_eq!(read(&mut reader, 2).0, 0, "{after_loss:?}");
        }
        assert_eq!(reader.delivered() + reader.lost(), 101, "{after_loss:?}");
    }
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
    assert_eq!(now.triggers, now.head + now.missed());
}

#[test]
fn skipped_triggers_are_counted_apart_and_between_the_rows() {
    let shape = RowShape {
        skipped: true,
        ..RowShape::of_channels(1)
    };
    let mut writer = running_of(shape, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    writer.skip(2);
    push(&mut writer, 1);
    writer.skip(3);
    writer.miss(Missed::Overrun, 1);
    push(&mut writer, 2);
    writer.skip(9);
    let mut buffer = vec![0; 4 * reader.row_words()];
    let rows: Vec<_> = (reader.read(&mut buffer).rows())
        .map(|row| (row.row, row.trigger, row.skipped))
        .collect();
    assert_eq!(rows, [(0, 2, 2), (1, 7, 5), (2, 8, 5)]);
    let now = reader.snapshot();
    assert_eq!((now.head, now.missed(), now.skipped), (3, 1, 14));
    assert_eq!(now.triggers, 18);
}

/// The account of a run and of a reader, whatever the run does.
#[test]
fn triggers_are_rows_and_missed_and_skipped() {
    let mut random = Random(2);
    for _ in 0..if cfg!(miri) { 3 } else { 300 } {
        let shape = RowShape {
            channels: (random.next() % 40) as u32,
            outputs: (random.next() % 40) as u32,
            skipped: true,
        };
        let mut writer = running_of(shape, 8, NO_LIMIT);
        let mut reader = reader(&writer, Begin::Row(0));
        let mut buffer = vec![0; 3 * reader.row_words()];
        let (mut before, mut missed, mut lost) = (None::<(u64, u64, u64)>, 0, 0);
        for _ in 0..200 {
            match random.next() % 4 {
                0 => writer.miss(Missed::Busy, random.next() % 5),
                1 => writer.skip(random.next() % 5),
                2 => assert!(writer.push(0, 0, &[])),
                _ => {
                    let batch = reader.read(&mut buffer);
                    lost += batch.lost;
                    for row in batch.rows() {
                        let (number, trigger, skipped) = before.unwrap_or_default();
                        let steps = row.trigger + 1 - trigger;
                        missed += steps - (row.row + 1 - number) - (row.skipped - skipped);
                        before = Some((row.row + 1, row.trigger + 1, row.skipped));
                    }
                }
            }
            let now = reader.snapshot();
            assert_eq!(now.triggers, now.head + now.missed() + now.skipped);
        }
        writer.finish(End::Stopped, 0);
        let now = reader.snapshot();
        let (number, trigger, skipped) = before.unwrap_or_default();
        assert_eq!(number, reader.delivered() + lost);
        assert_eq!(trigger, number + missed + skipped);
        assert!(missed <= now.missed() && skipped <= now.skipped);
    }
}

#[test]
fn all_channels_that_failed_are_named_and_their_values_are_zero() {
    let mut writer = running(3, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    let mut row = writer.begin(5).unwrap();
    row.failed();
    row.value(2);
    row.failed();
    row.output_failed(0); // there is none
    row.commit(ROW_LATE);
    assert!(writer.push(6, 0, &[1, 2]));
    assert!(writer.push(7, 0, &[1, 2, 3, 4]));
    let mut buffer = vec![0; 4 * reader.row_words()];
    let rows: Vec<_> = reader
        .read(&mut buffer)
        .rows()
        .map(|row| {
            let faults: Vec<_> = row.faults.iter().collect();
            assert_eq!(row.faults.is_empty(), faults.is_empty());
            (row.values.to_vec(), faults, row.status.late())
        })
        .collect();
    let expected = [
        (vec![0, 2, 0], vec![0, 2], true),
        (vec![1, 2, 0], vec![2], false),
        (vec![1, 2, 3], vec![], false),
    ];
    assert_eq!(rows, expected);
    assert_eq!(reader.snapshot().errors, 2);
}

/// The numbers of what failed in the rows that can be read.
fn faults(reader: &mut Reader) -> Vec<Vec<usize>> {
    let mut buffer = vec![0; 8 * reader.row_words()];
    let rows = reader.read(&mut buffer).rows();
    rows.map(|row| {
        let faults: Vec<_> = row.faults.iter().collect();
        let asked = (0..2000).filter(|&index| row.faults.failed(index));
        assert_eq!(asked.collect::<Vec<_>>(), faults);
        assert_eq!(row.faults.count(), faults.len());
        assert_eq!(row.skipped, 0);
        faults
    })
    .collect()
}

#[test]
fn faults_beyond_the_status_and_of_outputs_are_named() {
    let shape = RowShape {
        channels: 100,
        outputs: 30,
        skipped: true,
    };
    let mut writer = running_of(shape, 8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    let failing = [0, 31, 32, 33, 95, 96, 99, 100, 129];
    let mut row = writer.begin(0).unwrap();
    for index in 0..100 {
        if failing.contains(&index) {
            row.failed();
        } else {
            row.value(!0);
        }
    }
    row.output_failed(29);
    row.output_failed(0);
    row.output_failed(30); // there is none
    row.commit(0);
    assert_eq!(faults(&mut reader), [failing]);
    assert_eq!(reader.snapshot().errors, 1);
}

#[test]
fn faults_of_an_older_row_never_show() {
    let shape = RowShape {
        channels: 40,
        outputs: 2,
        skipped: false,
    };
    let mut writer = running_of(shape, 2, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Oldest);
    for row in 0..7 {
        if row % 3 != 2 {
            // All fail: those of a row that is dropped must not show either.
            let mut dropped = writer.begin(0).unwrap();
            (0..40).for_each(|_| dropped.failed());
            dropped.output_failed(1);
        }
        let mut made = writer.begin(0).unwrap();
        (0..40).for_each(|index| {
            if row % 2 == 0 {
                made.failed()
            } else {
                made.value(index)
            }
        });
        if row % 2 == 0 {
            made.output_failed(1);
        }
        made.commit(0);
        let expected: Vec<usize> = if row % 2 == 0 {
            (0..40).chain([41]).collect()
        } else {
            vec![]
        };
        assert_eq!(faults(&mut reader), [expected], "row {row}");
    }
    assert_eq!(reader.snapshot().errors, 4);
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
        skipped: 0,
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
    let rows: Vec<_> = Rows::new(&words, RowShape::of_channels(1))
        .map(|row| (row.row, row.values[0]))
        .collect();
    assert_eq!(rows, [(0, 4), (5, 9)]);
    assert_eq!(
        Rows::new(&words, RowShape::of_channels(1)).words().len(),
        10
    );
}

#[test]
fn rows_that_are_absent_are_lost_and_only_they() {
    let mut writer = running_with_absent(8, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Row(0));
    // Row 0 looks like memory that nobody has written.
    writer.absent(2);
    assert_eq!(read(&mut reader, 8), (2, vec![]));
    push(&mut writer, 2);
    writer.absent(1);
    push(&mut writer, 1);
    writer.absent(1);
    assert_eq!(read(&mut reader, 8), (0, vec![2, 3]));
    assert_eq!(read(&mut reader, 8), (1, vec![5]));
    assert_eq!(read(&mut reader, 8), (1, vec![]));
    // In the places of rows that were there.
    push(&mut writer, 1);
    writer.absent(2);
    push(&mut writer, 1);
    assert_eq!(read(&mut reader, 1), (0, vec![7]));
    assert_eq!(read(&mut reader, 1), (1, vec![]));
    assert_eq!(read(&mut reader, 2), (1, vec![10]));
    // Further than the ring is long.
    writer.absent(100);
    push(&mut writer, 1);
    let mut got = (0, Vec::new());
    while got.1.is_empty() {
        let (lost, rows) = read(&mut reader, 3);
        got = (got.0 + lost, rows);
    }
    assert_eq!(got, (100, vec![111]));
    writer.finish(End::Stopped, 0);
    assert_eq!(read(&mut reader, 1), (0, vec![]));
    assert!(reader.ended());
    let last = reader.snapshot();
    assert_eq!((last.head, last.triggers), (112, 112));
    assert_eq!((reader.delivered(), reader.lost()), (6, 106));
}

#[test]
fn a_reader_that_comes_late_to_absent_rows_has_its_account() {
    let mut random = Random(7);
    for capacity in [2, 4, 16] {
        let mut writer = running_with_absent(capacity, NO_LIMIT);
        let mut reader = reader(&writer, Begin::Row(0));
        let (mut made, mut got) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            match random.next() % 4 {
                0 => writer.absent(random.next() % (2 * capacity)),
                1 => {
                    let (_, rows) = read(&mut reader, 1 + (random.next() % 4) as usize);
                    got.extend(rows);
                }
                _ => {
                    made.push(writer.head());
                    push(&mut writer, 1);
                }
            }
        }
        writer.finish(End::Stopped, 0);
        while !reader.ended() {
            got.extend(read(&mut reader, 3).1);
        }
        assert!(got.iter().all(|row| made.contains(row)));
        assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(got.len() > 100, "{}", got.len());
        assert_eq!(reader.delivered(), got.len() as u64);
        assert_eq!(reader.delivered() + reader.lost(), writer.head());
    }
}

#[test]
fn absent_rows_end_at_the_limit_and_need_a_run() {
    let mut writer = running_with_absent(4, 3);
    writer.absent(u64::MAX);
    assert_eq!((writer.head(), writer.is_full()), (3, true));
    writer.finish(End::Done, 0);
    writer.absent(1);
    assert_eq!((writer.head(), writer.triggers()), (3, 3));
}

#[test]
fn a_row_that_was_begun_and_given_up_can_be_absent() {
    let mut writer = running_with_absent(4, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Row(0));
    push(&mut writer, 1);
    let mut row = writer.begin(99).unwrap();
    row.value(7);
    drop(row);
    writer.absent(1);
    push(&mut writer, 1);
    assert_eq!(read(&mut reader, 4), (0, vec![0]));
    assert_eq!(read(&mut reader, 4), (1, vec![2]));
}

#[test]
fn of_a_linear_ring_only_absent_rows_are_lost() {
    let mut writer = running_with_absent(16, 16);
    let mut reader = reader(&writer, Begin::Oldest);
    let mut made = Vec::new();
    for row in 0..16 {
        if row % 3 == 0 {
            writer.absent(1);
        } else {
            push(&mut writer, 1);
            made.push(row);
        }
    }
    writer.finish(End::Done, 0);
    let mut got = Vec::new();
    while !reader.ended() {
        got.extend(read(&mut reader, 5).1);
    }
    assert_eq!(got, made);
    assert_eq!(reader.lost(), 16 - made.len() as u64);
}

#[test]
fn a_batch_that_ends_at_a_gap_says_that_there_is_more() {
    let mut writer = running_with_absent(16, NO_LIMIT);
    let mut reader = reader(&writer, Begin::Row(0));
    push(&mut writer, 2);
    writer.absent(1);
    push(&mut writer, 2);
    let mut buffer = vec![0; 16 * reader.row_words()];
    let batch = reader.read(&mut buffer);
    assert_eq!((batch.len(), batch.more), (2, true));
    let batch = reader.read(&mut buffer);
    assert_eq!((batch.lost, batch.len(), batch.more), (1, 2, false));
}

#[test]
#[should_panic(expected = "rows are all there")]
fn a_ring_whose_header_does_not_say_so_has_no_absent_rows() {
    running(1, 4, NO_LIMIT).absent(1);
}
