// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rings for the tests: made by the writer, or word by word.
#![allow(dead_code)]

use std::mem::offset_of;
use strobe_ring::layout::{CLOCK_MONOTONIC, NO_LIMIT, RING_MAGIC, RingHeader};
use strobe_ring::{Engine, Geometry, Header, MemoryMut, RowShape, StartTimes, Writer};

/// A header of the smallest ring of these parameters.
pub fn header(channels: u32, capacity: u64, limit: u64) -> Header {
    header_of(RowShape::of_channels(channels), capacity, limit)
}

/// The same for rows with more than channels.
pub fn header_of(shape: RowShape, capacity: u64, limit: u64) -> Header {
    let geometry = Geometry::new(shape, capacity, limit).unwrap();
    Header {
        geometry,
        clock: CLOCK_MONOTONIC,
        period_ns: 1000,
        run: 7,
        engine: Engine::User,
        absent: false,
    }
}

/// A producer whose run has been started.
pub fn running(channels: u32, capacity: u64, limit: u64) -> Writer {
    running_of(RowShape::of_channels(channels), capacity, limit)
}

/// The same for rows with more than channels.
pub fn running_of(shape: RowShape, capacity: u64, limit: u64) -> Writer {
    let header = header_of(shape, capacity, limit);
    let memory = MemoryMut::zeroed(header.geometry.bytes() as usize);
    let mut writer = Writer::create(memory, &header).unwrap();
    writer
        .start(StartTimes {
            time: 1,
            realtime: 2,
            tai: 3,
            first_due: 4,
        })
        .unwrap();
    writer
}

/// A producer whose rows of one channel may be absent, started.
pub fn running_with_absent(capacity: u64, limit: u64) -> Writer {
    let absent = Header {
        absent: true,
        ..header(1, capacity, limit)
    };
    let memory = MemoryMut::zeroed(absent.geometry.bytes() as usize);
    let mut writer = Writer::create(memory, &absent).unwrap();
    writer.start(StartTimes::default()).unwrap();
    writer
}

/// The bytes of a ring, to be spoilt.
pub struct Image(Vec<u8>);

impl Image {
    /// A ring of two rows of one channel behind a header of 256 bytes.
    pub fn sound() -> Image {
        let mut image = Image(vec![0; 256 + 2 * 64]);
        image.put(offset_of!(RingHeader, magic), RING_MAGIC);
        image.put(offset_of!(RingHeader, major), 1u16);
        image.put(offset_of!(RingHeader, header_size), 256u32);
        image.put(offset_of!(RingHeader, row_stride), 64u32);
        image.put(offset_of!(RingHeader, channels), 1u32);
        image.put(offset_of!(RingHeader, capacity), 2u64);
        image.put(offset_of!(RingHeader, limit), NO_LIMIT);
        image.put(offset_of!(RingHeader, data_offset), 256u64);
        image.put(offset_of!(RingHeader, row_size), 40u32);
        image
    }

    pub fn put(&mut self, offset: usize, value: impl Bytes) {
        let value = value.bytes();
        self.0[offset..offset + value.len()].copy_from_slice(&value);
    }

    pub fn resize(&mut self, bytes: usize) {
        self.0.resize(bytes, 0);
    }

    pub fn words(&self) -> Vec<u64> {
        self.0
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect()
    }
}

/// Integers as they lie in memory.
pub trait Bytes {
    fn bytes(self) -> Vec<u8>;
}

macro_rules! bytes {
    ($($integer:ty)*) => {
        $(impl Bytes for $integer {
            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
        })*
    };
}

bytes!(u16 u32 u64);

/// Numbers that look random, the same ones each time (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
