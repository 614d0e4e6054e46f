// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader that wants each row as soon as it is there, and stamps when it has seen it.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;
use strobe_hw::rt::{self, Policy};
use strobe_ring::{Row, State};

use crate::clock::monotonic;
use crate::engine;
use crate::info::End;
use crate::info::failure;
use crate::run::OwnedRun;
use crate::stop::Stop;

/// It looks for signals, and for the end of its time, at least this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of its stack, which are locked in memory.
const STACK: usize = 256 * 1024;
/// Rows that are taken out of the ring at once.
const ROWS: usize = 256;

/// How the reader works.
pub struct Reading {
    /// Its policy; `None`: the one it has.
    pub policy: Option<Policy>,
    /// The CPU it runs on.
    pub cpu: Option<usize>,
    /// It never sleeps.
    pub spin: bool,
    /// The longest time.
    pub duration: Duration,
}

/// What became of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// Rows made.
    pub rows: u64,
    /// Triggers that made none.
    pub missed: u64,
    /// Rows that were overwritten before they were seen.
    pub lost: u64,
    /// How it ended.
    pub end: End,
    /// When it was started, on its clock.
    #[serde(skip)]
    pub begun: u64,
    /// What was refused of the real-time set-up, of the run's thread and of the reader's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<rt::Step>,
}

/// Why a run could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The reader's reason.
    #[error("its rows cannot be waited for: {0}")]
    Wait(io::Error),
    /// The system's reason.
    #[error("the thread that reads its rows cannot be had: {0}")]
    Thread(io::Error),
}

impl Account {
    /// Whether all that was asked for is there.
    pub fn is_whole(&self) -> bool {
        self.missed == 0 && self.lost == 0 && self.end == End::Complete
    }
}

/// Starts the run and follows it to its end, in a thread of its own; `each` gets every row, and when it was seen.
///
/// # Errors
/// The run cannot be started, or its rows not be waited for.
pub fn follow(
    run: &dyn OwnedRun,
    reading: &Reading,
    stop: &Stop,
    mut each: impl FnMut(&Row<'_>, u64) + Send,
) -> Result<Account, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("strobe-reader".to_owned());
        let thread = thread.stack_size(STACK);
        let reader = thread.spawn_scoped(scope, || {
            let set_up = match reading.policy {
                Some(policy) => rt::set_up_thread(reading.cpu, policy),
                None => Vec::new(),
            };
            let account = read(run, reading, stop, &mut each)?;
            let steps = run.info().set_up.iter().cloned().chain(set_up);
            Ok(Account {
                refused: steps.filter(|step| !step.ok).collect(),
                ..account
            })
        });
        let locked = |error| Error::Thread(rt::lock_limit(error, STACK as u64));
        let reader = reader.map_err(locked)?;
        let dead = || Error::Thread(io::Error::other("it has died"));
        reader.join().map_err(|_| dead())?
    })
}

fn read(
    run: &dyn OwnedRun,
    reading: &Reading,
    stop: &Stop,
    each: &mut impl FnMut(&Row<'_>, u64),
) -> Result<Account, Error> {
    let mut reader = run.reader()?;
    let mut buffer = vec![0; ROWS * reader.ring().row_words()];
    run.start()?;
    let deadline = Instant::now().checked_add(reading.duration);
    let mut asked = None;
    loop {
        if !reading.spin {
            reader.wait(1, LOOK_EVERY).map_err(Error::Wait)?;
        }
        let batch = reader.read(&mut buffer);
        let seen = monotonic();
        batch.rows().for_each(|row| each(&row, seen));
        if reader.ring().ended() {
            break;
        }
        let end = match deadline {
            _ if asked.is_some() => None,
            _ if stop.interrupt.load(Ordering::Relaxed) => Some(End::Stopped),
            Some(deadline) if Instant::now() >= deadline => Some(End::Complete),
            _ => None,
        };
        if end.is_some() {
            asked = end;
            run.stop()?;
        }
    }
    let last = reader.snapshot();
    Ok(Account {
        rows: last.head,
        missed: last.missed(),
        lost: reader.ring().lost(),
        end: match (last.state, asked) {
            (State::Failed, _) => End::Failed(failure(&last)),
            (State::Done, _) | (_, None) => End::Complete,
            (_, Some(asked)) => asked,
        },
        begun: last.start.time,
        refused: Vec::new(),
    })
}
