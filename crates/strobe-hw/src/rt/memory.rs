// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that stays: locked, or asked for beside what is.

use std::io;
use std::mem::MaybeUninit;

use rustix::process::{Resource, getrlimit};

use super::{Step, status_kb, step};

/// What to do about the limit of locked memory.
const RAISE_MEMLOCK: &str =
    "raise it (LimitMEMLOCK=infinity, or a memlock line in /etc/security/limits.conf), or be root";

/// Locks all memory of this process, now and in future, for good. What was refused may be had later: it is asked for
/// anew.
pub fn lock_memory() -> Step {
    // SAFETY: takes no pointer.
    let refused = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0;
    let error = io::Error::last_os_error();
    let locked = status_kb("VmLck:").unwrap_or(0);
    match refused {
        false => step("memory", locked > 0, format!("all locked, {locked} KiB")),
        true => step("memory", false, not_locked(&error)),
    }
}

/// Locks the stack of the calling thread, which must not be the first of the process, for as long as the thread is
/// there.
pub fn lock_stack() -> Step {
    match stack().and_then(|(start, bytes)| lock(start, bytes).map(|()| bytes)) {
        Ok(bytes) => step(
            "stack",
            true,
            format!("{} KiB, locked", bytes.div_ceil(1024)),
        ),
        Err(error) => step("stack", false, not_locked(&error)),
    }
}

fn not_locked(error: &io::Error) -> String {
    let limit = getrlimit(Resource::Memlock).current;
    let limit = limit.map_or("none".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
    format!("not locked: {error}; the limit is {limit} (ulimit -l): {RAISE_MEMLOCK}")
}

/// Where the stack of this thread begins, and its bytes.
fn stack() -> io::Result<(*mut libc::c_void, usize)> {
    let errno = |number| match number {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the first call fills the attributes, which the others may use then; all pointers are to our stack.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        errno(libc::pthread_getattr_np(libc::pthread_self(), attributes))?;
        let got = errno(libc::pthread_attr_getstack(
            attributes, &mut start, &mut bytes,
        ));
        libc::pthread_attr_destroy(attributes);
        got?;
    }
    Ok((start, bytes))
}

fn lock(start: *mut libc::c_void, bytes: usize) -> io::Result<()> {
    // SAFETY: the call reads and writes none of these bytes, and refuses what is not there.
    match unsafe { libc::mlock(start, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The words for an error of new memory, or of a thread with its stack, of so many bytes: once all memory is
/// locked, what may be locked is all that there may be, and the system's word for that is EAGAIN.
pub fn lock_limit(error: io::Error, bytes: u64) -> io::Error {
    if error.raw_os_error() != Some(libc::EAGAIN) || !is_beyond_lock_limit(bytes) {
        return error;
    }
    let limit = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX) / 1024;
    let words = format!(
        "{} KiB more would be locked in memory, as all of this process, and the limit is {limit} KiB (ulimit -l): \
         {RAISE_MEMLOCK}",
        bytes.div_ceil(1024)
    );
    io::Error::new(io::ErrorKind::OutOfMemory, words)
}

/// Whether so many bytes cannot be had for the limit of locked memory. They are asked for, and given back.
fn is_beyond_lock_limit(bytes: u64) -> bool {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, that nobody may use, and its end.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
        }
        libc::munmap(start, bytes);
    }
    false
}

/// Whether so many bytes more can be locked in memory. They are asked for, and given back; none is touched.
pub fn try_lock(bytes: u64) -> io::Result<()> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, that nobody may use, and its end. The lock is of that
    // mapping only, and goes with it.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let refused = libc::mlock2(start, bytes, libc::MLOCK_ONFAULT as libc::c_uint) != 0;
        let error = io::Error::last_os_error();
        libc::munmap(start, bytes);
        match refused {
            true => Err(error),
            false => Ok(()),
        }
    }
}
