// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wait by io_uring(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

/// Reads of an eventfd.
pub struct Uring {
    ring: IoUring,
    fd: OwnedFd,
    /// Where the count is read to. It is never given back: who knows when the kernel lets go of a read that was not
    /// complete when the ring was closed?
    count: &'static mut u64,
}

impl Uring {
    /// Of this eventfd.
    ///
    /// # Errors
    /// The kernel has no rings for this process.
    pub fn new(fd: OwnedFd) -> io::Result<Uring> {
        Ok(Uring {
            ring: IoUring::new(2)?,
            fd,
            count: Box::leak(Box::new(0)),
        })
    }

    /// Submits a read and sleeps until it is complete, in one system call.
    ///
    /// # Errors
    /// Those of the read.
    pub fn wait(&mut self) -> io::Result<()> {
        let to: *mut u64 = self.count;
        let fd = types::Fd(self.fd.as_fd().as_raw_fd());
        let read = opcode::Read::new(fd, to.cast(), 8).build();
        // SAFETY: the eight bytes are there for ever, and nobody else touches them; the descriptor is open until the
        // read is complete, which this waits for.
        let pushed = unsafe { self.ring.submission().push(&read) };
        // The queue is empty each time.
        pushed.map_err(|_| Errno::BUSY)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => done?,
            };
            if let Some(done) = self.ring.completion().next() {
                return match done.result() {
                    8 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
            }
        }
    }
}
