// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection of readers to the owner of a run, who is another process. It is closed when the owner goes away.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send,
};

/// What who stays to read sends.
pub const STAYS: u8 = b'r';
/// What who wants to be woken at each row sends. The same comes back, and with it a descriptor.
pub const WAKES: u8 = b'w';
/// What who tunes the run sends, and [`TUNE_WORDS`] bytes after it. The same comes back, and an errno.
pub const TUNES: u8 = b't';
/// Bytes of which tunable, and of its word.
pub const TUNE_WORDS: usize = 4 + 8;
/// Bytes of the answer to that.
pub const TUNED: usize = 1 + 4;
/// How long the owner may take for its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection.
pub struct Connection {
    fd: OwnedFd,
    /// What becomes ready at each row, once it was asked for.
    reader_waker: Mutex<Option<Arc<OwnedFd>>>,
}

impl Connection {
    /// On this socket.
    pub fn new(fd: OwnedFd) -> Self {
        Connection {
            fd,
            reader_waker: Mutex::new(None),
        }
    }

    /// The socket.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Tells the owner that there is one more reader, for as long as this is open.
    pub fn stay(&self) {
        // If it has gone, the first wait says so.
        let _ = send(&self.fd, &[STAYS], SendFlags::NOSIGNAL);
    }

    /// Whether the owner has closed its end. It does nothing any more, so there is nothing else to be seen.
    pub fn is_owner_gone(&self) -> io::Result<bool> {
        match self.poll(PollFlags::RDHUP, Duration::ZERO) {
            Ok(is_gone) => Ok(is_gone),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What becomes ready at each row from now on; the owner is asked for it once.
    ///
    /// # Errors
    /// The owner does not answer.
    pub fn reader_waker(&self) -> io::Result<Arc<OwnedFd>> {
        let mut known = self
            .reader_waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(reader_waker) = &*known {
            return Ok(Arc::clone(reader_waker));
        }
        send(&self.fd, &[WAKES], SendFlags::NOSIGNAL)?;
        let reader_waker = Arc::new(self.receive()?);
        *known = Some(Arc::clone(&reader_waker));
        Ok(reader_waker)
    }

    /// Gives a tunable a new value.
    ///
    /// # Errors
    /// The owner's reason, or it does not answer.
    pub fn tune(&self, tunable: usize, word: u64) -> io::Result<()> {
        // One asks at a time.
        let _turn = self
            .reader_waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut question = vec![TUNES];
        question.extend(u32::try_from(tunable).unwrap_or(u32::MAX).to_ne_bytes());
        question.extend(word.to_ne_bytes());
        let mut answer = [0; TUNED];
        // What comes too late for who has asked before.
        while recv(&self.fd, &mut answer[..], RecvFlags::DONTWAIT).is_ok_and(|(count, _)| count > 0)
        {
        }
        send(&self.fd, &question, SendFlags::NOSIGNAL)?;
        let mut heard = 0;
        while heard < TUNED {
            if !self.poll(PollFlags::IN, PATIENCE)? {
                let why = "the owner of the run does not answer: its program is older, or stopped";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            let rest = answer.get_mut(heard..).unwrap_or_default();
            match recv(&self.fd, rest, RecvFlags::DONTWAIT)? {
                (0, _) => return Err(Errno::PIPE.into()),
                (count, _) => heard += count,
            }
        }
        let [_, a, b, c, d] = answer;
        match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
        }
    }

    fn receive(&self) -> io::Result<OwnedFd> {
        let silent = || {
            let why = "the owner of the run does not wake this reader for each row: it belongs to another user, or its \
            program is older";
            io::Error::new(io::ErrorKind::TimedOut, why)
        };
        if !self.poll(PollFlags::IN, PATIENCE)? {
            return Err(silent());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        recvmsg(
            &self.fd,
            &mut [IoSliceMut::new(&mut [0])],
            &mut control,
            flags,
        )?;
        let mut given = control.drain().filter_map(|told| match told {
            RecvAncillaryMessage::ScmRights(fds) => fds.last(),
            _ => None,
        });
        given.next().ok_or_else(silent)
    }

    fn poll(&self, what: PollFlags, at_most: Duration) -> Result<bool, Errno> {
        let at_most = Timespec::try_from(at_most).unwrap_or_default();
        let ready = poll(&mut [PollFd::new(&self.fd, what)], Some(&at_most))?;
        Ok(ready > 0)
    }
}
