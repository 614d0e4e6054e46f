// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters for Prometheus, in its text format.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use serde_json::Value;

use super::Http;
use super::view::RunView;

/// Of runs: name, kind, help, and where it is in what is said of a run.
const OF_RUNS: [(&str, &str, &str, &str); 10] = [
    (
        "strobe_rows_total",
        "counter",
        "Rows the run made.",
        "/rows",
    ),
    (
        "strobe_triggers_total",
        "counter",
        "Triggers of the run.",
        "/triggers",
    ),
    (
        "strobe_skipped_total",
        "counter",
        "Triggers that were left out on purpose.",
        "/skipped",
    ),
    (
        "strobe_errors_total",
        "counter",
        "Rows in which a channel or an output failed.",
        "/errors",
    ),
    (
        "strobe_lost_total",
        "counter",
        "Rows that the ring lost before they were in the spool.",
        "/lost",
    ),
    (
        "strobe_oldest_row",
        "gauge",
        "The oldest row that can be read.",
        "/oldest",
    ),
    (
        "strobe_next_row",
        "gauge",
        "The row after the newest one in the spool.",
        "/next",
    ),
    (
        "strobe_elapsed_seconds",
        "gauge",
        "Time since the start of the run.",
        "/elapsed_s",
    ),
    (
        "strobe_spool_bytes",
        "gauge",
        "Bytes of rows that are kept.",
        "/spool/bytes",
    ),
    (
        "strobe_readers",
        "gauge",
        "Clients that read the run.",
        "/readers",
    ),
];

/// `GET /metrics`
pub async fn metrics(State(http): State<Arc<Http>>) -> ([(HeaderName, &'static str); 1], String) {
    let runs = http.daemon.runs.list();
    let runs = runs
        .iter()
        .map(|served| serde_json::to_value(RunView::of(served)));
    let runs: Vec<Value> = runs.filter_map(Result::ok).collect();
    let mut text = text(&runs);
    head(
        &mut text,
        "strobe_connections",
        "gauge",
        "Connections of HTTP clients.",
    );
    line(
        &mut text,
        "strobe_connections",
        &[],
        &http.counts.connections().to_string(),
    );
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text)
}

fn text(runs: &[Value]) -> String {
    let mut text = String::new();
    for (name, kind, help, place) in OF_RUNS {
        head(&mut text, name, kind, help);
        for run in runs {
            let value = run.pointer(place).map(Value::to_string);
            line(&mut text, name, &labels(run), &value.unwrap_or_default());
        }
    }
    let name = "strobe_missed_total";
    head(
        &mut text,
        name,
        "counter",
        "Triggers that made no row, by cause.",
    );
    for run in runs {
        let causes = run["missed_by"].as_object().into_iter().flatten();
        for (cause, count) in causes {
            let mut labels = labels(run);
            labels.push(("cause", cause.clone()));
            line(&mut text, name, &labels, &count.to_string());
        }
    }
    let name = "strobe_running";
    head(&mut text, name, "gauge", "Whether triggers make rows.");
    for run in runs {
        let is_running = run["state"] == "running";
        line(
            &mut text,
            name,
            &labels(run),
            if is_running { "1" } else { "0" },
        );
    }
    text
}

fn labels(run: &Value) -> Vec<(&'static str, String)> {
    let name = run["name"].as_str().unwrap_or_default();
    vec![("run", run["id"].to_string()), ("name", name.to_owned())]
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing into memory never fails.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &[(&str, String)], value: &str) {
    let labels = labels.iter().map(|(label, said)| {
        let said = said
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{label}=\"{said}\"")
    });
    let labels: Vec<String> = labels.collect();
    let _ = match labels.is_empty() {
        true => writeln!(text, "{name} {value}"),
        false => writeln!(text, "{name}{{{}}} {value}", labels.join(",")),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_number_of_a_run_is_a_line() {
        let run = json!({"id": 7, "name": "a \"b\"\n\\", "state": "running", "rows": 10, "triggers": 12, "skipped": 1,
            "errors": 0, "lost": 3, "oldest": 3, "next": 10, "elapsed_s": 1.5, "spool": {"bytes": 80}, "readers": 2,
            "missed_by": {"overrun": 1}});
        let text = text(&[run]);
        let labels = r#"run="7",name="a \"b\"\n\\""#;
        for line in [
            format!("strobe_rows_total{{{labels}}} 10"),
            format!("strobe_elapsed_seconds{{{labels}}} 1.5"),
            format!("strobe_missed_total{{{labels},cause=\"overrun\"}} 1"),
            format!("strobe_spool_bytes{{{labels}}} 80"),
            format!("strobe_running{{{labels}}} 1"),
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
