// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a thread sleeps in, and what wakes it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;
use strobe_hw::uring::Uring;

use super::WakeMechanism;

/// The end that wakes.
pub trait Signal: Send {
    /// Wakes the sleeper. It cannot fail: memory and an eventfd take everything, and of a pipe or a socket each
    /// signal is read before the next one.
    fn signal(&self);
}

/// The end that sleeps.
pub trait Sleep: Send {
    /// Returns when the signal has come.
    fn sleep(&mut self) -> io::Result<()>;

    /// Takes away what the signal has left, where the sleep has not done that itself.
    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both ends.
pub struct Link {
    pub signal: Box<dyn Signal>,
    pub sleep: Box<dyn Sleep>,
}

impl Link {
    pub fn new(way: WakeMechanism) -> io::Result<Link> {
        let event = || -> io::Result<(OwnedFd, OwnedFd)> {
            let fd = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok((fd.try_clone()?, fd))
        };
        let ends: (OwnedFd, Box<dyn Sleep>) = match way {
            WakeMechanism::Spin | WakeMechanism::Futex => {
                return Ok(Link::by_word(way == WakeMechanism::Futex));
            }
            WakeMechanism::Eventfd => {
                let (signal, sleep) = event()?;
                (signal, Box::new(Read(sleep)))
            }
            WakeMechanism::Poll => {
                let (signal, sleep) = event()?;
                (signal, Box::new(Poll(Read(sleep))))
            }
            WakeMechanism::Epoll => {
                let (signal, sleep) = event()?;
                (signal, Box::new(Epoll::new(sleep)?))
            }
            WakeMechanism::Pipe => {
                let (sleep, signal) = pipe_with(PipeFlags::CLOEXEC)?;
                (signal, Box::new(Read(sleep)))
            }
            WakeMechanism::Socket => {
                let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::STREAM);
                let (signal, sleep) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
                (signal, Box::new(Read(sleep)))
            }
            WakeMechanism::Uring => {
                let (signal, sleep) = event()?;
                (signal, Box::new(Uring::new(sleep)?))
            }
        };
        let (signal, sleep) = ends;
        Ok(Link {
            signal: Box::new(Write(signal)),
            sleep,
        })
    }

    fn by_word(futex: bool) -> Link {
        let word = Arc::new(AtomicU32::new(0));
        let signal = Word {
            signals: Arc::clone(&word),
            seen: 0,
            futex,
        };
        Link {
            sleep: Box::new(Word {
                signals: word,
                ..signal
            }),
            signal: Box::new(Word {
                signals: Arc::clone(&signal.signals),
                ..signal
            }),
        }
    }
}

/// A count of signals in memory; either end of it.
struct Word {
    signals: Arc<AtomicU32>,
    /// Of them, by the sleeper.
    seen: u32,
    /// Sleeps in the kernel until it changes; else it looks all the time.
    futex: bool,
}

impl Signal for Word {
    fn signal(&self) {
        self.signals.fetch_add(1, Ordering::Release);
        if self.futex {
            // That nobody sleeps is no error.
            let _ = futex::wake(&self.signals, futex::Flags::PRIVATE, 1);
        }
    }
}

impl Sleep for Word {
    fn sleep(&mut self) -> io::Result<()> {
        while self.signals.load(Ordering::Acquire) == self.seen {
            if !self.futex {
                std::hint::spin_loop();
                continue;
            }
            match futex::wait(&self.signals, futex::Flags::PRIVATE, self.seen, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.seen = self.seen.wrapping_add(1);
        Ok(())
    }
}

/// Writes eight bytes; an eventfd counts them as one.
struct Write(OwnedFd);

impl Signal for Write {
    fn signal(&self) {
        let _ = retry_on_intr(|| rustix::io::write(&self.0, &1_u64.to_ne_bytes()));
    }
}

/// Sleeps in the read.
struct Read(OwnedFd);

impl Sleep for Read {
    fn sleep(&mut self) -> io::Result<()> {
        let mut bytes = [0; 8];
        match retry_on_intr(|| rustix::io::read(&self.0, &mut bytes))? {
            8 => Ok(()),
            _ => Err(Errno::PIPE.into()),
        }
    }
}

struct Poll(Read);

impl Sleep for Poll {
    fn sleep(&mut self) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.0.0, PollFlags::IN)];
        retry_on_intr(|| poll(&mut fds, None))?;
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.sleep()
    }
}

struct Epoll {
    epoll: OwnedFd,
    read: Read,
}

impl Epoll {
    fn new(fd: OwnedFd) -> io::Result<Epoll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&epoll, &fd, data, epoll::EventFlags::IN)?;
        Ok(Epoll {
            epoll,
            read: Read(fd),
        })
    }
}

impl Sleep for Epoll {
    fn sleep(&mut self) -> io::Result<()> {
        let mut events = [MaybeUninit::uninit()];
        retry_on_intr(|| epoll::wait(&self.epoll, &mut events, None).map(|_| ()))?;
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.read.sleep()
    }
}

impl Sleep for Uring {
    fn sleep(&mut self) -> io::Result<()> {
        self.wait()
    }
}
