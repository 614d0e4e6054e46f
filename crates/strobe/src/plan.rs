// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run is to do, whichever engine does it.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::event::EventSpec;
use crate::info::Clock;
use crate::program::ProgramText;
use crate::quantity::duration_ns;

/// One step of a row; steps are done in their order. At most the outputs of rules differ from row to row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read a channel.
    Read(String),
    /// Write an output.
    Write {
        /// `device.output`.
        output: String,
        /// What to write.
        value: u64,
    },
    /// Write an output in each row that meets the condition of a rule, after the program has run. These steps stand last.
    Act {
        /// `device.output`.
        output: String,
        /// What to write.
        value: u64,
        /// The place of the rule in the program.
        rule: usize,
    },
}

impl Step {
    /// The channel or output.
    pub fn name(&self) -> &str {
        match self {
            Step::Read(name)
            | Step::Write { output: name, .. }
            | Step::Act { output: name, .. } => name,
        }
    }

    fn unusable(&self, why: &str) -> Error {
        let what = match self {
            Step::Read(_) => "channel",
            Step::Write { .. } | Step::Act { .. } => "output",
        };
        Error::Unusable {
            what,
            name: self.name().to_owned(),
            why: why.to_owned(),
        }
    }
}

/// How long a CPU may take to wake, us; `None`: as long as it likes. With 0 none sleeps: idle ones spin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLatency(pub Option<u32>);

impl Default for CpuLatency {
    /// States that are called C1 and the like are left, deep ones are not: little power for the most of it.
    fn default() -> Self {
        CpuLatency(Some(10))
    }
}

impl fmt::Display for CpuLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(0) => f.write_str("0"),
            Some(us) => write!(f, "{us}us"),
            None => f.write_str("any"),
        }
    }
}

/// A time in whole microseconds, `0`, or `any`.
impl FromStr for CpuLatency {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuLatency, String> {
        let us = match text {
            "any" => return Ok(CpuLatency(None)),
            "0" => Some(0),
            _ => duration_ns(text)
                .ok()
                .filter(|ns| ns % 1000 == 0)
                .and_then(|ns| i32::try_from(ns / 1000).ok())
                .and_then(|us| u32::try_from(us).ok()),
        };
        us.map(|us| CpuLatency(Some(us))).ok_or_else(|| {
            "write a time in whole microseconds such as 10us, or 0, or any".to_owned()
        })
    }
}

/// One event, an ordered list of steps, one ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What makes rows.
    pub event: EventSpec,
    /// What a row is made of.
    pub steps: Vec<Step>,
    /// What is computed from a row, and whether it is kept.
    pub program: ProgramText,
    /// Rows the ring is to hold at least; `None`: the engine's choice.
    pub ring: Option<u64>,
    /// Rows to make; `None`: until the run is stopped.
    pub limit: Option<u64>,
    /// Clock of all times.
    pub clock: Clock,
    /// SCHED_FIFO priority of the thread that serves the run, if it has one; `None`: the engine's choice.
    pub priority: Option<u8>,
    /// Whether anybody who can see the run may read its ring.
    pub shared: bool,
    /// How long CPUs may take to wake for a row.
    pub wake_within: CpuLatency,
}

impl Plan {
    /// Nothing but rows on this event, until stopped.
    pub fn new(event: EventSpec) -> Self {
        Plan {
            event,
            steps: Vec::new(),
            program: ProgramText::default(),
            ring: None,
            limit: None,
            clock: Clock::Monotonic,
            priority: None,
            shared: false,
            wake_within: CpuLatency::default(),
        }
    }

    /// Whether outputs of rules stand behind all other steps, and have a rule.
    pub(crate) fn check_acts(&self) -> Result<(), Error> {
        let mut steps = self.steps.iter();
        let is_act = |step: &&Step| matches!(step, Step::Act { .. });
        let acts = steps.by_ref().skip_while(|step| !is_act(step));
        for step in acts {
            match step {
                Step::Act { rule, .. } if *rule < self.program.rules.len() => {}
                Step::Act { .. } => {
                    return Err(step.unusable(
                        "the rule that is to write it is not in the program; add it, or leave the output out",
                    ));
                }
                _ => {
                    return Err(step.unusable(
                        "it stands behind an output that a rule writes; put those last",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Rows in the ring: what was asked for, rounded up to a power of two.
    /// `None`: the engine's choice. Too large numbers stay as they are, for the
    /// engine to refuse.
    pub fn capacity(&self) -> Option<u64> {
        self.ring
            .map(|rows| rows.max(2).checked_next_power_of_two().unwrap_or(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_rounded_up_to_a_power_of_two() {
        let mut plan = Plan::new("soft".parse().expect("an event"));
        assert_eq!(plan.capacity(), None);
        for (asked, got) in [(0, 2), (1, 2), (2, 2), (3, 4), (1000, 1024), (1024, 1024)] {
            plan.ring = Some(asked);
            assert_eq!(plan.capacity(), Some(got));
        }
        plan.ring = Some(u64::MAX);
        assert_eq!(plan.capacity(), Some(u64::MAX));
    }

    #[test]
    fn it_is_written_as_it_is_shown() {
        for (text, us) in [
            ("0", Some(0)),
            ("10us", Some(10)),
            ("1ms", Some(1000)),
            ("any", None),
        ] {
            let within: CpuLatency = text.parse().expect("a time");
            assert_eq!(within, CpuLatency(us));
            assert_eq!(within.to_string().parse(), Ok(within));
        }
        for text in ["", "10", "-1us", "1500ns", "3000s", "never"] {
            assert!(text.parse::<CpuLatency>().is_err(), "{text}");
        }
    }
}
