// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bell with which the owner of a run calls its thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::thread::futex;

/// The rope: rings the bell, from any thread.
#[derive(Clone)]
pub struct Rope(Arc<Shared>);

struct Shared {
    /// How often it was rung. Written by those who ring, read by the run's thread, which may wait for a
    /// change of it.
    rings: AtomicU32,
    /// The same for those who wait for file descriptors.
    fd: OwnedFd,
}

/// The bell of one thread.
pub struct Bell {
    shared: Arc<Shared>,
    /// Rings that were answered.
    heard: u32,
}

/// A bell and its rope.
///
/// # Errors
/// No more file descriptors.
pub fn bell() -> io::Result<(Rope, Bell)> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let rings = AtomicU32::new(0);
    let shared = Arc::new(Shared { rings, fd });
    let rope = Rope(Arc::clone(&shared));
    Ok((rope, Bell { shared, heard: 0 }))
}

impl Rope {
    /// Rings: whatever the thread waits for, it comes back soon.
    pub fn ring(&self) {
        // Release, with the Acquire of `rang`: what is to be done was written before.
        self.0.rings.fetch_add(1, Ordering::Release);
        // Both can only fail if the thread needs no waking: nobody sleeps, or the count is full.
        let _ = futex::wake(&self.0.rings, futex::Flags::PRIVATE, 1);
        let _ = rustix::io::write(&self.0.fd, &1_u64.to_ne_bytes());
    }
}

impl Bell {
    /// Whether it was rung since [`Bell::answer`]. Costs a load: for who waits by spinning.
    #[inline]
    pub fn rang(&self) -> bool {
        self.shared.rings.load(Ordering::Acquire) != self.heard
    }

    /// All rings so far are being seen to.
    pub fn answer(&mut self) {
        let mut count = [0; 8];
        // Empty is as good as emptied.
        let _ = rustix::io::read(&self.shared.fd, &mut count);
        self.heard = self.shared.rings.load(Ordering::Acquire);
    }

    /// Sleeps until the bell rings or, on CLOCK_MONOTONIC, this instant has come; without one, until the
    /// bell rings. One system call. May return early.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_until(&self, monotonic_ns: Option<u64>) -> io::Result<()> {
        let until = monotonic_ns.map(timespec);
        let all = std::num::NonZeroU32::MAX;
        let word = &self.shared.rings;
        match futex::wait_bitset(word, futex::Flags::PRIVATE, self.heard, until.as_ref(), all) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sleeps until this descriptor is ready to be read (or has an error), or the bell rings. Answers
    /// whether it is the descriptor. One system call.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_for(&self, fd: BorrowedFd<'_>, ready: PollFlags) -> io::Result<bool> {
        self.doze(fd, ready, None)
    }

    /// The same, but not for longer than so many ns.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_at_most(&self, ns: u64, fd: BorrowedFd<'_>, ready: PollFlags) -> io::Result<bool> {
        self.doze(fd, ready, Some(&timespec(ns)))
    }

    fn doze(
        &self,
        fd: BorrowedFd<'_>,
        ready: PollFlags,
        most: Option<&Timespec>,
    ) -> io::Result<bool> {
        let mut both = [
            PollFd::from_borrowed_fd(fd, ready),
            PollFd::new(&self.shared.fd, PollFlags::IN),
        ];
        match poll(&mut both, most) {
            Ok(_) => {
                let [event, bell] = both;
                if !bell.revents().is_empty() && !self.rang() {
                    // Of a ring that was answered before it came to the descriptor. Were it left there, no
                    // wait would sleep any more, and a real-time thread would never let go of its CPU.
                    let _ = rustix::io::read(&self.shared.fd, &mut [0; 8]);
                }
                Ok(!event.revents().is_empty() && !self.rang())
            }
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_answered_is_quiet_and_what_came_since_is_not() {
        let (rope, mut bell) = bell().expect("a bell");
        let is_loud = |bell: &Bell| rustix::io::read(bell, &mut [0; 8]).is_ok();
        rope.ring();
        bell.answer();
        assert!(!bell.rang() && !is_loud(&bell), "no wait ends for it");
        rope.ring();
        assert!(bell.rang() && is_loud(&bell));
        // Rung before the sleep: it does not begin.
        bell.sleep_until(None).expect("to come back");
    }

    #[test]
    fn a_ring_that_was_answered_half_way_does_not_keep_the_thread_awake() {
        let (rope, mut bell) = bell().expect("a bell");
        let never = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
        // The first half of a ring, its answer, the second half.
        rope.0.rings.fetch_add(1, Ordering::Release);
        bell.answer();
        rustix::io::write(&rope.0.fd, &1_u64.to_ne_bytes()).expect("to write");
        let ringer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            rope.ring();
        });
        let mut waits = 0;
        while !bell.rang() {
            waits += 1;
            let ready = bell.sleep_for(never.as_fd(), PollFlags::IN);
            assert_eq!(ready.ok(), Some(false));
        }
        assert!(waits <= 2, "{waits} waits for one ring");
        ringer.join().expect("it rang");
    }
}
