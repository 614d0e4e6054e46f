// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mappings of a ring.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::fs::{FileType, SealFlags, fcntl_get_seals, fstat};
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;
use strobe_ring::{Memory, MemoryMut, Reader, Writer};

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

impl Mapping {
    /// The first `bytes` of a ring fd.
    fn new(fd: BorrowedFd<'_>, bytes: u64, access: ProtFlags, more: MapFlags) -> io::Result<Self> {
        check(fd, bytes)?;
        let bytes = usize::try_from(bytes).map_err(|_| io::Errno::NOMEM)?;
        let flags = MapFlags::SHARED | more;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs
        // nothing that exists.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::Errno::NOMEM)?;
        Ok(Mapping { start, bytes })
    }
}

/// Whether so many bytes of a file are there for as long as it is open: an access to others would end this process.
fn check(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let about = fstat(fd)?;
    let may = match fcntl_get_seals(fd) {
        Ok(seals) => seals.contains(SealFlags::SHRINK) && about.st_size as u64 >= bytes,
        // A ring of the kernel is a file of no type, and the kernel lets nobody map more than it has.
        Err(_) => FileType::from_raw_mode(about.st_mode) == FileType::Unknown,
    };
    may.then_some(()).ok_or(io::Errno::PERM)
}

/// The first `bytes` of a ring fd, read-only.
///
/// # Errors
/// Those of mmap; EPERM for a file that somebody could cut, which is no ring.
pub fn map(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<Memory> {
    let mapping = Mapping::new(fd, bytes, ProtFlags::READ, MapFlags::empty())?;
    let (start, bytes) = (mapping.start, mapping.bytes);
    // SAFETY: mappings are aligned to pages, and this one is valid for reads
    // until its owner is dropped: nobody can cut the file, which is the
    // kernel's or sealed, as `check` has seen. This program only reads it, by the atomics of
    // `Memory`.
    Ok(unsafe { Memory::from_raw(start, bytes, Arc::new(mapping)) })
}

/// The first `bytes` of a memfd for the one producer of a new ring. All of its
/// pages are there when this returns, and are locked in memory if `locked`.
///
/// # Errors
/// As of [`map`].
pub fn map_writable(fd: BorrowedFd<'_>, bytes: u64, locked: bool) -> io::Result<MemoryMut> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let lock = if locked {
        MapFlags::LOCKED
    } else {
        MapFlags::empty()
    };
    let mapping = Mapping::new(fd, bytes, access, MapFlags::POPULATE | lock)?;
    let (start, bytes) = (mapping.start, mapping.bytes);
    // SAFETY: as in `map`, and valid for writes as well. All other mappings of
    // the memfd are read-only, and this program goes by the atomics of
    // `MemoryMut` and `Memory`.
    Ok(unsafe { MemoryMut::from_raw(start, bytes, Arc::new(mapping)) })
}

/// The wake word of a ring, for a futex.
///
/// # Safety
/// The address is that of the wake word of a ring that stays mapped for as long as the word is used, and nobody writes
/// it by this reference: the ring may be mapped read-only.
unsafe fn wake_word<'a>(address: *const u32) -> &'a AtomicU32 {
    // SAFETY: as above; the wake word of a ring is aligned.
    unsafe { AtomicU32::from_ptr(address.cast_mut()) }
}

/// Sleeps until the ring's producer changes the wake word, which was `value`;
/// at most so long. May return early.
///
/// # Errors
/// EINTR if a signal came.
pub fn sleep(ring: &Reader, value: u32, timeout: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(timeout).map_err(|_| io::Errno::INVAL)?;
    // SAFETY: the ring stays mapped as long as it is borrowed, and FUTEX_WAIT does not write.
    let word = unsafe { wake_word(ring.wake_address()) };
    // Not private: the producer may be another process.
    match futex::wait(word, futex::Flags::empty(), value, Some(&timeout)) {
        Ok(()) | Err(io::Errno::AGAIN | io::Errno::TIMEDOUT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Wakes all who sleep on the ring of this producer.
pub fn wake(ring: &mut Writer) {
    ring.change_wake();
    // SAFETY: the ring stays mapped as long as it is borrowed, and FUTEX_WAKE does not write.
    let word = unsafe { wake_word(ring.wake_address()) };
    // Nothing to do about an address that is no futex; it is one.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;

    #[test]
    fn a_file_that_somebody_could_cut_is_not_mapped() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; 8192]).expect("to write");
        let refused = |fd: BorrowedFd<'_>, bytes| map(fd, bytes).err() == Some(io::Errno::PERM);
        assert!(refused(file.as_fd(), 8192));
        let memory = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        let memory = memory.expect("a file in memory");
        ftruncate(&memory, 4096).expect("to lengthen");
        assert!(refused(memory.as_fd(), 4096), "not sealed");
        fcntl_add_seals(&memory, SealFlags::SHRINK).expect("to seal");
        assert!(refused(memory.as_fd(), 8192), "more than there is");
        assert!(map(memory.as_fd(), 4096).is_ok());
    }
}
