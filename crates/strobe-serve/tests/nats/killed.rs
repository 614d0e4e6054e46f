// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows by way of a bus that is killed again and again: each arrives, and none twice.
//!
//! `STROBE_NATS_ROWS` and `STROBE_NATS_KILLS` say how many rows each of two publishers has, and how often the server is
//! killed; `make soak` has more of both.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(180);
const RATE: u64 = 5000;

/// A program that does not outlive the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("a program"))
    }

    fn wait(mut self, rows: u64) -> ExitStatus {
        let until = Instant::now() + PATIENCE + Duration::from_secs(3 * rows / RATE);
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

fn number(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

fn bus(folder: &Path, port: u16) -> Running {
    let mut command = Command::new("nats-server");
    command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]);
    Running::start(
        command
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
}

fn publisher(folder: &Path, name: &str, rows: u64, port: u16) -> Running {
    let place = folder.join(name);
    std::fs::create_dir(&place).expect("a folder");
    let recipe = format!(
        "event = \"timer:{RATE}Hz\"\nread = [\"sim.counter\"]\nengine = \"user\"\nrows = {rows}\n"
    );
    std::fs::write(place.join(format!("{name}.toml")), recipe).expect("a recipe");
    let config = format!(
        "data = \"data\"\nrecipes = \".\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n\
         [[run]]\nrecipe = \"{name}.toml\"\nstart = true\n\
         [publish.nats]\nurl = \"nats://127.0.0.1:{port}\"\nmachine = \"{name}\"\n"
    );
    let path = place.join("serve.toml");
    std::fs::write(&path, config).expect("a configuration");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    Running::start(command.arg(path).stderr(Stdio::null()))
}

fn subscriber(folder: &Path, name: &str, port: u16) -> (Running, PathBuf) {
    let sink = folder.join(format!("{name}.csv"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    command.args(["subscribe", &format!("nats://127.0.0.1:{port}"), "-o"]);
    command.arg(&sink).args(["--run", name, "--name", name]);
    // The machine may be too busy for each trigger.
    command.arg("--allow-loss").stderr(Stdio::null());
    (Running::start(&mut command), sink)
}

#[test]
fn two_publishers_rows_arrive_once_each_though_the_bus_is_killed_again_and_again() {
    let rows = number("STROBE_NATS_ROWS", 25_000);
    let kills = number("STROBE_NATS_KILLS", 5);
    let folder = tempfile::tempdir().expect("a folder");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.expect("a port").port();
    // Publishers and subscribers wait for it.
    let names = ["alpha", "beta"];
    let publishers = names.map(|name| publisher(folder.path(), name, rows, port));
    let subscribers = names.map(|name| subscriber(folder.path(), name, port));
    let store = folder.path().join("store");
    let mut server = bus(&store, port);
    let pause = Duration::from_secs(rows / RATE) / (kills as u32 + 1);
    for kill in 0..kills {
        std::thread::sleep(pause.max(Duration::from_millis(500)));
        drop(server);
        // Sometimes it is away for longer than a message waits to be sent.
        std::thread::sleep(Duration::from_millis(100 * (kill % 5)));
        server = bus(&store, port);
    }
    for (subscriber, sink) in subscribers {
        assert!(subscriber.wait(rows).success());
        let text = std::fs::read_to_string(&sink).expect("rows");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let mut counted = 0;
        for line in lines {
            let row = line.split(',').next().and_then(|row| row.parse().ok());
            assert_eq!(row, Some(counted), "{}", sink.display());
            counted += 1;
        }
        assert_eq!(counted, rows, "{}", sink.display());
    }
    drop((publishers, server));
}
