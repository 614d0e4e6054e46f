// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers of the kernel engine's rings.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use strobe_hw::{mmap, uapi};
use strobe_ring::Reader;

use crate::error::Error;
use crate::info::RunInfo;
use crate::reader::{ReaderOptions, RunReader, Waiter};

/// The run that a reader is of.
#[derive(Clone, Copy)]
pub(super) enum Whose<'e> {
    /// One's own, on this event.
    Event(&'e str),
    /// The one of this number.
    Run(u32),
}

impl fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whose::Event(event) => write!(f, "run on event {event}"),
            Whose::Run(number) => write!(f, "run kernel:{number}"),
        }
    }
}

impl Whose<'_> {
    /// The words for a reader that cannot be had.
    pub(super) fn no_reader(self, doing: &'static str, errno: Errno) -> Error {
        match (self, errno) {
            (Whose::Run(run), Errno::NOENT) => Error::NoRun(run),
            (Whose::Run(run), Errno::ACCESS) => Error::NotShared(run),
            _ => Error::exhausted(self.to_string(), doing, errno).unwrap_or(Error::Reader {
                run: self.to_string(),
                doing,
                source: errno.into(),
            }),
        }
    }
}

pub(super) fn reader(
    fd: BorrowedFd<'_>,
    whose: Whose<'_>,
    info: &RunInfo,
    options: ReaderOptions,
) -> Result<RunReader, Error> {
    let (ring, fd) = attach(fd, whose, options)?;
    Ok(RunReader::new(ring, Box::new(RingFd(fd)), info, options))
}

/// The ring, and its fd.
pub(super) fn attach(
    fd: BorrowedFd<'_>,
    whose: Whose<'_>,
    options: ReaderOptions,
) -> Result<(Reader, OwnedFd), Error> {
    let number = match whose {
        Whose::Event(_) => 0,
        Whose::Run(number) => number,
    };
    attach_to(fd, number, whose, options)
}

/// The same of an owner fd, for a run that is known by its number.
pub(super) fn attach_own(
    owner: BorrowedFd<'_>,
    whose: Whose<'_>,
    options: ReaderOptions,
) -> Result<(Reader, OwnedFd), Error> {
    attach_to(owner, 0, whose, options)
}

fn attach_to(
    fd: BorrowedFd<'_>,
    number: u32,
    whose: Whose<'_>,
    options: ReaderOptions,
) -> Result<(Reader, OwnedFd), Error> {
    let failed = |doing| move |errno| whose.no_reader(doing, errno);
    let (fd, bytes) = uapi::reader(fd, number).map_err(failed("making a reader"))?;
    let memory = mmap::map(fd.as_fd(), bytes).map_err(failed("mapping its ring"))?;
    let ring = options.attach(memory).map_err(|source| Error::Ring {
        run: whose.to_string(),
        source,
    })?;
    Ok((ring, fd))
}

/// A ring fd: sleeps by `STROBE_ARM` and poll.
struct RingFd(OwnedFd);

impl Waiter for RingFd {
    fn wait(&self, _: &Reader, rows: u64, timeout: Duration) -> io::Result<()> {
        uapi::arm(self.0.as_fd(), rows)?;
        Ok(wait_for(self.0.as_fd(), timeout)?)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn arm(&self, _: &Reader, rows: u64) -> io::Result<()> {
        Ok(uapi::arm(self.0.as_fd(), rows)?)
    }

    /// So many rows are never made; 0 would mean that `read` has rows.
    fn disarm(&self) -> io::Result<()> {
        Ok(uapi::arm(self.0.as_fd(), u64::MAX)?)
    }

    /// It is woken at the row that it has armed, without being asked.
    fn wake_at_each_row(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Until the file can be read, the time is over, or a signal came. A time that is longer than the system can say is
/// for ever.
pub(super) fn wait_for(fd: BorrowedFd<'_>, timeout: Duration) -> Result<(), Errno> {
    let timeout = Timespec::try_from(timeout).ok();
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}
