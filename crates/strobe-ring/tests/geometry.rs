// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one-line rule against its definition, and the bounds of a ring's shape.

use strobe_ring::layout::{CAPACITY_MAX, NO_LIMIT};
use strobe_ring::{Geometry, GeometryError, RowShape, oldest};

fn new(channels: u32, capacity: u64, limit: u64) -> Result<Geometry, GeometryError> {
    Geometry::new(RowShape::of_channels(channels), capacity, limit)
}

/// The definition. Row i can be read if it was made and cannot have been touched again: row i + capacity,
/// which takes its place, is neither made, nor the next one to be made, or is beyond the limit.
fn readable(row: u64, head: u64, capacity: u64, limit: u64) -> bool {
    let successor = u128::from(row) + u128::from(capacity);
    row < head && (successor > u128::from(head) || successor >= u128::from(limit))
}

#[test]
#[cfg_attr(miri, ignore = "arithmetic only, and slow")]
fn the_oldest_row_is_as_defined_for_all_small_rings() {
    for capacity in [2, 4, 8, 16] {
        for limit in (0..40).chain([NO_LIMIT - 1, NO_LIMIT]) {
            for head in 0..=limit.min(50) {
                let oldest = oldest(head, capacity, limit);
                for row in 0..55 {
                    assert_eq!(
                        oldest <= row && row < head,
                        readable(row, head, capacity, limit),
                        "row {row} head {head} capacity {capacity} limit {limit}"
                    );
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "arithmetic only, and slow")]
fn the_oldest_row_is_as_defined_at_the_end_of_the_numbers() {
    for capacity in [2, 4, 8, 1 << 32] {
        for limit in u64::MAX - 20..=u64::MAX {
            for head in u64::MAX - 40..=limit {
                let oldest = oldest(head, capacity, limit);
                let first = head.saturating_sub(capacity).saturating_sub(3);
                for row in first..=first.saturating_add(8) {
                    let expected = readable(row, head, capacity, limit);
                    assert_eq!(
                        oldest <= row && row < head,
                        expected,
                        "{row} {head} {capacity} {limit}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_shape_is_made_as_small_as_possible() {
    for (channels, stride) in [
        (0, 64),
        (4, 64),
        (5, 128),
        (12, 128),
        (13, 192),
        (1024, 8384),
    ] {
        let geometry = new(channels, 8, NO_LIMIT).unwrap();
        assert_eq!(geometry.row_stride(), stride);
        let fault_words = if channels == 1024 { 16 } else { 0 };
        assert_eq!(geometry.row_words(), 4 + channels as usize + fault_words);
        assert_eq!(geometry.bytes(), 4096 + 8 * u64::from(stride));
    }
}

#[test]
fn words_for_faults_and_for_what_was_skipped_come_behind_the_values() {
    for (channels, outputs, skipped, words, incompat) in [
        (32, 0, false, 4 + 32, 0),
        (33, 0, false, 4 + 33 + 1, 1),
        (30, 3, false, 4 + 30 + 1, 1),
        (30, 2, true, 4 + 30 + 1, 2),
        (96, 0, false, 4 + 96 + 1, 1),
        (97, 0, true, 4 + 97 + 2 + 1, 3),
        (0, 1024, false, 4 + 16, 1),
        (
            u32::MAX,
            u32::MAX,
            true,
            4 + 0xFFFF_FFFF + 0x0800_0000 + 1,
            3,
        ),
    ] {
        let shape = RowShape {
            channels,
            outputs,
            skipped,
        };
        assert_eq!(
            (shape.words(), shape.incompat()),
            (words, incompat),
            "{shape:?}"
        );
    }
}

#[test]
fn only_a_limit_beyond_the_capacity_makes_a_ring_circular() {
    assert!(!new(1, 8, 8).unwrap().is_circular());
    assert!(new(1, 8, 9).unwrap().is_circular());
}

#[test]
fn an_impossible_shape_is_refused() {
    for capacity in [0, 1, 3, 6, u64::MAX] {
        let refused = Geometry::from_parts(RowShape::of_channels(1), 64, capacity, 1, 256);
        assert_eq!(refused, Err(GeometryError::Capacity { capacity }));
        assert_eq!(
            new(1, capacity, 1),
            Err(GeometryError::Capacity { capacity })
        );
    }
    let capacity = 2 * CAPACITY_MAX;
    assert_eq!(
        new(1, capacity, 1),
        Err(GeometryError::Capacity { capacity })
    );
    for (row_stride, channels) in [(0, 0), (63, 1), (65, 1), (64, 5), (64, u32::MAX)] {
        let shape = RowShape::of_channels(channels);
        let refused = Geometry::from_parts(shape, row_stride, 2, 1, 256);
        assert_eq!(refused, Err(GeometryError::RowStride { row_stride, shape }));
    }
    for data_offset in [0, 192, 255, 257, 264] {
        let refused = Geometry::from_parts(RowShape::of_channels(1), 64, 2, 1, data_offset);
        assert_eq!(refused, Err(GeometryError::DataOffset { data_offset }));
    }
    for (row_stride, capacity, data_offset) in [
        (64, 1 << 63, 256),
        (64, 1 << 57, 256),
        (1 << 31, 1 << 32, 256),
        (64, 2, u64::MAX - 63),
    ] {
        let refused = Geometry::from_parts(
            RowShape::of_channels(1),
            row_stride,
            capacity,
            1,
            data_offset,
        );
        assert_eq!(
            refused,
            Err(GeometryError::TooLarge),
            "{row_stride} {capacity} {data_offset}"
        );
    }
    assert_eq!(new(u32::MAX, 2, 1), Err(GeometryError::TooLarge));
}
