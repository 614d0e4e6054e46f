// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the kernel engine: one's own, or somebody else's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::uapi::{self, control_op};
use strobe_ring::State;

use super::Control;
use super::ring_fd::{self, Whose};
use crate::error::Error;
use crate::info::RunInfo;
use crate::reader::{ReaderOptions, RunReader};
use crate::run::{OwnedRun, Run};

/// A run of the kernel engine. It ends when this is dropped.
pub struct KernelRun {
    pub(super) owner: OwnedFd,
    pub(super) info: RunInfo,
    /// Its interrupts find a CPU that serves them at once.
    pub(super) _awake: CpuLatencyRequest,
}

/// A run of somebody else.
pub struct AttachedRun {
    pub(super) control: OwnedFd,
    pub(super) info: RunInfo,
}

impl Run for AttachedRun {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, Error> {
        ring_fd::reader(
            self.control.as_fd(),
            Whose::Run(self.info.run),
            &self.info,
            options,
        )
    }

    fn tune_word(&self, tunable: usize, word: u64) -> Result<(), Error> {
        // This one is open for reading only: who may look may not tune.
        let control = Control::open()?;
        let RunInfo { run, event, .. } = &self.info;
        tune(control.fd.as_fd(), *run, event, tunable, word)
    }
}

impl KernelRun {
    fn control(&self, doing: &'static str, op: u32, count: u32) -> Result<(), Error> {
        self.call(doing, op, count).map(|_| ())
    }

    fn call(&self, doing: &'static str, op: u32, count: u32) -> Result<uapi::Control, Error> {
        let mut answer = uapi::Control::default();
        match uapi::control(self.owner.as_fd(), op, count, &mut answer) {
            Ok(()) => Ok(answer),
            Err(errno) => Err(failure(&self.info.event, doing, &answer, errno)),
        }
    }
}

/// Tunes a run: on the control device that of this number, on an owner fd that of number 0.
fn tune(fd: BorrowedFd<'_>, run: u32, event: &str, tunable: usize, word: u64) -> Result<(), Error> {
    let tunable = u32::try_from(tunable).unwrap_or(u32::MAX);
    uapi::tune(fd, run, tunable, word).map_err(|errno| Error::Run {
        event: event.to_owned(),
        doing: "the tuning",
        source: errno.into(),
    })
}

/// The words for a `STROBE_CONTROL` that failed.
pub(super) fn failure(
    event: &str,
    doing: &'static str,
    answer: &uapi::Control,
    errno: Errno,
) -> Error {
    match (errno, answer.cause) {
        // The driver of the device that raises the event says why.
        (Errno::NODEV, cause) if cause != 0 => Error::Provider {
            object: format!("event {event}"),
            source: io::Error::from_raw_os_error(cause.saturating_abs()),
        },
        _ => Error::Run {
            event: event.to_owned(),
            doing,
            source: errno.into(),
        },
    }
}

impl Run for KernelRun {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, Error> {
        ring_fd::reader(
            self.owner.as_fd(),
            Whose::Event(&self.info.event),
            &self.info,
            options,
        )
    }

    fn tune_word(&self, tunable: usize, word: u64) -> Result<(), Error> {
        tune(self.owner.as_fd(), 0, &self.info.event, tunable, word)
    }
}

impl OwnedRun for KernelRun {
    fn start(&self) -> Result<(), Error> {
        self.control("the start", control_op::START, 0)
    }

    fn stop(&self) -> Result<(), Error> {
        self.control("the stop", control_op::STOP, 0)
    }

    fn pause(&self) -> Result<(), Error> {
        self.control("the pause", control_op::PAUSE, 0)
    }

    fn resume(&self) -> Result<(), Error> {
        self.control("going on", control_op::RESUME, 0)
    }

    fn trigger(&self, count: u32) -> Result<(), Error> {
        self.control("the trigger", control_op::TRIGGER, count)
    }

    fn owner(&self) -> Option<BorrowedFd<'_>> {
        Some(self.owner.as_fd())
    }

    fn state(&self) -> Result<State, Error> {
        let answer = self.call("the status", control_op::STATUS, 0)?;
        Ok(State::from_raw(answer.state))
    }
}
