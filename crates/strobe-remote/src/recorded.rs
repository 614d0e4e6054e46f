// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that was made on a server to be recorded here.

use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::error::Error;
use strobe::info::{End, RunInfo, Totals};
use strobe::source::RowSource;
use strobe::stop::Stop;

use crate::rows::{Begin, Part, RemoteRows};
use crate::run::RemoteRun;

/// All rows of such a run: it is started when the first ones are asked for, and ends when it is to end; then the rest of
/// its rows comes. If this is dropped before, the run is ended; if it was never started, the server gives it up.
pub struct Recorded {
    run: RemoteRun,
    stop: Stop,
    duration: Option<Duration>,
    rows: Option<RemoteRows>,
    deadline: Option<Instant>,
    /// As what it was asked to end.
    asked: Option<End>,
    /// Why it could not be asked: said when the rows that are there were given.
    failed: Option<Error>,
    /// All its rows came.
    is_over: bool,
}

impl RemoteRun {
    /// All its rows, to be recorded here. It is started when they are asked for, and ended when `stop` says so or after
    /// this time; the rest of its rows comes then.
    pub fn recorded(self, stop: Stop, duration: Option<Duration>) -> Recorded {
        Recorded::new(self, stop, duration)
    }
}

impl Recorded {
    pub(crate) fn new(run: RemoteRun, stop: Stop, duration: Option<Duration>) -> Self {
        Recorded {
            run,
            stop,
            duration,
            rows: None,
            deadline: None,
            asked: None,
            failed: None,
            is_over: false,
        }
    }

    /// The run.
    pub fn run(&self) -> &RemoteRun {
        &self.run
    }

    /// As what it is to end now, if it is.
    fn end(&self) -> Option<End> {
        if self.stop.is_interrupted() {
            return Some(End::Stopped);
        }
        let is_late = self.deadline.is_some_and(|d| Instant::now() >= d);
        (is_late || self.stop.is_over()).then_some(End::Complete)
    }
}

impl RowSource for Recorded {
    fn info(&self) -> &RunInfo {
        match &self.rows {
            Some(rows) => rows.info(),
            None => self.run.info(),
        }
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => {
                self.run.start()?;
                self.deadline = self.duration.and_then(|d| Instant::now().checked_add(d));
                let all = Part::from(Begin::Row(0));
                self.rows.insert(self.run.rows(all))
            }
        };
        let next = rows.next(wait);
        self.is_over |= matches!(next, Ok(None));
        if let (Ok(Some(_)), None, Some(end)) = (&next, &self.asked, self.end()) {
            match self.run.stop() {
                Ok(_) => self.asked = Some(end),
                Err(error) => self.failed = Some(error),
            }
        }
        next
    }

    fn totals(&self) -> Option<Totals> {
        let totals = self.rows.as_ref()?.totals()?;
        Some(match (&totals.end, &self.asked) {
            // It was stopped, for that was all that was wanted.
            (End::Stopped, Some(asked)) => Totals {
                end: asked.clone(),
                ..totals
            },
            _ => totals,
        })
    }

    fn is_torn(&self) -> bool {
        self.rows.as_ref().is_some_and(RowSource::is_torn)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // Whoever drops it has heard already if the server does not answer.
        let _ = match (&self.rows, self.is_over || self.asked.is_some()) {
            (None, _) => self.run.remove(),
            (Some(_), true) => Ok(()),
            (Some(_), false) => self.run.stop().map(|_| ()),
        };
    }
}
