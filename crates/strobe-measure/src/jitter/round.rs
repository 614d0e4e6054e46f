// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way to wait, once.

use std::sync::atomic::Ordering;

use serde::Serialize;
use strobe::info::{End, RunInfo};
use strobe::run::OwnedRun;
use strobe::source::RowSource;
use strobe::stop::Stop;
use strobe_files::record::{self as recording, Observer, Options, Progress, record, record_rows};
use strobe_files::summary::Summary;
use strobe_hw::rt::{Step, Usage};
use strobe_ring::Row;

use super::judge::CounterReport;
use super::timeline::Timeline;
use super::{Jitter, PeriodCounts, Report, Target};
use crate::late::{Late, LateRows};
use crate::machine::Machine;

/// What one round of one way has given.
#[derive(Serialize)]
pub struct Round {
    /// How regular its rows were.
    #[serde(flatten)]
    pub report: Report,
    /// Rows made.
    pub rows: u64,
    /// Rows of which nothing is known, for they were not read in time.
    pub lost: u64,
    /// Triggers that were left out on purpose.
    pub skipped: u64,
    /// How it ended.
    pub end: End,
    /// From its start to its end.
    pub elapsed_s: f64,
    /// What the thread has cost, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// CPUs of the machine that were busy meanwhile, this one's among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Share of the time that a hypervisor gave to others, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen_percent: Option<f64>,
    /// What was got of the real-time set-up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set_up: Vec<Step>,
    /// What a counter in hardware says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<CounterReport>,
    /// How it went on.
    pub timeline: Timeline,
}

/// Where a measurement is, and what it has counted so far, if it counts periods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    /// Where it is.
    pub progress: Progress,
    /// Its counts.
    pub counted: Option<PeriodCounts>,
}

/// Shows where a measurement is; `None`: it is over.
pub type Show<'a> = dyn Fn(Option<Shown>) + Sync + 'a;

/// Looks at each row.
struct View<'a> {
    jitter: Jitter,
    target: Target,
    show: &'a Show<'a>,
    late: Option<Late>,
    stop: &'a Stop,
}

impl Observer for View<'_> {
    fn begun(&mut self, info: &RunInfo) {
        self.jitter = Jitter::new(info, self.target);
        if let Some(late) = &mut self.late {
            late.begun(info);
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        self.jitter.add(*row);
        if let Some(late) = &mut self.late {
            late.row(row);
        }
    }

    fn progress(&mut self, now: Progress) {
        (self.show)(Some(Shown {
            progress: now,
            counted: Some(self.jitter.counted()),
        }));
        if let Some(late) = &mut self.late {
            late.look();
            if late.has_first() {
                self.stop.finish.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Round {
    /// Measures a run, and finds out why rows were late, if somebody looks.
    ///
    /// # Errors
    /// The run cannot be started.
    pub fn measure(
        run: &dyn OwnedRun,
        target: Target,
        options: &Options,
        stop: &Stop,
        late: Option<Late>,
        show: &Show<'_>,
    ) -> Result<(Jitter, Round, Option<LateRows>), recording::Error> {
        let machine = Machine::from_now();
        let mut view = View {
            jitter: Jitter::new(run.info(), target),
            target,
            show,
            late,
            stop,
        };
        let summary = record(run, options, stop, &mut view);
        show(None);
        let found = view.late.map(Late::end);
        let machine = machine.until_now();
        let round = Round {
            busy: Some(machine.busy),
            stolen_percent: Some(machine.stolen_percent),
            ..Round::new(summary?, &view.jitter)
        };
        Ok((view.jitter, round, found))
    }

    /// Looks at rows from anywhere: of a run that somebody else has made, or of a recording.
    ///
    /// # Errors
    /// There are no rows to be had.
    pub fn of_rows(
        source: &mut dyn RowSource,
        target: Target,
        options: &Options,
        stop: &Stop,
        show: &Show<'_>,
    ) -> Result<(Jitter, Round), recording::Error> {
        let mut view = View {
            jitter: Jitter::new(source.info(), target),
            target,
            show,
            late: None,
            stop,
        };
        let summary = record_rows(source, options, stop, &mut view);
        show(None);
        let round = Round::new(summary?, &view.jitter);
        Ok((view.jitter, round))
    }

    /// What a run has given, as it was recorded.
    fn new(summary: Summary, jitter: &Jitter) -> Round {
        Round {
            report: jitter.report(summary.missed),
            rows: summary.rows,
            lost: summary.lost,
            skipped: summary.skipped,
            end: summary.end,
            elapsed_s: summary.elapsed_s,
            usage: summary.usage,
            busy: None,
            stolen_percent: None,
            set_up: summary.set_up,
            judged: None,
            timeline: jitter.timeline().clone(),
        }
    }

    /// Whether all rows were seen. That some were missed is what is measured.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && !matches!(self.end, End::Failed(_))
    }
}
