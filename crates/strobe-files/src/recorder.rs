// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording that goes on while its program does something else.
//!
//! ```no_run
//! use std::sync::Arc;
//! use strobe::engine::user::User;
//! use strobe::plan::{Plan, Step};
//! use strobe_files::recorder::Recorder;
//!
//! let mut plan = Plan::new("timer:1kHz".parse()?);
//! plan.steps.push(Step::Read("sim.sine".into()));
//! let run = User::default().create(&plan)?;
//! let recording = Recorder::new(Arc::new(run)).file("scan-{n}.arrows").spawn()?;
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! recording.stop();
//! let summary = recording.join()?;
//! println!("{} rows, {} missed, {} lost", summary.rows, summary.missed, summary.lost);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use strobe::info::RunInfo;
use strobe::note::Note;
use strobe::ring::{Row, State};
use strobe::run::OwnedRun;
use strobe::source::RowSource;
use strobe::stop::Stop;

use crate::record::{Error, Observer, Options, Progress, record_into, record_rows_into};
use crate::sink::{Existing, Named, Sink};
use crate::summary::Summary;

/// Where rows come from.
enum Origin {
    /// A run, which is started, and ended.
    Run(Arc<dyn OwnedRun>),
    /// Rows that come anyway.
    Rows(Box<dyn RowSource>),
}

/// A recording that is to be made.
pub struct Recorder {
    origin: Origin,
    options: Options,
    sinks: Vec<Named>,
    stop: Stop,
    observer: Option<Box<dyn Observer + Send>>,
}

/// A recording that is being made. It goes on if this is dropped, until the run ends.
pub struct Recording {
    stop: Stop,
    /// The run that ends with it.
    run: Option<Arc<dyn OwnedRun>>,
    progress: Arc<Mutex<Option<Progress>>>,
    thread: JoinHandle<Result<Summary, Error>>,
}

impl Recorder {
    /// Of a run, which it starts, and ends when it is stopped. Each sink has a reader and a thread of its own, so that
    /// one that is slow or fails does not disturb the others.
    pub fn new(run: Arc<dyn OwnedRun>) -> Self {
        Self::of(Origin::Run(run))
    }

    /// Of rows that come anyway: of another's run, or of a recording.
    pub fn of_rows(rows: Box<dyn RowSource>) -> Self {
        Self::of(Origin::Rows(rows))
    }

    fn of(origin: Origin) -> Self {
        Recorder {
            origin,
            options: Options::default(),
            sinks: Vec::new(),
            stop: Stop::default(),
            observer: None,
        }
    }

    /// Rows go to a file, too, whose name says its format; see [`crate::sink`].
    #[must_use]
    pub fn file(mut self, name: impl Into<String>) -> Self {
        self.options.sinks.push(name.into());
        self
    }

    /// Rows go there, too. The name is for the account.
    #[must_use]
    pub fn sink(mut self, name: impl Into<String>, sink: Box<dyn Sink>) -> Self {
        self.sinks.push((name.into(), sink));
        self
    }

    /// What becomes of files that are there already; unless said, they are not touched.
    #[must_use]
    pub fn existing(mut self, existing: Existing) -> Self {
        self.options.existing = existing;
        self
    }

    /// How the machine is, for sinks to say.
    #[must_use]
    pub fn notes(mut self, notes: Vec<Note>) -> Self {
        self.options.notes = notes;
        self
    }

    /// It ends after this time.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> Self {
        self.options.duration = Some(duration);
        self
    }

    /// It ends when somebody says so here, as a handler of signals does.
    #[must_use]
    pub fn until(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Who looks on.
    #[must_use]
    pub fn observer(mut self, observer: Box<dyn Observer + Send>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Records, and returns when it is over.
    ///
    /// # Errors
    /// Nothing was recorded; the reason. What happens later is in the summary.
    pub fn run(mut self) -> Result<Summary, Error> {
        let observer = self.observer.take();
        let mut observer = observer.unwrap_or_else(|| Box::new(|_: Progress| {}));
        self.record(observer.as_mut())
    }

    /// Records in a thread of its own.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn spawn(mut self) -> io::Result<Recording> {
        let progress = Arc::default();
        let mut watched = ProgressObserver {
            progress: Arc::clone(&progress),
            observer: self.observer.take(),
        };
        let stop = self.stop.clone();
        let run = match &self.origin {
            Origin::Run(run) => Some(Arc::clone(run)),
            Origin::Rows(_) => None,
        };
        let thread = Builder::new().name("recorder".to_owned());
        let thread = thread.spawn(move || self.record(&mut watched))?;
        Ok(Recording {
            stop,
            run,
            progress,
            thread,
        })
    }

    fn record(self, observer: &mut dyn Observer) -> Result<Summary, Error> {
        let (options, stop) = (&self.options, &self.stop);
        match self.origin {
            Origin::Run(run) => record_into(run.as_ref(), options, self.sinks, stop, observer),
            Origin::Rows(mut rows) => {
                record_rows_into(rows.as_mut(), options, self.sinks, stop, observer)
            }
        }
    }
}

impl Recording {
    /// Ends it, and the run; it is complete then. Does not wait for that: see [`Recording::join`]. A run ends at once, and
    /// wakes who records it; that rows which come anyway are not wanted any more is noticed within 100 ms.
    pub fn stop(&self) {
        self.stop.finish.store(true, Ordering::SeqCst);
        let Some(run) = &self.run else { return };
        // One that has not started yet is started first, and ended then: the recorder sees that it is to. If it cannot be
        // ended here, the recorder tries it too, and says why it cannot.
        if matches!(run.state(), Ok(State::Running | State::Paused)) {
            let _ = run.stop();
        }
    }

    /// Where it is, as known at most 100 ms ago; `None` as long as there is nothing to say.
    pub fn progress(&self) -> Option<Progress> {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over: then [`Recording::join`] does not wait.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Nothing was recorded; the reason.
    pub fn join(self) -> Result<Summary, Error> {
        self.thread.join().map_err(|_| Error::Died)?
    }
}

/// Keeps the progress, and passes on what it sees.
struct ProgressObserver {
    progress: Arc<Mutex<Option<Progress>>>,
    observer: Option<Box<dyn Observer + Send>>,
}

impl Observer for ProgressObserver {
    fn begun(&mut self, info: &RunInfo) {
        if let Some(observer) = &mut self.observer {
            observer.begun(info);
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.row(row);
        }
    }

    fn progress(&mut self, now: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        if let Some(observer) = &mut self.observer {
            observer.progress(now);
        }
    }

    fn written(&mut self, next: u64) {
        if let Some(observer) = &mut self.observer {
            observer.written(next);
        }
    }
}
