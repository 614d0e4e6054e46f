// SPDX-License-Identifier: MIT OR Apache-2.0
//! A way to make rows at a rate.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use strobe::engine;
use strobe::engine::kernel::Control;
use strobe::engine::user::{Lock, Settings, User, WaitMode};
use strobe::event::EventSpec;
use strobe::plan::CpuLatency;
use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe_board::Board;
use strobe_hw::rt;

use super::relative::Relative;
use crate::cpu::StartedOn;

/// How the next row is waited for, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// The user engine's thread, on a grid.
    User(WaitMode),
    /// The user engine's thread sleeps for a period after each row.
    Relative,
    /// The kernel engine's timer, in its interrupt.
    KernelTimer,
    /// An event of the module strobe_loop, and whether it knows when it was due.
    KernelLoop(&'static str, bool),
}

/// Of the kernel's loops, unless one is said: what the kernel gives its own threads.
const PRIORITY: u8 = 50;

const PACINGS: [(&str, Pacing); 8] = [
    ("block", Pacing::User(WaitMode::Block)),
    ("hybrid", Pacing::User(WaitMode::Hybrid)),
    ("spin", Pacing::User(WaitMode::Spin)),
    ("relative", Pacing::Relative),
    ("kernel:timer", Pacing::KernelTimer),
    ("kernel:loop", Pacing::KernelLoop("loop.absolute", true)),
    (
        "kernel:relative",
        Pacing::KernelLoop("loop.relative", false),
    ),
    ("kernel:workqueue", Pacing::KernelLoop("loop.work", true)),
];

/// Why there is no run of a way.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The module with the loops is not there.
    #[error(
        "{0}; the kernel's loops to compare with are in a module: load it as root: modprobe strobe_loop"
    )]
    NoLoop(engine::Error),
    /// They do not go at this rate.
    #[error(
        "the loops to compare with have periods of 10 us to 1 s; choose another, or kernel:timer"
    )]
    Period,
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

/// Policy of the thread, of the user engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Whatever the period.
    As(rt::Policy),
    /// So much of each period as a row needs.
    Deadline,
}

/// What all ways have in common.
#[derive(Clone)]
pub struct PacingSettings {
    /// From row to row.
    pub period_ns: u64,
    /// Of the user engine's thread; `None`: its usual one.
    pub policy: Option<Policy>,
    /// Where rows are made.
    pub cpu: Option<usize>,
    /// How long CPUs may take to wake.
    pub wake_within: CpuLatency,
    /// How much later than its point the thread of kernel:loop may wake.
    pub slack_ns: u64,
    /// The work of the loop: what each row writes and reads.
    pub steps: Vec<Step>,
    /// A board of the user engine.
    pub board: Option<Board>,
    /// What the user engine locks in memory.
    pub lock: Lock,
}

impl Pacing {
    /// Whether its thread is the kernel's: it has a priority.
    pub fn is_kernel_thread(self) -> bool {
        matches!(
            self,
            Pacing::KernelLoop("loop.absolute" | "loop.relative", _)
        )
    }

    /// A run of it, of rows that are their stamps, and what was asked for.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn run(self, asked: &PacingSettings) -> Result<Arc<dyn OwnedRun>, Error> {
        let period = asked.period_ns;
        let plan = |event: EventSpec| Plan {
            // Also if whoever reads is held up for a while: what is measured is who makes the rows.
            ring: Some(rows_of_seconds(period)),
            steps: asked.steps.clone(),
            wake_within: asked.wake_within,
            ..Plan::new(event)
        };
        let user = |wait| {
            let user = User::new(Settings {
                wait,
                lock: asked.lock,
                cpu: asked.cpu,
                policy: asked.policy.map(|policy| policy.for_period(period)),
            });
            match &asked.board {
                Some(board) => user.with_board(board.clone()),
                None => user,
            }
        };
        Ok(match self {
            Pacing::User(wait) => Arc::new(user(wait).create(&plan(EventSpec::timer(period)))?),
            Pacing::Relative => {
                let engine = user(WaitMode::Block).with(Arc::new(Relative(period)));
                Arc::new(engine.create(&plan(EventSpec::device(Relative::EVENT)))?)
            }
            Pacing::KernelTimer => {
                let run = Control::open()?.create(&plan(EventSpec::timer(period)))?;
                Arc::new(StartedOn::new(Arc::new(run), asked.cpu))
            }
            Pacing::KernelLoop(event, is_due) => {
                let control = Control::open()?;
                set_up(&control, asked)?;
                // Only the event knows when it was due.
                let late = Step::Read("clock.late".to_owned());
                let mut plan = plan(EventSpec::device(event));
                plan.steps.extend(is_due.then_some(late));
                let run = control.create(&plan)?;
                Arc::new(StartedOn::new(Arc::new(run), asked.cpu))
            }
        })
    }
}

/// One row of the event `soft` writes what the module is to know.
fn set_up(control: &Control, asked: &PacingSettings) -> Result<(), Error> {
    if !(10_000..=1_000_000_000).contains(&asked.period_ns) {
        return Err(Error::Period);
    }
    let priority = match asked.policy {
        Some(Policy::As(rt::Policy::Fifo(priority))) => priority,
        _ => PRIORITY,
    };
    let steps = [
        ("loop.period", asked.period_ns),
        ("loop.slack", asked.slack_ns),
        ("loop.priority", priority.into()),
    ];
    let write = |(output, value): (&str, u64)| Step::Write {
        output: output.to_owned(),
        value,
    };
    let run = control.create(&Plan {
        steps: steps.into_iter().map(write).collect(),
        limit: Some(1),
        ..Plan::new(EventSpec::soft())
    });
    let run = run.map_err(|error| match error {
        error @ engine::Error::NotHere { .. } => Error::NoLoop(error),
        error => error.into(),
    })?;
    run.start()?;
    Ok(run.trigger(1)?)
}

/// Rows of a ring that holds some seconds.
fn rows_of_seconds(period_ns: u64) -> u64 {
    (4_000_000_000 / period_ns.max(1)).clamp(1024, 1 << 18)
}

impl Policy {
    fn for_period(self, period_ns: u64) -> rt::Policy {
        match self {
            Policy::As(policy) => policy,
            // A cycle costs some ten microseconds; what is not used, others have.
            Policy::Deadline => rt::Policy::Deadline {
                runtime_ns: (period_ns / 4).clamp(50_000.min(period_ns), 1_000_000),
                period_ns,
            },
        }
    }
}

impl FromStr for Pacing {
    type Err = String;

    fn from_str(text: &str) -> Result<Pacing, String> {
        let way = PACINGS.iter().find(|(name, _)| *name == text);
        way.map(|(_, way)| *way).ok_or_else(|| {
            let names: Vec<&str> = PACINGS.iter().map(|(name, _)| *name).collect();
            format!("there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = PACINGS.iter().find(|(_, way)| way == self);
        f.write_str(way.map_or("?", |(name, _)| name))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::As(policy) => policy.fmt(f),
            Policy::Deadline => f.write_str("deadline"),
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        if text == "deadline" {
            return Ok(Policy::Deadline);
        }
        let policy = text.parse().map(Policy::As);
        policy.map_err(|why: String| format!("{why}; or deadline"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_written_as_it_is_read() {
        for (name, way) in PACINGS {
            assert_eq!(name.parse(), Ok(way));
            assert_eq!(way.to_string(), name);
        }
        let error = "sleep".parse::<Pacing>().expect_err("no way");
        assert!(error.contains("block, hybrid, spin"), "{error}");
    }

    #[test]
    fn a_policy_has_a_priority_where_it_has_one() {
        for right in ["fifo:80", "other", "deadline"] {
            let policy: Policy = right.parse().expect(right);
            assert_eq!(policy.to_string(), right);
        }
        for wrong in ["fifo", "fifo:0", "fifo:100", "rr:5", ""] {
            assert!(wrong.parse::<Policy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_deadline_leaves_room_for_others() {
        for period_ns in [100_000, 1_000_000, 10_000_000] {
            let rt::Policy::Deadline { runtime_ns, .. } = Policy::Deadline.for_period(period_ns)
            else {
                panic!("a deadline");
            };
            assert!(runtime_ns <= period_ns / 2, "{runtime_ns} of {period_ns}");
        }
    }
}
