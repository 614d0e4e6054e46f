// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a ring: a memfd that cannot be cut, and that only its producer can write.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open,
};
use rustix::io::Errno;
use strobe_hw::mmap;
use strobe_hw::rt;
use strobe_ring::{AttachError, MemoryMut, Reader};

use crate::error::Error;
use crate::reader::ReaderOptions;

/// The file of a ring, to be read only.
pub struct RingFile {
    fd: OwnedFd,
    bytes: u64,
}

/// Makes the memory of a ring, and the file that its readers get. If it is to be locked in memory, that is tried; whether
/// it is locked is the second of the answers.
///
/// # Errors
/// Not enough memory, or no more file descriptors.
pub fn ring_memory(bytes: u64, lock: bool) -> io::Result<(MemoryMut, bool, RingFile)> {
    let writable = memfd_create(
        "strobe-ring",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    ftruncate(&writable, bytes)?;
    fcntl_add_seals(&writable, SealFlags::SHRINK | SealFlags::GROW)?;
    let (memory, locked) = match mmap::map_writable(writable.as_fd(), bytes, lock) {
        Ok(memory) => (memory, lock),
        // Too little may be locked: it is there all the same.
        Err(Errno::AGAIN | Errno::PERM) if lock => {
            (mmap::map_writable(writable.as_fd(), bytes, false)?, false)
        }
        Err(errno) => return Err(errno.into()),
    };
    // From now on nobody can map it to write, and nobody can undo that.
    fcntl_add_seals(&writable, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
    // A descriptor that was opened for reading, so that it can be given away.
    let path = format!("/proc/self/fd/{}", writable.as_raw_fd());
    let fd = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((memory, locked, RingFile { fd, bytes }))
}

impl RingFile {
    /// The file, as another process gave it to us; it has to be a ring's.
    ///
    /// # Errors
    /// Those of the descriptor.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let size = rustix::fs::fstat(&fd)?.st_size;
        let sealed = rustix::fs::fcntl_get_seals(&fd)?;
        if !sealed.contains(SealFlags::SHRINK) {
            // Who can cut the file can kill us.
            return Err(Errno::PERM.into());
        }
        let bytes = u64::try_from(size).unwrap_or(0);
        Ok(RingFile { fd, bytes })
    }

    /// The descriptor to give away: it can be mapped to read, and no more.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// A reader of its own, without a way to sleep.
    ///
    /// # Errors
    /// It cannot be mapped, or is no ring.
    pub fn attach(&self, options: ReaderOptions) -> Result<Reader, ReaderError> {
        let memory = mmap::map(self.fd.as_fd(), self.bytes);
        let memory = memory.map_err(|errno| rt::lock_limit(errno.into(), self.bytes))?;
        Ok(options.attach(memory)?)
    }

    /// Readers in this process.
    pub fn readers(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }
}

/// Why there is no reader.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The system's reason.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The memory is no ring of this version.
    #[error("{0}")]
    Ring(#[from] AttachError),
}

impl ReaderError {
    /// The words for it, of a reader of this run.
    pub(super) fn of(self, run: String) -> Error {
        match self {
            ReaderError::Io(source) => Error::Reader {
                run,
                doing: "making a reader",
                source,
            },
            ReaderError::Ring(source) => Error::Ring { run, source },
        }
    }
}
