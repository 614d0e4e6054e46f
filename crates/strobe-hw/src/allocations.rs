// SPDX-License-Identifier: MIT OR Apache-2.0
//! An allocator that counts, for tests of what must allocate nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Calls of the allocator by this thread, to get and to give back.
pub fn calls() -> u64 {
    CALLS.get()
}

/// To be the `#[global_allocator]`.
pub struct Counting;

// SAFETY: the system's allocator does it; counting touches nothing but a number of this thread, which needs no
// memory and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
