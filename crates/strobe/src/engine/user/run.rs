// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the user engine, as its owner has it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use rustix::io::Errno;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::rt::{self, Policy, Step, Usage};
use strobe_hw::wakeup::Waker;

use super::memfd::RingFile;
use super::polling_waiter::{self, Owner};
use super::reader_waker::ReaderWaker;
use super::registry::{self, Claim, ServedRun, Server};
use super::service::{Order, Request};
use super::settings::{Lock, Settings};
use super::tuning::Tuning;
use crate::error::Error;
use crate::info::RunInfo;
use crate::reader::{ReaderOptions, RunReader};
use crate::run::{OwnedRun, Run};

/// Bytes of its stack. All of them may be locked in memory, so not more than it needs.
const STACK: usize = 512 * 1024;

/// A run of the user engine. It ends when this is dropped.
pub struct UserRun {
    info: RunInfo,
    ring: Arc<RingFile>,
    reader_waker: Arc<ReaderWaker>,
    requests: Sender<Request>,
    waker: Waker,
    usage: Arc<Mutex<Usage>>,
    /// Of its program, if it has one.
    tuning: Option<Arc<Tuning>>,
    thread: Option<JoinHandle<()>>,
    /// Its number.
    number: u32,
    /// Its thread finds a CPU that serves it at once.
    _awake: Option<CpuLatencyRequest>,
    /// Tells others of the run. It goes after the thread: so they see the end in the ring first.
    server: Option<Server>,
}

impl UserRun {
    /// Starts the thread, which does what `work` answers.
    pub(super) fn new<W: FnOnce() + Send + 'static>(
        mut info: RunInfo,
        (ring, reader_waker): (Arc<RingFile>, Arc<ReaderWaker>),
        settings: &Settings,
        policy: Policy,
        mut set_up: Vec<Step>,
        waker: Waker,
        work: impl FnOnce(Receiver<Request>, Arc<Mutex<Usage>>) -> W,
    ) -> Result<UserRun, Error> {
        let (requests, received) = channel();
        let usage = Arc::new(Mutex::new(Usage::default()));
        let work = work(received, Arc::clone(&usage));
        let (report, reported) = sync_channel(1);
        let name = "strobe-run".to_owned();
        let (cpu, lock) = (settings.cpu, settings.lock);
        let thread = Builder::new().name(name).stack_size(STACK).spawn(move || {
            let number = rustix::thread::gettid().as_raw_pid();
            let stack = (lock == Lock::RingAndStack).then(rt::lock_stack);
            let steps = stack.into_iter().chain(rt::set_up_thread(cpu, policy));
            // Nobody is there to read it if this fails.
            let _ = report.send((number.unsigned_abs(), steps.collect::<Vec<_>>()));
            work();
        });
        let failed = |source: io::Error| Error::Run {
            event: info.event.clone(),
            doing: "starting its thread",
            source: rt::lock_limit(source, STACK as u64),
        };
        let thread = thread.map_err(failed)?;
        let (number, got) = reported.recv().map_err(|_| failed(Errno::PIPE.into()))?;
        set_up.extend(got);
        info.set_up = set_up;
        Ok(UserRun {
            info,
            ring,
            reader_waker,
            requests,
            waker,
            usage,
            tuning: None,
            thread: Some(thread),
            number,
            _awake: None,
            server: None,
        })
    }

    /// The run, with CPUs that are awake as long as it is there.
    pub(super) fn awake(mut self, awake: CpuLatencyRequest) -> UserRun {
        self._awake = Some(awake);
        self
    }

    /// The run, with what tunes its program.
    pub(super) fn tuned_by(mut self, tuning: Option<Arc<Tuning>>) -> UserRun {
        self.tuning = tuning;
        self
    }

    /// The run, to be seen by others if it could claim a number. If not, it goes on all the same.
    pub(super) fn visible_by(mut self, claim: Result<Claim, registry::Error>) -> UserRun {
        let server = claim.map_err(|error| error.to_string()).and_then(|claim| {
            let got = format!("user:{} in {}", claim.run(), claim.place());
            let (info, ring) = (self.info.clone(), Arc::clone(&self.ring));
            let reader_waker = Arc::clone(&self.reader_waker);
            let tuning = self.tuning.clone();
            let server = Server::new(
                claim,
                ServedRun {
                    info,
                    ring,
                    reader_waker,
                    tuning,
                },
            );
            server
                .map_err(|error| error.to_string())
                .map(|server| (server, got))
        });
        let (ok, got) = match server {
            Ok((server, got)) => {
                self.server = Some(server);
                (true, got)
            }
            Err(why) => (false, format!("not visible to other programs: {why}")),
        };
        let what = "visible".into();
        self.info.set_up.push(Step { what, ok, got });
        self
    }

    /// Readers of the run in other processes.
    pub fn readers_elsewhere(&self) -> u32 {
        self.server.as_ref().map_or(0, Server::readers_elsewhere)
    }

    /// The ring, for readers in other processes.
    #[doc(hidden)]
    pub fn ring(&self) -> &Arc<RingFile> {
        &self.ring
    }

    fn call(&self, doing: &'static str, order: Order) -> Result<(), Error> {
        let failed = |errno: Errno| Error::Run {
            event: self.info.event.clone(),
            doing,
            source: errno.into(),
        };
        let (answer, answered) = sync_channel(1);
        let gone = Errno::PIPE;
        self.requests
            .send((order, answer))
            .map_err(|_| failed(gone))?;
        self.waker.wake();
        answered.recv().unwrap_or(Err(gone)).map_err(failed)
    }
}

impl Run for UserRun {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, Error> {
        let run = || format!("run on event {}", self.info.event);
        let owner = Owner::ThisProcess(Arc::clone(&self.reader_waker));
        polling_waiter::reader(&self.ring, owner, &self.info, options)
            .map_err(|error| error.of(run()))
    }

    fn tune_word(&self, tunable: usize, word: u64) -> Result<(), Error> {
        let tuning = self.tuning.as_ref().ok_or(Errno::INVAL);
        let tuned = tuning.and_then(|tuning| tuning.leave(tunable, word));
        tuned.map_err(|errno| Error::Run {
            event: self.info.event.clone(),
            doing: "the tuning",
            source: errno.into(),
        })
    }
}

impl OwnedRun for UserRun {
    fn start(&self) -> Result<(), Error> {
        self.call("the start", Order::Start)
    }

    fn stop(&self) -> Result<(), Error> {
        self.call("the stop", Order::Stop)
    }

    fn pause(&self) -> Result<(), Error> {
        self.call("the pause", Order::Pause)
    }

    fn resume(&self) -> Result<(), Error> {
        self.call("going on", Order::Resume)
    }

    fn trigger(&self, count: u32) -> Result<(), Error> {
        self.call("the trigger", Order::Trigger(count))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage.lock().ok().map(|usage| *usage)
    }

    fn thread(&self) -> Option<u32> {
        Some(self.number)
    }
}

impl Drop for UserRun {
    fn drop(&mut self) {
        // If its thread is gone already, there is nothing to end.
        let _ = self.call("the end", Order::Abandon);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
