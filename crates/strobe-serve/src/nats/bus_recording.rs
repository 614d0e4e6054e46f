// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a subscriber fills: a recording of what comes from the bus, of one run or of two that are joined.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strobe::error::Words;
use strobe::source::RowSource;
use strobe_files::record::{Observer, Progress};
use strobe_files::recorder::{Recorder, Recording};
use strobe_files::sink::Existing;

use super::join::{Join, Matches, Shared};
use super::message_rows::MessageRows;

/// How far apart rows may be that are joined, and what the second run is called.
#[derive(Debug, Clone)]
pub struct Joining {
    /// The tolerance.
    pub within: Duration,
    /// Before the names of its columns.
    pub name: String,
}

/// The recording, as soon as all that it needs has come.
pub struct BusRecording {
    sinks: Vec<String>,
    existing: Existing,
    joining: Option<Joining>,
    state: Mutex<State>,
    /// Rows of the first run before this one are in the files.
    written: Arc<AtomicU64>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct State {
    first: Option<MessageRows>,
    second: Option<MessageRows>,
    recording: Option<Recording>,
    is_over: bool,
}

/// Hears of what is in the files.
struct Written(Arc<AtomicU64>);

impl Observer for Written {
    fn progress(&mut self, _: Progress) {}

    fn written(&mut self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }
}

impl BusRecording {
    /// Of one run, or of two.
    pub fn new(sinks: Vec<String>, existing: Existing, joining: Option<Joining>) -> Arc<Self> {
        Arc::new(BusRecording {
            sinks,
            existing,
            joining,
            state: Mutex::default(),
            written: Arc::default(),
            shared: Arc::default(),
        })
    }

    /// The rows of a run come: of the first one, or of the second. Begins when all are there.
    ///
    /// # Errors
    /// They cannot be joined, or there is no thread to be had.
    pub fn offer(&self, is_first: bool, rows: MessageRows) -> Result<(), Words> {
        let mut state = self.lock();
        match is_first {
            true => state.first = Some(rows),
            false => state.second = Some(rows),
        }
        let rows: Box<dyn RowSource> = match &self.joining {
            None => match state.first.take() {
                Some(first) => Box::new(first),
                None => return Ok(()),
            },
            Some(Joining { within, name }) => match (state.first.take(), state.second.take()) {
                (Some(first), Some(second)) => {
                    let (first, second) = (Box::new(first), Box::new(second));
                    let shared = Arc::clone(&self.shared);
                    Box::new(Join::new(first, second, *within, name, shared)?)
                }
                (first, second) => {
                    (state.first, state.second) = (first, second);
                    return Ok(());
                }
            },
        };
        let recorder = Recorder::of_rows(rows).existing(self.existing);
        let recorder = recorder.observer(Box::new(Written(Arc::clone(&self.written))));
        let sinks = self.sinks.iter();
        let recording = sinks
            .fold(recorder, |recorder, sink| recorder.file(sink))
            .spawn();
        let recording = recording.map_err(|error| Words::new("a thread", error.to_string()))?;
        state.recording = Some(recording);
        Ok(())
    }

    /// Nobody wants more rows.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Whether no more rows are wanted.
    pub fn is_over(&self) -> bool {
        let state = self.lock();
        state.is_over || state.recording.as_ref().is_some_and(Recording::is_over)
    }

    /// The recording, if it has begun.
    pub fn recording(&self) -> Option<Recording> {
        self.lock().recording.take()
    }

    /// Rows of the first run before this one are not wanted: they are in other files.
    pub fn begin_at(&self, first: u64) {
        self.written.store(first, Ordering::Relaxed);
    }

    /// Rows of the first run before this one are in the files.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// The bus has heard that those of the first run before this one are. Answers the row of the second one from which on
    /// it is still needed, if that is news.
    pub fn acknowledged(&self, first: u64) -> Option<u64> {
        self.shared().kept(first)
    }

    /// How many rows found each other; `None`: none are joined.
    pub fn matches(&self) -> Option<Matches> {
        self.joining.as_ref().map(|_| self.shared().matches)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
