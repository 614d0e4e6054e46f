// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what goes out of rows.

use super::*;
use crate::panda::capture::{Scaling, row_bytes};
use crate::panda::field::Source;
use strobe::samples::{channel, info};

const ROWS: [[u64; 6]; 3] = [
    [5, 7, 1_000, 0, u64::MAX - 1, 10],
    [6, 9, 2_000, 1 << 32, 4, 12],
    [7, 10, 3_500, 2 << 32, 6, -1_i64 as u64],
];

pub(in crate::panda) fn capture(name: &str, how: How, kind: Type, scale: f64) -> Capture {
    Capture {
        name: name.to_uppercase(),
        how,
        from: Origin::Channel(Source {
            channel: name.to_owned(),
            kind,
            scale,
            offset: 0.0,
            unit: String::new(),
        }),
        scaling: Scaling {
            scale,
            offset: 0.0,
            unit: String::new(),
        },
    }
}

pub(in crate::panda) fn extra(extra: Extra) -> Capture {
    Capture {
        from: Origin::Extra(extra),
        ..capture("x", How::Value, Type::U64, 1.0)
    }
}

fn block() -> Block {
    let words = Arc::new(ROWS.concat());
    Block::new(Arc::new(about()), words, 0..3, (5, 0), &mut None)
}

fn about() -> RunInfo {
    let mut info = info(values().to_vec());
    info.start.time = 500;
    info
}

fn values() -> [Channel; 2] {
    [channel("a.u", Type::U64), channel("a.s", Type::S64)]
}

/// What the frame has after its head.
fn rows_of(frame: &mut Frame) -> &[u8] {
    frame.whole().split_at(8).1
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes")))
        .collect()
}

#[test]
fn words_keep_all_their_bits_and_what_failed_is_no_value() {
    let captures = [
        capture("a.u", How::Value, Type::U64, 1.0),
        capture("a.s", How::Value, Type::S64, 1.0),
    ];
    let mut encoder = Encoder::new(&captures, &about());
    let mut frame = Frame::new(0);
    encoder.encode(&block(), &mut frame);
    let bytes = rows_of(&mut frame);
    let least = i64::MIN as u64;
    assert_eq!(
        words(bytes),
        [u64::MAX - 1, 10, u64::MAX, 12, 6, least],
        "the first channel failed in the second row, the second in the third"
    );
    assert_eq!(bytes.len(), 3 * row_bytes(&captures));
}

#[test]
fn values_differences_and_what_is_known_of_a_row_are_as_they_should() {
    let captures = [
        capture("a.s", How::Value, Type::S64, 0.5),
        capture("a.s", How::Diff, Type::S64, 0.5),
        extra(Extra::Row),
        extra(Extra::Trigger),
        extra(Extra::Duration),
    ];
    let mut encoder = Encoder::new(&captures, &about());
    let mut frame = Frame::new(0);
    encoder.encode(&block(), &mut frame);
    let bytes = rows_of(&mut frame);
    let rows = words(bytes);
    let number = |place: usize| f64::from_bits(rows[place]);
    assert_eq!((number(0), rows[2], rows[3]), (5.0, 5, 7));
    assert!(
        number(1).is_nan() && number(4).is_nan(),
        "no row before it is known"
    );
    assert_eq!((number(5), number(6), rows[7], rows[8]), (6.0, 1.0, 6, 9));
    assert!((number(9) - 1e-6).abs() < 1e-15);
    assert!(number(10).is_nan() && number(11).is_nan(), "it failed");
}

#[test]
fn the_bits_say_what_failed_was_missed_and_lost() {
    let captures = [extra(Extra::Bits)];
    let mut encoder = Encoder::new(&captures, &about());
    let mut frame = Frame::new(0);
    encoder.lose();
    encoder.encode(&block(), &mut frame);
    let bytes = rows_of(&mut frame);
    let bits: Vec<u8> = bytes.chunks_exact(4).map(|b| b[0]).collect();
    assert_eq!(bits, [4, 1 | 2, 1]);
}

#[test]
fn by_columns_it_is_the_same_as_row_by_row() {
    let captures = [
        extra(Extra::Duration),
        capture("a.s", How::Value, Type::S64, 0.5),
        extra(Extra::Row),
        extra(Extra::Trigger),
        extra(Extra::Time),
        capture("a.u", How::Value, Type::U64, 1.0),
    ];
    let info = Arc::new(about());
    let block = |first: u64| {
        let rows = (first..first + 3).map(|row| [row, row + 1, 1000 * row, 0, row << 60, !row]);
        let words = rows.collect::<Vec<_>>().concat();
        Block::new(
            Arc::clone(&info),
            Arc::new(words),
            0..3,
            (first, 0),
            &mut None,
        )
    };
    for first in [0, 5] {
        let mut encoder = Encoder::new(&captures, &about());
        let mut other = Encoder::new(&captures, &about());
        assert!(encoder.columns.is_some());
        other.columns = None;
        let (mut frame, mut others) = (Frame::new(0), Frame::new(0));
        for block in [block(first), block(first + 3)] {
            encoder.encode(&block, &mut frame);
            other.encode(&block, &mut others);
        }
        assert_eq!(words(rows_of(&mut frame)), words(rows_of(&mut others)));
    }
}
