// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine under test. `tests/conformance.rs` asks the same of every engine;
//! a new one implements [`Engine`] and is added there to the last lines.

use rustix::io::Errno;
use strobe::engine::Error;
use strobe::engine::kernel::{self, Control};
use strobe::engine::user;
use strobe::plan::{Plan, Step};
use strobe::program::ProgramText;
use strobe::run::OwnedRun;

/// Makes runs.
pub trait Engine: Sync {
    /// Its runs.
    type Run: OwnedRun;

    /// The word for it in a ring's header.
    const KIND: strobe_ring::Engine;

    /// The engine of this machine.
    fn open() -> Self;

    /// Makes a run; it waits for its start.
    ///
    /// # Errors
    /// The engine's reason.
    fn create(&self, plan: &Plan) -> Result<Self::Run, Error>;

    /// A run of which the test is sure that the engine can make it.
    fn run(&self, plan: &Plan) -> Self::Run {
        self.create(plan)
            .unwrap_or_else(|why| panic!("a run on {}: {why}", plan.event))
    }
}

/// The kernel engine.
pub struct Kernel(pub Control);

impl Engine for Kernel {
    type Run = kernel::KernelRun;

    const KIND: strobe_ring::Engine = strobe_ring::Engine::Kernel;

    fn open() -> Self {
        Kernel(Control::open().expect("the control device"))
    }

    fn create(&self, plan: &Plan) -> Result<kernel::KernelRun, Error> {
        self.0.create(plan)
    }
}

/// The user engine, of this process.
pub struct User(pub user::User);

impl Engine for User {
    type Run = user::UserRun;

    const KIND: strobe_ring::Engine = strobe_ring::Engine::User;

    fn open() -> Self {
        User(user::User::default())
    }

    fn create(&self, plan: &Plan) -> Result<user::UserRun, Error> {
        self.0.create(plan)
    }
}

/// Reads these channels on that event, until stopped.
pub fn plan(event: &str, channels: &[&str]) -> Plan {
    let event = event.parse().expect("an event");
    let steps = channels.iter().map(|name| Step::Read((*name).into()));
    Plan {
        steps: steps.collect(),
        ..Plan::new(event)
    }
}

/// A program of these columns and conditions.
pub fn program(derive: &[&str], keep: &[&str], every: Option<u64>) -> ProgramText {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    ProgramText {
        derive: owned(derive),
        keep: owned(keep),
        every,
        ..ProgramText::default()
    }
}

/// The errno with which a call on a run was refused; `None` if it was done.
pub fn errno(result: Result<(), Error>) -> Option<Errno> {
    match result {
        Ok(()) => None,
        Err(Error::Run { source, .. } | Error::Provider { source, .. }) => {
            Some(Errno::from_io_error(&source).expect("an errno of the system"))
        }
        Err(other) => panic!("not a refusal of a call on a run: {other}"),
    }
}
