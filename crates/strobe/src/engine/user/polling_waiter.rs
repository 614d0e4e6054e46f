// SPDX-License-Identifier: MIT OR Apache-2.0
//! How readers of a user engine's ring sleep: they look from time to time. To wake them would cost the producer a system
//! call, so it does that only when it is stopped in its work anyway: at the end, at a pause, after software triggers;
//! and at each row for a reader that has asked for it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use strobe_hw::mmap;
use strobe_ring::Reader;

use super::connection::Connection;
use super::memfd::{ReaderError, RingFile};
use super::reader_waker::{ReaderWaker, ReaderWakeups};
use crate::info::RunInfo;
use crate::reader::{ReaderOptions, RunReader, Waiter};

/// Rows are looked for at least this often.
const NAP_MAX: Duration = Duration::from_millis(16);
/// And not more often than this.
const NAP_MIN: Duration = Duration::from_millis(1);

/// The owner of a run.
#[derive(Clone)]
pub enum Owner {
    /// This process.
    ThisProcess(Arc<ReaderWaker>),
    /// Another process.
    OtherProcess(Arc<Connection>),
}

/// A reader of this ring.
pub fn reader(
    ring: &Arc<RingFile>,
    owner: Owner,
    info: &RunInfo,
    options: ReaderOptions,
) -> Result<RunReader, ReaderError> {
    let waiter = PollingWaiter::new(Arc::clone(ring), owner)?;
    let ring = ring.attach(options)?;
    Ok(RunReader::new(ring, Box::new(waiter), info, options))
}

/// Waits for rows of a ring.
struct PollingWaiter {
    /// Its holders are counted: they are the readers.
    _ring: Arc<RingFile>,
    owner: Owner,
    /// Ready when it is time to look: the timer below has come, the owner has gone, or a row was made and this reader
    /// wants to be woken then.
    ready: OwnedFd,
    /// Made when it is armed for the first time.
    timer: OnceLock<OwnedFd>,
    /// Set once this reader is woken at each row.
    wakeups: OnceLock<RowWakeups>,
    /// How it was armed the last time.
    armed: Mutex<LastArm>,
}

/// What keeps the wake-ups coming.
enum RowWakeups {
    ThisProcess { _subscription: ReaderWakeups },
    OtherProcess { _fd: Arc<OwnedFd> },
}

/// Rows that had been made, and for how long it slept, if the event has no period.
#[derive(Clone, Copy)]
struct LastArm {
    head: u64,
    nap: Duration,
}

impl PollingWaiter {
    fn new(ring: Arc<RingFile>, owner: Owner) -> io::Result<Self> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        if let Owner::OtherProcess(connection) = &owner {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&ready, connection.fd(), data, epoll::EventFlags::RDHUP)?;
        }
        Ok(PollingWaiter {
            _ring: ring,
            owner,
            ready,
            timer: OnceLock::new(),
            wakeups: OnceLock::new(),
            armed: Mutex::new(LastArm {
                head: 0,
                nap: NAP_MIN,
            }),
        })
    }

    fn is_owner_gone(&self) -> io::Result<bool> {
        match &self.owner {
            Owner::ThisProcess(_) => Ok(false),
            Owner::OtherProcess(connection) => connection.is_owner_gone(),
        }
    }

    /// How long to sleep for so many rows. A timer says how long they will take; else it is looked for them less and
    /// less often.
    fn until_next(&self, ring: &Reader, rows: u64, nap: Duration) -> Duration {
        if self.wakeups.get().is_some() {
            return NAP_MAX;
        }
        let next = match ring.header().period_ns {
            0 => nap,
            period => Duration::from_nanos(period.saturating_mul(rows)),
        };
        next.clamp(NAP_MIN, NAP_MAX)
    }

    /// Until the wake word is another one, or, for a reader that is woken at each row, until it is.
    fn sleep(&self, ring: &Reader, word: u32, at_most: Duration) -> Result<(), Errno> {
        match self.wakeups.get() {
            Some(_) => self.until_ready(at_most),
            None => mmap::sleep(ring, word, at_most),
        }
    }

    /// What has made it ready is forgotten, but for an owner who has gone.
    fn until_ready(&self, at_most: Duration) -> Result<(), Errno> {
        let at_most = Timespec::try_from(at_most).unwrap_or_default();
        let mut events = [const { MaybeUninit::uninit() }; 4];
        epoll::wait(&self.ready, &mut events, Some(&at_most)).map(drop)
    }

    fn timer(&self) -> io::Result<&OwnedFd> {
        if let Some(timer) = self.timer.get() {
            return Ok(timer);
        }
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        watch(&self.ready, &timer)?;
        Ok(self.timer.get_or_init(|| timer))
    }

    /// Makes it ready after this time; never without one.
    fn set(&self, after: Option<Duration>) -> io::Result<()> {
        // A timer of 0 is none.
        let after = after.map(|after| after.max(Duration::from_nanos(1)));
        let after = after.and_then(|after| Timespec::try_from(after).ok());
        let times = Itimerspec {
            it_interval: Timespec::default(),
            it_value: after.unwrap_or_default(),
        };
        timerfd_settime(self.timer()?, TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }
}

/// Each time that the descriptor becomes ready, `ready` does once.
fn watch(ready: &OwnedFd, fd: &OwnedFd) -> Result<(), Errno> {
    let what = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(ready, fd, epoll::EventData::new_u64(0), what)
}

fn gone() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the run's program ended or closed it",
    )
}

impl Waiter for PollingWaiter {
    fn wait(&self, ring: &Reader, rows: u64, timeout: Duration) -> io::Result<()> {
        // Without one that can be reckoned, for ever.
        let end = Instant::now().checked_add(timeout);
        let mut nap = NAP_MIN;
        loop {
            // Asked first: what the owner did before it went is in the ring then.
            let is_gone = self.is_owner_gone()?;
            let word = ring.wake_value();
            let now = ring.snapshot();
            if now.head >= rows || now.state.is_final() {
                return Ok(());
            }
            if is_gone {
                return Err(gone());
            }
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(());
            }
            let next = self.until_next(ring, rows - now.head, nap);
            match self.sleep(ring, word, next.min(left)) {
                Err(Errno::INTR) => return Ok(()),
                slept => slept?,
            }
            nap = (nap * 2).min(NAP_MAX);
        }
    }

    fn look(&self, ring: &Reader) -> io::Result<()> {
        // Asked first, as above.
        let is_gone = self.is_owner_gone()?;
        let now = ring.snapshot();
        match is_gone && now.head <= ring.next_row() && !now.state.is_final() {
            true => Err(gone()),
            false => Ok(()),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    fn arm(&self, ring: &Reader, rows: u64) -> io::Result<()> {
        // Before the rows are counted: what comes afterwards makes it ready again.
        self.until_ready(Duration::ZERO)?;
        let now = ring.snapshot();
        if now.head >= rows || now.state.is_final() || self.is_owner_gone()? {
            return self.set(Some(Duration::ZERO));
        }
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.nap = match armed.head == now.head {
            true => (armed.nap * 2).min(NAP_MAX),
            false => NAP_MIN,
        };
        armed.head = now.head;
        self.set(Some(self.until_next(ring, rows - now.head, armed.nap)))
    }

    fn disarm(&self) -> io::Result<()> {
        self.set(None)?;
        Ok(self.until_ready(Duration::ZERO)?)
    }

    fn wake_at_each_row(&self) -> io::Result<()> {
        if self.wakeups.get().is_some() {
            return Ok(());
        }
        let wakeups = match &self.owner {
            Owner::ThisProcess(reader_waker) => {
                watch(&self.ready, reader_waker.fd())?;
                let _subscription = reader_waker.subscribe();
                RowWakeups::ThisProcess { _subscription }
            }
            Owner::OtherProcess(connection) => {
                let _fd = connection.reader_waker()?;
                watch(&self.ready, &_fd)?;
                RowWakeups::OtherProcess { _fd }
            }
        };
        // Only this reader's owner asks.
        let _ = self.wakeups.set(wakeups);
        Ok(())
    }
}
