// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a ring for the model checker, whose atomics are no plain words of memory.

use crate::layout::RingHeader;
use crate::sync::{AtomicU32, AtomicU64};
use std::mem::offset_of;
use std::sync::Arc;

const FIRST_HALF: usize = offset_of!(RingHeader, state);

/// Memory of a ring that can be read. Clones are the same memory.
#[derive(Clone)]
pub struct Memory(Arc<Words>);

struct Words {
    words: Vec<AtomicU64>,
    halves: [AtomicU32; 4],
}

impl Memory {
    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        self.0.words.len() * 8
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0.words
    }

    /// Nothing that the model knows of.
    pub(crate) fn will_be_written(&self, _word: usize) {}

    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.0.words[offset / 8]
    }

    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        &self.0.halves[(offset - FIRST_HALF) / 4]
    }
}

/// Memory of a ring that can be written, by one producer.
pub struct MemoryMut(Memory);

impl MemoryMut {
    /// New memory, all zero.
    pub fn zeroed(bytes: usize) -> MemoryMut {
        let words = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let halves = std::array::from_fn(|_| AtomicU32::new(0));
        MemoryMut(Memory(Arc::new(Words { words, halves })))
    }

    /// The same memory for a reader.
    pub fn for_reader(&self) -> Memory {
        self.0.clone()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.0
    }
}
