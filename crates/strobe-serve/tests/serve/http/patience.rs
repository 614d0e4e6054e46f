// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that begin and do not go on: each has its place for a while, and no longer.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use strobe_files::recipe::Recipe;
use strobe_serve::config::Config;

use super::SOFT;
use super::common::{PATIENCE, Server, wait_until};

const ASK: &str = "GET /api HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// A server whose patience is short.
fn hasty() -> Server {
    let mut config = Config::default();
    config.limits.patience = Duration::from_secs(1);
    config.limits.per_client = 8;
    Server::new(config)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("patience");
    stream
}

/// Begins with this, and then says one byte after the other, until it is cut off; what it hears.
fn dripping(server: &Server, begin: &str, byte: u8) -> String {
    let mut stream = connect(server);
    stream.write_all(begin.as_bytes()).expect("a beginning");
    let listener = stream.try_clone().expect("the other half");
    let heard = std::thread::spawn(move || {
        let (mut listener, mut heard) = (listener, Vec::new());
        let read = listener.read_to_end(&mut heard);
        let is_late = |e: &std::io::Error| matches!(e.kind(), ErrorKind::WouldBlock);
        assert!(!read.is_err_and(|e| is_late(&e)), "it is never cut off");
        String::from_utf8_lossy(&heard).into_owned()
    });
    while !heard.is_finished() && stream.write_all(&[byte]).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    heard.join().expect("its words")
}

#[test]
fn who_never_comes_to_the_end_of_a_request_is_cut_off() {
    let server = hasty();
    let mut silent = connect(&server);
    let mut heard = Vec::new();
    silent.read_to_end(&mut heard).expect("an end");
    let head = dripping(&server, "GET /api HTTP/1.1\r\nhost: localhost\r\nx: ", b'x');
    assert!(!head.contains("200 OK"), "{head}");
    let begin = "POST /api/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 100000\r\n\r\n{";
    let mut body = String::new();
    // Whose head comes late is cut off without a word, and a busy machine may be late with it.
    wait_until("it is told why", || {
        body = dripping(&server, begin, b' ');
        !body.is_empty()
    });
    assert!(body.starts_with("HTTP/1.1 408"), "{body}");
    assert!(body.contains("connection: close"), "{body}");
    wait_until("others are served", || {
        server.raw(ASK).starts_with("HTTP/1.1 200")
    });
}

#[test]
fn a_body_that_comes_after_its_head_costs_nobody_the_connection() {
    let server = Server::plain();
    let recipe = Recipe::from_toml("soft", SOFT).expect("a recipe");
    let run = server.daemon.runs.create("soft", &recipe).expect("a run");
    let mut stream = connect(&server);
    // Of these only POST may have a body that is kept; none is wanted here.
    for request in [
        format!("POST /api/runs/{}/start", run.id()),
        format!("POST /api/runs/{}/stop", run.id()),
        "POST /nothing".to_owned(),
        "GET /api".to_owned(),
        "DELETE /api/runs/nothing".to_owned(),
        "OPTIONS /api".to_owned(),
    ] {
        let head = format!("{request} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("a connection");
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(b"{}").expect("a connection");
        let mut begin = [0; 9];
        stream.read_exact(&mut begin).expect(&request);
        assert_eq!(&begin, b"HTTP/1.1 ", "{request}");
        skip_answer(&mut stream);
    }
}

#[test]
fn a_body_that_is_not_as_its_head_says_is_an_error_of_the_client() {
    let server = Server::plain();
    let head = "POST /api/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let answer = server.raw(&format!("{head}this is no length\r\n"));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

/// Reads the rest of an answer.
fn skip_answer(stream: &mut TcpStream) {
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        heard.extend(byte);
    }
    let head = String::from_utf8_lossy(&heard).into_owned();
    let length = head
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next());
    let length: usize = length
        .and_then(|length| length.parse().ok())
        .expect("a length");
    stream.read_exact(&mut vec![0; length]).expect("a body");
}

#[test]
fn connections_that_were_only_begun_give_their_places_back() {
    let server = hasty();
    let begun: Vec<TcpStream> = (0..50).map(|_| connect(&server)).collect();
    wait_until("there is a place", || {
        server.raw(ASK).starts_with("HTTP/1.1 200")
    });
    drop(begun);
}

#[test]
fn a_head_that_is_too_long_is_not_kept_in_memory() {
    let server = Server::plain();
    let head = format!(
        "GET /api HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let answer = server.raw(&head);
    assert!(!answer.contains("200 OK"), "{answer}");
    let many = "x: y\r\n".repeat(10_000);
    let answer = server.raw(&format!(
        "GET /api HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"
    ));
    assert!(!answer.contains("200 OK"), "{answer}");
    wait_until("others are served", || {
        server.raw(ASK).starts_with("HTTP/1.1 200")
    });
}

#[test]
fn a_websocket_that_says_nothing_is_closed_with_the_reason() {
    let server = hasty();
    let recipe = Recipe::from_toml("soft", SOFT).expect("a recipe");
    let run = server.daemon.runs.create("soft", &recipe).expect("a run");
    let url = format!("ws://{}/api/runs/{}/live", server.address, run.id());
    let mut connected = None;
    // A busy machine may be late with its request, too.
    wait_until("a connection", || {
        connected = tungstenite::connect(&url).ok();
        connected.is_some()
    });
    let (mut socket, _) = connected.expect("a connection");
    let error = socket.read().expect("an error").into_text();
    assert!(error.expect("a text").contains("no message came within 1s"));
    assert!(socket.read().expect("the end").is_close());
}

#[test]
fn who_takes_nothing_of_the_answers_is_cut_off() {
    let mut config = Config::default();
    config.limits.patience = Duration::from_secs(1);
    (config.limits.per_client, config.limits.requests) = (1, u32::MAX);
    let server = Server::new(config);
    let mut stuck = connect(&server);
    let asking = stuck.try_clone().expect("the other half");
    // More than a connection's buffers hold, in each direction.
    let asking = std::thread::spawn(move || {
        let request = "GET /page.js HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
        let mut asking = asking;
        while asking.write_all(request.as_bytes()).is_ok() {}
    });
    wait_until("there is a place", || {
        server.raw(ASK).starts_with("HTTP/1.1 200")
    });
    asking.join().expect("it was cut off");
    let _ = stuck.read(&mut [0]);
}

#[test]
fn what_is_only_half_said_does_not_hold_up_the_end_of_the_daemon() {
    let server = Server::plain();
    let mut head = connect(&server);
    let begun = b"GET /api HTTP/1.1\r\nhost: local";
    head.write_all(begun).expect("a beginning");
    let mut body = connect(&server);
    let begun = "POST /api/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 100000\r\nexpect: 100-continue\r\n\r\n";
    body.write_all(begun.as_bytes()).expect("a beginning");
    // It is waited for.
    let mut answer = [0; 25];
    body.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.end();
    let mut heard = String::new();
    body.read_to_string(&mut heard).expect("an answer");
    assert!(heard.starts_with("HTTP/1.1 503"), "{heard}");
    // Some bytes may have been on their way.
    let _ = head.read_to_end(&mut Vec::new());
}
