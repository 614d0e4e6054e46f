// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus, and who uses it.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::Info;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use strobe::error::Words;
use strobe::stop::Stop;
use strobe_files::recipe::Recipe;
use strobe_files::sink::Existing;
use strobe_files::summary::Summary;
use strobe_serve::config::Config;
use strobe_serve::daemon::Daemon;
use strobe_serve::nats::publish;
use strobe_serve::nats::subscribe::{Options, Outcome, subscribe};
use strobe_serve::served_run::ServedRun;

pub const PATIENCE: Duration = Duration::from_secs(180);

/// A program that does not outlive the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("a program"))
    }

    pub fn wait(mut self, patience: Duration) -> ExitStatus {
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.0.try_wait().expect("its state") {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_port() -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    port.expect("a port").port()
}

pub fn bus(folder: &Path, port: u16) -> Running {
    let mut command = Command::new("nats-server");
    command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]);
    Running::start(
        command
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
}

pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A bus, and a daemon in this process that is yet to publish to it.
pub struct Lab {
    pub folder: tempfile::TempDir,
    pub url: String,
    pub daemon: Arc<Daemon>,
    pub context: Context,
    _server: Running,
}

impl Lab {
    /// With this in the configuration, before the words about NATS, and behind them.
    pub async fn new(before: &str, behind: &str) -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let server = bus(&folder.path().join("store"), port);
        let url = format!("nats://127.0.0.1:{port}");
        let nats = format!("[publish.nats]\nurl = \"{url}\"\nmachine = \"here\"\n");
        let config: Config =
            toml::from_str(&format!("{before}\n{nats}{behind}")).expect("a configuration");
        let options = ConnectOptions::new().retry_on_initial_connect();
        let client = options.connect(&url).await.expect("a client");
        let context = jetstream::new(client);
        Lab {
            folder,
            url,
            daemon: Arc::new(Daemon::new(config)),
            context,
            _server: server,
        }
    }

    /// A run that has started.
    pub fn run(&self, name: &str, recipe: &str) -> Arc<ServedRun> {
        let recipe = format!("read = [\"sim.counter\"]\nengine = \"user\"\n{recipe}");
        let recipe = Recipe::from_toml(name, &recipe).expect("a recipe");
        let served = self.daemon.runs.create(name, &recipe).expect("a run");
        served.start().expect("a start");
        served
    }

    pub fn publish(&self) {
        let config = self.daemon.config.publish.nats.clone().expect("words");
        let daemon = Arc::clone(&self.daemon);
        tokio::spawn(async move { publish::serve(daemon, config).await });
    }

    /// The stream, once it is there.
    pub async fn stream(&self) -> Stream {
        let found = async || self.context.get_stream("STROBE").await.is_ok();
        until("the stream", found).await;
        self.context.get_stream("STROBE").await.expect("a stream")
    }

    pub fn file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a name").to_owned()
    }

    pub async fn subscribe(&self, run: &str, file: &str) -> Outcome {
        self.try_to_take(run, file).await.expect("rows")
    }

    pub async fn try_to_take(&self, run: &str, file: &str) -> Result<Outcome, Words> {
        let options = self.options(run, file);
        let stop = Stop::default();
        let done = tokio::time::timeout(PATIENCE, subscribe(options, &stop)).await;
        done.expect("an end")
    }

    /// What a subscriber is told that takes this run into this file.
    pub fn options(&self, run: &str, file: &str) -> Options {
        Options {
            url: self.url.clone(),
            stream: "STROBE".to_owned(),
            runs: vec![run.to_owned()],
            join: None,
            name: "test".to_owned(),
            sinks: vec![self.file(file)],
            existing: Existing::Refuse,
        }
    }

    /// The same, with rows.
    pub async fn take(&self, run: &str, file: &str) -> Summary {
        match self.subscribe(run, file).await {
            Outcome::Recorded(summary, _) => *summary,
            Outcome::TakenBefore | Outcome::Interrupted => panic!("no rows"),
        }
    }

    /// The numbers of the rows in a file.
    pub fn rows(&self, file: &str) -> Vec<u64> {
        numbers(&std::fs::read_to_string(self.file(file)).expect("rows"))
    }
}

/// The numbers of the rows in this text, as far as its lines are whole.
pub fn numbers(text: &str) -> Vec<u64> {
    let lines = text.split_inclusive('\n').skip(1);
    let lines = lines.filter(|line| line.ends_with('\n'));
    let number = |line: &str| line.split(',').next().and_then(|row| row.parse().ok());
    lines.map(|line| number(line).expect("a number")).collect()
}

pub async fn until_over(served: &ServedRun) {
    until("the end of the run", async || served.progress().is_over()).await;
}

/// What the bus knows of the only subscriber, if there is one.
pub async fn subscriber(stream: &Stream) -> Option<Info> {
    stream.consumers().next().await?.ok()
}
