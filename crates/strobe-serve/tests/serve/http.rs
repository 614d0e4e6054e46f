// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs get by HTTP.

mod access;
mod common;
mod limits;
mod live;
mod machine;
mod patience;
mod shared;

use std::io::Write;

use common::{Server, agent, assert_whole, wait_until};
use serde_json::json;

const SCAN: &str = "event = \"timer:1kHz\"\nread = [\"sim.counter\", \"sim.ramp\"]\nengine = \"user\"\nrows = 300\n";
const SOFT: &str =
    "event = \"soft\"\nread = [\"sim.counter\", \"sim.noise\"]\nengine = \"user\"\nring = 65536\n";

/// The numbers of the rows of an Arrow stream, and its first channel.
fn rows(stream: &[u8]) -> Vec<(u64, u64)> {
    let mut file = tempfile::Builder::new()
        .suffix(".arrows")
        .tempfile()
        .expect("a file");
    file.write_all(stream).expect("written");
    let mut journal = strobe_files::open(file.path()).expect("a journal");
    let mut rows = Vec::new();
    while let Some(block) = journal.next(std::time::Duration::MAX).expect("rows") {
        let counter = block.column_at(0).expect("a column");
        let numbers = block.rows().map(|row| row.row);
        rows.extend(numbers.zip(counter.raw()));
    }
    rows
}

#[test]
fn it_says_what_it_is_and_what_the_machine_has() {
    let server = Server::plain();
    let about = server.get("/api").json();
    assert_eq!(about["strobe"], env!("CARGO_PKG_VERSION"));
    assert_eq!(about["role"], "control");
    let catalogue = server.get("/api/catalogue").json();
    let channels = catalogue["user"]["channels"].as_array().expect("channels");
    assert!(
        channels
            .iter()
            .any(|channel| channel["name"] == "sim.counter")
    );
    assert_eq!(server.get("/api/runs").json(), json!({"runs": []}));
}

#[test]
fn a_run_is_made_watched_and_read_by_every_client_alike() {
    let server = Server::plain();
    let id = server.run(SCAN, true);
    // Follows the run to its end.
    let live = server.get(&format!("/api/runs/{id}/rows"));
    assert_eq!(
        live.header("content-type"),
        "application/vnd.apache.arrow.stream"
    );
    assert_eq!(
        (live.header("strobe-first"), live.header("strobe-lost")),
        ("0", "0")
    );
    let view = server.over(id);
    assert_whole(&view);
    assert_eq!(
        (view["state"].as_str(), view["end"].as_str()),
        (Some("done"), Some("complete"))
    );
    assert_eq!(view["info"]["channels"][1]["name"], "sim.ramp");
    let live = rows(&live.body);
    assert_eq!(live.len() as u64, view["rows"].as_u64().expect("a number"));
    assert!(
        live.iter()
            .enumerate()
            .all(|(n, (row, _))| *row == n as u64)
    );
    let late = server.get(&format!("/api/runs/{id}/rows?from=0&columns=sim.counter"));
    assert_eq!(rows(&late.body), live);
    let part = server.get(&format!(
        "/api/runs/{id}/rows?from=10&to=20&columns=sim.counter&format=csv"
    ));
    assert_eq!(part.header("content-type"), "text/csv; charset=utf-8");
    let text = part.text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("row,trigger,time,status,sim.counter"));
    let lines: Vec<(u64, u64)> = lines
        .map(|line| {
            let mut fields = line.split(',');
            let row = fields.next().and_then(|f| f.parse().ok());
            let value = fields.nth(3).and_then(|f| f.parse().ok());
            row.zip(value).expect("numbers")
        })
        .collect();
    assert_eq!(lines, live[10..20]);
    assert_eq!(server.delete(&format!("/api/runs/{id}")).status, 204);
    assert_eq!(server.get(&format!("/api/runs/{id}")).status, 404);
}

#[test]
fn who_hears_that_a_run_has_stopped_can_have_all_its_rows() {
    let server = Server::plain();
    for _ in 0..20 {
        let id = server.run(
            "event = \"timer:20kHz\"\nread = [\"sim.counter\"]\nengine = \"user\"\nring = 65536\n",
            true,
        );
        let path = format!("/api/runs/{id}");
        wait_until("rows", || {
            server.get(&path).json()["rows"].as_u64() > Some(500)
        });
        let done = server.post_nothing(&format!("{path}/stop")).json();
        assert_eq!(
            (&done["state"], &done["end"]),
            (&json!("stopped"), &json!("stopped"))
        );
        assert_eq!(done["rows"], done["next"], "{done}");
        let there = server.get(&format!("{path}/rows?follow=false"));
        assert_eq!(rows(&there.body).len() as u64, done["rows"]);
        assert_whole(&done);
    }
}

#[test]
fn a_run_is_started_paused_triggered_and_stopped() {
    let server = Server::plain();
    let id = server.run(SOFT, false);
    let path = format!("/api/runs/{id}");
    assert_eq!(server.get(&path).json()["state"], "ready");
    // Who comes before the start waits for it.
    let early = server.url(&format!("{path}/rows"));
    let early = std::thread::spawn(move || common::Answer::of(agent().get(early).call()));
    assert_eq!(server.post_nothing(&format!("{path}/start")).status, 200);
    let again = server.post_nothing(&format!("{path}/start"));
    assert_eq!(again.status, 409, "{}", again.text());
    let trigger = || {
        server
            .post(&format!("{path}/trigger"), json!({"count": 5}))
            .status
    };
    assert_eq!(trigger(), 200);
    wait_until("five rows", || server.get(&path).json()["rows"] == 5);
    // The answer is of the run then, and so is the next one.
    for (verb, state) in [("pause", "paused"), ("resume", "running")] {
        let done = server.post_nothing(&format!("{path}/{verb}"));
        assert_eq!((done.status, &done.json()["state"]), (200, &json!(state)));
        assert_eq!(server.get(&path).json()["state"], state);
    }
    assert_eq!(trigger(), 200);
    // The next row: the daemon has all before it.
    wait_until("ten rows", || server.get(&path).json()["next"] == 10);
    let there = server.get(&format!("{path}/rows?from=2&follow=false"));
    assert_eq!(rows(&there.body).len(), 8);
    assert_eq!(server.post_nothing(&format!("{path}/stop")).status, 200);
    assert_whole(&server.over(id));
    assert_eq!(rows(&early.join().expect("an answer").body).len(), 10);
}

#[test]
fn an_error_says_the_object_the_reason_and_the_remedy() {
    let server = Server::plain();
    let id = server.run(SOFT, false);
    let none = server.get("/api/runs/77");
    assert_eq!(none.status, 404);
    assert_eq!(none.json()["object"], "run 77");
    assert!(none.json()["remedy"].is_string() && none.json()["reason"].is_string());
    for path in [
        "/api/nothing",
        "/api/runs/x",
        "/api/runs/-1",
        "/api/runs/1%2F2/rows",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    for (query, status) in [
        ("from=x", 400),
        ("columns=sim.nothing", 422),
        ("what=1", 400),
        ("to=-1", 400),
    ] {
        let answer = server.get(&format!("/api/runs/{id}/rows?{query}"));
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        assert!(answer.json()["object"].is_string());
    }
    let post = |body| server.post("/api/runs", body).status;
    assert_eq!(post(json!({})), 400);
    assert_eq!(post(json!({"recipe": SOFT, "name": "both"})), 400);
    assert_eq!(post(json!({"recipe": "event = 7"})), 422);
    assert_eq!(
        post(json!({"recipe": format!("{SOFT}sinks = [\"/nonexistent/x.h5\"]")})),
        422
    );
    assert_eq!(
        post(json!({"recipe": "event = \"no.event\"\nread = [\"sim.counter\"]"})),
        422
    );
    assert_eq!(post(json!({"name": "nothing"})), 404);
    let form = agent()
        .post(server.url("/api/runs"))
        .content_type("text/plain")
        .send("{}");
    assert_eq!(common::Answer::of(form).status, 415);
    let wrong = common::Answer::of(agent().put(server.url("/api/runs")).send_empty());
    assert_eq!(
        (wrong.status, wrong.header("allow")),
        (405, "GET,HEAD,POST")
    );
    let many = json!({"recipe": "#".repeat(2 << 20)});
    assert_eq!(post(many), 413);
}
