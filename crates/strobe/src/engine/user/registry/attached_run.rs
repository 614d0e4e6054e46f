// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of another process, to be looked at and read.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use strobe_ring::layout::NO_LIMIT;
use strobe_ring::{Engine, Snapshot};

use super::message::Message;
use crate::catalogue::RunStatus;
use crate::clock::RunClock;
use crate::engine::user::connection::Connection;
use crate::engine::user::memfd::RingFile;
use crate::engine::user::polling_waiter::{self, Owner as RingOwner};
use crate::error::Error;
use crate::info::RunInfo;
use crate::reader::{ReaderOptions, RunReader};
use crate::run::Run;

/// Who owns a run, as the kernel says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    pub pid: i32,
    pub uid: u32,
}

/// A run of another process: what is known of it, its ring, and the line to its owner.
pub struct AttachedRun {
    info: RunInfo,
    program: String,
    readers: u32,
    owner: Owner,
    pub(super) ring: Arc<RingFile>,
    connection: Arc<Connection>,
    snapshot: Snapshot,
}

/// Waits of a reader end with an error when the owner has gone without an end of the run.
impl Run for AttachedRun {
    /// What is known of the run; its start as it was when this was asked for.
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, Error> {
        let owner = RingOwner::OtherProcess(Arc::clone(&self.connection));
        polling_waiter::reader(&self.ring, owner, &self.info, options)
            .map_err(|error| error.of(format!("run user:{}", self.info.run)))
    }

    fn tune_word(&self, tunable: usize, word: u64) -> Result<(), Error> {
        let tuned = self.connection.tune(tunable, word);
        tuned.map_err(|source| Error::Run {
            event: self.info.event.clone(),
            doing: "the tuning",
            source,
        })
    }
}

impl AttachedRun {
    /// What the owner has said; the reason if its ring is none.
    pub(super) fn new(
        message: Message,
        owner: Owner,
        ring: OwnedFd,
        line: OwnedFd,
    ) -> Result<Self, String> {
        let ring = RingFile::from_fd(ring).map_err(|error| format!("its ring: {error}"))?;
        let ring = Arc::new(ring);
        let reader = ring
            .attach(ReaderOptions::default())
            .map_err(|error| format!("its ring: {error}"))?;
        let snapshot = reader.snapshot();
        let Message {
            mut info,
            program,
            readers,
            ..
        } = message;
        info.start = snapshot.start;
        info.skips = reader.geometry().shape().skipped;
        Ok(AttachedRun {
            info,
            program,
            readers,
            owner,
            ring,
            connection: Arc::new(Connection::new(line)),
            snapshot,
        })
    }

    /// Tells the owner that there is one more reader, for as long as the line is open.
    pub(super) fn stay(&self) {
        self.connection.stay();
    }

    /// What it does, when it was asked for.
    pub fn status(&self) -> RunStatus {
        let (info, now) = (&self.info, &self.snapshot);
        let end = match now.state {
            // It never started, also if it has ended.
            _ if now.start.time == 0 => 0,
            state if state.is_final() => now.end_time,
            _ => RunClock::new(info.clock).now(),
        };
        // The kernel engine's events have their period apart from their name, too.
        let event = match (info.period_ns, info.event.split_once(':')) {
            (Some(_), Some((name, _))) => name,
            _ => &info.event,
        };
        RunStatus {
            run: info.run,
            engine: Engine::User.name(),
            event: event.to_owned(),
            program: self.program.clone(),
            state: now.state,
            error: now.error,
            channels: u32::try_from(info.channels.len()).unwrap_or(u32::MAX),
            readers: self.readers,
            uid: self.owner.uid,
            pid: self.owner.pid,
            capacity: info.capacity,
            limit: info.limit.filter(|limit| *limit != NO_LIMIT),
            rows: now.head,
            triggers: now.triggers,
            missed: now.missed(),
            skipped: now.skipped,
            errors: now.errors,
            period_ns: info.period_ns.unwrap_or(0),
            elapsed_ns: end.saturating_sub(now.start.time),
        }
    }
}
