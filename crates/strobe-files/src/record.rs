// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording: from the ring of a run into sinks, with an exact account.
//!
//! Each sink reads the ring for itself, in a thread of its own; one more
//! reader makes the statistics and governs the run. So a sink that is slow
//! loses rows of its own, and one that fails ends alone.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use strobe::engine;
use strobe::engine::user::available_memory;
use strobe::error::Words;
use strobe::faults::FaultCount;
use strobe::follow::{self, FollowOutcome, Follower, Until, to_end};
use strobe::info::{End, RunInfo, Totals};
use strobe::note::Note;
use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe::stop::Stop;
use strobe::timing::Timing;
use strobe_ring::{Row, Rows, Snapshot};

use crate::sink::{self, Existing, Last, Named, Targets};
use crate::summary::{SinkSummary, Summary};

mod drain;
mod rows;

use drain::{Drain, View};
pub use rows::record_rows;
pub(crate) use rows::record_rows_into;

/// Rows are fetched, and sinks flushed, at least this often.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// If rows come fast enough, they are fetched after this time already.
const FETCH_NS: u64 = 50_000_000;

/// What to record.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of sinks, see [`crate::sink`].
    pub sinks: Vec<String>,
    /// What becomes of files that are there already.
    pub existing: Existing,
    /// How the machine is, for sinks to say.
    pub notes: Vec<Note>,
    /// End the run after this time; it is complete then.
    pub duration: Option<Duration>,
    /// Keep only so many rows in the sinks, the last ones. They are in memory until the run has ended.
    pub last: Option<u64>,
    /// Journals (`*.arrows`) are safe against a power cut: rows that were made more than a second ago are on the disk.
    pub sync: bool,
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

    /// Rows before this one survive the end of this process, in each sink that has not failed and that has any before its
    /// end; there is one at least. Said only of rows from anywhere, as [`record_rows`] takes them; not said any more once all sinks have ended.
    fn written(&mut self, _next: u64) {}
}

impl<F: FnMut(Progress)> Observer for F {
    fn progress(&mut self, now: Progress) {
        self(now);
    }
}

/// Why a recording did not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's reason.
    Engine(#[from] engine::Error),
    /// A sink cannot be used.
    Sink(#[from] sink::Error),
    /// Its thread has panicked.
    Died,
    /// Nothing that could be made safe against a power cut.
    NoJournal,
    /// Rows are to be on the disk at once, and not before the end.
    SyncAndLast,
    /// Too many rows to keep until the end.
    Last {
        /// How many were to be kept.
        rows: u64,
        /// Memory they need, of all sinks.
        bytes: u64,
    },
}

impl Error {
    /// The object, the reason and the remedy.
    pub fn words(&self) -> Words {
        match self {
            Error::Engine(error) => error.words(),
            Error::Sink(error) => error.words(),
            Error::Died => Words::new("the recording", "the thread that records did not finish"),
            Error::NoJournal => Words::new(
                "the sinks",
                "none is a journal, and only journals can be made safe against a power cut",
            )
            .mend("add FILE.arrows"),
            Error::SyncAndLast => Words::new(
                "the last rows",
                "they are known only when the run ends, so they cannot be made safe against a power cut before",
            )
            .mend("use one of the two"),
            Error::Last { rows, bytes } => Words::new(
                format!("the last {rows} rows"),
                format!("they take {bytes} bytes of memory, more than half of what is available"),
            )
            .mend("keep fewer"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
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
    record_into(source, options, Vec::new(), stop, observer)
}

/// The same, into these sinks as well.
pub(crate) fn record_into(
    source: &dyn OwnedRun,
    options: &Options,
    more: Vec<Named>,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    check(source.info(), options)?;
    let reader = source.reader()?;
    let event = &source.info().event;
    let targets = Targets::find(&options.sinks, event, options.existing)?;
    // Before the first row, also the memory for it.
    let buffer = follow::buffer(&reader);
    let count = options.sinks.len() + more.len();
    let readers = (0..count).map(|_| {
        let reader = source.reader()?;
        let buffer = follow::buffer(&reader);
        Ok((reader, buffer))
    });
    let readers: Vec<_> = readers.collect::<Result<_, engine::Error>>()?;
    let mut info = source.info().clone();
    info.doctor.clone_from(&options.notes);
    source.start()?;
    let sinks = targets.create(options.sync).inspect_err(|_| {
        // The file is what is complained about.
        let _ = source.stop();
    })?;
    let sinks = sinks.into_iter().chain(more).zip(readers);
    let drains: Vec<_> = sinks
        .map(|(named, room)| Drain::new(named, room, options.last))
        .collect();
    info.start = reader.snapshot().start;
    observer.begun(&info);
    let deadline = options.duration.and_then(|d| deadline(d, &info));
    let views: Vec<View> = drains.iter().map(|_| View::default()).collect();
    let abandoned = AtomicBool::new(false);
    let mut recording = Recording {
        timing: Timing::new(&info),
        faults: FaultCount::new(&info),
        info: &info,
        views: &views,
        observer,
    };
    let sleep = Some(rows_at_once(&info));
    // Every thread ends before this returns: it follows the ring to its end,
    // and that of the run is brought about in any case.
    Ok(std::thread::scope(|scope| {
        let threads = Threads::start(scope, drains, &info, &views, &abandoned);
        let until = Until { stop, deadline };
        let followed = to_end(source, reader, buffer, sleep, until, &mut recording);
        abandoned.store(followed.is_abandoned, Ordering::Relaxed);
        let mut summary = recording.finish(followed, threads);
        summary.usage = source.usage();
        summary
    }))
}

/// That there is something that can be made safe against a power cut, if that is asked for.
pub(crate) fn check_sync(options: &Options) -> Result<(), Error> {
    if options.sync && options.last.is_some() {
        return Err(Error::SyncAndLast);
    }
    if options.sync && !options.sinks.iter().any(|name| sink::is_journal(name)) {
        return Err(Error::NoJournal);
    }
    Ok(())
}

/// That the sinks can be what they are asked to be.
fn check(info: &RunInfo, options: &Options) -> Result<(), Error> {
    check_sync(options)?;
    if let Some(rows) = options.last {
        let each = Last::bytes(info.shape(), rows);
        let bytes = each.saturating_mul(options.sinks.len() as u64);
        if available_memory().is_some_and(|available| bytes > available / 2) {
            return Err(Error::Last { rows, bytes });
        }
    }
    Ok(())
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
        info: &'scope RunInfo,
        views: &'scope [View],
        abandoned: &'scope AtomicBool,
    ) -> Self {
        let (to_us, done) = mpsc::channel();
        let mut threads = Threads {
            totals: Vec::new(),
            done,
            sinks: Vec::new(),
        };
        for ((index, drain), view) in drains.into_iter().enumerate().zip(views) {
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

/// Follows the run, and makes its statistics; sinks are not its business.
struct Recording<'a> {
    info: &'a RunInfo,
    views: &'a [View],
    timing: Timing,
    faults: FaultCount,
    observer: &'a mut dyn Observer,
}

impl Follower for Recording<'_> {
    fn rows(&mut self, rows: Rows<'_>, _: u64) {
        for row in rows {
            self.observer.row(&row);
            self.faults.add(&row);
            self.timing.add(row);
        }
    }

    fn idle(&mut self, reader: &RunReader) {
        self.observer.progress(self.progress(reader));
    }

    /// With no sink left, there is nobody to record for.
    fn end(&self) -> Option<End> {
        if self.views.is_empty() || self.views.iter().any(View::is_in_use) {
            return None;
        }
        Some(match self.views.iter().any(View::has_failed) {
            true => End::Failed("no sink is left".to_owned()),
            false => End::Stopped,
        })
    }
}

impl Recording<'_> {
    /// Of the slowest reader that is in use.
    fn progress(&self, reader: &RunReader) -> Progress {
        let snapshot = reader.snapshot();
        let ring = reader.ring();
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

    fn finish(self, followed: FollowOutcome, threads: Threads) -> Summary {
        let reader = followed.reader;
        let last = reader.snapshot();
        let mut totals = Totals {
            end: end(&reader, &last, followed.asked),
            ..Totals::of(&last, reader.ring().lost())
        };
        let sinks = threads.end(&totals, || {
            let now = self.progress(&reader);
            self.observer.progress(now);
        });
        // A row that any reader was too slow for is not hidden.
        totals.lost = sinks.iter().map(|o| o.lost).fold(totals.lost, u64::max);
        Summary::new(self.info, totals, self.timing, self.faults, sinks)
    }
}

/// How the run ended, if the account of this reader, which has read all, adds up.
fn end(reader: &RunReader, last: &Snapshot, asked: Option<End>) -> End {
    let ring = reader.ring();
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
    End::of(last, reader.info().limit, asked)
}

#[cfg(test)]
mod tests;
