// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of those that are compared: a way to make rows, and the policy of its thread if it has one of its own.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use strobe::run::OwnedRun;
use strobe_hw::rt;

use super::pacing::{Error, Pacing, PacingSettings, Policy};

/// `hybrid`, or `hybrid/other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    way: Pacing,
    policy: Option<Policy>,
}

impl Contender {
    /// Whether a thread of the user engine makes its rows.
    pub fn has_thread(&self) -> bool {
        matches!(self.way, Pacing::User(_) | Pacing::Relative)
    }

    /// A run of it. What it says of itself goes before what was asked for all.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn run(&self, asked: &PacingSettings) -> Result<Arc<dyn OwnedRun>, Error> {
        self.way.run(&PacingSettings {
            policy: match self.has_thread() {
                true => self.policy.or(asked.policy),
                false => self.policy,
            },
            ..asked.clone()
        })
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Contender, String> {
        let Some((way, policy)) = text.split_once('/') else {
            return Ok(Contender {
                way: text.parse()?,
                policy: None,
            });
        };
        let (way, policy): (Pacing, Policy) = (way.parse()?, policy.parse()?);
        let contender = Contender {
            way,
            policy: Some(policy),
        };
        let is_fifo = matches!(policy, Policy::As(rt::Policy::Fifo(_)));
        match contender.has_thread() || way.is_kernel_thread() && is_fifo {
            true => Ok(contender),
            false if way.is_kernel_thread() => Err(format!(
                "a kernel thread has a priority, but no other policy; write {way}/fifo:50"
            )),
            false => Err(format!(
                "the kernel chooses the policy of {way}; write {way}, without /{policy}"
            )),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            None => write!(f, "{}", self.way),
            Some(policy) => write!(f, "{}/{policy}", self.way),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in [
            "block",
            "hybrid/other",
            "relative/fifo:80",
            "spin/deadline",
            "kernel:loop",
            "kernel:relative/fifo:80",
        ] {
            let contender: Contender = text.parse().expect(text);
            assert_eq!(contender.to_string(), text);
        }
    }

    #[test]
    fn a_policy_is_for_those_who_have_a_thread() {
        for (wrong, why) in [
            ("kernel:timer/other", "without /other"),
            ("kernel:workqueue/fifo:80", "without /fifo:80"),
            ("kernel:loop/other", "kernel:loop/fifo:50"),
            ("block/", "write fifo:1 to fifo:99"),
            ("block/fifo:0", "write fifo:1 to fifo:99"),
            ("/other", "there are block, hybrid"),
            ("other", "there are block, hybrid"),
        ] {
            let error = wrong.parse::<Contender>().expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
