// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user engine: a real-time thread of this process makes the rows.
//!
//! It needs no module and no privilege; what it does not get of priority and locked memory is recorded with
//! the run. The ring is a sealed memfd of the contract's layout.

use std::sync::Arc;

use strobe_board::Board;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::rt::{self, Policy};
use strobe_ring::StartTimes;

use super::DryRun;
use crate::catalogue::Catalogue;
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::Event;
use crate::info::{Clock, RunInfo};
use crate::plan::Plan;

mod actions;
mod base;
mod builtin;
mod card;
mod card_event;
mod cards;
mod chip;
mod chip_register;
mod computer;
mod connection;
mod counter;
mod field;
mod file;
mod frames;
#[doc(hidden)]
pub mod gpio;
pub(crate) mod hpet;
mod iio;
mod instrument;
pub(crate) mod memfd;
mod pci_card;
mod perf;
mod polling_waiter;
mod prepare;
mod presence;
pub mod provider;
mod reader_waker;
pub mod registry;
mod replay;
mod run;
mod run_rows;
mod service;
mod settings;
mod sim;
mod soft;
mod sysfs;
mod timer;
pub mod trigger;
mod tuning;
mod uio;
mod uio_card;

pub use replay::{ReplayOptions, Speed};
pub use run::UserRun;
pub use settings::{Lock, PRIORITY, Settings, WaitMode};

use base::Base;
pub use base::available_memory;
use provider::Provider;
use service::Service;

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
        if let Some(instruments) = instrument::Instruments::new(&board) {
            return self.with(Arc::new(instruments));
        }
        let cards = Arc::new(cards::Cards::new(board.clone()));
        let user = match frames::Frames::new(board.clone()) {
            Some(frames) => self.with(Arc::new(frames)),
            None => match chip::Chips::new(&board) {
                Some(chips) => self.with(Arc::new(chips)),
                None => self.with(cards),
            },
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
        let providers = self.providers(RunClock::new(plan.clock));
        let described = self.describe(plan, &providers)?;
        let (geometry, about) = (described.geometry, described.event.about);
        let period_ns = about.period_ns;
        base::fits(&geometry)?;
        let opened = described.open()?;
        let header = base::header(geometry, plan.clock, period_ns);
        let mut base = Base::new(header, &event, plan.shared, self.settings.lock)?;
        let awake = CpuLatencyRequest::hold(plan.wake_within.0);
        base.set_up.push(awake.step.clone());
        base.set_up.push(rt::Step {
            what: "wait".into(),
            ok: true,
            got: self.settings.wait.to_string(),
        });
        let info = RunInfo {
            engine: strobe_ring::Engine::User,
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            event: event.clone(),
            run: base.number,
            clock: plan.clock,
            period_ns,
            capacity: geometry.capacity(),
            limit: plan.limit,
            start: StartTimes::default(),
            channels: opened.channels,
            outputs: opened.outputs,
            tunables: opened.tunables,
            skips: geometry.shape().skipped,
            accounting: about.accounting,
            set_up: Vec::new(),
            doctor: Vec::new(),
        };
        let clock = RunClock::new(plan.clock);
        let is_soft = *plan.event.event() == Event::Soft;
        let (source, actions, acts) = (opened.source, opened.actions, opened.acts);
        let computer = opened.computer;
        base.tuning = computer
            .as_ref()
            .map(|computer| Arc::clone(computer.tuning()));
        let fifo = Policy::Fifo(plan.priority.unwrap_or(PRIORITY));
        let policy = self.settings.policy.unwrap_or(fifo);
        let run = base.run(info, &self.settings, policy, |tools, requests, usage| {
            let service = Service {
                ring: tools.ring,
                reader_waker: tools.reader_waker,
                woken: 0,
                clock,
                source,
                is_soft,
                actions,
                acts,
                computer,
                wakeup: tools.wakeup,
                requests,
                start: 0,
                late_after: period_ns.unwrap_or(u64::MAX),
                usage,
                usage_before: rt::Usage::default(),
            };
            || service.run()
        })?;
        Ok(run.awake(awake))
    }

    fn providers(&self, clock: RunClock) -> Vec<Arc<dyn Provider>> {
        let mut providers: Vec<Arc<dyn Provider>> = vec![
            Arc::new(builtin::Builtin(clock)),
            Arc::new(sim::Sim::default()),
            Arc::new(file::Files),
            Arc::new(counter::Counters::default()),
            Arc::new(sysfs::Sysfs::default()),
            Arc::new(iio::Iio::default()),
            Arc::new(perf::Perf),
            Arc::new(gpio::Gpio::default()),
            Arc::new(hpet::Hpets),
            Arc::new(uio::UioEvents::default()),
            Arc::new(run_rows::RunRows::default()),
        ];
        providers.extend(self.boards.iter().cloned());
        providers
    }
}
