// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mapping of a ring.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::io;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use strobe_ring::Memory;

/// Unmaps when the last reader of the memory is gone.
struct Mapping {
    start: NonNull<u64>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; the struct only
// remembers where it is.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` has made exactly this mapping; as `Memory` keeps us for
        // as long as it is used, nobody uses it any more. An error could only
        // say that it was not a mapping.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The first `bytes` of a ring fd, read-only.
pub(crate) fn map(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<Memory> {
    let bytes = usize::try_from(bytes).map_err(|_| io::Errno::NOMEM)?;
    let (read, shared) = (ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice disturbs
    // nothing that exists.
    let start = unsafe { mmap(std::ptr::null_mut(), bytes, read, shared, fd, 0)? };
    let start = NonNull::new(start.cast()).ok_or(io::Errno::NOMEM)?;
    let owner = Arc::new(Mapping { start, bytes });
    // SAFETY: mappings are aligned to pages, and this one is valid for reads
    // until `owner` is dropped: the kernel never cuts the file of a ring. This
    // program only reads it, by the atomics of `Memory`.
    Ok(unsafe { Memory::from_raw(start, bytes, owner) })
}
