// SPDX-License-Identifier: MIT OR Apache-2.0
//! One acquisition: from ARM to its end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use strobe::info::End;
use tokio::sync::watch;

use super::capture::Capture;
use super::reason::Reason;
use super::rows::Made;
use super::sampling::Trigger;
use crate::served_run::ServedRun;
use crate::shared::Shared;
use crate::spool::Progress;

/// What an acquisition waits for to have a run.
#[derive(Clone)]
pub enum Phase {
    /// For its sequencer or compare, which makes the run.
    Waiting,
    /// It has one.
    Run(Arc<ServedRun>),
    /// It ended before it had one.
    Never,
}

/// What was chosen when it was armed.
pub struct Chosen {
    /// Its columns.
    pub captures: Vec<Capture>,
    /// The event at which channels are read between triggers.
    pub sample: Option<String>,
    /// What makes its rows.
    pub trigger: Trigger,
    /// Rows at most; 0: as many as come.
    pub limit: u64,
}

/// The run of an acquisition cannot be made; the acquisition says why.
pub struct Refused;

/// One acquisition.
pub struct Acquisition {
    /// Its number, from 1.
    pub number: u64,
    /// What was chosen.
    pub chosen: Chosen,
    /// When it was armed.
    pub armed: Instant,
    /// The same as a date.
    pub armed_date: SystemTime,
    /// Its run.
    phase: watch::Sender<Phase>,
    /// Whether it is asked to end, and why.
    pub asked: watch::Sender<Option<Reason>>,
    /// Whether triggers make rows: the run was started, and its gates are open.
    pub counts: watch::Sender<bool>,
    /// Triggers that its sequencer has given.
    pub given: AtomicU64,
    /// Whether it is over.
    over: watch::Sender<bool>,
    had_reader: AtomicBool,
    readers: AtomicUsize,
    why: OnceLock<String>,
    outcome: Mutex<Option<Reason>>,
    /// What its readers have got last, by their columns.
    pub sent: Shared<Vec<Capture>, Made>,
}

/// A reader that is counted while this is kept.
pub struct Reading(Arc<Acquisition>);

impl Acquisition {
    /// One that was armed now; of what its readers have got, so many bytes are kept for others.
    pub fn new(number: u64, chosen: Chosen, recent: usize) -> Self {
        Acquisition {
            number,
            chosen,
            armed: Instant::now(),
            armed_date: SystemTime::now(),
            phase: watch::channel(Phase::Waiting).0,
            asked: watch::channel(None).0,
            counts: watch::channel(false).0,
            given: AtomicU64::new(0),
            over: watch::channel(false).0,
            had_reader: AtomicBool::new(false),
            readers: AtomicUsize::new(0),
            why: OnceLock::new(),
            outcome: Mutex::new(None),
            sent: Shared::new(recent),
        }
    }

    /// Its run, if it has one.
    pub fn served(&self) -> Option<Arc<ServedRun>> {
        match &*self.phase.borrow() {
            Phase::Run(served) => Some(Arc::clone(served)),
            _ => None,
        }
    }

    /// Waits for its run; `None` if there will be none.
    pub async fn run(&self) -> Option<Arc<ServedRun>> {
        let mut phase = self.phase.subscribe();
        let is_known = |phase: &Phase| !matches!(phase, Phase::Waiting);
        // Fails when the sender has gone, which this keeps.
        let known = phase.wait_for(is_known).await.ok()?.clone();
        match known {
            Phase::Run(served) => Some(served),
            _ => None,
        }
    }

    /// This is its run. Answers whether it wants one: not if it has one, or has ended without.
    pub fn take(&self, run: &Arc<ServedRun>) -> bool {
        self.decide(|| Phase::Run(Arc::clone(run)))
    }

    /// Nobody makes a run for it any more. Answers the one that it has.
    pub fn settle(&self) -> Option<Arc<ServedRun>> {
        self.decide(|| Phase::Never);
        self.served()
    }

    fn decide(&self, decision: impl FnOnce() -> Phase) -> bool {
        self.phase.send_if_modified(|phase| {
            let is_open = matches!(phase, Phase::Waiting);
            if is_open {
                *phase = decision();
            }
            is_open
        })
    }

    /// Asks it to end. The first reason counts.
    pub fn end(&self, reason: Reason) {
        self.asked.send_if_modified(|asked| {
            let is_first = asked.is_none();
            asked.get_or_insert(reason);
            is_first
        });
    }

    /// Ends it: its run cannot be made.
    pub fn refuse(&self, why: String) -> Refused {
        // Who makes its run says so once.
        let _ = self.why.set(why);
        self.end(Reason::Failed);
        Refused
    }

    /// Why its run cannot be made.
    pub fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Whether no more triggers make rows.
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits for its end.
    pub async fn wait_for_end(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// It has ended like this.
    pub fn finish(&self, reason: Reason) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        self.over.send_replace(true);
    }

    /// Why it ended, as far as the run goes.
    pub fn reason(&self, progress: Option<&Progress>) -> Reason {
        let asked = *self.asked.borrow();
        let totals = progress.and_then(|progress| progress.totals.as_ref());
        match totals.map(|totals| &totals.end) {
            Some(End::Failed(_)) => Reason::Failed,
            Some(End::Complete) => Reason::Ok,
            // Who stopped it by other ways has ended it all the same.
            Some(End::Stopped) => asked.unwrap_or(Reason::Disarmed),
            None if progress.is_some_and(|progress| progress.failed.is_some()) => Reason::Failed,
            None => asked.unwrap_or(Reason::Disarmed),
        }
    }

    /// A reader has come.
    pub fn read(self: &Arc<Self>) -> Reading {
        self.had_reader.store(true, Ordering::Relaxed);
        self.readers.fetch_add(1, Ordering::Relaxed);
        Reading(Arc::clone(self))
    }

    /// Whether somebody has read it, or does.
    pub fn had_reader(&self) -> bool {
        self.had_reader.load(Ordering::Relaxed)
    }

    /// Readers that it has now.
    pub fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
