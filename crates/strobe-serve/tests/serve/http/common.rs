// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon of a test, and a client of it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strobe_serve::config::Config;
use strobe_serve::daemon::Daemon;
use strobe_serve::http::Http;

/// Only reached when something is wrong.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until it is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A daemon with HTTP on a port of the system's choice.
pub struct Server {
    pub address: SocketAddr,
    pub daemon: Arc<Daemon>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// With this configuration.
    pub fn new(config: Config) -> Server {
        let daemon = Arc::new(Daemon::new(config));
        let (say, said) = std::sync::mpsc::channel();
        let served = Arc::clone(&daemon);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = { runtime }.worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let http = Http::new(served).expect("a server");
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
                let listener = listener.expect("a port");
                say.send(listener.local_addr().expect("an address"))
                    .expect("said");
                http.serve(listener.into()).await.expect("served");
            });
        });
        Server {
            address: said.recv().expect("an address"),
            daemon,
            thread: Some(thread),
        }
    }

    /// Has it end.
    pub fn end(&self) {
        self.daemon.stop.cancel();
    }

    /// One that only says what every one says.
    pub fn plain() -> Server {
        Server::new(Config::default())
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What the server says to these bytes.
    pub fn raw(&self, request: &str) -> String {
        let stream = std::net::TcpStream::connect(self.address).expect("a connection");
        said(stream, request)
    }

    pub fn get(&self, path: &str) -> Answer {
        Answer::of(agent().get(self.url(path)).call())
    }

    pub fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(
            agent()
                .post(self.url(path))
                .content_type("application/json")
                .send(body.to_string()),
        )
    }

    pub fn post_nothing(&self, path: &str) -> Answer {
        Answer::of(agent().post(self.url(path)).send_empty())
    }

    pub fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(
            agent()
                .put(self.url(path))
                .content_type("application/json")
                .send(body.to_string()),
        )
    }

    pub fn delete(&self, path: &str) -> Answer {
        Answer::of(agent().delete(self.url(path)).call())
    }

    /// A run of a recipe.
    pub fn run(&self, recipe: &str, start: bool) -> u64 {
        let made = self.post("/api/runs", json!({"recipe": recipe, "start": start}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_u64().expect("a number")
    }

    /// The run, once it is over.
    pub fn over(&self, id: u64) -> Value {
        let mut view = Value::Null;
        wait_until("the run is over", || {
            view = self.get(&format!("/api/runs/{id}")).json();
            !view["end"].is_null()
        });
        view
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.daemon.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server's thread");
        }
    }
}

/// A client that is told everything.
pub fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder();
    config
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

/// All that comes back on a connection.
pub fn said(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = Vec::new();
    // A server that does not want to hear it may cut it off.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// All of an answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
    /// Whether it was cut off.
    pub torn: bool,
}

impl Answer {
    pub fn of(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
        let mut answer = answer.expect("an answer");
        let mut body = Vec::new();
        let torn = answer
            .body_mut()
            .as_reader()
            .read_to_end(&mut body)
            .is_err();
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body,
            torn,
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).expect("a header");
        value.to_str().expect("text")
    }
}

/// Triggers = rows + missed + skipped.
pub fn assert_whole(view: &Value) {
    let number = |name: &str| view[name].as_u64().expect("a number");
    let sum = number("rows") + number("missed") + number("skipped");
    assert_eq!(number("triggers"), sum, "{view}");
}
