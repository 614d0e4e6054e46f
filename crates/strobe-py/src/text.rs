// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes over as JSON.

use serde_json::{Value, json};
use strobe::info::{RunInfo, Totals};
use strobe::ring::Snapshot;

/// What is known of a run, as JSON.
pub fn info_text(info: &RunInfo) -> String {
    let mut value = serde_json::to_value(info).unwrap_or(Value::Null);
    value["width"] = json!(info.shape().words());
    value["fault_names"] = json!(info.fault_names());
    value.to_string()
}

/// An account, as JSON.
pub fn totals_text(totals: &Totals) -> String {
    let missed_by: serde_json::Map<_, _> = totals
        .missed_by_name()
        .map(|(cause, count)| (cause.to_owned(), count.into()))
        .collect();
    json!({
        "rows": totals.rows, "triggers": totals.triggers, "missed": totals.missed(), "missed_by": missed_by,
        "skipped": totals.skipped, "lost": totals.lost, "errors": totals.errors, "end_time_ns": totals.end_time_ns,
        "end": totals.end,
    })
    .to_string()
}

/// State and counters, as JSON.
pub fn snapshot_text(now: &Snapshot) -> String {
    json!({
        "state": now.state.name(), "rows": now.head, "triggers": now.triggers, "missed": now.missed(),
        "skipped": now.skipped, "errors": now.errors,
    })
    .to_string()
}
