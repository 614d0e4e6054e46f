// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is served: one that the daemon owns, one of somebody else on this machine, or one that is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use strobe::engine;
use strobe::error::Words;
use strobe::info::{End, RunInfo};
use strobe::reader::{Begin, ReaderOptions};
use strobe::ring::State;
use strobe::run::{OwnedRun, Run};

use crate::cursor::{Cursor, From};
use crate::drain;
use crate::spool::{Progress, Spool};
use crate::systemd::FdStoreEntry;

/// Why a run does not do what it was asked for.
#[derive(Debug)]
pub struct Refusal {
    /// In words.
    pub words: Words,
    /// Whatever the run does: what was asked for is wrong.
    pub is_wrong: bool,
}

impl std::convert::From<Words> for Refusal {
    fn from(words: Words) -> Refusal {
        Refusal {
            words,
            is_wrong: false,
        }
    }
}

/// A run with its spool.
pub struct ServedRun {
    id: u32,
    name: String,
    spool: Arc<Spool>,
    /// The run, if it is the daemon's own. It is let go when it has ended, or is removed: its ring and its thread with it.
    own: Mutex<Option<Arc<dyn OwnedRun>>>,
    /// What lets it outlive the daemon.
    kept: Mutex<Option<FdStoreEntry>>,
    is_own: bool,
}

impl ServedRun {
    /// A run of the daemon's own, whose rows go into this spool, after those that are there.
    ///
    /// # Errors
    /// It cannot be read, or there is no thread to be had.
    pub fn own(
        id: u32,
        name: String,
        run: Arc<dyn OwnedRun>,
        spool: Arc<Spool>,
        kept: Option<FdStoreEntry>,
    ) -> Result<Arc<Self>, Words> {
        let served = Arc::new(ServedRun {
            id,
            name,
            spool,
            own: Mutex::new(Some(Arc::clone(&run))),
            kept: Mutex::new(kept),
            is_own: true,
        });
        served.begin(run.as_ref())?;
        Ok(served)
    }

    /// A run of somebody else, which is read only.
    ///
    /// # Errors
    /// It cannot be read, or there is no thread to be had.
    pub fn of_another(
        id: u32,
        name: String,
        run: &dyn Run,
        spool: Arc<Spool>,
    ) -> Result<Arc<Self>, Words> {
        let served = ServedRun::past(id, name, spool, false, None);
        served.begin(run)?;
        Ok(served)
    }

    /// A run that is over: nothing but its rows. Or one that goes on without the daemon, until it is removed.
    pub fn past(
        id: u32,
        name: String,
        spool: Arc<Spool>,
        is_own: bool,
        kept: Option<FdStoreEntry>,
    ) -> Arc<Self> {
        Arc::new(ServedRun {
            id,
            name,
            spool,
            own: Mutex::new(None),
            kept: Mutex::new(kept),
            is_own,
        })
    }

    /// Its number in this daemon.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its name: that of its recipe, or of its event.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the daemon's own, so that it can be started and stopped here.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// What is known of the run.
    pub fn info(&self) -> Arc<RunInfo> {
        self.spool.info()
    }

    /// Its rows.
    pub fn spool(&self) -> &Arc<Spool> {
        &self.spool
    }

    /// Where it is.
    pub fn progress(&self) -> Progress {
        self.spool.progress()
    }

    /// Where the run is, in a word.
    pub fn state(&self) -> State {
        let progress = self.progress();
        match (progress.totals.map(|totals| totals.end), progress.run) {
            (Some(End::Complete), _) => State::Done,
            (Some(End::Stopped), _) => State::Stopped,
            (Some(End::Failed(_)), _) => State::Failed,
            // Whatever it was when it was seen last.
            (None, _) if progress.failed.is_some() => State::Failed,
            // Its last rows are not here yet: who hears that it is over may ask for all of them.
            (None, Some(run)) if run.state.is_final() => State::Running,
            (None, Some(run)) => run.state,
            (None, None) => State::Ready,
        }
    }

    /// A client's place in its rows.
    pub fn cursor(&self, from: From) -> Cursor {
        Cursor::new(Arc::clone(&self.spool), from)
    }

    /// Triggers make rows from now on.
    ///
    /// # Errors
    /// It is another's, or the engine's reason.
    pub fn start(&self) -> Result<(), Words> {
        self.control(|run| run.start())
    }

    /// Ends the run; its rows stay.
    ///
    /// # Errors
    /// It is another's, or the engine's reason.
    pub fn stop(&self) -> Result<(), Words> {
        match self.is_own && self.progress().is_over() {
            true => Ok(()),
            false => self.control(|run| run.stop()),
        }
    }

    /// Triggers are not counted until it goes on.
    ///
    /// # Errors
    /// It is another's, or the engine's reason.
    pub fn pause(&self) -> Result<(), Words> {
        self.control(|run| run.pause())
    }

    /// A paused run goes on.
    ///
    /// # Errors
    /// It is another's, or the engine's reason.
    pub fn resume(&self) -> Result<(), Words> {
        self.control(|run| run.resume())
    }

    /// Triggers of the event `soft`.
    ///
    /// # Errors
    /// It is another's, or the engine's reason.
    pub fn trigger(&self, count: u32) -> Result<(), Words> {
        self.control(|run| run.trigger(count))
    }

    /// Gives a tunable of its program a new value.
    ///
    /// # Errors
    /// It is another's, or the engine's reason.
    pub fn tune(&self, name: &str, value: &str) -> Result<(), Refusal> {
        self.ask(|run| run.tune(name, value))
    }

    /// Lets the run go: it ends, if it is the daemon's own.
    pub fn release(&self) {
        if let Some(kept) = lock(&self.kept).take() {
            kept.end();
        }
        lock(&self.own).take();
    }

    /// Whether the run outlives the daemon.
    pub fn goes_on(&self) -> bool {
        lock(&self.kept).is_some()
    }

    /// The daemon ends: a run that can outlive it goes on, any other one of its own is stopped. Its rows are written to the
    /// disk as far as that takes no longer than this.
    pub fn leave(&self, patience: Duration) {
        let own = lock(&self.own).clone();
        if let Some(run) = own.filter(|_| !self.goes_on()) {
            // It may have ended by itself. On a thread of its own: nobody knows how long that takes.
            let stop = move || drop(run.stop());
            let _ = Builder::new().name("stop".to_owned()).spawn(stop);
            self.wait_until_over(patience);
        }
        let is_whole = self.spool.close(patience);
        // Of a run that goes on, the next daemon has what its ring has.
        let rows = match self.goes_on() {
            true => self.progress().unwritten,
            false => self.spool.unwritten(),
        };
        if !is_whole || rows > 0 {
            let why = self.progress().error;
            let why = why.unwrap_or_else(|| "the disk is too slow".to_owned());
            let object = self.object();
            eprintln!("strobe serve: {object}: {rows} rows or its end are not on the disk: {why}");
        }
    }

    fn wait_until_over(&self, patience: Duration) {
        const LOOK: Duration = Duration::from_millis(10);
        let until = std::time::Instant::now() + patience;
        while !self.progress().is_over() && std::time::Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    /// Drains the run into the spool, from the row on that comes next there.
    fn begin(self: &Arc<Self>, run: &dyn Run) -> Result<(), Words> {
        let failed = |why: String| Words::new(format!("run {}", self.name), why);
        // What another's run made before is nobody's loss; what the daemon's own made while there was no daemon is.
        let begin = match self.is_own {
            true => Begin::Row(self.progress().next),
            false => Begin::Oldest,
        };
        let options = ReaderOptions {
            begin,
            ..ReaderOptions::default()
        };
        let reader = run.reader_with(options);
        let reader = reader.map_err(|error| failed(error.to_string()))?;
        if !self.is_own {
            self.spool.begin_at(reader.ring().next_row());
        }
        // Where it is, is known from the first moment on.
        self.spool.look(|| Some(reader.snapshot()));
        let served: Weak<ServedRun> = Arc::downgrade(self);
        let end = move || {
            if let Some(served) = served.upgrade() {
                served.release();
            }
        };
        drain::spawn(reader, Arc::clone(&self.spool), end)
            .map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    /// Of a call that nobody can get wrong.
    fn control(
        &self,
        call: impl FnOnce(&dyn OwnedRun) -> Result<(), engine::Error>,
    ) -> Result<(), Words> {
        self.ask(call).map_err(|refusal| refusal.words)
    }

    fn ask(
        &self,
        call: impl FnOnce(&dyn OwnedRun) -> Result<(), engine::Error>,
    ) -> Result<(), Refusal> {
        let own = lock(&self.own).clone();
        match own {
            Some(run) => {
                call(run.as_ref()).map_err(|error| self.refusal(&error))?;
                // Whoever asks next sees what has become of it, though the drain thread may not look for a while.
                self.spool.look(|| run.snapshot().ok());
                Ok(())
            }
            None if self.is_own => {
                let words = Words::new(self.object(), "it has ended");
                Err(words.mend("make a new run").into())
            }
            None => {
                let words = Words::new(self.object(), "it belongs to another program");
                let remedy = "start and stop it there; here you can only read its rows";
                Err(words.mend(remedy).into())
            }
        }
    }

    fn refusal(&self, error: &engine::Error) -> Refusal {
        let words = error.words();
        Refusal {
            words: Words {
                object: format!("{}: {}", self.object(), words.object),
                ..words
            },
            is_wrong: matches!(
                error,
                engine::Error::Program(_) | engine::Error::NoTunable { .. }
            ),
        }
    }

    fn object(&self) -> String {
        format!("run {}", self.id)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
