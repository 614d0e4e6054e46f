// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: values, now, how it is, and counters.

use serde_json::json;

use super::SCAN;
use super::common::Server;

#[test]
fn a_value_is_read_and_an_output_is_written_now() {
    let server = Server::plain();
    let got = server.get("/api/get?channels=sim.counter,clock.time");
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.json()["values"]["clock.time"].is_u64() && got.json()["time_ns"].is_u64());
    let set = server.post("/api/set", json!({"outputs": {"sim.latch": 1}}));
    assert_eq!(
        (set.status, &set.json()["outputs"]),
        (200, &json!({"sim.latch": true}))
    );
    for query in ["", "?channels=", "?channels=file:/etc/hostname", "?what=1"] {
        assert_eq!(
            server.get(&format!("/api/get{query}")).status,
            400,
            "{query}"
        );
    }
    assert_eq!(server.get("/api/get?channels=no.channel").status, 422);
    for outputs in [
        json!({}),
        json!({"sim.latch": "x"}),
        json!({"sim.latch": 0.5}),
        json!({"file:/nonexistent/x": 1}),
    ] {
        assert_eq!(
            server.post("/api/set", json!({"outputs": outputs})).status,
            400
        );
    }
    let notes = server.get("/api/health").json();
    let notes = notes["notes"].as_array().expect("notes");
    assert!(
        notes
            .iter()
            .any(|note| note["check"] == "clock" && note["evidence"].is_string())
    );
    let id = server.run(SCAN, true);
    server.over(id);
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains(&format!(
            "strobe_rows_total{{run=\"{id}\",name=\"timer:1kHz\"}}"
        )),
        "{metrics}"
    );
}
