// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of other runs of the kernel engine, as events and channels of its runs.

use std::os::fd::AsFd;

use strobe_hw::uapi::program::FEATURE_FOLLOW;
use strobe_hw::uapi::{self, kind};

use super::Control;
use super::entries::{channels, named, text};
use super::run_names::PREFIX;
use crate::channel::Channel;
use crate::engine::run_part;
use crate::error::Error;
use crate::plan::{Plan, Step};

/// Rough time of a value, as the module says it.
const COST_NS: u32 = 50;

/// Whether a run of this plan has anything of other runs.
fn follows(plan: &Plan) -> bool {
    let is_of_run = |name: &str| name.starts_with(PREFIX);
    let mut reads = plan.steps.iter().filter(|s| matches!(s, Step::Read(_)));
    is_of_run(&plan.event.to_string()) || reads.any(|step| is_of_run(step.name()))
}

impl Control {
    /// Whether the module can follow runs, if this plan needs it.
    pub(super) fn check_follows(&self, plan: &Plan) -> Result<(), Error> {
        let features = || uapi::features(self.fd.as_fd()).unwrap_or_default().features;
        match follows(plan) && features() & FEATURE_FOLLOW == 0 {
            true => Err(Error::NotOfKernel(plan.event.to_string())),
            false => Ok(()),
        }
    }

    /// A channel of another run, of this name, and what the module calls it.
    pub(super) fn channel_of_run(
        &self,
        name: &str,
        number: u32,
        part: &str,
    ) -> Result<(Channel, String), Error> {
        let unusable = |why| Error::Unusable {
            what: "channel",
            name: name.to_owned(),
            why,
        };
        let (entries, _) = self.entries(number).map_err(|error| match error {
            Error::NoRun(_) => self.not_here("channel", name),
            error => error,
        })?;
        let of_run = channels(&entries);
        let found = run_part::channel(name, part, &of_run, COST_NS);
        let (channel, _) = found.ok_or_else(|| unusable(run_part::none(part, &of_run)))?;
        let mut its = entries.iter().filter(|e| e.kind == kind::CHANNEL);
        let its = its.find(|entry| named(entry) == part);
        let part = its.map_or(part.to_owned(), |entry| text(&entry.name));
        Ok((channel, format!("{PREFIX}{number}.{part}")))
    }
}
