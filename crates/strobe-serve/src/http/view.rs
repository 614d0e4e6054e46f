// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as clients see it.

use serde::Serialize;
use serde_json::{Map, Value};
use strobe::clock::RunClock;
use strobe::info::{End, RunInfo, Totals};

use crate::served_run::ServedRun;
use crate::spool::Progress;

/// What is said of a run.
#[derive(Debug, Serialize)]
pub struct RunView {
    id: u32,
    name: String,
    own: bool,
    state: &'static str,
    info: RunInfo,
    rows: u64,
    triggers: u64,
    missed: u64,
    missed_by: Map<String, Value>,
    skipped: u64,
    errors: u64,
    lost: u64,
    oldest: u64,
    next: u64,
    end: Option<End>,
    elapsed_s: f64,
    spool: SpoolView,
    readers: usize,
}

/// What is said of its spool.
#[derive(Debug, Serialize)]
struct SpoolView {
    bytes: u64,
    written: u64,
    unwritten: u64,
    error: Option<String>,
}

impl RunView {
    /// As it is now.
    pub fn of(served: &ServedRun) -> RunView {
        let progress = served.progress();
        let info = RunInfo::clone(&served.info());
        let run = progress.run.as_ref();
        // Of a run of before, there is nothing but its account.
        let counted = run.map(|run| Totals::of(run, progress.lost));
        let counted = counted.as_ref().or(progress.totals.as_ref());
        let missed_by = counted.into_iter().flat_map(Totals::missed_by_name);
        let missed_by = missed_by.map(|(cause, count)| (cause.to_owned(), count.into()));
        let missed = counted.map_or(0, |counted| counted.missed_by.iter().sum());
        RunView {
            id: served.id(),
            name: served.name().to_owned(),
            own: served.is_own(),
            state: served.state().name(),
            rows: counted.map_or(progress.next, |counted| counted.rows),
            triggers: counted.map_or(0, |counted| counted.triggers),
            missed,
            missed_by: missed_by.collect(),
            skipped: counted.map_or(0, |counted| counted.skipped),
            errors: counted.map_or(0, |counted| counted.errors),
            lost: progress.lost,
            oldest: progress.oldest,
            next: progress.next,
            elapsed_s: elapsed_s(&info, &progress),
            end: end(&progress),
            spool: SpoolView {
                bytes: served.spool().bytes(),
                written: progress.written,
                unwritten: progress.unwritten,
                error: progress.error.clone(),
            },
            readers: served.spool().readers(),
            info,
        }
    }
}

fn end(progress: &Progress) -> Option<End> {
    let failed = progress.failed.clone().map(End::Failed);
    failed.or_else(|| Some(progress.totals.as_ref()?.end.clone()))
}

/// Since the start; 0 before.
fn elapsed_s(info: &RunInfo, progress: &Progress) -> f64 {
    let end = progress.run.map_or(0, |run| run.end_time);
    let end = progress.totals.as_ref().map_or(end, |t| t.end_time_ns);
    let end = match (info.start.time, end) {
        (0, _) => 0,
        (_, 0) if progress.is_over() => progress.failed_at,
        (_, 0) => RunClock::new(info.clock).now(),
        (_, end) => end,
    };
    end.saturating_sub(info.start.time) as f64 / 1e9
}
