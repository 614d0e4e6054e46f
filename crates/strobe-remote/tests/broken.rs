// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers that break off, fall silent, or tell no truth: what comes of it is an error that says before which row.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::spawn;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use strobe::block::{Block, Place};
use strobe::channel::Type;
use strobe::error::Error;
use strobe::info::{End, RunInfo};
use strobe::samples::{channel, info};
use strobe::source::RowSource;
use strobe_files::sink::arrow::ArrowStream;
use strobe_remote::rows::{Begin, Part, RemoteRows};
use strobe_remote::server::{Access, Server};

fn run() -> RunInfo {
    info(vec![channel("sim.counter", Type::U64)])
}

/// The run as the server shows it.
fn view(state: &str, end: Option<&str>, rows: u64) -> Value {
    json!({
        "id": 1, "name": "a", "own": true, "state": state, "info": run(), "rows": rows, "triggers": rows + 2,
        "missed": 2, "missed_by": {"overrun": 2}, "skipped": 0, "errors": 0, "lost": 0, "oldest": 0, "next": rows,
        "end": end, "elapsed_s": 1.5, "spool": {"bytes": 1, "error": null}, "readers": 1,
    })
}

/// Rows of these numbers, which follow one another, as a part of a stream.
fn rows(stream: &mut ArrowStream, numbers: std::ops::Range<u64>) -> Vec<u8> {
    let words = numbers.flat_map(|n| [n, n, 1000 * n, 0, n]);
    let words: Vec<u64> = words.collect();
    let count = words.len() / 5;
    let block = Block::new(
        Arc::new(run()),
        Arc::new(words),
        0..count,
        (0, 0),
        &mut Some(Place::START),
    );
    stream.batch(&block).expect("a batch")
}

/// Rows 10 to 14 and 20 to 24, without an end.
fn stream() -> (ArrowStream, Vec<u8>) {
    let mut stream = ArrowStream::new(&run(), None).expect("a stream");
    let mut bytes = stream.schema();
    bytes.extend(rows(&mut stream, 10..15));
    bytes.extend(rows(&mut stream, 20..25));
    (stream, bytes)
}

/// What a server does when it has sent rows.
#[derive(Clone, Copy)]
enum Then {
    /// It says that this was all.
    End,
    /// The connection ends.
    Close,
    /// Nothing, as long as the client is there.
    Nothing,
}

/// A server that knows one run, and gives these bytes as its rows.
fn serve(view: Value, bytes: Vec<u8>, then: Then) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            if request(&mut client).contains("/rows") {
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nstrobe-first: 10\r\nstrobe-lost: 4\r\n\r\n";
                let _ = write!(client, "{head}{:x}\r\n", bytes.len());
                let _ = client.write_all(&bytes);
                match then {
                    Then::End => drop(client.write_all(b"\r\n0\r\n\r\n")),
                    Then::Close => {}
                    Then::Nothing => drop(client.read(&mut [0])),
                }
            } else {
                let body = view.to_string();
                let head = "HTTP/1.1 200 OK\r\nconnection: close";
                let _ = write!(
                    client,
                    "{head}\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
        }
    });
    let access = match then {
        Then::Nothing => Access {
            patience: Duration::from_secs(2),
            ..Access::default()
        },
        _ => Access::default(),
    };
    Server::at(&url, &access).expect("a server")
}

fn request(client: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|n| n == 1) {
        text.push(byte[0]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A block: its first row, how many there are, and how many were lost before them.
type Came = (u64, usize, u64);

/// The blocks that came, and what came last.
fn read(rows: &mut RemoteRows) -> (Vec<Came>, Result<(), Error>) {
    let mut blocks = Vec::new();
    loop {
        match rows.next(Duration::from_secs(1)) {
            Ok(Some(block)) if block.is_empty() => {}
            Ok(Some(block)) => blocks.push((block.first(), block.len(), block.lost())),
            Ok(None) => return (blocks, Ok(())),
            Err(error) => return (blocks, Err(error)),
        }
    }
}

const CAME: [Came; 2] = [(10, 5, 4), (20, 5, 5)];

fn part() -> Part {
    Part::from(Begin::Row(6))
}

fn assert_torn(server: &Server, mut rows: RemoteRows, why: &str) {
    let (blocks, end) = read(&mut rows);
    assert_eq!(blocks, CAME);
    let error = end.expect_err("it was cut off");
    assert_eq!(error.object(), format!("{}: run 1", server.url()));
    let reason = error.reason();
    assert!(
        reason.starts_with("the rows were cut off before row 25: "),
        "{reason}"
    );
    assert!(reason.contains(why), "{reason}");
    assert!(error.remedy().is_some());
    assert!(rows.is_torn() && rows.totals().is_none());
    assert!(matches!(rows.next(Duration::ZERO), Ok(None)), "that is all");
}

#[test]
fn all_rows_and_the_account_come_of_a_server_that_keeps_to_it() {
    let (mut stream, mut bytes) = stream();
    bytes.extend(stream.end().expect("an end"));
    let server = serve(view("stopped", Some("stopped"), 30), bytes, Then::End);
    let run = server.run(1).expect("a run");
    let mut rows = run.rows(part());
    let (blocks, end) = read(&mut rows);
    assert_eq!((blocks.as_slice(), end.is_ok()), (&CAME[..], true));
    let totals = rows.totals().expect("an account");
    // Of rows 6 to 29 ten came.
    assert_eq!((totals.rows, totals.lost, totals.missed()), (30, 14, 2));
    assert_eq!((totals.end, totals.missed_by[0]), (End::Stopped, 2));
    assert_eq!(totals.end_time_ns, 1_500_001_000);
    assert!(!rows.is_torn());
}

#[test]
fn the_descriptor_is_ready_when_there_is_something_to_fetch_and_not_when_all_was_fetched() {
    let server = serve(view("running", None, 30), stream().1, Then::Nothing);
    let mut rows = server.run(1).expect("a run").rows(part());
    let ready = |rows: &RemoteRows, wait: Duration| {
        let fd = rows.ready().expect("a descriptor");
        let wait = wait.try_into().expect("a time");
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&wait)).expect("it can be waited for") > 0
    };
    let mut came = Vec::new();
    let error = loop {
        assert!(ready(&rows, Duration::from_secs(60)), "{came:?}");
        match rows.next(Duration::ZERO) {
            Ok(Some(block)) if block.is_empty() => {}
            Ok(Some(block)) => {
                came.push((block.first(), block.len(), block.lost()));
                if came.len() == CAME.len() {
                    // Nothing more is there, and nothing comes before its patience ends.
                    let block = rows.next(Duration::ZERO).expect("no rows").expect("no end");
                    assert!(block.is_empty() && !ready(&rows, Duration::ZERO));
                }
            }
            Ok(None) => panic!("{came:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(came, CAME);
    assert!(error.to_string().contains("does not answer"), "{error}");
}

#[test]
fn a_connection_that_breaks_off_is_an_error() {
    let (mut stream, whole) = stream();
    let server = serve(view("running", None, 30), whole.clone(), Then::Close);
    assert_torn(
        &server,
        server.run(1).expect("a run").rows(part()),
        "closed the connection",
    );
    let mut half = whole.clone();
    let next = rows(&mut stream, 25..30);
    half.extend(&next[..next.len() / 2]);
    let server = serve(view("running", None, 30), half.clone(), Then::Close);
    assert_torn(
        &server,
        server.run(1).expect("a run").rows(part()),
        "closed the connection",
    );
    let server = serve(view("running", None, 30), half, Then::End);
    assert_torn(
        &server,
        server.run(1).expect("a run").rows(part()),
        "ends in the middle of a row",
    );
}

#[test]
fn a_silent_server_is_given_up_after_a_while() {
    let (_, bytes) = stream();
    let server = serve(view("running", None, 30), bytes, Then::Nothing);
    assert_torn(
        &server,
        server.run(1).expect("a run").rows(part()),
        "does not answer",
    );
}

#[test]
fn rubbish_is_an_error_and_no_panic() {
    let (_, bytes) = stream();
    for (bytes, why) in [
        (b"no stream of anything\r\n".to_vec(), "run 1"),
        (Vec::new(), "run 1"),
        (vec![0xff; 4096], "run 1"),
        (bytes[..100].to_vec(), "run 1"),
    ] {
        let server = serve(view("running", None, 30), bytes, Then::End);
        let (blocks, end) = read(&mut server.run(1).expect("a run").rows(part()));
        assert!(blocks.is_empty());
        let error = end.expect_err("rubbish").to_string();
        assert!(
            error.contains(server.url()) && error.contains(why),
            "{error}"
        );
    }
    for wrong in [json!([]), json!({"id": 1}), json!("run")] {
        let server = serve(wrong, Vec::new(), Then::End);
        let error = server.run(1).err().expect("rubbish").to_string();
        assert!(
            error.contains("not understood") && error.contains(server.url()),
            "{error}"
        );
    }
}

#[test]
fn a_run_that_has_not_started_is_waited_for() {
    let (mut stream, mut bytes) = stream();
    bytes.extend(stream.end().expect("an end"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (start, started): (_, Receiver<()>) = mpsc::channel();
    spawn(move || {
        let mut state = "ready";
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let request = request(&mut client);
            if started.try_recv().is_ok() {
                state = "stopped";
            }
            let body = match request.contains("/rows") {
                true => {
                    assert_eq!(state, "stopped", "rows are not asked for before");
                    bytes.clone()
                }
                false => view(state, (state == "stopped").then_some("stopped"), 25)
                    .to_string()
                    .into_bytes(),
            };
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\nstrobe-first: 10";
            let _ = write!(client, "{head}\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = client.write_all(&body);
        }
    });
    let server = Server::at(&url, &Access::default()).expect("a server");
    let mut rows = server.run(1).expect("a run").rows(part());
    let nothing = rows.next(Duration::from_millis(300)).expect("patience");
    assert!(nothing.is_some_and(|block| block.is_empty()));
    start.send(()).expect("heard");
    assert_eq!(read(&mut rows).0, CAME);
}
