// SPDX-License-Identifier: MIT OR Apache-2.0
//! What parsers do with rubbish: they answer, and do not fall over.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::http::Uri;
use strobe_files::recipe::Recipe;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::connection::{self, Connection};
use super::hello::Hello;
use super::limits::Client;
use super::query::{RowsQuery, query};
use super::recipes::{no_path, of_client};
use super::trace::TraceQuery;
use super::{Http, routes};
use crate::access::Tokens;
use crate::config::Config;
use crate::daemon::Daemon;
use strobe::fuzz::{bytes, texts};

#[test]
fn queries_of_rubbish_are_answered() {
    let right = [
        "from=17&to=20&columns=a.x,b%232&format=csv&on_loss=fail&follow=false",
        "from=now&follow=true",
        "from=oldest&to=18446744073709551615",
    ];
    texts(&right, |text| {
        let uri: Result<Uri, _> = format!("/rows?{text}").parse();
        uri.is_ok_and(|uri| query::<RowsQuery>(&uri).is_ok())
    });
    let right = ["from=17&to=20&points=5&columns=a.x,b%232", "points=1"];
    texts(&right, |text| {
        let uri: Result<Uri, _> = format!("/trace?{text}").parse();
        uri.is_ok_and(|uri| query::<TraceQuery>(&uri).is_ok())
    });
}

#[test]
fn messages_of_rubbish_are_answered() {
    let right = [
        r#"{"from": 17, "columns": ["a.x", "b"], "policy": "latest", "rate": 0.5, "points": 7}"#,
        r#"{"from": "now", "policy": "every"}"#,
        "{}",
    ];
    texts(&right, |text| Hello::parse(text).is_ok());
}

#[test]
fn tokens_of_rubbish_are_refused_by_their_line() {
    let right = [
        "# of the lab\nview 0123456789abcdef\n\ncontrol fedcba9876543210\n",
        "view abcdefghijklmnopqrstuvwxyz\n",
    ];
    texts(&right, |text| match Tokens::parse(text) {
        Ok(_) => true,
        Err((line, _)) => {
            assert!((1..=text.lines().count()).contains(&line));
            false
        }
    });
}

#[test]
fn recipes_of_rubbish_name_no_file() {
    let right = [
        "event = \"timer:1kHz\"\nread = [\"sim.counter\", \"gpio:chip0/3\"]\nengine = \"user\"\nrows = 5\n",
        "event = \"soft\"\nread = [\"file:/etc/hostname\"]\nset = [\"sim.level=1\"]\nboard = \"edu\"\n",
    ];
    texts(&right, |text| {
        of_client("fuzz", text).is_ok_and(|recipe| {
            assert!(recipe.sinks.is_empty());
            assert!(
                recipe
                    .read
                    .iter()
                    .all(|name| no_path(name).is_ok() && !name.starts_with("file:"))
            );
            true
        })
    });
}

/// A daemon with one run, which has ended.
async fn with_a_run() -> Arc<Http> {
    let mut config = Config::default();
    config.limits.requests = u32::MAX;
    let daemon = Arc::new(Daemon::new(config));
    let recipe = "event = \"soft\"\nread = [\"sim.counter\"]\nengine = \"user\"\n";
    let recipe = Recipe::from_toml("fuzz", recipe).expect("a recipe");
    let run = daemon.runs.create("fuzz", &recipe).expect("a run");
    run.start().expect("a start");
    run.trigger(3).expect("triggers");
    let mut progress = run.spool().watch();
    let three = progress.wait_for(|progress| progress.next == 3);
    drop(three.await.expect("three rows"));
    run.stop().expect("an end");
    let over = progress.wait_for(|progress| progress.is_over());
    drop(over.await.expect("an end"));
    Http::new(daemon).expect("a server")
}

#[test]
fn bytes_of_rubbish_on_a_connection_are_answered_by_http_or_by_nothing() {
    const HOST: &str = "host: localhost\r\n";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{HOST}\r\n").into_bytes();
    let said = |first: &str, more: &str, body: &str| {
        let kind = "content-type: application/json";
        format!("{first} HTTP/1.1\r\n{HOST}{kind}\r\n{more}\r\n\r\n{body}").into_bytes()
    };
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    let socket = |hello: &str| {
        let mut bytes = said("GET /api/runs/1/live", upgrade, "");
        // A text, which is masked with zeros.
        bytes.extend([0x81, 0x80 | hello.len() as u8, 0, 0, 0, 0]);
        bytes.extend(hello.as_bytes());
        bytes
    };
    let right = [
        get("/api"),
        get("/api/runs/1/rows?from=1&format=csv"),
        get("/api/runs/1/trace?points=2"),
        get("/"),
        said(
            "POST /api/runs",
            "content-length: 19",
            "{\"name\": \"nothing\"}",
        ),
        said(
            "POST /api/runs/1/trigger",
            "transfer-encoding: chunked",
            "8\r\n{\"count\"\r\n4\r\n: 1}\r\n0\r\n\r\n",
        ),
        said(
            "PUT /api/recipes/scan?overwrite=true",
            "content-length: 2",
            "{}",
        ),
        socket("{\"from\": 0, \"policy\": \"every\"}"),
        socket("{\"policy\": \"latest\", \"rate\": 60}"),
    ];
    let right: Vec<&[u8]> = right.iter().map(Vec::as_slice).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let http = runtime.block_on(with_a_run());
    let router = routes::router(&http);
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    bytes(&right, |request| {
        let connection = Connection {
            place: http.counts.admit(Client::At(here)).expect("a place"),
            local: Some(here),
            stop: http.daemon.stop.clone(),
            is_secure: false,
            _waits: http.tasks.token(),
        };
        let (mut client, wire) = duplex(64 << 10);
        let served = connection::serve(router.clone(), Box::new(wire), Arc::new(connection));
        let mut answer = Vec::new();
        runtime.block_on(async {
            client.write_all(request).await.expect("room");
            client.shutdown().await.expect("an end");
            let (_, read) = tokio::join!(served, client.read_to_end(&mut answer));
            read.expect("an end");
        });
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1."),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        answer.starts_with(b"HTTP/1.1 20") || answer.starts_with(b"HTTP/1.1 101")
    });
    assert_eq!(http.counts.connections(), 0, "all of them have gone");
    assert_eq!(http.daemon.runs.list().len(), 1, "no run was made");
}
