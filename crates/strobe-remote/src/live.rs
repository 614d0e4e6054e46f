// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server's run while it is watched: its rows, and its counters, which a thread asks for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::error::Error;
use strobe::info::{End, RunInfo, Totals};
use strobe::ring::{Snapshot, State};
use strobe::source::{Live, RowSource};

use crate::rows::{Begin, Part, RemoteRows};
use crate::run::RemoteRun;
use crate::view::RunView;

/// How old the counters may get.
const LOOK: Duration = Duration::from_millis(250);

/// Rows that who comes to watch sees at once.
const BEFORE: u64 = 1000;

/// The rows of a run, and where it is.
pub(crate) struct RemoteLive {
    rows: RemoteRows,
    seen: Arc<Seen>,
    /// Why no more rows come.
    failed: Option<String>,
}

/// What the server has said last, and when.
struct Seen {
    last: Mutex<(RunView, Instant)>,
    is_dropped: AtomicBool,
}

impl RemoteRun {
    /// Its last rows, those that come, and where it is meanwhile.
    pub fn live(&self) -> impl Live + use<> {
        let first = self.view().next.saturating_sub(BEFORE);
        let begin = Begin::Row(first.max(self.view().oldest));
        RemoteLive::new(self.clone(), self.rows(Part::from(begin)))
    }
}

impl RemoteLive {
    pub(crate) fn new(run: RemoteRun, rows: RemoteRows) -> Self {
        let seen = Arc::new(Seen {
            last: Mutex::new((run.view().clone(), Instant::now())),
            is_dropped: AtomicBool::new(false),
        });
        let shared = Arc::clone(&seen);
        let thread = Builder::new().name("counters".to_owned());
        let spawned = thread.spawn(move || shared.look_at(&run));
        RemoteLive {
            rows,
            seen,
            failed: spawned.err().map(|error| {
                format!("the thread that asks for its counters cannot be started: {error}")
            }),
        }
    }
}

impl Seen {
    fn look_at(&self, run: &RemoteRun) {
        while !self.is_dropped.load(Ordering::Relaxed) {
            // If the server has gone, the rows say so.
            if let Ok(view) = run.look() {
                let is_over = view.end.is_some();
                *self.lock() = (view, Instant::now());
                if is_over {
                    return;
                }
            }
            sleep(LOOK);
        }
    }

    fn lock(&self) -> MutexGuard<'_, (RunView, Instant)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowSource for RemoteLive {
    fn info(&self) -> &RunInfo {
        self.rows.info()
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        let next = self.rows.next(wait);
        next.inspect_err(|error| self.failed = Some(error.to_string()))
    }

    fn totals(&self) -> Option<Totals> {
        self.rows.totals()
    }

    fn is_torn(&self) -> bool {
        self.rows.is_torn()
    }
}

impl Live for RemoteLive {
    fn snapshot(&self) -> Snapshot {
        self.seen.lock().0.snapshot()
    }

    fn now(&self) -> u64 {
        let (view, then) = &*self.seen.lock();
        let since = match view.state() {
            State::Running | State::Paused => then.elapsed().as_nanos() as u64,
            _ => 0,
        };
        view.now() + since
    }

    fn gone(&self) -> Option<String> {
        match self.seen.lock().0.end() {
            Some(End::Failed(why)) => Some(why),
            Some(_) => None,
            None => self.failed.clone(),
        }
    }
}

impl Drop for RemoteLive {
    fn drop(&mut self) {
        self.seen.is_dropped.store(true, Ordering::Relaxed);
    }
}
