// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader refuses, and that it survives everything else.

mod common;

use common::{Bytes, Image, Random};
use std::mem::offset_of;
use strobe_ring::layout::{INCOMPAT_FAULTS, INCOMPAT_SKIPPED, RING_MAGIC, RingHeader};
use strobe_ring::{AttachError, Begin, GeometryError, Memory, MemoryMut, Reader, RowShape};

fn attach(image: &Image) -> Result<Reader, AttachError> {
    Reader::attach(Memory::from_words(image.words()), Begin::Oldest)
}

fn with(offset: usize, value: impl Bytes) -> Result<Reader, AttachError> {
    let mut image = Image::sound();
    image.put(offset, value);
    attach(&image)
}

#[test]
fn a_sound_ring_is_accepted() {
    let reader = attach(&Image::sound()).ok().unwrap();
    assert_eq!(reader.geometry().capacity(), 2);
    assert_eq!(reader.geometry().channels(), 1);
}

#[test]
fn a_later_minor_version_and_a_longer_header_are_accepted() {
    assert!(with(offset_of!(RingHeader, minor), 9u16).is_ok());
    let mut image = Image::sound();
    image.put(offset_of!(RingHeader, header_size), 320u32);
    image.put(offset_of!(RingHeader, data_offset), 320u64);
    image.resize(320 + 2 * 64);
    assert!(attach(&image).is_ok());
}

#[test]
fn each_wrong_field_is_refused_with_its_reason() {
    use AttachError::{ForeignByteOrder, HeaderSize, Incompat, Magic, Major, RowSize};
    let geometry = |error| Some(AttachError::Geometry(error));
    let header = |header_size| {
        Some(HeaderSize {
            header_size,
            data_offset: 256,
        })
    };
    macro_rules! at {
        ($field:ident, $value:expr) => {
            with(offset_of!(RingHeader, $field), $value).err()
        };
    }
    assert_eq!(at!(magic, 0u64), Some(Magic { magic: 0 }));
    assert_eq!(at!(magic, RING_MAGIC.swap_bytes()), Some(ForeignByteOrder));
    assert_eq!(at!(major, 0u16), Some(Major { major: 0 }));
    assert_eq!(at!(major, 2u16), Some(Major { major: 2 }));
    assert_eq!(at!(incompat, 8u32), Some(Incompat { unknown: 8 }));
    assert_eq!(
        at!(incompat, 1u32 << 31),
        Some(Incompat { unknown: 1 << 31 })
    );
    assert_eq!(at!(header_size, 248u32), header(248));
    assert_eq!(at!(header_size, 264u32), header(264));
    assert_eq!(at!(header_size, u32::MAX), header(u32::MAX));
    let stride = |row_stride| {
        let shape = RowShape::of_channels(1);
        geometry(GeometryError::RowStride { row_stride, shape })
    };
    assert_eq!(at!(row_stride, 0u32), stride(0));
    assert_eq!(at!(row_stride, 72u32), stride(72));
    let size = |row_size, incompat, shape| {
        Some(RowSize {
            row_size,
            incompat,
            shape,
        })
    };
    let one = RowShape::of_channels(1);
    for row_size in [0, 39, 48, u32::MAX] {
        assert_eq!(at!(row_size, row_size), size(row_size, 0, one));
    }
    for channels in [0, 5, u32::MAX] {
        let refused = size(40, 0, RowShape::of_channels(channels));
        assert_eq!(at!(channels, channels), refused);
    }
    for outputs in [32, u32::MAX] {
        let refused = size(40, 0, RowShape { outputs, ..one });
        assert_eq!(at!(outputs, outputs), refused);
    }
    let skipped = RowShape {
        skipped: true,
        ..one
    };
    assert_eq!(at!(incompat, INCOMPAT_SKIPPED), size(40, 2, skipped));
    for capacity in [0, 1, 3, u64::MAX] {
        assert_eq!(
            at!(capacity, capacity),
            geometry(GeometryError::Capacity { capacity })
        );
    }
    assert_eq!(
        at!(capacity, 4u64),
        Some(AttachError::CutOff {
            bytes: 384,
            need: 512
        })
    );
    assert_eq!(at!(capacity, 1u64 << 63), geometry(GeometryError::TooLarge));
    assert_eq!(
        at!(data_offset, 320u64),
        Some(AttachError::CutOff {
            bytes: 384,
            need: 448
        })
    );
    let misplaced = GeometryError::DataOffset { data_offset: 260 };
    assert_eq!(at!(data_offset, 260u64), geometry(misplaced));
    assert_eq!(
        at!(data_offset, u64::MAX - 63),
        geometry(GeometryError::TooLarge)
    );
    let inside = HeaderSize {
        header_size: 256,
        data_offset: 0,
    };
    assert_eq!(at!(data_offset, 0u64), Some(inside));
}

#[test]
fn fault_words_that_the_header_does_not_announce_are_refused() {
    let shape = RowShape {
        outputs: 32,
        ..RowShape::of_channels(1)
    };
    let mut image = Image::sound();
    image.put(offset_of!(RingHeader, outputs), shape.outputs);
    image.put(offset_of!(RingHeader, row_size), 48u32);
    let refused = AttachError::RowSize {
        row_size: 48,
        incompat: 0,
        shape,
    };
    assert_eq!(attach(&image).err(), Some(refused));
    image.put(offset_of!(RingHeader, incompat), INCOMPAT_FAULTS);
    assert_eq!(attach(&image).ok().unwrap().geometry().shape(), shape);
}

#[test]
fn a_shape_whose_row_does_not_fit_its_stride_is_refused() {
    let shape = RowShape {
        skipped: true,
        ..RowShape::of_channels(4)
    };
    let mut image = Image::sound();
    image.put(offset_of!(RingHeader, channels), 4u32);
    image.put(offset_of!(RingHeader, incompat), INCOMPAT_SKIPPED);
    image.put(offset_of!(RingHeader, row_size), 72u32);
    let refused = GeometryError::RowStride {
        row_stride: 64,
        shape,
    };
    assert_eq!(attach(&image).err(), Some(AttachError::Geometry(refused)));
}

#[test]
fn memory_that_is_too_short_is_refused() {
    for bytes in [0, 8, 248] {
        let mut image = Image::sound();
        image.resize(bytes);
        assert_eq!(
            attach(&image).err(),
            Some(AttachError::NoHeader {
                bytes: bytes as u64
            })
        );
    }
    for bytes in [256, 376] {
        let mut image = Image::sound();
        image.resize(bytes);
        let refused = AttachError::CutOff {
            bytes: bytes as u64,
            need: 384,
        };
        assert_eq!(attach(&image).err(), Some(refused));
    }
}

#[test]
fn memory_that_no_producer_has_touched_is_no_ring() {
    let memory = MemoryMut::zeroed(4096);
    let refused = Reader::attach(memory.for_reader(), Begin::Oldest).err();
    assert_eq!(refused, Some(AttachError::Magic { magic: 0 }));
}

#[test]
fn a_message_names_the_value_and_the_remedy() {
    let message = |error: AttachError| error.to_string();
    assert!(message(AttachError::Major { major: 3 }).contains("version 3"));
    assert!(message(AttachError::CutOff { bytes: 5, need: 9 }).contains("map or copy all"));
    let capacity = GeometryError::Capacity { capacity: 3 };
    assert!(message(AttachError::Geometry(capacity)).contains("3 rows"));
}

/// Whatever a ring says, a reader returns, and its account adds up.
#[test]
fn a_ring_full_of_nonsense_does_no_harm() {
    let mut random = Random(1);
    let mut accepted = 0;
    for _ in 0..if cfg!(miri) { 50 } else { 100_000 } {
        let mut image = Image::sound();
        let size = offset_of!(RingHeader, end_time) as u64;
        for _ in 0..1 + random.next() % 8 {
            // Mostly in the live part, for the constant one is rarely accepted when it is nonsense.
            let least = if random.next() % 8 == 0 { 0 } else { 0x80 };
            let word = (least + random.next() % (size - least)) as usize / 8 * 8;
            let value = match random.next() % 4 {
                0 => random.next(),
                1 => random.next() % 8,
                2 => u64::MAX - random.next() % 4,
                _ => 1 << (random.next() % 64),
            };
            image.put(word, value);
        }
        let begin = match random.next() % 4 {
            0 => Begin::Now,
            1 => Begin::Row(random.next()),
            2 => Begin::Row(u64::MAX),
            _ => Begin::Oldest,
        };
        let Ok(mut reader) = Reader::attach(Memory::from_words(image.words()), begin) else {
            continue;
        };
        accepted += 1;
        let mut buffer = vec![0; 3 * reader.row_words()];
        for _ in 0..3 {
            let before = reader.next_row();
            let batch = reader.read(&mut buffer);
            assert_eq!(batch.first, before + batch.lost);
            let rows = batch.len() as u64;
            assert_eq!(reader.next_row(), before + batch.lost + rows);
            assert_eq!(
                reader.delivered() + reader.lost(),
                reader.next_row() - reader.begun_at()
            );
        }
        let _ = reader.snapshot().missed();
    }
    assert!(accepted > 0);
}
