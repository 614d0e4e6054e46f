// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each run of this engine has, whatever makes its rows: a ring, a number that others see it by, and the means to
//! call its thread and to wake its readers.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use strobe_hw::rt::{self, Policy, Usage};
use strobe_hw::wakeup::{Waker, Wakeup, wakeup};
use strobe_ring::layout::{CLOCK_MONOTONIC, CLOCK_TAI};
use strobe_ring::{Engine, Geometry, Header, Writer};

use super::memfd::{self, RingFile};
use super::reader_waker::ReaderWaker;
use super::registry::{self, Claim, Registry};
use super::run::UserRun;
use super::service::Request;
use super::settings::{Lock, Settings};
use super::tuning::Tuning;
use crate::error::Error;
use crate::info::{Clock, RunInfo};

/// A run without its thread.
pub(super) struct Base {
    /// Its number.
    pub number: u32,
    /// What was got so far.
    pub set_up: Vec<rt::Step>,
    /// Of its program, if it has one.
    pub tuning: Option<Arc<Tuning>>,
    ring: Arc<RingFile>,
    claim: Result<Claim, registry::Error>,
    waker: Waker,
    tools: Tools,
}

/// What the thread of a run makes rows with.
pub(super) struct Tools {
    pub ring: Writer,
    pub reader_waker: Arc<ReaderWaker>,
    pub wakeup: Wakeup,
}

impl Base {
    /// For a run on this event with such a ring; its number becomes one that is free.
    pub(super) fn new(
        mut header: Header,
        event: &str,
        shared: bool,
        lock: Lock,
    ) -> Result<Base, Error> {
        let failed = |doing| {
            let event = event.to_owned();
            move |source: io::Error| Error::Run {
                event,
                doing,
                source,
            }
        };
        let bytes = header.geometry.bytes();
        // First of all: what is mapped and allocated from now on is locked, too.
        let mut set_up = match lock {
            Lock::Process => vec![rt::lock_memory()],
            Lock::RingAndStack | Lock::None => Vec::new(),
        };
        let (memory, locked, ring) = memfd::ring_memory(bytes, lock != Lock::None)
            .map_err(|error| rt::lock_limit(error, bytes))
            .map_err(failed("making its ring"))?;
        set_up.push(rt::Step {
            what: "ring".into(),
            ok: locked || lock == Lock::None,
            got: format!(
                "{} KiB, {}",
                bytes.div_ceil(1024),
                if locked { "locked" } else { "not locked" }
            ),
        });
        let claim = Registry::of_this_user().claim(shared);
        header.run = claim.as_ref().map_or_else(|_| unclaimed(), Claim::run);
        let (waker, wakeup) = wakeup().map_err(failed("making its wake-up"))?;
        let reader_waker = ReaderWaker::new().map_err(failed("making what wakes its readers"))?;
        Ok(Base {
            number: header.run,
            set_up,
            tuning: None,
            ring: Arc::new(ring),
            claim,
            waker,
            tools: Tools {
                // The memory was made for this geometry.
                ring: Writer::create(memory, &header).map_err(|_| Error::NoMemory(bytes))?,
                reader_waker: Arc::new(reader_waker),
                wakeup,
            },
        })
    }

    /// Starts the thread, which does what `work` answers, and makes the run visible.
    pub(super) fn run<W: FnOnce() + Send + 'static>(
        self,
        info: RunInfo,
        settings: &Settings,
        policy: Policy,
        work: impl FnOnce(Tools, Receiver<Request>, Arc<Mutex<Usage>>) -> W,
    ) -> Result<UserRun, Error> {
        let reader_waker = Arc::clone(&self.tools.reader_waker);
        let run = UserRun::new(
            info,
            (self.ring, reader_waker),
            settings,
            policy,
            self.set_up,
            self.waker,
            |requests, usage| work(self.tools, requests, usage),
        )?;
        Ok(run.tuned_by(self.tuning).visible_by(self.claim))
    }
}

/// The header of a ring of this engine, but for the number of its run.
pub(super) fn header(geometry: Geometry, clock: Clock, period_ns: Option<u64>) -> Header {
    Header {
        geometry,
        clock: match clock {
            Clock::Monotonic => CLOCK_MONOTONIC,
            Clock::Tai => CLOCK_TAI,
        },
        period_ns: period_ns.unwrap_or(0),
        run: 0,
        engine: Engine::User,
        absent: false,
    }
}

/// Refuses a ring that would leave too little memory for others.
pub(super) fn fits(geometry: &Geometry) -> Result<(), Error> {
    let bytes = geometry.bytes();
    match available_memory() {
        Some(available) if bytes > available / 2 => Err(Error::NoMemory(bytes)),
        _ => Ok(()),
    }
}

/// A number for a run that nobody else sees.
fn unclaimed() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(1);
    RUNS.fetch_add(1, Ordering::Relaxed)
}

/// Bytes of memory that may be had without swapping; `None` if the system does not say.
#[doc(hidden)]
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kb * 1024)
}
