// SPDX-License-Identifier: MIT OR Apache-2.0
//! How readers of a user engine's ring sleep: they look from time to time. To wake them would cost the
//! producer a system call, so it does that only when it is stopped in its work anyway: at the end, at a
//! pause, after software triggers.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use strobe_hw::mmap;
use strobe_ring::Reader;

use super::memfd::{ReaderError, RingFile};
use crate::reader::{ReaderOptions, RunReader, Wake};

/// Rows are looked for at least this often.
const NAP_MAX: Duration = Duration::from_millis(16);
/// And not more often than this.
const NAP_MIN: Duration = Duration::from_millis(1);

/// A reader of this ring, whose owner is at the other end of that connection, or is this process.
pub fn reader(
    ring: &Arc<RingFile>,
    owner: Option<Arc<OwnedFd>>,
    options: ReaderOptions,
) -> Result<RunReader, ReaderError> {
    let look = Look {
        _ring: Arc::clone(ring),
        owner,
    };
    Ok(RunReader::new(ring.attach(options)?, Box::new(look)))
}

/// Waits for rows of a ring.
struct Look {
    /// Its holders are counted: they are the readers.
    _ring: Arc<RingFile>,
    /// The connection to the owner, if that is another process: it is closed when the owner goes away.
    owner: Option<Arc<OwnedFd>>,
}

impl Look {
    /// Whether the owner has closed its end. It says nothing any more, so there is nothing else to be seen.
    fn is_owner_gone(&self) -> io::Result<bool> {
        let Some(owner) = &self.owner else {
            return Ok(false);
        };
        let at_once = Timespec::default();
        match poll(
            &mut [PollFd::new(&**owner, PollFlags::RDHUP)],
            Some(&at_once),
        ) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Wake for Look {
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
                let why = "the owner of the run went away";
                return Err(io::Error::new(io::ErrorKind::BrokenPipe, why));
            }
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(());
            }
            // A timer says how long the rows will take; else it is looked for less and less often.
            let period = ring.header().period_ns;
            let due = Duration::from_nanos(period.saturating_mul(rows - now.head));
            let next = if period > 0 { due } else { nap };
            match mmap::sleep(ring, word, next.clamp(NAP_MIN, NAP_MAX).min(left)) {
                Err(Errno::INTR) => return Ok(()),
                slept => slept?,
            }
            nap = (nap * 2).min(NAP_MAX);
        }
    }
}
