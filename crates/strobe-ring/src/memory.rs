// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory a ring lies in. The only file with `unsafe`.
//!
//! Whoever fills the ring may do so at any moment, from another process or from the kernel. So there is
//! never a `&[u64]` on it, only atomics; and only relaxed loads on what may be mapped read-only.

use crate::sync::{AtomicU32, AtomicU64};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory of a ring that can be read. Clones are the same memory.
#[derive(Clone)]
pub struct Memory {
    start: NonNull<AtomicU64>,
    words: usize,
    /// Keeps the memory valid: a mapping, an allocation.
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: `start` points to atomics only, which may be used from any thread, and the owner that keeps
// them alive is Send and Sync itself.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory that something else provides, such as a mapping.
    ///
    /// `owner` is dropped when the last clone of this memory is; dropping it may unmap.
    ///
    /// # Safety
    /// - `start` is aligned to 8 bytes, and `bytes` bytes from there are valid for reads until `owner` is
    ///   dropped, wherever in the program `owner` is moved. (The file under a mapping must not be cut.)
    /// - As long as anybody may write to it, all of this program access it only by atomic operations of
    ///   64 bits, or of 32 bits from byte 0x90 to byte 0xa0. What other processes and the kernel do counts
    ///   as such.
    pub unsafe fn from_raw(
        start: NonNull<u64>,
        bytes: usize,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Memory {
        Memory {
            start: start.cast(),
            words: bytes / 8,
            _owner: owner,
        }
    }

    /// A ring that was read from a file, or made up by a test.
    pub fn from_words(words: Vec<u64>) -> Memory {
        let words: Arc<Vec<AtomicU64>> = Arc::new(words.into_iter().map(AtomicU64::new).collect());
        let start = NonNull::from(words.as_slice()).cast();
        Memory {
            start,
            words: words.len(),
            _owner: words,
        }
    }

    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        self.words * 8
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: by the contract of `from_raw`, or by construction in `from_words`, `words` aligned words
        // are valid as long as the owner, hence as long as self. Nobody accesses them but by atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// The 64-bit word at a byte offset.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words()[offset / 8]
    }

    /// The 32-bit word at a byte offset. One word is accessed in one size only: this is for the state, the
    /// error and the wake word, `word` and `words` for all others.
    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(
            offset / 8 < self.words && offset % 4 == 0,
            "outside of the ring"
        );
        // SAFETY: inside of the memory, as just checked, and aligned; validity as in `words`. No reference
        // to the same bytes as 64-bit atomic is ever used for an access while the ring is shared.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().cast::<u32>().add(offset / 4)) }
    }

    /// A hint that the two cache lines from this word on will be written soon: they are fetched meanwhile, from
    /// the reader who had them last.
    #[inline]
    pub(crate) fn will_be_written(&self, word: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(first) = self.words().get(word) {
            // SAFETY: changes nothing that a program can see, whatever the address; a processor that does not
            // know it takes it for a no-op.
            unsafe {
                std::arch::asm!(
                    "prefetchw [{first}]",
                    "prefetchw [{first} + 64]",
                    first = in(reg) first,
                    options(nostack, preserves_flags, readonly)
                );
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = word;
    }

    /// Address of a 32-bit word, for a futex.
    pub(crate) fn half_address(&self, offset: usize) -> *const u32 {
        self.half(offset).as_ptr()
    }
}

/// Memory of a ring that can be written, by one producer.
pub struct MemoryMut(Memory);

impl MemoryMut {
    /// Memory that something else provides, such as a mapping.
    ///
    /// # Safety
    /// As [`Memory::from_raw`], and all of it is valid for writes, too.
    pub unsafe fn from_raw(
        start: NonNull<u64>,
        bytes: usize,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> MemoryMut {
        // SAFETY: the caller's promise includes that of `Memory::from_raw`.
        MemoryMut(unsafe { Memory::from_raw(start, bytes, owner) })
    }

    /// New memory of this process, all zero.
    pub fn zeroed(bytes: usize) -> MemoryMut {
        MemoryMut(Memory::from_words(vec![0; bytes.div_ceil(8)]))
    }

    /// The same memory for a reader.
    pub fn for_reader(&self) -> Memory {
        self.0.clone()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Owner(Box<[AtomicU64]>, Arc<AtomicBool>);

    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn foreign_memory_lives_as_long_as_its_last_clone() {
        let gone = Arc::new(AtomicBool::new(false));
        let words = (0..32).map(AtomicU64::new).collect();
        let owner = Arc::new(Owner(words, gone.clone()));
        let start = NonNull::from(&*owner.0).cast();
        // SAFETY: the 32 words live in `owner`, in a box of their own, and are atomics.
        let memory = unsafe { Memory::from_raw(start, 32 * 8, owner) };
        let clone = memory.clone();
        drop(memory);
        assert!(!gone.load(Ordering::Relaxed));
        assert_eq!(clone.word(8 * 31).load(Ordering::Relaxed), 31);
        clone.half(0x90).store(7, Ordering::Relaxed);
        assert_eq!(clone.half(0x90).load(Ordering::Relaxed), 7);
        drop(clone);
        assert!(gone.load(Ordering::Relaxed));
    }

    #[test]
    fn bytes_that_are_no_whole_word_do_not_count() {
        let owner = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let start = NonNull::from(&*owner).cast();
        // SAFETY: the 16 bytes live in `owner`, and are atomics.
        assert_eq!(unsafe { Memory::from_raw(start, 15, owner) }.bytes(), 8);
    }
}
