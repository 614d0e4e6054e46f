// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user engine: a real-time thread of this process makes the rows.
//!
//! It needs no module and no privilege; what it does not get of priority and locked memory is recorded with
//! the run. The ring is a sealed memfd of the contract's layout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use strobe_board::Board;
use strobe_hw::awake::Awake;
use strobe_hw::rt::{self, Policy};
use strobe_ring::layout::{CLOCK_MONOTONIC, CLOCK_TAI};
use strobe_ring::{Header, StartTimes, Writer};

use super::DryRun;
use crate::catalogue::Catalogue;
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::Event;
use crate::info::{Clock, RunInfo};
use crate::plan::Plan;

mod actions;
mod builtin;
mod card;
mod card_event;
mod cards;
mod connection;
mod field;
mod file;
mod frames;
pub mod gpio;
pub(crate) mod hpet;
mod look;
pub(crate) mod memfd;
mod pci_card;
mod perf;
mod prepare;
mod presence;
pub mod provider;
pub mod registry;
mod run;
mod service;
mod settings;
mod sim;
mod soft;
mod timer;
pub mod trigger;
mod uio;
mod uio_card;
mod waker;

pub use run::UserRun;
pub use settings::{Lock, PRIORITY, Settings, WaitMode};

use provider::Provider;
use registry::{Claim, Registry};
use service::Service;
use waker::Waker;

/// The engine of this process.
#[derive(Default)]
pub struct User {
    settings: Settings,
    boards: Vec<Arc<dyn Provider>>,
}

impl User {
    /// The engine, whose runs work like this.
    pub fn new(settings: Settings) -> Self {
        User {
            settings,
            boards: Vec::new(),
        }
    }

    /// The engine with channels, outputs and events of one more provider, such as a board.
    #[must_use]
    pub fn with(mut self, provider: Arc<dyn Provider>) -> Self {
        self.boards.push(provider);
        self
    }

    /// The engine with what a board file describes.
    #[must_use]
    pub fn with_board(self, board: Board) -> Self {
        let cards = Arc::new(cards::Cards::new(board.clone()));
        let user = match frames::Frames::new(board.clone()) {
            Some(frames) => self.with(Arc::new(frames)),
            None => self.with(cards),
        };
        user.with(Arc::new(file::BoardFiles(board)))
    }

    /// All that is here; files and GPIO lines are not, for they are too many.
    pub fn catalogue(&self) -> Catalogue {
        let mut catalogue = Catalogue::default();
        let clock = RunClock::new(Clock::Monotonic);
        for provider in self.providers(clock) {
            provider.list(&mut catalogue);
        }
        catalogue
    }

    /// What the run would be; nothing is changed.
    ///
    /// # Errors
    /// The run would be refused; the reason.
    pub fn dry_run(&self, plan: &Plan) -> Result<DryRun, Error> {
        let providers = self.providers(RunClock::new(plan.clock));
        let described = self.describe(plan, &providers)?;
        let geometry = described.geometry;
        Ok(DryRun {
            engine: "user",
            row_bytes: geometry.row_stride(),
            ring_rows: geometry.capacity(),
            ring_bytes: geometry.bytes(),
            cost_ns: described.cost_ns,
            channels: described.channels,
        })
    }

    /// Makes a run; it waits for its start.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn create(&self, plan: &Plan) -> Result<UserRun, Error> {
        let event = plan.event.to_string();
        let failed = |doing| {
            let event = event.clone();
            move |source| Error::Run {
                event,
                doing,
                source,
            }
        };
        let providers = self.providers(RunClock::new(plan.clock));
        let described = self.describe(plan, &providers)?;
        let (geometry, period_ns) = (described.geometry, described.event.about.period_ns);
        let bytes = geometry.bytes();
        if available_memory().is_some_and(|available| bytes > available / 2) {
            return Err(Error::NoMemory(bytes));
        }
        let opened = described.open()?;
        let lock = self.settings.lock;
        // First of all: what is mapped and allocated from now on is locked, too.
        let mut set_up = match lock {
            Lock::Process => vec![rt::lock_memory()],
            Lock::RingAndStack | Lock::None => Vec::new(),
        };
        let (memory, locked, ring) = memfd::ring_memory(bytes, lock != Lock::None)
            .map_err(|error| rt::lock_limit(error, bytes))
            .map_err(failed("making its ring"))?;
        let wait = self.settings.wait;
        set_up.push(rt::Step {
            what: "ring".into(),
            ok: locked || lock == Lock::None,
            got: format!(
                "{} KiB, {}",
                bytes.div_ceil(1024),
                if locked { "locked" } else { "not locked" }
            ),
        });
        let awake = Awake::hold(plan.wake_within.0);
        set_up.push(awake.step.clone());
        set_up.push(rt::Step {
            what: "wait".into(),
            ok: true,
            got: wait.to_string(),
        });
        let claim = Registry::of_this_user().claim(plan.shared);
        let header = Header {
            geometry,
            clock: match plan.clock {
                Clock::Monotonic => CLOCK_MONOTONIC,
                Clock::Tai => CLOCK_TAI,
            },
            period_ns: period_ns.unwrap_or(0),
            run: claim.as_ref().map_or_else(|_| unclaimed(), Claim::run),
            engine: strobe_ring::Engine::User,
            absent: false,
        };
        // The memory was made for this geometry.
        let writer = Writer::create(memory, &header).map_err(|_| Error::NoMemory(bytes))?;
        let (rope, bell) = strobe_hw::bell::bell().map_err(failed("making its bell"))?;
        let info = RunInfo {
            engine: strobe_ring::Engine::User,
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            event: event.clone(),
            run: header.run,
            clock: plan.clock,
            period_ns,
            capacity: geometry.capacity(),
            limit: plan.limit,
            start: StartTimes::default(),
            channels: opened.channels,
            outputs: opened.outputs,
            skips: geometry.shape().skipped,
            set_up: Vec::new(),
            doctor: Vec::new(),
        };
        let waker = Arc::new(Waker::new().map_err(failed("making what wakes its readers"))?);
        let clock = RunClock::new(plan.clock);
        let is_soft = *plan.event.event() == Event::Soft;
        let (source, actions) = (opened.source, opened.actions);
        let fifo = Policy::Fifo(plan.priority.unwrap_or(PRIORITY));
        let run = UserRun::new(
            info,
            (Arc::new(ring), Arc::clone(&waker)),
            &self.settings,
            self.settings.policy.unwrap_or(fifo),
            set_up,
            rope,
            |requests, usage| Service {
                ring: writer,
                waker,
                woken: 0,
                clock,
                source,
                is_soft,
                actions,
                bell,
                requests,
                start: 0,
                late_after: period_ns.unwrap_or(u64::MAX),
                usage,
                usage_before: rt::Usage::default(),
            },
        )?;
        Ok(run.awake(awake).visible_by(claim))
    }

    fn providers(&self, clock: RunClock) -> Vec<Arc<dyn Provider>> {
        let mut providers: Vec<Arc<dyn Provider>> = vec![
            Arc::new(builtin::Builtin(clock)),
            Arc::new(sim::Sim::default()),
            Arc::new(file::Files),
            Arc::new(perf::Perf),
            Arc::new(gpio::Gpio::default()),
            Arc::new(hpet::Hpets),
            Arc::new(uio::UioEvents::default()),
        ];
        providers.extend(self.boards.iter().cloned());
        providers
    }
}

/// A number for a run that nobody else sees.
fn unclaimed() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(1);
    RUNS.fetch_add(1, Ordering::Relaxed)
}

/// Bytes that may be had without swapping.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kb * 1024)
}
