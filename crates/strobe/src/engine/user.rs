// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user engine: a real-time thread of this process makes the rows.
//!
//! It needs no module and no privilege; what it does not get of priority and locked memory is recorded with
//! the run. The ring is a sealed memfd of the contract's layout.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use strobe_board::Board;
use strobe_hw::awake::Awake;
use strobe_hw::rt::{self, Policy};
use strobe_hw::uapi;
use strobe_ring::layout::{CLOCK_MONOTONIC, CLOCK_TAI, NO_LIMIT};
use strobe_ring::{Geometry, Header, RowShape, StartTimes, Writer};

use super::{DryRun, Error};
use crate::catalogue::Catalogue;
use crate::channel::Channel;
use crate::clock::RunClock;
use crate::event::Event;
use crate::info::{Clock, RunInfo};
use crate::plan::{Plan, Step};

mod actions;
mod builtin;
mod card;
mod card_event;
mod cards;
mod field;
mod file;
mod frames;
pub mod gpio;
pub(crate) mod hpet;
mod look;
pub(crate) mod memfd;
mod pci_card;
mod perf;
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

pub use memfd::ReaderError;
pub use run::Run;
pub use settings::{PRIORITY, Settings, WaitMode};

use actions::Actions;
use provider::Provider;
use registry::{Claim, Registry};
use service::{Action, Service};
use trigger::EventSource;

/// Rows of a ring whose event has no period.
const ROWS_UNKNOWN: u64 = 8192;
/// Rows of a ring, at least, unless asked for.
const ROWS_MIN: u64 = 1024;
/// Bounds of a timer's period, as those of the kernel engine.
const PERIOD_NS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000_000_000;

/// The engine of this process.
#[derive(Default)]
pub struct User {
    settings: Settings,
    boards: Vec<Arc<dyn Provider>>,
}

/// What a plan comes to, before there is memory for it.
struct Prepared {
    source: Box<dyn EventSource>,
    actions: Vec<Action>,
    channels: Vec<Channel>,
    outputs: Vec<String>,
    geometry: Geometry,
    cost_ns: u64,
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
        let prepared = self.prepare(plan)?;
        Ok(DryRun {
            engine: "user",
            row_bytes: prepared.geometry.row_stride(),
            ring_rows: prepared.geometry.capacity(),
            ring_bytes: prepared.geometry.bytes(),
            cost_ns: prepared.cost_ns,
            channels: prepared.channels,
        })
    }

    /// Makes a run; it waits for its start.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn create(&self, plan: &Plan) -> Result<Run, Error> {
        let event = plan.event.to_string();
        let failed = |doing| {
            let event = event.clone();
            move |source| Error::Run {
                event,
                doing,
                source,
            }
        };
        let prepared = self.prepare(plan)?;
        let (geometry, period_ns) = (prepared.geometry, prepared.source.period_ns());
        let bytes = geometry.bytes();
        if available_memory().is_some_and(|available| bytes > available / 2) {
            return Err(Error::NoMemory(bytes));
        }
        // First of all: what is mapped and allocated from now on is locked, too.
        let mut set_up = vec![rt::lock_memory()];
        let (memory, locked, ring) = memfd::ring_memory(bytes)
            .map_err(|error| rt::lock_limit(error, bytes))
            .map_err(failed("making its ring"))?;
        let wait = self.settings.wait;
        set_up.push(rt::Step {
            what: "ring".into(),
            ok: locked,
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
            channels: prepared.channels,
            outputs: prepared.outputs,
            skips: geometry.shape().skipped,
            set_up: Vec::new(),
            doctor: Vec::new(),
        };
        let clock = RunClock::new(plan.clock);
        let is_soft = *plan.event.event() == Event::Soft;
        let (source, actions) = (prepared.source, prepared.actions);
        let fifo = Policy::Fifo(plan.priority.unwrap_or(PRIORITY));
        let run = Run::new(
            info,
            Arc::new(ring),
            self.settings.cpu,
            self.settings.policy.unwrap_or(fifo),
            set_up,
            rope,
            |requests, usage| Service {
                ring: writer,
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

    fn prepare(&self, plan: &Plan) -> Result<Prepared, Error> {
        if plan.steps.len() > uapi::STEPS_MAX {
            return Err(Error::Steps(plan.steps.len()));
        }
        let providers = self.providers(RunClock::new(plan.clock));
        let source = self.source(plan, &providers)?;
        let not_here = |what: &'static str, name: &str| {
            let catalogue = self.catalogue();
            let instead = match what {
                "output" => catalogue.instead_of_output(name),
                _ => catalogue.instead_of_channel(name),
            };
            let name = name.to_owned();
            Error::NotHere {
                what,
                name,
                instead,
            }
        };
        let (mut channels, mut outputs) = (Vec::new(), Vec::new());
        let mut actions = Actions::default();
        let mut cost_ns = 0;
        for step in &plan.steps {
            match step {
                Step::Read(name) => {
                    if name == "clock.late" && !source.has_due() {
                        return Err(Error::Due {
                            channel: name.clone(),
                            event: plan.event.to_string(),
                        });
                    }
                    let found = providers.iter().find_map(|p| p.channel(name));
                    let found = found.ok_or_else(|| not_here("channel", name))??;
                    cost_ns += u64::from(found.about.cost_ns);
                    channels.push(found.about);
                    actions.read(name, found.reader);
                }
                Step::Write { output, value } => {
                    let found = providers.iter().find_map(|p| p.output(output));
                    let found = found.ok_or_else(|| not_here("output", output))??;
                    let bits = found.about.bits;
                    if bits < 64 && value >> bits != 0 {
                        return Err(Error::Value {
                            output: output.clone(),
                            value: *value,
                            bits: Some(bits),
                        });
                    }
                    cost_ns += u64::from(found.about.cost_ns);
                    outputs.push(output.clone());
                    actions.write(found.writer, *value);
                }
            }
        }
        let capacity = plan.capacity().unwrap_or_else(|| match source.period_ns() {
            Some(period) => 1_000_000_000_u64
                .div_ceil(period)
                .max(ROWS_MIN)
                .next_power_of_two(),
            None => ROWS_UNKNOWN,
        });
        let limit = plan.limit.unwrap_or(NO_LIMIT);
        // Their sum is at most STEPS_MAX.
        let shape = RowShape {
            channels: channels.len() as u32,
            outputs: outputs.len() as u32,
            skipped: source.skips(),
        };
        let geometry =
            Geometry::new(shape, capacity, limit).map_err(|_| Error::Capacity(capacity))?;
        Ok(Prepared {
            source,
            actions: actions.finish(),
            channels,
            outputs,
            geometry,
            cost_ns,
        })
    }

    fn source(
        &self,
        plan: &Plan,
        providers: &[Arc<dyn Provider>],
    ) -> Result<Box<dyn EventSource>, Error> {
        let event = &plan.event;
        match event.event() {
            Event::Timer { period_ns } if PERIOD_NS.contains(period_ns) => {
                Ok(Box::new(timer::Timer::new(*period_ns, self.settings.wait)))
            }
            Event::Timer { period_ns } => Err(Error::Period {
                event: event.to_string(),
                period_ns: Some(*period_ns),
            }),
            Event::Soft => Ok(Box::new(soft::Soft)),
            Event::Eventfd(fd) => eventfd(event.to_string(), *fd),
            _ => {
                let found = providers
                    .iter()
                    .find_map(|p| p.event(event, &self.settings));
                found.unwrap_or_else(|| {
                    Err(Error::NotHere {
                        what: "event",
                        name: event.to_string(),
                        instead: self.catalogue().instead_of_event(),
                    })
                })
            }
        }
    }
}

/// A number for a run that nobody else sees.
fn unclaimed() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(1);
    RUNS.fetch_add(1, Ordering::Relaxed)
}

/// An eventfd that this process has inherited.
fn eventfd(name: String, fd: RawFd) -> Result<Box<dyn EventSource>, Error> {
    let unusable = |why: String| Error::Unusable {
        what: "event",
        name: name.clone(),
        why,
    };
    let target = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    let target = target.map_err(|_| {
        unusable(format!(
            "this process has no descriptor {fd}; open it in the parent"
        ))
    })?;
    if target.to_str() != Some("anon_inode:[eventfd]") {
        return Err(unusable(format!(
            "descriptor {fd} is {}, not an eventfd",
            target.display()
        )));
    }
    let source = strobe_hw::fd::duplicate(fd).and_then(soft::Eventfd::new);
    source
        .map(|source| Box::new(source) as _)
        .map_err(|error| unusable(error.to_string()))
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
