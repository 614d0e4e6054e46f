// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way to wait, once.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use serde::Serialize;
use strobe::engine::{Error, Source};
use strobe::info::{End, RunInfo, Totals};
use strobe::reader::RunReader;
use strobe::ring::Row;
use strobe::rt::{self, Step, Usage};
use strobe::stop::Stop;
use strobe_files::record::{self as recording, record, Observer, Options, Progress};
use strobe_files::summary::Summary;
use strobe_measure::jitter::timeline::Timeline;
use strobe_measure::jitter::{Jitter, Report, Target};
use strobe_measure::late::{Found, Late};
use strobe_measure::machine::Machine;

use crate::progress::Line;

/// What one round of one way has given.
#[derive(Serialize)]
pub struct Round {
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
    /// How it went on.
    pub timeline: Timeline,
}

/// What the rows of a recording say by their numbers.
#[derive(Default)]
pub struct Counts {
    /// Those that are there.
    read: u64,
    /// Those that were made, up to the last one.
    rows: u64,
    /// Triggers that should have made one and did not, up to it.
    missed: u64,
    /// Triggers that were left out on purpose, up to it.
    skipped: u64,
    /// Its time.
    time: u64,
}

impl Counts {
    pub fn add(&mut self, row: &Row<'_>) {
        self.read += 1;
        self.rows = row.row + 1;
        self.missed = (row.trigger)
            .saturating_sub(row.row)
            .saturating_sub(row.skipped);
        self.skipped = row.skipped;
        self.time = row.time;
    }
}

/// Looks at each row.
struct View<'a> {
    jitter: Jitter,
    target: Target,
    line: Line,
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
        self.line.show(now);
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
    pub fn measure(
        run: &dyn Source,
        target: Target,
        options: &Options,
        stop: &Stop,
        late: Option<Late>,
    ) -> Result<(Jitter, Round, Option<Found>), recording::Error> {
        let rows = options
            .duration
            .map(|time| time.as_nanos() as u64 / target.period_ns);
        let machine = Machine::from_now();
        let mut view = View {
            jitter: Jitter::new(run.info(), target),
            target,
            line: Line::new(rows),
            late,
            stop,
        };
        let summary = record(run, options, stop, &mut view);
        view.line.clear();
        let found = view.late.map(Late::end);
        let machine = machine.until_now();
        let Summary {
            rows,
            missed,
            skipped,
            lost,
            end,
            elapsed_s,
            usage,
            set_up,
            ..
        } = summary?;
        let round = Round {
            report: view.jitter.report(missed),
            rows,
            lost,
            skipped,
            end,
            elapsed_s,
            usage,
            busy: Some(machine.busy),
            stolen_percent: Some(machine.stolen_percent),
            set_up,
            timeline: view.jitter.timeline().clone(),
        };
        Ok((view.jitter, round, found))
    }

    /// What a recording says of itself; of one that was cut off, as far as its rows go.
    pub fn of_file(
        info: &RunInfo,
        totals: Option<&Totals>,
        counts: &Counts,
        jitter: &Jitter,
    ) -> Round {
        Round {
            report: jitter.report(totals.map_or(counts.missed, Totals::missed)),
            rows: totals.map_or(counts.rows, |totals| totals.rows),
            lost: totals.map_or(counts.rows - counts.read, |totals| totals.lost),
            skipped: totals.map_or(counts.skipped, |totals| totals.skipped),
            end: totals.map_or(End::Failed("cut off".into()), |totals| totals.end.clone()),
            elapsed_s: totals
                .map_or(counts.time, |totals| totals.end_time_ns)
                .saturating_sub(info.start.time) as f64
                / 1e9,
            usage: None,
            busy: None,
            stolen_percent: None,
            set_up: info.set_up.clone(),
            timeline: jitter.timeline().clone(),
        }
    }

    /// Whether all rows were seen. That some were missed is what is measured.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && !matches!(self.end, End::Failed(_))
    }
}

/// A run that is started by a thread on one CPU: there is its timer then.
pub struct StartedOn<S> {
    run: S,
    cpu: Option<usize>,
}

impl<S: Source> StartedOn<S> {
    pub fn new(run: S, cpu: Option<usize>) -> Self {
        StartedOn { run, cpu }
    }
}

impl<S: Source> Source for StartedOn<S> {
    fn info(&self) -> &RunInfo {
        self.run.info()
    }

    fn start(&self) -> Result<(), Error> {
        let before = sched_getaffinity(None);
        if let Some(cpu) = self.cpu {
            let mut only = CpuSet::new();
            only.set(cpu);
            // Whether it may was looked at before.
            let _ = sched_setaffinity(None, &only);
        }
        let started = self.run.start();
        if let Ok(before) = before {
            let _ = sched_setaffinity(None, &before);
        }
        started
    }

    fn stop(&self) -> Result<(), Error> {
        self.run.stop()
    }

    fn trigger(&self, count: u32) -> Result<(), Error> {
        self.run.trigger(count)
    }

    fn reader(&self) -> Result<RunReader, Error> {
        self.run.reader()
    }
}

/// A CPU that was asked for, and that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("--cpu {0}: there is none, or this group of processes may not use it; leave --cpu out, or name another")]
pub struct NoCpu(usize);

/// Whether this process may run there.
pub fn check_cpu(cpu: Option<usize>) -> Result<(), NoCpu> {
    match cpu.filter(|cpu| !rt::cpus().contains(cpu)) {
        Some(cpu) => Err(NoCpu(cpu)),
        None => Ok(()),
    }
}

/// Whether a signal came, or the row that was waited for.
pub fn is_over(stop: &Stop) -> bool {
    is_interrupted(stop) || stop.finish.load(Ordering::Relaxed)
}

/// Whether a signal came.
pub fn is_interrupted(stop: &Stop) -> bool {
    stop.interrupt.load(Ordering::Relaxed)
}

/// In which order the ways take their turns in a round: by chance, so that none always follows the same other.
pub fn order(round: u32, ways: usize) -> Vec<usize> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let chance = now.map_or(0, |now| u64::from(now.subsec_nanos())) + u64::from(round);
    let mut order: Vec<usize> = (0..ways).collect();
    let mut left = chance;
    for end in (1..ways).rev() {
        order.swap(end, (left % (end as u64 + 1)) as usize);
        left /= end as u64 + 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_one_turn_a_round() {
        for ways in 0..9 {
            let mut turns = order(3, ways);
            turns.sort_unstable();
            assert_eq!(turns, (0..ways).collect::<Vec<_>>());
        }
    }

    #[test]
    fn not_every_round_has_the_same_order() {
        let first = order(0, 5);
        assert!((0..1000).any(|round| order(round, 5) != first));
    }
}
