// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wake-up call: the owner of a run ends a wait of its thread, whatever that waits for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::thread::futex;

/// How often who sleeps for a device looks whether it is there.
const LOOK_NS: u64 = 100_000_000;

/// The sender: wakes the thread that has the [`Wakeup`], from any thread.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

struct Shared {
    /// How often it was sent. Written by the senders, read by the run's thread, which may wait for a
    /// change of it.
    wakes: AtomicU32,
    /// The same for those who wait for file descriptors.
    fd: OwnedFd,
}

/// The receiver: the waits of one thread.
pub struct Wakeup {
    shared: Arc<Shared>,
    /// How many were acknowledged.
    acknowledged: u32,
}

/// A sender and its receiver.
///
/// # Errors
/// No more file descriptors.
pub fn wakeup() -> io::Result<(Waker, Wakeup)> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let wakes = AtomicU32::new(0);
    let shared = Arc::new(Shared { wakes, fd });
    let waker = Waker(Arc::clone(&shared));
    Ok((
        waker,
        Wakeup {
            shared,
            acknowledged: 0,
        },
    ))
}

impl Waker {
    /// Wakes the thread: whatever it waits for, it comes back soon.
    pub fn wake(&self) {
        // Release, with the Acquire of `is_pending`: what is to be done was written before.
        self.0.wakes.fetch_add(1, Ordering::Release);
        // Both can only fail if the thread needs no waking: nobody sleeps, or the count is full.
        let _ = futex::wake(&self.0.wakes, futex::Flags::PRIVATE, 1);
        let _ = rustix::io::write(&self.0.fd, &1_u64.to_ne_bytes());
    }
}

impl Wakeup {
    /// Whether the thread was woken since [`Wakeup::acknowledge`]. Costs a load: for who waits by spinning.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.shared.wakes.load(Ordering::Acquire) != self.acknowledged
    }

    /// What was sent so far is being seen to.
    pub fn acknowledge(&mut self) {
        let mut count = [0; 8];
        // Empty is as good as emptied.
        let _ = rustix::io::read(&self.shared.fd, &mut count);
        self.acknowledged = self.shared.wakes.load(Ordering::Acquire);
    }

    /// Sleeps until the thread is woken or, on CLOCK_MONOTONIC, this instant has come; without one, until the
    /// thread is woken. One system call. May return early.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_until(&self, monotonic_ns: Option<u64>) -> io::Result<()> {
        let until = monotonic_ns.map(timespec);
        let all = std::num::NonZeroU32::MAX;
        let word = &self.shared.wakes;
        match futex::wait_bitset(
            word,
            futex::Flags::PRIVATE,
            self.acknowledged,
            until.as_ref(),
            all,
        ) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sleeps until this descriptor is ready to be read (or has an error), or the thread is woken. Answers
    /// whether it is the descriptor. One system call.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_for(&self, fd: BorrowedFd<'_>, ready: PollFlags) -> io::Result<bool> {
        self.poll_with(fd, ready, None)
    }

    /// The same, but not for longer than so many ns.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_at_most(&self, ns: u64, fd: BorrowedFd<'_>, ready: PollFlags) -> io::Result<bool> {
        self.poll_with(fd, ready, Some(&timespec(ns)))
    }

    /// The same for the file of a device, which may be pulled: comes back ten times a second, to look whether the device is
    /// still there. Some drivers wake nobody when it goes, and UIO asks for it before it has the thread among those to be woken.
    ///
    /// # Errors
    /// None but those of a broken system.
    pub fn sleep_for_device(&self, fd: BorrowedFd<'_>, ready: PollFlags) -> io::Result<bool> {
        self.sleep_at_most(LOOK_NS, fd, ready)
    }

    fn poll_with(
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
                let [event, wakeup] = both;
                if !wakeup.revents().is_empty() && !self.is_pending() {
                    // Sent, and acknowledged before it came to the descriptor. Were it left there, no
                    // wait would sleep any more, and a real-time thread would never let go of its CPU.
                    let _ = rustix::io::read(&self.shared.fd, &mut [0; 8]);
                }
                Ok(!event.revents().is_empty() && !self.is_pending())
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

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_acknowledged_is_quiet_and_what_came_since_is_not() {
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        let is_loud = |wakeup: &Wakeup| rustix::io::read(wakeup, &mut [0; 8]).is_ok();
        waker.wake();
        wakeup.acknowledge();
        assert!(
            !wakeup.is_pending() && !is_loud(&wakeup),
            "no wait ends for it"
        );
        waker.wake();
        assert!(wakeup.is_pending() && is_loud(&wakeup));
        // Sent before the sleep: it does not begin.
        wakeup.sleep_until(None).expect("to come back");
    }

    #[test]
    fn a_wake_up_that_was_acknowledged_half_way_does_not_keep_the_thread_awake() {
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        let never = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
        // The first half of a wake-up, its acknowledgement, the second half.
        waker.0.wakes.fetch_add(1, Ordering::Release);
        wakeup.acknowledge();
        rustix::io::write(&waker.0.fd, &1_u64.to_ne_bytes()).expect("to write");
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            waker.wake();
        });
        let mut waits = 0;
        while !wakeup.is_pending() {
            waits += 1;
            let ready = wakeup.sleep_for(never.as_fd(), PollFlags::IN);
            assert_eq!(ready.ok(), Some(false));
        }
        assert!(waits <= 2, "{waits} waits for one wake-up");
        sender.join().expect("it woke");
    }
}
