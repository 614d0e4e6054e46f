// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU that something is measured on.

use std::sync::Arc;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use strobe::engine::Error;
use strobe::info::RunInfo;
use strobe::reader::{ReaderOptions, RunReader};
use strobe::run::{OwnedRun, Run};
use strobe_hw::rt;
use strobe_ring::State;

/// A run that is started by a thread on one CPU: there is its timer then.
pub struct StartedOn {
    run: Arc<dyn OwnedRun>,
    cpu: Option<usize>,
}

impl StartedOn {
    /// This run, on this CPU; without one, as it is.
    pub fn new(run: Arc<dyn OwnedRun>, cpu: Option<usize>) -> Self {
        StartedOn { run, cpu }
    }
}

impl Run for StartedOn {
    fn info(&self) -> &RunInfo {
        self.run.info()
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, Error> {
        self.run.reader_with(options)
    }

    fn tune_word(&self, tunable: usize, word: u64) -> Result<(), Error> {
        self.run.tune_word(tunable, word)
    }
}

impl OwnedRun for StartedOn {
    fn start(&self) -> Result<(), Error> {
        let before = sched_getaffinity(None);
        if let Some(cpu) = self.cpu {
            let mut only = CpuSet::new();
            only.set(cpu);
            // Whether it may was looked at before.
            let _ = sched_setaffinity(None, &only);
        }
        let started = self.run.start();
        if let Ok(before) = before {
            let _ = sched_setaffinity(None, &before);
        }
        started
    }

    fn stop(&self) -> Result<(), Error> {
        self.run.stop()
    }

    fn trigger(&self, count: u32) -> Result<(), Error> {
        self.run.trigger(count)
    }

    fn pause(&self) -> Result<(), Error> {
        self.run.pause()
    }

    fn resume(&self) -> Result<(), Error> {
        self.run.resume()
    }

    fn state(&self) -> Result<State, Error> {
        self.run.state()
    }

    fn thread(&self) -> Option<u32> {
        self.run.thread()
    }

    fn usage(&self) -> Option<rt::Usage> {
        self.run.usage()
    }
}

/// A CPU that was asked for, and that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("CPU {0}: no such CPU, or not in this process's cpuset; name another, or none")]
pub struct NoCpu(pub usize);

/// Whether this process may run there.
///
/// # Errors
/// It may not.
pub fn check_cpu(cpu: Option<usize>) -> Result<(), NoCpu> {
    match cpu.filter(|cpu| !rt::cpus().contains(cpu)) {
        Some(cpu) => Err(NoCpu(cpu)),
        None => Ok(()),
    }
}
