// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a plan to what the thread of a run works with, in two steps. The whole plan is described first, and nothing is
//! changed by that; only a plan that is good as a whole is opened.

use std::os::fd::RawFd;
use std::sync::Arc;

use strobe_hw::uapi;
use strobe_ring::layout::NO_LIMIT;
use strobe_ring::{Geometry, RowShape};

use super::User;
use super::actions::Actions;
use super::computer::Computer;
use super::provider::{ChannelOpener, EventOpener, OutputOpener, Provider};
use super::service::{Act, Action};
use super::trigger::{Cadence, EventSource};
use super::{soft, timer};
use crate::channel::Channel;
use crate::error::Error;
use crate::event::Event;
use crate::plan::{Plan, Step};
use crate::program;

/// Rows of a ring whose event has no period.
const ROWS_UNKNOWN: u64 = 8192;
/// Rows of a ring, at least, unless asked for.
const ROWS_MIN: u64 = 1024;
/// Bounds of a timer's period, as those of the kernel engine.
const PERIOD_NS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000_000_000;

/// What a plan comes to. Nothing of it is open.
pub(super) struct RunDescription<'p> {
    pub(super) event: EventOpener<'p>,
    steps: Vec<Part<'p>>,
    acts: Vec<(OutputOpener<'p>, u64, usize)>,
    pub(super) channels: Vec<Channel>,
    outputs: Vec<String>,
    tunables: Vec<String>,
    computer: Option<Computer>,
    pub(super) geometry: Geometry,
    pub(super) cost_ns: u64,
}

/// What a step comes to.
enum Part<'p> {
    Read(ChannelOpener<'p>),
    Write(OutputOpener<'p>, u64),
}

/// What the thread of a run works with.
pub(super) struct RunParts {
    pub(super) source: Box<dyn EventSource>,
    pub(super) actions: Vec<Action>,
    pub(super) acts: Vec<Act>,
    pub(super) computer: Option<Computer>,
    pub(super) channels: Vec<Channel>,
    pub(super) outputs: Vec<String>,
    pub(super) tunables: Vec<String>,
}

impl RunDescription<'_> {
    /// Opens all of it: the event, then the steps in their order.
    pub(super) fn open(self) -> Result<RunParts, Error> {
        let source = self.event.open()?;
        let mut actions = Actions::default();
        let mut names = self.channels.iter().map(|channel| &channel.name);
        for step in self.steps {
            match step {
                Part::Read(channel) => {
                    let name = names.next().map_or("", String::as_str);
                    actions.read(name, channel.open()?);
                }
                Part::Write(output, value) => actions.write(output.open()?, value),
            }
        }
        let acts = self.acts.into_iter().map(|(output, value, rule)| {
            Ok(Act {
                output: output.open()?,
                value,
                rule,
            })
        });
        Ok(RunParts {
            source,
            actions: actions.finish(),
            acts: acts.collect::<Result<_, Error>>()?,
            computer: self.computer,
            channels: self.channels,
            outputs: self.outputs,
            tunables: self.tunables,
        })
    }
}

impl User {
    /// What a plan comes to, with what these providers have.
    pub(super) fn describe<'p>(
        &self,
        plan: &Plan,
        providers: &'p [Arc<dyn Provider>],
    ) -> Result<RunDescription<'p>, Error> {
        if plan.steps.len() > uapi::STEPS_MAX {
            return Err(Error::Steps(plan.steps.len()));
        }
        plan.check_acts()?;
        let event = self.event(plan, providers)?;
        let cadence = event.about;
        let (mut steps, mut acts) = (Vec::new(), Vec::new());
        let (mut channels, mut outputs) = (Vec::new(), Vec::new());
        let mut cost_ns = 0;
        for step in &plan.steps {
            match step {
                Step::Read(name) => {
                    if name == "clock.late" && !cadence.has_due {
                        return Err(Error::Due {
                            channel: name.clone(),
                            event: plan.event.to_string(),
                        });
                    }
                    let found = providers.iter().find_map(|p| p.channel(name));
                    let found = found.ok_or_else(|| self.not_here("channel", name))??;
                    cost_ns += u64::from(found.about.cost_ns);
                    channels.push(found.about.clone());
                    steps.push(Part::Read(found));
                }
                Step::Write { output, value } => {
                    let found = self.output(output, *value, providers)?;
                    cost_ns += u64::from(found.about.cost_ns);
                    outputs.push(output.clone());
                    steps.push(Part::Write(found, *value));
                }
                Step::Act {
                    output,
                    value,
                    rule,
                } => {
                    let found = self.output(output, *value, providers)?;
                    cost_ns += u64::from(found.about.cost_ns);
                    outputs.push(output.clone());
                    acts.push((found, *value, *rule));
                }
            }
        }
        let mut skips = cadence.skips;
        let (mut computer, mut tunables) = (None, Vec::new());
        if !plan.program.is_empty() {
            let program = program::compile(&plan.program, &channels)?;
            skips |= program.skips();
            channels.extend(program::channels(&program));
            tunables = program::tunables(&program);
            if channels.len() + outputs.len() > uapi::STEPS_MAX {
                return Err(Error::Steps(channels.len() + outputs.len()));
            }
            computer = Some(Computer::new(program));
        }
        let capacity = plan.capacity().unwrap_or_else(|| usual_capacity(cadence));
        let limit = plan.limit.unwrap_or(NO_LIMIT);
        // Their sum is at most STEPS_MAX.
        let shape = RowShape {
            channels: channels.len() as u32,
            outputs: outputs.len() as u32,
            skipped: skips,
        };
        let geometry =
            Geometry::new(shape, capacity, limit).map_err(|_| Error::Capacity(capacity))?;
        Ok(RunDescription {
            event,
            steps,
            acts,
            channels,
            outputs,
            tunables,
            computer,
            geometry,
            cost_ns,
        })
    }

    /// An output, if there is one that this value fits.
    fn output<'p>(
        &self,
        name: &str,
        value: u64,
        providers: &'p [Arc<dyn Provider>],
    ) -> Result<OutputOpener<'p>, Error> {
        let found = providers.iter().find_map(|p| p.output(name));
        let found = found.ok_or_else(|| self.not_here("output", name))??;
        let bits = found.about.bits;
        match bits < 64 && value >> bits != 0 {
            true => Err(Error::Value {
                output: name.to_owned(),
                value,
                bits: Some(bits),
            }),
            false => Ok(found),
        }
    }

    fn event<'p>(
        &self,
        plan: &Plan,
        providers: &'p [Arc<dyn Provider>],
    ) -> Result<EventOpener<'p>, Error> {
        let event = &plan.event;
        match event.event() {
            Event::Timer { period_ns } if PERIOD_NS.contains(period_ns) => {
                let timer = timer::Timer::new(*period_ns, self.settings.wait);
                Ok(EventOpener::ready(
                    Cadence::every(*period_ns),
                    Box::new(timer),
                ))
            }
            Event::Timer { period_ns } => Err(Error::Period {
                event: event.to_string(),
                period_ns: Some(*period_ns),
            }),
            Event::Soft => Ok(EventOpener::ready(Cadence::exact(), Box::new(soft::Soft))),
            Event::Eventfd(fd) => {
                let source = eventfd(event.to_string(), *fd)?;
                Ok(EventOpener::ready(Cadence::exact(), source))
            }
            _ => {
                let mut providers = providers.iter();
                let found = providers.find_map(|p| p.event(event, &self.settings));
                found.unwrap_or_else(|| Err(self.not_here("event", &event.to_string())))
            }
        }
    }

    fn not_here(&self, what: &'static str, name: &str) -> Error {
        let catalogue = self.catalogue();
        let instead = match what {
            "event" => catalogue.instead_of_event(),
            "output" => catalogue.instead_of_output(name),
            _ => catalogue.instead_of_channel(name),
        };
        Error::NotHere {
            what,
            name: name.to_owned(),
            instead,
        }
    }
}

/// Rows of a ring, unless asked for: those of a second.
fn usual_capacity(cadence: Cadence) -> u64 {
    match cadence.period_ns {
        Some(period) => 1_000_000_000_u64
            .div_ceil(period)
            .max(ROWS_MIN)
            .next_power_of_two(),
        None => ROWS_UNKNOWN,
    }
}

/// An eventfd that this process has inherited. To have another descriptor of it changes nothing.
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

#[cfg(test)]
mod tests;
