// SPDX-License-Identifier: MIT OR Apache-2.0
//! An endpoint: a file that is read and written a message at a time. It can be polled, sent to another process, and ends
//! when it is dropped.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;

use super::call;
use super::error::Error;

/// What an endpoint is, and what it has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Its address.
    pub src: u32,
    /// Where its messages go.
    pub dst: u32,
    /// Bytes of a message at most; 0: the transport does not say.
    pub mtu: u32,
    /// Messages that wait to be received.
    pub queued: u32,
    /// Messages that were queued so far.
    pub received: u64,
    /// Messages that found no room in the queue, and are lost.
    pub dropped: u64,
    /// Messages that the transport has taken.
    pub sent: u64,
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    fd: OwnedFd,
    src: u32,
}

/// The file of a node that is an endpoint: the stock driver's have no figures.
impl From<std::fs::File> for Endpoint {
    fn from(node: std::fs::File) -> Endpoint {
        let src = call::stats(node.as_fd()).map_or(call::ANY, |stats| stats.address);
        Endpoint::new(node.into(), src)
    }
}

/// One that somebody else has made, and has passed on.
impl TryFrom<OwnedFd> for Endpoint {
    type Error = Error;

    fn try_from(fd: OwnedFd) -> Result<Endpoint, Error> {
        let stats = call::stats(fd.as_fd()).map_err(|_| Error::NoEndpoint)?;
        Ok(Endpoint::new(fd, stats.address))
    }
}

impl Endpoint {
    pub(super) fn new(fd: OwnedFd, src: u32) -> Endpoint {
        Endpoint { fd, src }
    }

    /// Its address, to which the remote answers.
    pub fn address(&self) -> u32 {
        self.src
    }

    /// Whether [`Endpoint::receive`] and [`Endpoint::send`] wait.
    ///
    /// # Errors
    /// None is known.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<(), Error> {
        let set = rustix::fs::fcntl_getfl(&self.fd).and_then(|mut flags| {
            flags.set(OFlags::NONBLOCK, nonblocking);
            rustix::fs::fcntl_setfl(&self.fd, flags)
        });
        set.map_err(|errno| self.failed("setting its flags", errno))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The remote has gone, the message is too long, or the transport's; EAGAIN if it has no room and may not wait.
    pub fn send(&self, message: &[u8]) -> Result<(), Error> {
        let sent = retry(|| rustix::io::write(&self.fd, message));
        sent.map(|_| ()).map_err(|errno| match errno {
            Errno::MSGSIZE => Error::TooLong {
                src: self.src,
                bytes: message.len(),
                mtu: self.stats().map_or(0, |stats| stats.mtu),
            },
            Errno::DESTADDRREQ => Error::NoDestination(self.src),
            errno => self.failed("sending", errno),
        })
    }

    /// Waits for the next message; of a longer one the rest is lost. Its bytes.
    ///
    /// # Errors
    /// The remote has gone, and all that had come was received; EAGAIN if there is none and it may not wait.
    pub fn receive(&self, message: &mut [u8]) -> Result<usize, Error> {
        let received = retry(|| rustix::io::read(&self.fd, &mut *message));
        received.map_err(|errno| self.failed("receiving", errno))
    }

    /// Waits until a message is there, or the remote has gone, for so long. Whether there is news; a signal ends it too.
    ///
    /// # Errors
    /// None is known.
    pub fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Err(Errno::INTR) => Ok(false),
            ready => ready
                .map(|ready| ready > 0)
                .map_err(|errno| self.failed("waiting", errno)),
        }
    }

    /// What it is, and what it has done.
    ///
    /// # Errors
    /// None is known.
    pub fn stats(&self) -> Result<Stats, Error> {
        let raw = call::stats(self.fd.as_fd());
        let raw = raw.map_err(|errno| self.failed("asking for its figures", errno))?;
        Ok(Stats {
            src: raw.address,
            dst: raw.dst,
            mtu: raw.mtu,
            queued: raw.queued,
            received: raw.received,
            dropped: raw.dropped,
            sent: raw.sent,
        })
    }

    /// Ends it for all who have it: they get [`Error::Gone`].
    ///
    /// # Errors
    /// None is known.
    pub fn destroy(&self) -> Result<(), Error> {
        call::destroy(self.fd.as_fd()).map_err(|errno| self.failed("destroying", errno))
    }

    fn failed(&self, doing: &'static str, errno: Errno) -> Error {
        match errno {
            Errno::PIPE => Error::Gone(self.src),
            errno => Error::Call {
                doing,
                source: errno.into(),
            },
        }
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Endpoint> for OwnedFd {
    fn from(endpoint: Endpoint) -> OwnedFd {
        endpoint.fd
    }
}

/// A signal ends no wait.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_is_no_endpoint() {
        let file = tempfile::tempfile().expect("a file");
        let endpoint = Endpoint::try_from(OwnedFd::from(file));
        assert!(matches!(endpoint, Err(Error::NoEndpoint)));
    }
}
