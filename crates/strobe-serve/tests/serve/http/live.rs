// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as it goes on, by WebSocket and in points; what is lost is said.

use std::net::TcpStream;
use std::ops::Range;

use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::common::{PATIENCE, Server, assert_whole, wait_until};
use super::{SCAN, SOFT, rows};

/// All that a client was told until the connection ended.
#[derive(Default)]
struct Told {
    states: Vec<Value>,
    lost: Vec<Range<u64>>,
    binary: Vec<Vec<u8>>,
    code: Option<u16>,
}

impl Told {
    fn lost(&self) -> u64 {
        self.lost.iter().map(|range| range.end - range.start).sum()
    }
}

fn connect(server: &Server, id: u64, hello: &Value) -> WebSocket<MaybeTlsStream<TcpStream>> {
    let url = format!("ws://{}/api/runs/{id}/live", server.address);
    let (mut socket, _) = tungstenite::connect(url).expect("a WebSocket");
    if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    }
    let hello = Message::Text(hello.to_string().into());
    socket.send(hello).expect("sent");
    socket
}

fn listen(mut socket: WebSocket<MaybeTlsStream<TcpStream>>) -> Told {
    let mut told = Told::default();
    loop {
        match socket.read().expect("a message") {
            Message::Text(text) => {
                let mut said: Value = serde_json::from_str(&text).expect("JSON");
                if let Some(lost) = said["lost"].as_array() {
                    let number = |n: usize| lost[n].as_u64().expect("a number");
                    told.lost.push(number(0)..number(1));
                } else if !said["run"].is_null() {
                    told.states.push(said["run"].take());
                }
            }
            Message::Binary(bytes) => told.binary.push(bytes.to_vec()),
            Message::Close(frame) => {
                told.code = frame.map(|frame| CloseCode::into(frame.code));
                return told;
            }
            _ => {}
        }
    }
}

/// A run of these triggers, which has ended.
fn ended(server: &Server, recipe: &str, triggers: u32) -> u64 {
    let id = server.run(recipe, true);
    trigger(server, id, triggers);
    assert_eq!(
        server.post_nothing(&format!("/api/runs/{id}/stop")).status,
        200
    );
    assert_whole(&server.over(id));
    id
}

fn trigger(server: &Server, id: u64, count: u32) {
    let body = json!({"count": count});
    let answer = server.post(&format!("/api/runs/{id}/trigger"), body);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Numbers of a message of points: first row, end, missed, lost; numbers of the points' rows; and the values.
fn points(bytes: &[u8]) -> ([u64; 4], Vec<u64>, Vec<(f64, f64)>) {
    assert_eq!(bytes[0], 1);
    let columns = usize::from(bytes[1]);
    let count = u32::from_le_bytes(bytes[4..8].try_into().expect("four")) as usize;
    let words = bytes[8..].chunks_exact(8);
    let words: Vec<u64> = words
        .map(|w| u64::from_le_bytes(w.try_into().expect("eight")))
        .collect();
    let behind = 4 + 2 * count * columns;
    assert_eq!(words.len(), behind + 2 * count);
    let values = words[4..behind].chunks_exact(2);
    let values = values.map(|v| (f64::from_bits(v[0]), f64::from_bits(v[1])));
    (
        [words[0], words[1], words[2], words[3]],
        words[behind..behind + count].to_vec(),
        values.collect(),
    )
}

#[test]
fn a_client_that_wants_every_row_gets_every_row() {
    let server = Server::plain();
    let id = server.run(SCAN, false);
    let hello = json!({"from": 0, "policy": "every", "columns": ["sim.counter"]});
    let socket = connect(&server, id, &hello);
    assert_eq!(
        server.post_nothing(&format!("/api/runs/{id}/start")).status,
        200
    );
    let told = listen(socket);
    assert_eq!((told.code, told.lost()), (Some(1000), 0));
    let last = told.states.last().expect("a state");
    assert_eq!(last["end"], "complete");
    assert_whole(last);
    let got = rows(&told.binary.concat());
    assert_eq!(got, rows(&server.get(&format!("/api/runs/{id}/rows")).body));
    assert_eq!(got.len() as u64, last["rows"].as_u64().expect("a number"));
}

#[test]
fn points_cover_every_row_and_no_spike_vanishes() {
    let server = Server::plain();
    let id = ended(&server, SOFT, 20_000);
    let view = server.get(&format!("/api/runs/{id}")).json();
    let (oldest, next) = (view["oldest"].as_u64(), view["next"].as_u64());
    let all = oldest.expect("a row")..next.expect("a row");
    let hello = json!({"from": all.start, "policy": "latest", "rate": 60, "points": 10, "columns": ["sim.counter"]});
    let told = listen(connect(&server, id, &hello));
    assert_eq!(told.code, Some(1000));
    let (mut at, mut least, mut greatest) = (all.start, f64::MAX, f64::MIN);
    for message in &told.binary {
        let ([first, end, missed, lost], firsts, values) = points(message);
        assert_eq!((first, missed, lost), (at, 0, 0));
        assert!(firsts.len() <= 10 && firsts.is_sorted());
        for (low, high) in values {
            (least, greatest) = (least.min(low), greatest.max(high));
        }
        at = end;
    }
    assert_eq!(at, all.end);
    let counters = rows(&server.get(&format!("/api/runs/{id}/rows")).body);
    let values = counters.iter().map(|(_, value)| *value as f64);
    assert_eq!(least, values.clone().fold(f64::MAX, f64::min));
    assert_eq!(greatest, values.fold(f64::MIN, f64::max));
    // One row of it, finely.
    let trace = server.get(&format!(
        "/api/runs/{id}/trace?from=777&to=778&columns=sim.counter"
    ));
    let ([first, end, ..], firsts, values) = points(&trace.body);
    assert_eq!((first, end, firsts), (777, 778, vec![777]));
    let value = counters
        .iter()
        .find(|(row, _)| *row == 777)
        .map(|(_, value)| *value as f64);
    assert_eq!(values.first().map(|(low, _)| *low), value);
    let whole = server.get(&format!("/api/runs/{id}/trace?points=100"));
    let ([first, end, ..], firsts, _) = points(&whole.body);
    assert_eq!((first..end, firsts.len() <= 100), (all, true));
    assert_eq!(
        server.get(&format!("/api/runs/{id}/trace?points=0")).status,
        400
    );
}

#[test]
fn a_slow_client_that_may_lose_rows_is_told_each() {
    let server = Server::plain();
    let id = server.run(SOFT, true);
    let hello = json!({"from": 0, "policy": "skip"});
    // Does not listen yet.
    let socket = connect(&server, id, &hello);
    for _ in 0..4 {
        trigger(&server, id, 100_000);
    }
    assert_eq!(
        server.post_nothing(&format!("/api/runs/{id}/stop")).status,
        200
    );
    let view = server.over(id);
    assert_whole(&view);
    let told = listen(socket);
    assert_eq!(told.code, Some(1000));
    let got = rows(&told.binary.concat());
    let lost = |row: u64| told.lost.iter().any(|range| range.contains(&row));
    assert!(got.iter().all(|(row, _)| !lost(*row)));
    assert_eq!(
        got.len() as u64 + told.lost(),
        view["rows"].as_u64().expect("a number")
    );
}

#[test]
fn rows_that_are_not_there_any_more_are_said_in_the_way_that_was_asked_for() {
    let server = Server::plain();
    // So wide that the memory has not room for all of them.
    let wide = vec!["\"sim.counter\""; 100].join(", ");
    let recipe = format!("event = \"soft\"\nread = [{wide}]\nengine = \"user\"\nring = 32768\n");
    // As many as the ring holds: it loses none.
    let id = ended(&server, &recipe, 32_000);
    let view = server.get(&format!("/api/runs/{id}")).json();
    let oldest = view["oldest"].as_u64().expect("a row");
    assert!(oldest > 0, "{view}");
    let refused = server.get(&format!("/api/runs/{id}/rows?from=0&on_loss=fail"));
    assert_eq!(
        (refused.status, &refused.json()["lost"]),
        (410, &json!([0, oldest]))
    );
    let told = listen(connect(&server, id, &json!({"from": 0, "policy": "every"})));
    assert_eq!(
        (told.code, told.lost.first()),
        (Some(4000), Some(&(0..oldest)))
    );
    let path = format!(
        "/api/runs/{id}/rows?from=0&to={}&columns=sim.counter",
        oldest + 5
    );
    let reported = server.get(&path);
    assert_eq!(reported.header("strobe-first"), oldest.to_string());
    assert_eq!(reported.header("strobe-lost"), oldest.to_string());
    let numbers: Vec<u64> = rows(&reported.body).iter().map(|(row, _)| *row).collect();
    assert_eq!(numbers, (oldest..oldest + 5).collect::<Vec<_>>());
    // All that was asked for is lost.
    let none = server.get(&format!("/api/runs/{id}/rows?from=0&to={oldest}"));
    assert!(rows(&none.body).is_empty());
}

#[test]
fn a_client_that_asks_for_nonsense_is_told_why() {
    let server = Server::plain();
    let id = server.run(SOFT, false);
    for hello in [
        json!({"policy": "some"}),
        json!({"columns": ["no.channel"]}),
        json!(7),
    ] {
        assert_eq!(
            listen(connect(&server, id, &hello)).code,
            Some(4001),
            "{hello}"
        );
    }
    let plain = server.get(&format!("/api/runs/{id}/live"));
    assert!([400, 426].contains(&plain.status), "{}", plain.text());
    assert!(plain.json()["remedy"].is_string());
}

#[test]
fn lateness_is_counted_row_by_row_where_a_row_is_due() {
    let server = Server::plain();
    let id = server.run(SCAN, true);
    let made = server.over(id)["rows"].clone();
    let late = server.get(&format!("/api/runs/{id}/late?bins=20")).json();
    assert_eq!((&late["rows"], late["unit"].as_str()), (&made, Some("ns")));
    let bins = late["bins"].as_array().expect("bins");
    let sum: u64 = bins
        .iter()
        .map(|bin| bin[2].as_u64().expect("a number"))
        .sum();
    assert_eq!(json!(sum), made);
    let soft = server.run(SOFT, true);
    assert_eq!(
        server.get(&format!("/api/runs/{soft}/late")).json(),
        Value::Null
    );
}

#[test]
fn clients_that_are_stuck_or_killed_harm_nobody() {
    let server = Server::plain();
    let id = server.run(SOFT, true);
    let get = format!("GET /api/runs/{id}/rows HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let stuck: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).expect("a connection");
            std::io::Write::write_all(&mut stream, get.as_bytes()).expect("sent");
            stream
        })
        .collect();
    let hello = json!({"from": 0, "policy": "every"});
    let sockets: Vec<_> = (0..5).map(|_| connect(&server, id, &hello)).collect();
    wait_until("they read", || {
        let readers = server.get(&format!("/api/runs/{id}")).json();
        readers["readers"].as_u64() >= Some(15)
    });
    for _ in 0..5 {
        trigger(&server, id, 20_000);
    }
    drop(sockets);
    let good = server.url(&format!("/api/runs/{id}/rows"));
    let good =
        std::thread::spawn(move || super::common::Answer::of(super::agent().get(good).call()));
    assert_eq!(
        server.post_nothing(&format!("/api/runs/{id}/stop")).status,
        200
    );
    let view = server.over(id);
    assert_whole(&view);
    let got = rows(&good.join().expect("an answer").body);
    let number = |name: &str| view[name].as_u64().expect("a number");
    assert_eq!(got.len() as u64, number("rows") - number("lost"));
    drop(stuck);
    wait_until("nobody reads", || {
        server.get(&format!("/api/runs/{id}")).json()["readers"] == 0
    });
}

#[test]
fn an_answer_that_the_end_of_the_daemon_cuts_off_is_not_as_if_it_were_whole() {
    let server = Server::plain();
    let id = server.run(SOFT, true);
    trigger(&server, id, 10);
    let url = server.url(&format!("/api/runs/{id}/rows"));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let follower = std::thread::spawn(move || {
        let answer = super::agent().get(url).call();
        begun.send(()).expect("heard");
        super::common::Answer::of(answer)
    });
    has_begun.recv().expect("it begins");
    let socket = connect(&server, id, &json!({"from": 0, "policy": "every"}));
    wait_until("they read", || {
        let view = server.get(&format!("/api/runs/{id}")).json();
        view["readers"].as_u64() >= Some(2)
    });
    drop(server);
    assert_eq!(listen(socket).code, Some(1001));
    assert!(follower.join().expect("an answer").torn);
}
