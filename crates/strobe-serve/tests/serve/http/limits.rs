// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one client, and all of them, can have.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use strobe_serve::config::Config;

use super::SOFT;
use super::common::{Server, wait_until};

#[test]
fn one_client_cannot_have_all_connections_and_cannot_ask_without_end() {
    let mut config = Config::default();
    (config.limits.per_client, config.limits.requests) = (3, 50);
    let server = Server::new(config);
    let request = "GET /api HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    // Those of before may not have gone yet.
    let mut idle: Vec<TcpStream> = Vec::new();
    wait_until("three have a place", || {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        let asked = stream.write_all(b"GET /api HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut status = [0; 12];
        let heard = asked.and_then(|()| stream.read_exact(&mut status));
        if heard.is_ok() && status == *b"HTTP/1.1 200" {
            idle.push(stream);
        }
        idle.len() == 3
    });
    assert!(server.raw(request).starts_with("HTTP/1.1 503"));
    drop(idle);
    wait_until("there is a place", || {
        server.raw(request).starts_with("HTTP/1.1 200")
    });
    // A thousand at once on one connection, however slow this is.
    let many = "GET /api HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000) + request;
    let answers = server.raw(&many);
    let refused = answers.matches("HTTP/1.1 429").count();
    assert!(
        refused > 0 && answers.contains("retry-after: 1"),
        "{refused}"
    );
}

#[test]
fn there_are_no_more_runs_than_there_may_be() {
    let mut config = Config::default();
    config.limits.runs = 2;
    let server = Server::new(config);
    let first = server.run(SOFT, false);
    server.run(SOFT, false);
    let refused = server.post("/api/runs", json!({"recipe": SOFT}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(server.delete(&format!("/api/runs/{first}")).status, 204);
    server.run(SOFT, false);
}
