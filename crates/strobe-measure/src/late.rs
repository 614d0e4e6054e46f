// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who looks at rows that come late, and finds out why: while a run is recorded, the kernel's events are traced beside
//! it, and those around a late row are judged ([`crate::trace::cause`]) and kept.
//!
//! Nothing of that is done by the thread that makes the rows. Whoever reads them tells of each row, and has the events
//! looked at when it has no rows to read, long before newer ones overwrite them.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use strobe::clock::RunClock;
use strobe::event::{Event, EventSpec};
use strobe::info::RunInfo;
use strobe::quantity::show_ns;
use strobe::run::OwnedRun;
use strobe_ring::{Engine, Row};

use crate::trace::cause::{self, Cause, Delay, Maker, Share, main_share, shares};
use crate::trace::{self, Instance, Settings, Text, Trace};

mod suspects;

use suspects::{Suspect, Suspects};

/// For so long a buffer holds the events of rows, at the least.
const SPAN_NS: u64 = 250_000_000;
/// Events of a row, in bytes of the kernel's buffer: some ten events.
const ROW_BYTES: u64 = 1024;
/// Memory of a CPU, KiB.
const BUFFER_KB: std::ops::RangeInclusive<u64> = 512..=8192;
/// Around a delay the trace of this time is kept.
const MARGIN_NS: u64 = 1_000_000;
/// Verdicts of a run, at most: who has more late rows than these has seen enough of them.
const MOST: usize = 1000;

/// Which rows are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateSelection {
    /// So many, those that came latest.
    Worst(usize),
    /// Those later than this, ns.
    LaterThan(u64),
    /// The first one later than this, ns: the run may end with it.
    First(u64),
}

/// Why it cannot be found out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither engine is at it in a way that is known here.
    #[error(
        "{0}: why its rows are late cannot be found out: its events have no due time, or the thread that makes its \
         rows is not known; use a timer"
    )]
    Maker(String),
    /// Tracing is not to be had.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// A trace cannot be kept.
    #[error("{}: {why}; name another directory", path.display())]
    Keep {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
}

/// Why a row was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Its number.
    pub row: u64,
    /// That of its trigger.
    pub trigger: u64,
    /// When it was due, on the run's clock.
    pub due_ns: u64,
    /// From when it was due to its stamp.
    pub late_ns: u64,
    /// Triggers before it that made no row, though the row before was made in time.
    pub missed: u64,
    /// From when the first of these was due, or the row itself, to its stamp: what `shares` divide.
    pub delay_ns: u64,
    /// What took most of it.
    pub cause: Cause,
    /// Where all of it went.
    pub shares: Vec<Share>,
    /// Where the events are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    #[serde(skip)]
    events: String,
}

impl Verdict {
    fn new(suspect: Suspect, shares: Vec<Share>, events: String) -> Verdict {
        Verdict {
            row: suspect.row,
            trigger: suspect.trigger,
            due_ns: suspect.delay.due,
            late_ns: suspect.delay.to.saturating_sub(suspect.delay.due),
            missed: suspect.missed,
            delay_ns: suspect.delay_ns(),
            cause: main_share(&shares).map_or(Cause::Unknown, |share| share.cause),
            shares,
            trace: None,
            events,
        }
    }

    /// A line about the row, and one for each share that is worth one.
    pub fn text(&self) -> String {
        let mut text = format!("row {}, trigger {}", self.row, self.trigger);
        if self.missed > 0 {
            text += &format!(", after {} missed", self.missed);
        }
        let (delay, late) = (show_ns(self.delay_ns as f64), show_ns(self.late_ns as f64));
        text += &match self.missed {
            0 => format!(", late {late}"),
            _ => format!(", no row for {delay}, late {late}"),
        };
        text += &format!(": {}\n", self.cause);
        let of_note = |share: &&Share| share.ns * 20 >= self.delay_ns;
        for share in self.shares.iter().filter(of_note) {
            text += &format!("  {share}\n");
        }
        text
    }
}

/// Looks at the rows of one run.
pub struct Late {
    instance: Instance,
    maker: Maker,
    suspects: Suspects,
    clock: RunClock,
    verdicts: Vec<Verdict>,
    failed: Option<trace::Error>,
}

impl Late {
    /// Traces from now on. The run is one that has not been started yet.
    ///
    /// # Errors
    /// It cannot be known who makes its rows, or there is no tracing.
    pub fn of(run: &dyn OwnedRun, which: LateSelection) -> Result<Late, Error> {
        let info = run.info();
        let maker = maker(run).ok_or_else(|| Error::Maker(info.event.clone()))?;
        let period_ns = info.period_ns.unwrap_or(0).max(1);
        let needed = SPAN_NS / period_ns * ROW_BYTES / 1024;
        let settings = Settings {
            clock: info.clock,
            buffer_kb: needed.clamp(*BUFFER_KB.start(), *BUFFER_KB.end()) as u32,
            ..Settings::of(cause::wanted())
        };
        let instance = Instance::create(&settings)?;
        instance.turn_on()?;
        let clock = RunClock::new(info.clock);
        Ok(Late {
            instance,
            maker,
            suspects: Suspects::new(info, which),
            clock,
            verdicts: Vec::new(),
            failed: None,
        })
    }

    /// The run has begun.
    pub fn begun(&mut self, info: &RunInfo) {
        self.suspects = Suspects::new(info, self.suspects.which);
    }

    /// The next row.
    pub fn row(&mut self, row: &Row<'_>) {
        self.suspects.row(row);
    }

    /// Whether the first late row has come, if that is the one that is looked for.
    pub fn has_first(&self) -> bool {
        matches!(self.suspects.which, LateSelection::First(_)) && self.suspects.seen > 0
    }

    /// Looks at the events of late rows; to be called some ten times a second, when there are no rows to be read.
    ///
    /// Nothing is traced meanwhile, for the kernel cannot be relied upon to tell of a buffer that is written. Why rows were
    /// late just then is not known, and they are not among the worst; else who looks would be the cause, and have to look
    /// again.
    pub fn look(&mut self) {
        // Who looks for the worst may wait for worse, but not until the events are gone.
        let now = self.clock.now();
        let is_early = |suspect: &Suspect| suspect.delay.to + SPAN_NS / 2 > now;
        if matches!(self.suspects.which, LateSelection::Worst(_))
            && self.suspects.waiting.iter().all(is_early)
        {
            return;
        }
        self.look_now();
    }

    fn look_now(&mut self) {
        let since = self.suspects.since;
        let (seen, unseen): (Vec<_>, Vec<_>) =
            (self.suspects.take().into_iter()).partition(|suspect| suspect.delay.from > since);
        for suspect in unseen {
            let shares = shares(&Trace::default(), self.maker, suspect.delay);
            self.judged(Verdict::new(suspect, shares, String::new()));
        }
        if seen.is_empty() {
            return;
        }
        let text = self.events().unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            Text::default()
        });
        let trace = text.trace();
        let kept: Vec<String> = seen.iter().map(|s| around(&trace, s.delay)).collect();
        let trace = trace.with_stacks();
        for (suspect, events) in seen.into_iter().zip(kept) {
            let shares = shares(&trace, self.maker, suspect.delay);
            self.judged(Verdict::new(suspect, shares, events));
        }
    }

    /// The events until now; new ones come from now on.
    fn events(&mut self) -> Result<Text, trace::Error> {
        self.instance.turn_off()?;
        let text = self.instance.text()?;
        self.instance.clear()?;
        self.instance.turn_on()?;
        self.suspects.since = self.clock.now();
        Ok(text)
    }

    fn judged(&mut self, verdict: Verdict) {
        self.verdicts.push(verdict);
        if let LateSelection::Worst(count) = self.suspects.which {
            keep_worst(&mut self.verdicts, count);
            if let Some(least) = self
                .verdicts
                .last()
                .filter(|_| self.verdicts.len() >= count)
            {
                self.suspects.bar_ns = least.delay_ns;
            }
        }
    }

    /// The verdicts: of the worst the worst first, else in the order of the rows. Tracing has ended, and its instance is
    /// gone.
    pub fn end(mut self) -> LateRows {
        self.look_now();
        if let LateSelection::LaterThan(_) = self.suspects.which {
            self.verdicts.sort_by_key(|verdict| verdict.row);
        }
        LateRows {
            verdicts: self.verdicts,
            more: self.suspects.more,
            overlooked: self.suspects.overlooked,
            failed: self.failed,
        }
    }
}

/// What was found out.
#[derive(Debug, Default)]
pub struct LateRows {
    /// Of each late row.
    pub verdicts: Vec<Verdict>,
    /// Late rows beyond these, of which nothing is kept.
    pub more: u64,
    /// Rows that came while others were looked at, and that may have been among the worst: how many, and the greatest
    /// delay of them, ns.
    pub overlooked: (u64, u64),
    /// Why some rows have none.
    pub failed: Option<trace::Error>,
}

impl LateRows {
    /// Writes the events of each verdict into a file of this directory, which is made if there is something to be kept.
    /// Rows of two rounds that have the same number have a file each.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(&mut self, dir: &Path, name: &str) -> Result<(), Error> {
        let mut kept: Vec<u64> = Vec::new();
        for verdict in &mut self.verdicts {
            let row = verdict.row;
            let path = match kept.iter().filter(|other| **other == row).count() {
                0 => dir.join(format!("{name}-row-{row}.txt")),
                others => dir.join(format!("{name}-row-{row}-{}.txt", others + 1)),
            };
            kept.push(row);
            let text = format!("{}\n{}", verdict.text(), verdict.events);
            let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
            written.map_err(|why| Error::Keep {
                path: path.clone(),
                why,
            })?;
            verdict.trace = Some(path);
        }
        Ok(())
    }

    /// Of two rounds of the same, the worst of both.
    pub fn merge_worst(&mut self, other: LateRows, count: usize) {
        self.verdicts.extend(other.verdicts);
        keep_worst(&mut self.verdicts, count);
        self.more += other.more;
        self.overlooked.0 += other.overlooked.0;
        self.overlooked.1 = self.overlooked.1.max(other.overlooked.1);
        self.failed = self.failed.take().or(other.failed);
    }
}

fn keep_worst(verdicts: &mut Vec<Verdict>, count: usize) {
    verdicts.sort_by_key(|verdict| Reverse(verdict.delay_ns));
    verdicts.truncate(count);
}

/// Who makes the rows of a run.
fn maker(run: &dyn OwnedRun) -> Option<Maker> {
    let event: EventSpec = run.info().event.parse().ok()?;
    let is_timer = matches!(event.event(), Event::Timer { .. });
    match (run.thread(), run.info().engine) {
        _ if run.info().period_ns.is_none() => None,
        (Some(thread), _) => Some(Maker::Thread(thread)),
        (None, Engine::Kernel) if is_timer => Some(Maker::Timer),
        _ => None,
    }
}

/// The events of a delay, and some before and after it, in the kernel's words.
fn around(trace: &Trace<'_>, delay: Delay) -> String {
    let (from, to) = (delay.from.saturating_sub(MARGIN_NS), delay.to + MARGIN_NS);
    let near = trace
        .events
        .iter()
        .filter(|event| (from..=to).contains(&event.time));
    near.flat_map(|event| [event.text, "\n"]).collect()
}

#[cfg(test)]
mod tests;
