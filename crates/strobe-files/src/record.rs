// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording: from the ring of a run into sinks, with an exact account.
//!
//! Each sink reads the ring for itself, in a thread of its own; one more
//! reader makes the statistics and governs the run. So a sink that is slow
//! loses rows of its own, and one that fails ends alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use strobe::engine;
use strobe::faults::FaultCount;
use strobe::info::{End, RunInfo, Totals, failure};
use strobe::note::Noted;
use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe::stop::Stop;
use strobe::timing::Timing;
use strobe_ring::{Row, Snapshot, State};

use crate::sink::{self, Existing, Targets};
use crate::summary::{SinkSummary, Summary};

mod drain;

use drain::{Drain, View};

/// Rows are fetched, and sinks flushed, at least this often.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// If rows come fast enough, they are fetched after this time already.
const FETCH_NS: u64 = 50_000_000;
/// Memory for rows between ring and sinks.
const BUFFER_WORDS: usize = 32 * 1024;

/// What to record.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of sinks, see [`crate::sink`].
    pub sinks: Vec<String>,
    /// What becomes of files that are there already.
    pub existing: Existing,
    /// How the machine is, for sinks to say.
    pub notes: Vec<Noted>,
    /// End the run after this time; it is complete then.
    pub duration: Option<Duration>,
}

/// Where a recording is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Rows made.
    pub rows: u64,
    /// Triggers that should have made a row and did not.
    pub missed: u64,
    /// Triggers that were left out on purpose.
    pub skipped: u64,
    /// Rows overwritten before they were read, by the slowest reader.
    pub lost: u64,
    /// Rows in the ring that the slowest reader did not read yet.
    pub waiting: u64,
    /// Rows the ring holds.
    pub capacity: u64,
    /// Median and greatest lateness, ns, if the event is ever due.
    pub late: Option<(i64, i64)>,
}

/// Who looks on while a run is recorded. Anything that takes a [`Progress`] is one.
pub trait Observer {
    /// The run has begun: this is what is known of it, its start with it.
    fn begun(&mut self, _info: &RunInfo) {}

    /// Each row, in order, but those that the reader of the statistics has lost.
    fn row(&mut self, _row: &Row<'_>) {}

    /// Where the recording is, at least ten times a second.
    fn progress(&mut self, now: Progress);
}

impl<F: FnMut(Progress)> Observer for F {
    fn progress(&mut self, now: Progress) {
        self(now);
    }
}

/// Why a recording did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// A sink cannot be used.
    #[error(transparent)]
    Sink(#[from] sink::Error),
}

/// Starts the run and records it to its end.
///
/// # Errors
/// Nothing was recorded: the run could not be started, or a sink not be
/// created. No file is left of it, and none was changed. What happens later is in the summary.
pub fn record(
    source: &dyn OwnedRun,
    options: &Options,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    let reader = source.reader()?;
    let event = &source.info().event;
    let targets = Targets::find(&options.sinks, event, options.existing)?;
    // Before the first row.
    let readers = options.sinks.iter().map(|_| source.reader());
    let readers: Vec<_> = readers.collect::<Result<_, _>>()?;
    let mut info = source.info().clone();
    info.doctor.clone_from(&options.notes);
    source.start()?;
    let sinks = targets.create().inspect_err(|_| {
        // The file is what is complained about.
        let _ = source.stop();
    })?;
    let sinks = sinks.into_iter().zip(readers);
    let drains: Vec<_> =
        (sinks.map(|((name, sink), reader)| Drain::new(name, sink, reader))).collect();
    info.start = reader.snapshot().start;
    observer.begun(&info);
    let deadline = options.duration.and_then(|d| deadline(d, &info));
    let views: Vec<View> = drains.iter().map(|_| View::default()).collect();
    let mut recording = Recording {
        source,
        timing: Timing::new(&info),
        faults: FaultCount::new(&info),
        info: &info,
        reader,
        views: &views,
        abandoned: &AtomicBool::new(false),
        asked: None,
    };
    // Every thread ends before this returns: it follows the ring to its end,
    // and that of the run is brought about in any case.
    Ok(std::thread::scope(|scope| {
        let threads = Threads::start(scope, drains, &recording);
        recording.run(stop, deadline, observer);
        recording.finish(threads, observer)
    }))
}

/// The sinks at work.
struct Threads {
    /// One for each sink: tells it how the run ended.
    totals: Vec<mpsc::Sender<Totals>>,
    /// What each has got, as they come to their ends.
    done: mpsc::Receiver<(usize, SinkSummary)>,
    /// What is known of a sink until then.
    sinks: Vec<SinkSummary>,
}

impl Threads {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        drains: Vec<Drain>,
        recording: &Recording<'scope>,
    ) -> Self {
        let (info, abandoned) = (recording.info, recording.abandoned);
        let (to_us, done) = mpsc::channel();
        let mut threads = Threads {
            totals: Vec::new(),
            done,
            sinks: Vec::new(),
        };
        for ((index, drain), view) in drains.into_iter().enumerate().zip(recording.views) {
            let (to_sink, totals) = mpsc::channel();
            let to_us = to_us.clone();
            threads.totals.push(to_sink);
            threads.sinks.push(SinkSummary {
                path: drain.name().to_owned(),
                error: Some("the thread that writes it did not finish".to_owned()),
                ..SinkSummary::default()
            });
            let work = move || {
                let summary = drain.run(info, view, abandoned, &totals);
                // The recorder waits for it, unless it has panicked.
                let _ = to_us.send((index, summary));
            };
            let name = format!("sink {index}");
            if let Err(error) = thread::Builder::new().name(name).spawn_scoped(scope, work) {
                view.fail();
                if let Some(sink) = threads.sinks.get_mut(index) {
                    sink.error = Some(format!("it cannot have a thread: {error}"));
                }
            }
        }
        threads
    }

    /// Waits for all sinks to come to their ends.
    fn end(mut self, totals: &Totals, mut meanwhile: impl FnMut()) -> Vec<SinkSummary> {
        for to_sink in self.totals {
            // One that has failed does not listen.
            let _ = to_sink.send(totals.clone());
        }
        loop {
            match self.done.recv_timeout(FLUSH_EVERY) {
                Ok((index, summary)) => {
                    if let Some(sink) = self.sinks.get_mut(index) {
                        *sink = summary;
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => meanwhile(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.sinks,
            }
        }
    }
}

/// When to end a run of limited duration. One with a limit ends by itself; it
/// is ended only if missed triggers make it too long.
fn deadline(duration: Duration, info: &RunInfo) -> Option<Instant> {
    let grace = match (info.limit, info.period_ns) {
        (Some(_), Some(period)) => Duration::from_nanos(period.saturating_mul(2)) + FLUSH_EVERY,
        _ => Duration::ZERO,
    };
    Instant::now().checked_add(duration)?.checked_add(grace)
}

/// Rows to sleep for: few wake-ups, but long before the ring is full.
fn rows_at_once(info: &RunInfo) -> u64 {
    let quarter = info.capacity / 4;
    let by_time = info.period_ns.map_or(quarter, |p| FETCH_NS / p.max(1));
    by_time.min(quarter).max(1)
}

/// Governs the run, and makes its statistics; sinks are not its business.
struct Recording<'a> {
    source: &'a dyn OwnedRun,
    info: &'a RunInfo,
    reader: RunReader,
    views: &'a [View],
    timing: Timing,
    faults: FaultCount,
    /// The run will not come to its end.
    abandoned: &'a AtomicBool,
    /// The run was asked to end, with this result.
    asked: Option<End>,
}

impl Recording<'_> {
    fn run(&mut self, stop: &Stop, deadline: Option<Instant>, observer: &mut dyn Observer) {
        let row_words = self.reader.ring().row_words();
        let room = (BUFFER_WORDS / row_words).max(1);
        let mut buffer = vec![0; room * row_words];
        let fetch = rows_at_once(self.info);
        loop {
            let batch = self.reader.read(&mut buffer);
            for row in batch.rows() {
                observer.row(&row);
                self.faults.add(&row);
                self.timing.add(row);
            }
            let is_drained = batch.len() < room;
            if self.reader.ring().ended() {
                break;
            }
            if let Some(end) = self.end_asked(stop, deadline) {
                self.end_run(end);
            }
            if is_drained {
                observer.progress(self.progress());
                let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
                // After the deadline the run is ending, and wakes us when it has.
                let left = left.filter(|left| !left.is_zero()).unwrap_or(FLUSH_EVERY);
                if let Err(error) = self.reader.wait(fetch, left.min(FLUSH_EVERY)) {
                    let stopped = self.end_run(End::Failed(format!("cannot wait: {error}")));
                    if !stopped {
                        self.abandoned.store(true, Ordering::Relaxed);
                        break;
                    }
                    // The rest is read without being woken.
                    thread::sleep(FLUSH_EVERY);
                }
            }
        }
    }

    /// Whether, and as what, the run is to end now.
    fn end_asked(&self, stop: &Stop, deadline: Option<Instant>) -> Option<End> {
        if self.asked.is_some() {
            return None;
        }
        if stop.interrupt.load(Ordering::Relaxed) {
            return Some(End::Stopped);
        }
        if stop.finish.load(Ordering::Relaxed) || deadline.is_some_and(|d| Instant::now() >= d) {
            return Some(End::Complete);
        }
        // With no sink left, there is nobody to record for.
        if self.views.is_empty() || self.views.iter().any(View::is_in_use) {
            return None;
        }
        Some(match self.views.iter().any(View::has_failed) {
            true => End::Failed("no sink is left".to_owned()),
            false => End::Stopped,
        })
    }

    /// Whether the run will come to its end.
    fn end_run(&mut self, end: End) -> bool {
        self.asked.get_or_insert(end);
        match self.source.stop() {
            Ok(()) => true,
            Err(error) => {
                self.asked = Some(End::Failed(error.to_string()));
                false
            }
        }
    }

    /// Of the slowest reader that is in use.
    fn progress(&self) -> Progress {
        let snapshot = self.reader.snapshot();
        let ring = self.reader.ring();
        let views = || self.views.iter().filter(|view| view.is_in_use());
        let next_row = views().map(View::next_row).fold(ring.next_row(), u64::min);
        let waiting = snapshot.head.saturating_sub(next_row);
        Progress {
            rows: snapshot.head,
            missed: snapshot.missed(),
            skipped: snapshot.skipped,
            lost: views().map(View::lost).fold(ring.lost(), u64::max),
            waiting: waiting.min(self.info.capacity),
            capacity: self.info.capacity,
            late: self.timing.late.quantile(0.5).zip(self.timing.late.max()),
        }
    }

    fn finish(mut self, threads: Threads, observer: &mut dyn Observer) -> Summary {
        let last = self.reader.snapshot();
        let mut totals = Totals {
            rows: last.head,
            triggers: last.triggers,
            skipped: last.skipped,
            missed_by: last.missed_by,
            lost: self.reader.ring().lost(),
            errors: last.errors,
            end_time_ns: last.end_time,
            end: self.end(&last),
        };
        let sinks = threads.end(&totals, || observer.progress(self.progress()));
        // A row that any reader was too slow for is not hidden.
        totals.lost = sinks.iter().map(|o| o.lost).fold(totals.lost, u64::max);
        let mut summary = Summary::new(self.info, totals, self.timing, self.faults, sinks);
        summary.usage = self.source.usage();
        summary
    }

    fn end(&mut self, last: &Snapshot) -> End {
        let ring = self.reader.ring();
        let known = last.head.checked_add(last.missed());
        let known = known.and_then(|known| known.checked_add(last.skipped));
        let read = ring.delivered() + ring.lost() + ring.begun_at();
        if known != Some(last.triggers) || read != last.head {
            return End::Failed(format!(
                "the account does not add up: {} triggers, {} rows, {} missed, {} skipped, {read} read or lost",
                last.triggers,
                last.head,
                last.missed(),
                last.skipped,
            ));
        }
        match (last.state, self.asked.take()) {
            (State::Failed, _) => End::Failed(failure(last)),
            (_, Some(failed @ End::Failed(_))) => failed,
            // The limit may be reached before the run notices that it is asked
            // to end; then there is nothing that was cut off.
            (State::Done, _) | (_, None) => End::Complete,
            (_, Some(asked)) => asked,
        }
    }
}

#[cfg(test)]
mod tests;
