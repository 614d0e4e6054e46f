// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account of a recording, for people and for programs.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use strobe::accounting::Accounting;
use strobe::channel::column_names;
use strobe::faults::FaultCount;
use strobe::info::{End, RunInfo, Totals};
use strobe::stats::{Figures, Stats};
use strobe::timing::Timing;
use strobe_hw::rt::{Step, Usage};
use strobe_ring::Engine;

/// What one sink got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SinkSummary {
    /// Its name.
    pub path: String,
    /// Rows that are in it.
    pub rows: u64,
    /// Bytes that are in it.
    pub bytes: u64,
    /// Rows overwritten before this sink's reader came.
    pub lost: u64,
    /// Rows that were left out on purpose, as only the last ones were to be kept.
    pub left_out: u64,
    /// Why it ended early, if it did.
    pub error: Option<String>,
}

/// The account of a recording. As JSON, exactly the keys that are documented.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Who made the rows.
    #[serde(serialize_with = "engine_name")]
    pub engine: Engine,
    /// The event, as it was asked for.
    pub event: String,
    /// How the event accounts for what its source drops.
    pub accounting: Accounting,
    /// Names of the columns.
    pub channels: Vec<String>,
    /// Rows the run made.
    pub rows: u64,
    /// Triggers that should have made a row and did not.
    pub missed: u64,
    /// The same by cause.
    #[serde(serialize_with = "in_order")]
    pub missed_by: Vec<(&'static str, u64)>,
    /// Triggers that were left out on purpose: no loss.
    pub skipped: u64,
    /// Rows made, but overwritten before they were read: those of the slowest
    /// reader, be it a sink's or that of the statistics.
    pub lost: u64,
    /// Rows in which a channel or an output failed.
    pub errors: u64,
    /// What failed, by name, and in how many of the rows that were read.
    #[serde(serialize_with = "in_order")]
    pub faults: Vec<(String, u64)>,
    /// When the run was started, on its clock.
    pub start_time_ns: u64,
    /// From its start to its end.
    pub elapsed_s: f64,
    /// Time from row to row; `None` with fewer than two rows.
    pub period_ns: Option<Figures>,
    /// Time from due to row; `None` if that is not known.
    pub late_ns: Option<Figures>,
    /// What each sink got.
    #[serde(rename = "outputs")]
    pub sinks: Vec<SinkSummary>,
    /// Real-time set-up of the user engine's thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set_up: Vec<Step>,
    /// What the user engine's thread has cost, from start to end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How it ended.
    pub end: End,
    /// Triggers there were: rows + missed + skipped.
    #[serde(skip)]
    pub triggers: u64,
    /// All periods.
    #[serde(skip)]
    pub period: Stats,
    /// All latenesses.
    #[serde(skip)]
    pub late: Stats,
}

impl Summary {
    /// The account of a run that has ended.
    pub fn new(
        info: &RunInfo,
        totals: Totals,
        timing: Timing,
        faults: FaultCount,
        sinks: Vec<SinkSummary>,
    ) -> Self {
        let elapsed_ns = totals.end_time_ns.saturating_sub(info.start.time);
        Summary {
            engine: info.engine,
            event: info.event.clone(),
            accounting: info.accounting,
            channels: column_names(&info.channels),
            rows: totals.rows,
            missed: totals.missed(),
            missed_by: totals.missed_by_name().collect(),
            skipped: totals.skipped,
            lost: totals.lost,
            errors: totals.errors,
            faults: faults.by_name(info),
            start_time_ns: info.start.time,
            elapsed_s: elapsed_ns as f64 / 1e9,
            period_ns: timing.period.figures(),
            late_ns: timing.late.figures(),
            sinks,
            set_up: info.set_up.clone(),
            usage: None,
            end: totals.end,
            triggers: totals.triggers,
            period: timing.period,
            late: timing.late,
        }
    }

    /// Whether all that was asked for is there: no trigger missed, no row
    /// lost by any reader, no channel, output or run failed.
    pub fn is_whole(&self) -> bool {
        self.end == End::Complete
            && self.missed == 0
            && self.lost == 0
            && self.errors == 0
            && self.sinks.iter().all(|o| o.error.is_none())
    }
}

fn engine_name<S: Serializer>(engine: &Engine, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(engine.name())
}

fn in_order<K: Serialize, S: Serializer>(pairs: &[(K, u64)], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(pairs.len()))?;
    for (key, value) in pairs {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::channel::Type;
    use strobe::samples::channel;
    use strobe::samples::{info, totals};
    use strobe_ring::{RowShape, Rows};

    #[test]
    fn the_account_has_exactly_the_documented_keys() {
        let mut info = info(vec![channel("sim.counter", Type::U64)]);
        info.outputs = vec!["sim.latch".into(), "sim.latch".into()];
        let mut timing = Timing::new(&info);
        (0..5).for_each(|late| timing.late.add(late));
        let sink = SinkSummary {
            path: "a.csv".into(),
            rows: 6,
            bytes: 99,
            lost: 4,
            left_out: 0,
            error: None,
        };
        let mut totals = totals(10);
        totals.end = End::Failed("a device went away".into());
        totals.end_time_ns = 1_500_001_000;
        (totals.skipped, totals.triggers) = (90, 10 + 3 + 90);
        let mut faults = FaultCount::new(&info);
        let row = [0, 0, 0, 7 << 32, 0];
        Rows::new(&row, RowShape::of_channels(1)).for_each(|row| faults.add(&row));
        let summary = Summary::new(&info, totals, timing, faults, vec![sink]);
        let json = serde_json::to_string(&summary).expect("JSON");
        assert_eq!(
            json,
            "{\"engine\":\"kernel\",\"event\":\"timer:10kHz\",\"accounting\":\"exact\",\"channels\":[\"sim.counter\"],\
             \"rows\":10,\"missed\":3,\
             \"missed_by\":{\"overrun\":1,\"busy\":0,\"throttled\":2,\"source\":0,\"suspended\":0},\
             \"skipped\":90,\"lost\":4,\"errors\":0,\
             \"faults\":{\"sim.counter\":1,\"output sim.latch\":1,\"output sim.latch#2\":1},\"start_time_ns\":1000,\"elapsed_s\":1.5,\
             \"period_ns\":null,\
             \"late_ns\":{\"min\":0,\"mean\":2.0,\"max\":4,\"sd\":1.4142135623730951,\
             \"p50\":2,\"p99\":null,\"p999\":null,\"p9999\":null},\
             \"outputs\":[{\"path\":\"a.csv\",\"rows\":6,\"bytes\":99,\"lost\":4,\"left_out\":0,\"error\":null}],\
             \"end\":\"failed: a device went away\"}"
        );
        assert!(!summary.is_whole());
    }
}
