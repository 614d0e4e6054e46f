// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording: from the ring of a run into outputs, with an exact account.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use strobe_ring::{Snapshot, State};

use crate::engine::{self, Source};
use crate::info::{End, RunInfo, Totals};
use crate::output::{self, Output};
use crate::quantity::show_ns;
use crate::reader::RunReader;
use crate::summary::{OutputSummary, Summary};
use crate::timing::Timing;

/// Rows are fetched, and outputs flushed, at least this often.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// If rows come fast enough, they are fetched after this time already.
const FETCH_NS: u64 = 50_000_000;
/// Memory for rows between ring and outputs.
const BUFFER_WORDS: usize = 32 * 1024;

/// What to record.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of outputs, see [`crate::output`].
    pub outputs: Vec<String>,
    /// End the run after this time; it is complete then.
    pub duration: Option<Duration>,
}

/// How to end a recording from outside, from a signal handler or a thread.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// End it: it is stopped then.
    pub interrupt: Arc<AtomicBool>,
    /// End it: it is complete then.
    pub finish: Arc<AtomicBool>,
}

/// Where a recording is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Rows made.
    pub rows: u64,
    /// Triggers that made no row.
    pub missed: u64,
    /// Rows overwritten before they were read.
    pub lost: u64,
    /// Rows in the ring that were not read yet.
    pub waiting: u64,
    /// Rows the ring holds.
    pub capacity: u64,
    /// Median and greatest lateness, ns, if the event is ever due.
    pub late: Option<(i64, i64)>,
}

/// Why a recording did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// An output cannot be used.
    #[error(transparent)]
    Output(#[from] output::Error),
}

/// An output while it is in use.
struct Sink {
    name: String,
    output: Box<dyn Output>,
    ended: Option<SinkEnd>,
}

#[derive(Debug)]
enum SinkEnd {
    Failed(String),
    /// A pipe whose reader has gone: it has seen enough.
    Closed,
}

impl Sink {
    fn create(name: &str) -> Result<Self, output::Error> {
        Ok(Sink {
            name: name.to_owned(),
            output: output::create(name)?,
            ended: None,
        })
    }

    /// Does something with the output, unless it has failed before.
    fn with(&mut self, act: impl FnOnce(&mut dyn Output) -> io::Result<()>) {
        if self.ended.is_some() {
            return;
        }
        if let Err(error) = act(self.output.as_mut()) {
            self.ended = Some(match error.kind() {
                io::ErrorKind::BrokenPipe => SinkEnd::Closed,
                _ => SinkEnd::Failed(error.to_string()),
            });
        }
    }

    fn summary(self) -> OutputSummary {
        let written = self.output.written();
        OutputSummary {
            path: self.name,
            rows: written.rows,
            bytes: written.bytes,
            error: match self.ended {
                Some(SinkEnd::Failed(why)) => Some(why),
                Some(SinkEnd::Closed) | None => None,
            },
        }
    }
}

/// Starts the run and records it to its end.
///
/// `progress` is called at least ten times a second.
///
/// # Errors
/// Nothing was recorded: the run could not be started, or an output not be
/// created. What happens later is in the summary.
pub fn record(
    source: &dyn Source,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    let reader = source.reader()?;
    let sinks = options.outputs.iter().map(|name| Sink::create(name));
    let sinks = sinks.collect::<Result<Vec<_>, _>>()?;
    source.start()?;
    let mut info = source.info().clone();
    info.start = reader.snapshot().start;
    let deadline = options.duration.and_then(|d| deadline(d, &info));
    let mut recording = Recording {
        source,
        timing: Timing::new(&info),
        info,
        reader,
        sinks,
        asked: None,
    };
    recording.run(stop, deadline, progress);
    Ok(recording.finish())
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

struct Recording<'a> {
    source: &'a dyn Source,
    info: RunInfo,
    reader: RunReader,
    sinks: Vec<Sink>,
    timing: Timing,
    /// The run was asked to end, with this result.
    asked: Option<End>,
}

impl Recording<'_> {
    fn run(&mut self, stop: &Stop, deadline: Option<Instant>, progress: &mut dyn FnMut(Progress)) {
        let info = &self.info;
        self.sinks
            .iter_mut()
            .for_each(|s| s.with(|o| o.begin(info)));
        let row_words = self.reader.ring().row_words();
        let room = (BUFFER_WORDS / row_words).max(1);
        let mut buffer = vec![0; room * row_words];
        let fetch = self.rows_at_once();
        loop {
            let batch = self.reader.read(&mut buffer);
            let rows = batch.rows();
            self.sinks
                .iter_mut()
                .for_each(|s| s.with(|o| o.write(rows)));
            rows.for_each(|row| self.timing.add(row));
            let is_drained = batch.len() < room;
            if self.reader.ring().ended() {
                break;
            }
            if let Some(end) = self.end_asked(stop, deadline) {
                self.end_run(end);
            }
            if is_drained {
                self.sinks.iter_mut().for_each(|s| s.with(|o| o.flush()));
                progress(self.progress());
                let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
                // After the deadline the run is ending, and wakes us when it has.
                let left = left.filter(|left| !left.is_zero()).unwrap_or(FLUSH_EVERY);
                if let Err(error) = self.reader.wait(fetch, left.min(FLUSH_EVERY)) {
                    let stopped = self.end_run(End::Failed(format!("cannot wait: {error}")));
                    if !stopped {
                        break;
                    }
                    // The rest is read without being woken.
                    std::thread::sleep(FLUSH_EVERY);
                }
            }
        }
    }

    /// Rows to sleep for: few wake-ups, but long before the ring is full.
    fn rows_at_once(&self) -> u64 {
        let quarter = self.info.capacity / 4;
        let by_time = self.info.period_ns.map_or(quarter, |p| FETCH_NS / p.max(1));
        by_time.min(quarter).max(1)
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
        // With no output left, there is nobody to record for.
        if self.sinks.is_empty() || self.sinks.iter().any(|s| s.ended.is_none()) {
            return None;
        }
        let failed = |s: &Sink| matches!(s.ended, Some(SinkEnd::Failed(_)));
        Some(match self.sinks.iter().any(failed) {
            true => End::Failed("no output is left".to_owned()),
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

    fn progress(&self) -> Progress {
        let snapshot = self.reader.snapshot();
        let ring = self.reader.ring();
        Progress {
            rows: snapshot.head,
            missed: snapshot.missed(),
            lost: ring.lost(),
            waiting: snapshot.head.saturating_sub(ring.next_row()),
            capacity: self.info.capacity,
            late: self.timing.late.quantile(0.5).zip(self.timing.late.max()),
        }
    }

    fn finish(mut self) -> Summary {
        let last = self.reader.snapshot();
        let ring = self.reader.ring();
        let totals = Totals {
            rows: last.head,
            triggers: last.triggers,
            missed_by: last.missed_by,
            lost: ring.lost(),
            errors: last.errors,
            end_time_ns: last.end_time,
            end: self.end(&last),
        };
        self.sinks
            .iter_mut()
            .for_each(|s| s.with(|o| o.finish(&totals)));
        let outputs = self.sinks.into_iter().map(Sink::summary).collect();
        Summary::new(&self.info, totals, self.timing, outputs)
    }

    fn end(&mut self, last: &Snapshot) -> End {
        let ring = self.reader.ring();
        let known = last.head.checked_add(last.missed());
        let read = ring.delivered() + ring.lost() + ring.begun_at();
        if known != Some(last.triggers) || read != last.head {
            return End::Failed(format!(
                "the account does not add up: {} triggers, {} rows, {} missed, {read} read or lost",
                last.triggers,
                last.head,
                last.missed(),
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

/// The reason of a run that failed, in words.
pub fn failure(last: &Snapshot) -> String {
    let after = last.end_time.saturating_sub(last.start.time);
    let after = show_ns(after as f64);
    match Errno::from_raw_os_error(last.error.saturating_neg()) {
        Errno::NODEV => format!("a device of the run went away after {after}"),
        Errno::PIPE => format!("the owner of the run went away after {after}"),
        errno => format!("after {after}: {}", io::Error::from(errno)),
    }
}

#[cfg(test)]
mod tests;
