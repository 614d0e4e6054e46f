// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the thread of a run wakes readers that want each row at once: by one descriptor, with one call a row, however many
//! they are. As long as nobody has asked for it, a row costs a look at a word of memory.
//!
//! The descriptor is given to readers in other processes, too, but only to those of the same user and of root: they could
//! read and write it, so that others are woken for nothing or find their row when they look the next time; and who takes
//! O_NONBLOCK from it, which all its holders have in common, and fills it makes the thread of the run sleep.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// Wakes readers. The run, the thread that makes rows and the readers have it in common.
pub struct ReaderWaker {
    fd: OwnedFd,
    /// Those who have asked to be woken.
    subscribers: AtomicU32,
}

/// Somebody who wants to be woken at each row, for as long as this is there.
pub struct ReaderWakeups(Arc<ReaderWaker>);

impl ReaderWaker {
    /// Nobody has asked yet.
    ///
    /// # Errors
    /// No more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(ReaderWaker {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            subscribers: AtomicU32::new(0),
        })
    }

    /// Becomes ready, as an edge, each time that readers are woken. Nobody has to read it.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// One more who wants to be woken.
    pub fn subscribe(self: &Arc<Self>) -> ReaderWakeups {
        self.subscribers.fetch_add(1, Ordering::Relaxed);
        ReaderWakeups(Arc::clone(self))
    }

    /// Whether somebody wants to be woken at each row. Who has just asked may miss one; it finds it when it looks.
    #[inline]
    pub fn has_subscribers(&self) -> bool {
        self.subscribers.load(Ordering::Relaxed) != 0
    }

    /// Wakes all who wait for the descriptor.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        if rustix::io::write(&self.fd, &one) == Err(Errno::AGAIN) {
            // Full: somebody who has the descriptor has written to it.
            let _ = rustix::io::read(&self.fd, &mut [0; 8]);
            let _ = rustix::io::write(&self.fd, &one);
        }
    }
}

impl Drop for ReaderWakeups {
    fn drop(&mut self) {
        self.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}
