// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection of readers to the owner of a run, who is another process. It is closed when the owner goes away.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

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
    asked: Mutex<Asked>,
}

/// What the owner was asked, and has answered.
#[derive(Default)]
struct Asked {
    /// What becomes ready at each row, once it has come.
    reader_waker: Option<Arc<OwnedFd>>,
    /// It was asked for, and has not come.
    wants_wakeups: bool,
    /// Answers to who has tuned the run and does not wait for them any more.
    unwanted: usize,
    /// What has come and is not complete.
    heard: Vec<u8>,
    /// Descriptors that have come.
    descriptors: VecDeque<OwnedFd>,
}

/// What the owner says.
enum Answer {
    /// A descriptor, if who has asked may have it.
    Wakes(Option<OwnedFd>),
    /// 0, or a negative errno.
    Tuned(i32),
}

impl Connection {
    /// On this socket.
    pub fn new(fd: OwnedFd) -> Self {
        Connection {
            fd,
            asked: Mutex::default(),
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
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + PATIENCE;
        if asked.reader_waker.is_none() && !asked.wants_wakeups {
            send(&self.fd, &[WAKES], SendFlags::NOSIGNAL)?;
            asked.wants_wakeups = true;
        }
        loop {
            if let Some(reader_waker) = &asked.reader_waker {
                return Ok(Arc::clone(reader_waker));
            }
            let answer = match asked.wants_wakeups {
                true => self.answer(&mut asked, until)?,
                false => None,
            };
            match answer {
                Some(answer) => asked.keep(answer),
                None => {
                    let why = "the owner of the run does not wake this reader for each row: it belongs to another user, \
                               or its program is older";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
            }
        }
    }

    /// Gives a tunable a new value.
    ///
    /// # Errors
    /// The owner's reason, or it does not answer.
    pub fn tune(&self, tunable: usize, word: u64) -> io::Result<()> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + PATIENCE;
        let mut question = vec![TUNES];
        question.extend(u32::try_from(tunable).unwrap_or(u32::MAX).to_ne_bytes());
        question.extend(word.to_ne_bytes());
        send(&self.fd, &question, SendFlags::NOSIGNAL)?;
        loop {
            match self.answer(&mut asked, until)? {
                Some(Answer::Tuned(errno)) if asked.unwanted == 0 => {
                    return match errno {
                        0 => Ok(()),
                        errno => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
                    };
                }
                Some(other) => asked.keep(other),
                None => {
                    asked.unwanted += 1;
                    let why = "the owner of the run does not answer: its program is older or stopped, and may take the \
                               value when it goes on";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
            }
        }
    }

    /// What the owner says next; `None` if it says nothing until then.
    fn answer(&self, asked: &mut Asked, until: Instant) -> io::Result<Option<Answer>> {
        loop {
            if let Some(answer) = asked.parse() {
                return Ok(Some(answer));
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.poll(PollFlags::IN, left) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            let mut part = [0; 64];
            let count = match receive_with(&self.fd, &mut part, &mut asked.descriptors) {
                Ok(0) => return Err(Errno::PIPE.into()),
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            asked.heard.extend(part.iter().take(count));
        }
    }

    fn poll(&self, what: PollFlags, at_most: Duration) -> Result<bool, Errno> {
        let at_most = Timespec::try_from(at_most).unwrap_or_default();
        let ready = poll(&mut [PollFd::new(&self.fd, what)], Some(&at_most))?;
        Ok(ready > 0)
    }
}

/// Receives what has come, without a wait, and the descriptors that came with it.
///
/// # Errors
/// Those of recvmsg(2).
pub(super) fn receive_with(
    socket: &OwnedFd,
    bytes: &mut [u8],
    descriptors: &mut impl Extend<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for told in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = told {
            descriptors.extend(fds);
        }
    }
    Ok(received.bytes)
}

impl Asked {
    /// What was heard next, if all of it has come.
    fn parse(&mut self) -> Option<Answer> {
        loop {
            match self.heard.first() {
                None => return None,
                Some(&WAKES) => {
                    self.heard.remove(0);
                    return Some(Answer::Wakes(self.descriptors.pop_front()));
                }
                Some(&TUNES) => {
                    let bytes = self.heard.get(1..TUNED)?.try_into().ok()?;
                    self.heard.drain(..TUNED);
                    return Some(Answer::Tuned(i32::from_ne_bytes(bytes)));
                }
                // Of a later version.
                Some(_) => self.heard.remove(0),
            };
        }
    }

    /// An answer that somebody else waits for, or nobody any more.
    fn keep(&mut self, answer: Answer) {
        match answer {
            Answer::Wakes(descriptor) => {
                self.wants_wakeups = false;
                self.reader_waker = descriptor.map(Arc::new);
            }
            Answer::Tuned(_) => self.unwanted = self.unwanted.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};

    use super::*;

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        (Connection::new(ours.into()), theirs)
    }

    fn tuned(errno: i32) -> Vec<u8> {
        [&[TUNES][..], &errno.to_ne_bytes()].concat()
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_taken_for_the_next_one() {
        let (connection, mut owner) = pair();
        let late = connection.tune(0, 1).expect_err("no answer");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        // The first question was refused, the second one is not.
        owner.write_all(&tuned(-34)).expect("heard");
        owner.write_all(&tuned(0)).expect("heard");
        connection.tune(0, 2).expect("to tune");
        let mut questions = [0; 2 * (1 + TUNE_WORDS)];
        owner.read_exact(&mut questions).expect("two questions");
        drop(owner);
        assert!(connection.tune(0, 3).is_err(), "nobody is there");
    }

    #[test]
    fn a_descriptor_that_comes_while_the_run_is_tuned_is_kept() {
        let (connection, owner) = pair();
        connection.reader_waker().expect_err("no answer");
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [std::os::fd::AsFd::as_fd(&event)];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        let words = [io::IoSlice::new(&[WAKES])];
        sendmsg(&owner, &words, &mut control, SendFlags::NOSIGNAL).expect("heard");
        (&owner).write_all(&tuned(0)).expect("heard");
        connection.tune(0, 1).expect("to tune");
        connection.reader_waker().expect("the descriptor");
    }
}
