// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that share what is sent, and rows that are sent as they lie on the disk: all get the rows of the run.

use strobe_serve::config::Config;

use super::common::{Server, wait_until};
use super::{SOFT, json, rows};

const ROWS: u64 = 150_000;

/// What a client gets in the form that is on the disk, in another one, and as text.
fn assert_alike(server: &Server, run: u64, part: &str, expected: std::ops::Range<u64>) {
    let path = format!("/api/runs/{run}/rows?{part}follow=false");
    let stored = server.get(&path);
    let encoded = server.get(&format!("{path}&columns=sim.counter,sim.noise"));
    assert!(!stored.torn && !encoded.torn);
    let stored = rows(&stored.body);
    assert_eq!(stored, rows(&encoded.body), "{part}");
    let numbers = stored.iter().map(|(row, _)| *row);
    assert!(numbers.eq(expected), "{part}");
    let text = server.get(&format!("{path}&format=csv&columns=sim.counter"));
    let last = text.text().lines().last().map(str::to_owned);
    let (row, counter) = stored.last().expect("rows");
    let last = last.expect("a line");
    assert!(last.starts_with(&format!("{row},")) && last.ends_with(&format!(",{counter}")));
}

#[test]
fn all_clients_get_the_same_rows_in_whatever_form_and_with_whomever() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        data: Some(folder.path().to_owned()),
        ..Config::default()
    };
    let server = Server::new(config);
    let id = server.run(SOFT, true);
    for next in (1..=ROWS / 10_000).map(|part| part * 10_000) {
        let path = format!("/api/runs/{id}/trigger");
        assert_eq!(server.post(&path, json!({"count": 10_000})).status, 200);
        // The ring has no room for all of them.
        wait_until("the rows are in the spool", || {
            server.get(&format!("/api/runs/{id}")).json()["next"] == next
        });
    }
    let parts = [
        ("", 0..ROWS),
        ("from=12345&", 12_345..ROWS),
        ("to=100001&", 0..100_001),
        ("from=70000&to=70001&", 70_000..70_001),
    ];
    for is_over in [false, true] {
        if is_over {
            let done = server.post_nothing(&format!("/api/runs/{id}/stop")).json();
            assert_eq!(done["rows"], ROWS, "{done}");
        }
        std::thread::scope(|scope| {
            for client in 0..8 {
                let ((part, expected), server) = (parts[client % 4].clone(), &server);
                scope.spawn(move || assert_alike(server, id, part, expected));
            }
        });
    }
}
