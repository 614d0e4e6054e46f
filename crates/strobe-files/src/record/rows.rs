// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording of rows that come one block after the other, from anywhere: of another's run, or of a recording.

use std::io;
use std::time::Instant;

use strobe::block::Block;
use strobe::faults::FaultCount;
use strobe::info::{End, RunInfo, Totals};
use strobe::source::RowSource;
use strobe::stop::Stop;
use strobe::timing::Timing;
use strobe_ring::layout::MISSED_CAUSES;
use strobe_ring::{Missed, StartTimes};

use super::{Error, FLUSH_EVERY, Observer, Options, Progress, check};
use crate::sink::{Last, Named, Sink, Targets};
use crate::summary::{SinkSummary, Summary};

/// Records rows from anywhere until there are no more, or it is to stop. A run whose rows they are is not ended.
///
/// # Errors
/// Nothing was recorded: a sink could not be created, or there are no rows to be had.
pub fn record_rows(
    source: &mut dyn RowSource,
    options: &Options,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    record_rows_into(source, options, Vec::new(), stop, observer)
}

/// The same, into these sinks as well.
pub(crate) fn record_rows_into(
    source: &mut dyn RowSource,
    options: &Options,
    more: Vec<Named>,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    check(source.info(), options)?;
    let event = source.info().event.clone();
    let targets = Targets::find(&options.sinks, &event, options.existing)?;
    // The start of a run is known with its first rows, or when it has started.
    let mut next = source.next(FLUSH_EVERY)?;
    while source.info().start == StartTimes::default() && !stop.is_interrupted() {
        match &next {
            Some(block) if block.is_empty() && block.lost() == 0 => {}
            _ => break,
        }
        next = source.next(FLUSH_EVERY)?;
    }
    let mut info = source.info().clone();
    if !options.notes.is_empty() {
        info.doctor.clone_from(&options.notes);
    }
    let sinks = targets.create(options.sync)?.into_iter().chain(more);
    let mut rows = Rows {
        sinks: sinks
            .map(|named| OpenSink::new(named, &info, options.last))
            .collect(),
        given: 0,
        next: 0,
        timing: match next.as_ref().map(Block::first) {
            Some(1..) => Timing::joining(&info),
            _ => Timing::new(&info),
        },
        faults: FaultCount::new(&info),
        seen: Totals {
            rows: 0,
            triggers: 0,
            skipped: 0,
            missed_by: [0; MISSED_CAUSES],
            lost: 0,
            errors: 0,
            end_time_ns: info.start.time,
            end: End::Stopped,
        },
        info: &info,
    };
    observer.begun(&info);
    let deadline = options.duration.and_then(|d| Instant::now().checked_add(d));
    let mut flushed = Instant::now();
    let end = loop {
        let Some(block) = next else {
            break None;
        };
        rows.add(&block, observer);
        if flushed.elapsed() >= FLUSH_EVERY {
            rows.each(|sink| sink.flush());
            rows.say_written(observer);
            observer.progress(rows.progress());
            flushed = Instant::now();
        }
        if stop.is_interrupted() {
            break Some(End::Stopped);
        }
        if stop.is_over() || deadline.is_some_and(|d| Instant::now() >= d) {
            break Some(End::Complete);
        }
        if let (false, true) = (rows.sinks.is_empty(), rows.have_all_ended()) {
            break Some(match rows.sinks.iter().any(OpenSink::has_failed) {
                true => End::Failed("no sink is left".to_owned()),
                false => End::Stopped,
            });
        }
        next = match source.next(FLUSH_EVERY) {
            Ok(next) => next,
            Err(error) => break Some(End::Failed(error.to_string())),
        };
    };
    observer.progress(rows.progress());
    Ok(match end {
        Some(end) => rows.finish(Some(end), observer),
        None => match source.totals() {
            Some(totals) => {
                rows.seen = totals;
                let end = rows.seen.end.clone();
                rows.finish(Some(end), observer)
            }
            None => rows.finish(None, observer),
        },
    })
}

/// What there is of the rows.
struct Rows<'i> {
    info: &'i RunInfo,
    sinks: Vec<OpenSink>,
    /// Rows that were given to the sinks.
    given: u64,
    /// The row after the last one that came.
    next: u64,
    timing: Timing,
    faults: FaultCount,
    /// The account up to the last row.
    seen: Totals,
}

/// A sink, and why it has ended.
struct OpenSink {
    name: String,
    sink: Box<dyn Sink>,
    /// Only so many rows are kept.
    last: Option<u64>,
    ended: Option<io::Error>,
}

impl Rows<'_> {
    fn add(&mut self, block: &Block, observer: &mut dyn Observer) {
        if !block.is_empty() {
            self.each(|sink| sink.write(block.rows()));
        }
        self.given += block.len() as u64;
        self.seen.lost += block.lost();
        self.next = self.next.max(block.first());
        if block.is_empty() && block.first() > self.seen.rows {
            // Rows after the last one that came; each had a trigger at least.
            self.seen.triggers += block.first() - self.seen.rows;
            self.seen.rows = block.first();
        }
        for row in block.rows() {
            observer.row(&row);
            self.faults.add(&row);
            self.seen.errors += u64::from(!row.faults.is_empty());
            self.seen.rows = row.row.saturating_add(1);
            self.next = self.seen.rows;
            self.seen.triggers = row.trigger.saturating_add(1);
            (self.seen.skipped, self.seen.end_time_ns) = (row.skipped, row.time);
            self.timing.add(row);
        }
    }

    /// With each sink that has not ended.
    fn each(&mut self, mut work: impl FnMut(&mut dyn Sink) -> io::Result<()>) {
        for written in &mut self.sinks {
            written.work(&mut work);
        }
    }

    /// Says how far the sinks are, if they have what they were given.
    fn say_written(&self, observer: &mut dyn Observer) {
        let going_on = || self.sinks.iter().filter(|sink| sink.ended.is_none());
        let mut safe = going_on()
            .filter_map(|written| written.sink.safe())
            .peekable();
        if safe.peek().is_some() && safe.all(|rows| rows == self.given) {
            observer.written(self.next);
        }
    }

    fn have_all_ended(&self) -> bool {
        self.sinks.iter().all(|written| written.ended.is_some())
    }

    fn progress(&self) -> Progress {
        Progress {
            rows: self.seen.rows,
            missed: self.seen.missed(),
            skipped: self.seen.skipped,
            lost: self.seen.lost,
            waiting: 0,
            capacity: self.info.capacity,
            late: self.timing.late.quantile(0.5).zip(self.timing.late.max()),
        }
    }

    /// With the account as it is, and this end; without one, it was cut off.
    fn finish(mut self, end: Option<End>, observer: &mut dyn Observer) -> Summary {
        let is_whole = end.is_some();
        // Of a run that goes on, or a recording that was cut off, the causes are not known.
        let named: u64 = self.seen.missed_by.iter().sum();
        if let Some(rest) = self.seen.missed().checked_sub(named) {
            self.seen.missed_by[Missed::Source as usize] += rest;
        }
        self.seen.end = end.unwrap_or_else(|| End::Failed("the recording was cut off".to_owned()));
        let totals = self.seen.clone();
        self.each(|sink| sink.finish(is_whole.then_some(&totals)));
        self.say_written(observer);
        let (lost, given) = (totals.lost, self.given);
        let sinks = self.sinks.into_iter();
        let sinks = sinks.map(|sink| sink.summary(lost, given)).collect();
        Summary::new(self.info, totals, self.timing, self.faults, sinks)
    }
}

impl OpenSink {
    fn new((name, sink): Named, info: &RunInfo, last: Option<u64>) -> Self {
        let mut written = OpenSink {
            name,
            sink: match last {
                Some(rows) => Box::new(Last::new(sink, rows)),
                None => sink,
            },
            last,
            ended: None,
        };
        written.work(&mut |sink: &mut dyn Sink| sink.begin(info));
        written
    }

    fn work(&mut self, work: &mut impl FnMut(&mut dyn Sink) -> io::Result<()>) {
        if self.ended.is_none() {
            self.ended = work(self.sink.as_mut()).err();
        }
    }

    /// A pipe whose reader has gone has seen enough: that is no failure.
    fn has_failed(&self) -> bool {
        let failed = |error: &io::Error| error.kind() != io::ErrorKind::BrokenPipe;
        self.ended.as_ref().is_some_and(failed)
    }

    /// A pipe whose reader has gone has seen enough: that is no error.
    fn summary(self, lost: u64, given: u64) -> SinkSummary {
        let written = self.sink.written();
        let error = self.ended.filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
        SinkSummary {
            path: self.name,
            rows: written.rows,
            bytes: written.bytes,
            lost,
            left_out: self.last.map_or(0, |rows| given.saturating_sub(rows)),
            error: error.map(|error| error.to_string()),
        }
    }
}
