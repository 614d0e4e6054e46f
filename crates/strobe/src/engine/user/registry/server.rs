// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of an owner that answers those who connect. It has nothing to do with the thread that makes rows.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with,
    recv, send, sendmsg,
};
use rustix::process::geteuid;
use strobe_hw::rt;

use super::claim::Claim;
use super::message::Message;
use crate::engine::user::connection::{STAYS, TUNE_WORDS, TUNED, TUNES, WAKES};
use crate::engine::user::memfd::RingFile;
use crate::engine::user::reader_waker::{ReaderWaker, ReaderWakeups};
use crate::engine::user::tuning::Tuning;
use crate::info::RunInfo;

/// Connections at the same time.
const CLIENTS_MAX: usize = 256;
/// Bytes of the thread's stack; they may be locked in memory.
const STACK: usize = 256 * 1024;

/// What the thread tells.
pub struct ServedRun {
    /// The run.
    pub info: RunInfo,
    /// Its ring.
    pub ring: Arc<RingFile>,
    /// What wakes its readers.
    pub reader_waker: Arc<ReaderWaker>,
    /// What tunes it, if it has a program.
    pub tuning: Option<Arc<Tuning>>,
}

/// The thread. It ends, and closes all connections, when this is dropped.
pub struct Server {
    end: Arc<OwnedFd>,
    /// Readers in other processes. Written by the thread.
    elsewhere: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers from now on.
    pub fn new(claim: Claim, about: ServedRun) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let mut server = ServerThread {
            end: Arc::clone(&end),
            // Given away as it is; the ring's own descriptor counts readers, this one does not.
            offer: Offer {
                ring: about.ring.fd().try_clone()?,
                reader_waker: about.reader_waker,
                tuning: about.tuning,
            },
            readers: Arc::downgrade(&about.ring),
            info: about.info,
            program: program.trim_end().to_owned(),
            claim,
            clients: Vec::new(),
            elsewhere: Arc::default(),
        };
        let elsewhere = Arc::clone(&server.elsewhere);
        let thread = Builder::new().name("strobe-registry".to_owned());
        let thread = thread.stack_size(STACK).spawn(move || {
            rt::block_signals();
            server.work();
        });
        let thread = thread.map_err(|error| rt::lock_limit(error, STACK as u64))?;
        Ok(Server {
            end,
            elsewhere,
            thread: Some(thread),
        })
    }
}

impl Server {
    /// Readers in other processes.
    pub fn readers_elsewhere(&self) -> u32 {
        self.elsewhere.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An eventfd can be written until it has counted to 2^64.
        let _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// All that the thread has.
struct ServerThread {
    end: Arc<OwnedFd>,
    claim: Claim,
    offer: Offer,
    readers: Weak<RingFile>,
    info: RunInfo,
    program: String,
    clients: Vec<Client>,
    elsewhere: Arc<AtomicU32>,
}

/// What a client may get and do.
struct Offer {
    ring: OwnedFd,
    reader_waker: Arc<ReaderWaker>,
    tuning: Option<Arc<Tuning>>,
}

/// One connection.
struct Client {
    socket: OwnedFd,
    /// What it has said that is not complete.
    heard: Vec<u8>,
    /// What it is told and has not got yet.
    message: Vec<u8>,
    /// It has the ring: that goes with the first byte.
    has_ring: bool,
    reads: bool,
    /// It wants to be woken at each row, and was not answered yet.
    wants_wakeups: bool,
    /// For as long as it is woken.
    wakeups: Option<ReaderWakeups>,
}

impl ServerThread {
    fn work(&mut self) {
        loop {
            let mut fds = vec![
                PollFd::new(&*self.end, PollFlags::IN),
                PollFd::new(self.claim.socket(), PollFlags::IN),
            ];
            fds.extend(self.clients.iter().map(Client::waits_for));
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(Errno::INTR | Errno::NOMEM) => continue,
                Err(_) => return,
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            let (end, arrival) = (ready.next(), ready.next());
            let ready: Vec<bool> = ready.collect();
            if end == Some(true) {
                return;
            }
            let mut ready = ready.into_iter();
            let offer = &self.offer;
            self.clients
                .retain_mut(|client| ready.next() != Some(true) || client.serve(offer));
            if arrival == Some(true) {
                self.accept();
            }
            self.elsewhere
                .store(self.readers_elsewhere(), Ordering::Relaxed);
        }
    }

    /// Those who have arrived.
    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let socket = match accept_with(self.claim.socket(), flags) {
                Ok(socket) => socket,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::AGAIN) => return,
                // No more descriptors: it is not to be tried again at once.
                Err(_) => return std::thread::sleep(Duration::from_millis(50)),
            };
            if !self.may(&socket) || self.clients.len() >= CLIENTS_MAX {
                continue;
            }
            let mut client = Client {
                socket,
                heard: Vec::new(),
                message: Message::new(&self.info, &self.program, self.readers()).line(),
                has_ring: false,
                reads: false,
                wants_wakeups: false,
                wakeups: None,
            };
            if client.serve(&self.offer) {
                self.clients.push(client);
            }
        }
    }

    /// Whether who has connected may know.
    fn may(&self, socket: &OwnedFd) -> bool {
        self.claim.shared() || is_trusted(socket)
    }

    /// Readers here and in other processes.
    fn readers(&self) -> u32 {
        // The run itself has the ring, too.
        let here = self.readers.strong_count().saturating_sub(1);
        u32::try_from(here)
            .unwrap_or(u32::MAX)
            .saturating_add(self.readers_elsewhere())
    }

    fn readers_elsewhere(&self) -> u32 {
        let elsewhere = self.clients.iter().filter(|client| client.reads).count();
        u32::try_from(elsewhere).unwrap_or(u32::MAX)
    }
}

impl Client {
    /// Who is to be told something is not heard until he has it: so he cannot ask for more than he takes.
    fn waits_for(&self) -> PollFd<'_> {
        let more = !self.message.is_empty() || self.wants_wakeups;
        let flags = if more { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.socket, flags)
    }

    /// Hears and says what can be heard and said now; false if it has gone.
    fn serve(&mut self, offer: &Offer) -> bool {
        if self.message.is_empty() {
            let mut words = [0; 64];
            match recv(&self.socket, &mut words[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok((count, _)) => {
                    self.heard.extend(words.iter().take(count));
                    self.hear(offer);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        while !self.message.is_empty() {
            let sent = match self.has_ring {
                false => send_with(&self.socket, &self.message, &offer.ring),
                true => send(&self.socket, &self.message, SendFlags::NOSIGNAL),
            };
            match sent {
                Ok(count) => {
                    self.message.drain(..count);
                    self.has_ring = true;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        if self.wants_wakeups {
            // Before the answer: who has it is woken at the next row.
            let wakeups = is_trusted(&self.socket).then(|| offer.reader_waker.subscribe());
            let told = match wakeups {
                Some(_) => send_with(&self.socket, &[WAKES], offer.reader_waker.fd()),
                // Who has the descriptor could make the thread of the run sleep in a write to it.
                None => send(&self.socket, &[WAKES], SendFlags::NOSIGNAL),
            };
            match told {
                Ok(_) => {
                    self.wants_wakeups = false;
                    self.wakeups = wakeups;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// What it has said so far; a part of something stays until the rest comes.
    fn hear(&mut self, offer: &Offer) {
        let heard = std::mem::take(&mut self.heard);
        let mut rest = heard.as_slice();
        while let Some((word, behind)) = rest.split_first() {
            match *word {
                STAYS => self.reads = true,
                WAKES => self.wants_wakeups |= self.wakeups.is_none(),
                TUNES => {
                    let Some((words, behind)) = behind.split_first_chunk::<TUNE_WORDS>() else {
                        self.heard = rest.to_vec();
                        return;
                    };
                    let answer = self.tune(offer, words);
                    self.message.extend(answer);
                    rest = behind;
                    continue;
                }
                _ => {}
            }
            rest = behind;
        }
    }

    /// The answer to who tunes the run.
    fn tune(&self, offer: &Offer, words: &[u8; TUNE_WORDS]) -> [u8; TUNED] {
        let [a, b, c, d, word @ ..] = *words;
        let tunable = usize::try_from(u32::from_ne_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let word = u64::from_ne_bytes(word);
        let tuned = match &offer.tuning {
            _ if !is_trusted(&self.socket) => Err(Errno::ACCESS),
            None => Err(Errno::INVAL),
            Some(tuning) => tuning.leave(tunable, word),
        };
        let errno = tuned.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
        let [a, b, c, d] = errno.to_ne_bytes();
        [TUNES, a, b, c, d]
    }
}

/// Whether at the other end is root, or the user of this process.
fn is_trusted(socket: &OwnedFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid())
}

/// The descriptor goes with the first byte.
fn send_with(socket: &OwnedFd, bytes: &[u8], fd: &OwnedFd) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
}
