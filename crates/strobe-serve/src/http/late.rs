// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late the rows of a run were, since its start.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::{Deserialize, Serialize};
use strobe::block::Block;
use strobe::error::Words;
use strobe::stats::Stats;
use tokio::sync::Mutex;

use super::Http;
use super::failure::Failure;
use super::query::query;
use super::runs::run;
use crate::cursor::From;
use crate::served_run::ServedRun;

/// Rows that are read at once.
const ROWS: usize = 8192;
/// So long one request reads what is there; the next one goes on.
const AT_MOST: Duration = Duration::from_secs(1);
/// Bins, unless it is said, and at most.
const BINS: usize = 40;
const BINS_MAX: usize = 62;

/// What is known of the runs that somebody has asked for.
#[derive(Default)]
pub struct Lates(Mutex<HashMap<u32, Late>>);

/// Of one run.
#[derive(Default)]
struct Late {
    next: u64,
    stats: Stats,
}

/// The answer: nanoseconds from and to, and how many rows were so late.
#[derive(Serialize)]
pub struct Histogram {
    unit: &'static str,
    bins: Vec<(i64, i64, u64)>,
    /// Rows in it.
    rows: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LateQuery {
    bins: usize,
}

impl Default for LateQuery {
    fn default() -> Self {
        LateQuery { bins: BINS }
    }
}

/// `GET /api/runs/ID/late`
pub async fn late(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Option<Histogram>>, Failure> {
    let LateQuery { bins } = query(&uri)?;
    if !(1..=BINS_MAX).contains(&bins) {
        let words = Words::new("bins", format!("{bins} are not possible"));
        return Err(Failure::bad(words.mend(format!("ask for 1 to {BINS_MAX}"))));
    }
    let served = run(&http, &id)?;
    let info = served.info();
    if info.period_ns.is_none() || (served.progress().next > 0 && info.first_due_ns().is_none()) {
        return Ok(Json(None));
    }
    let mut lates = http.lates.0.lock().await;
    lates.retain(|id, _| http.daemon.runs.get(*id).is_some());
    let late = lates.entry(served.id()).or_default();
    late.catch_up(&served).await;
    Ok(Json(Some(late.histogram(bins))))
}

impl Late {
    /// Reads what has come since.
    async fn catch_up(&mut self, served: &ServedRun) {
        let begun = Instant::now();
        let to = served.progress().next;
        let mut cursor = served.cursor(From::Row(self.next));
        while cursor.next_row() < to && begun.elapsed() < AT_MOST {
            let Some(block) = cursor.next(ROWS).await else {
                break;
            };
            self.add(&block);
            self.next = cursor.next_row();
            tokio::task::yield_now().await;
        }
    }

    fn add(&mut self, block: &Block) {
        let info = block.info();
        let (Some(period), Some(first)) = (info.period_ns, info.first_due_ns()) else {
            return;
        };
        for row in block.rows() {
            let due = first.wrapping_add(row.trigger.wrapping_mul(period));
            self.stats.add(row.time.wrapping_sub(due) as i64);
        }
    }

    /// Each bin is about twice as wide as the one before.
    fn histogram(&self, bins: usize) -> Histogram {
        let lines = self.stats.histogram_doubling(bins);
        let end = self.stats.max().map(|max| max.saturating_add(1));
        let ends = lines.iter().skip(1).map(|(from, _)| *from).chain(end);
        let bins = lines.iter().zip(ends);
        Histogram {
            unit: "ns",
            bins: bins.map(|(&(from, count), to)| (from, to, count)).collect(),
            rows: self.stats.count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::block::Place;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    #[test]
    fn every_row_is_in_one_bin() {
        let run = info(vec![channel("a.x", Type::U64)]);
        let mut late = Late::default();
        let due = |trigger: u64| 1_500 + trigger * 100_000;
        let words = (0..100).flat_map(|n| [n, 2 * n, due(2 * n) + n * n, 0, 0]);
        let block = Block::new(
            Arc::new(run),
            Arc::new(words.collect()),
            0..100,
            (0, 0),
            &mut Some(Place::START),
        );
        late.add(&block);
        let histogram = late.histogram(10);
        assert_eq!(
            (histogram.rows, histogram.bins.iter().map(|bin| bin.2).sum()),
            (100, 100)
        );
        assert_eq!(
            (histogram.bins[0].0, histogram.bins.last().map(|bin| bin.1)),
            (0, Some(99 * 99 + 1))
        );
        assert!(histogram.bins.windows(2).all(|two| two[0].1 == two[1].0));
        assert!(Late::default().histogram(10).bins.is_empty());
    }
}
