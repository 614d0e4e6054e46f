// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program: how it starts, how it ends, and what is left when it is killed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

mod full_disk;
mod killed;

const PATIENCE: Duration = Duration::from_secs(120);

/// The program, and where it listens.
struct Daemon {
    child: Child,
    url: String,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    command.arg("--data").arg(data);
    command.args(["--http", "127.0.0.1:0"]);
    command
}

fn start(mut command: Command) -> Daemon {
    let child = (command.stderr(Stdio::piped()).spawn()).expect("the program");
    // From here on it is ended, whatever happens.
    let mut daemon = Daemon {
        child,
        url: String::new(),
    };
    let mut said = BufReader::new(daemon.child.stderr.take().expect("its words"));
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(
            said.read_line(&mut line).expect("its words"),
            0,
            "it has ended"
        );
        if let Some((_, url)) = line.trim_end().split_once("strobe serve: http://") {
            daemon.url = format!("http://{url}");
            // What it says later is in nobody's way.
            std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
            return daemon;
        }
    }
}

impl Daemon {
    fn get(&self, path: &str) -> String {
        let answer = ureq::get(format!("{}{path}", self.url)).call();
        let mut answer = answer.expect("an answer");
        answer.body_mut().read_to_string().expect("text")
    }

    fn make_run(&self) {
        self.make(1000);
    }

    /// A run of so many triggers a second; its number.
    fn make(&self, rate: u64) -> u64 {
        // A busy machine may take the rows from the ring late; none is to be lost there.
        let recipe = format!(
            "event = \"timer:{rate}Hz\"\nread = [\"sim.counter\"]\nengine = \"user\"\nring = 65536\n"
        );
        let body = format!("{{\"recipe\": {recipe:?}}}");
        let request = ureq::post(format!("{}/api/runs", self.url));
        let request = request.header("content-type", "application/json");
        let mut made = request.send(body).expect("a run");
        let made = made.body_mut().read_to_string().expect("text");
        let run: Value = serde_json::from_str(&made).expect("a run");
        run["id"].as_u64().expect("its number")
    }

    /// A number of the first run.
    fn number(&self, name: &str) -> u64 {
        let run: Value = serde_json::from_str(&self.get("/api/runs/1")).expect("a run");
        number(&run, name)
    }

    /// Stops the first run.
    fn stop(&self) {
        let request = ureq::post(format!("{}/api/runs/1/stop", self.url));
        request.send_empty().expect("to stop the run");
    }

    /// Waits until this is so of a run, and answers it.
    fn wait(&self, id: u64, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.get(&format!("/api/runs/{id}"));
            let run: Value = serde_json::from_str(&text).expect("a run");
            if so(&run) {
                return run;
            }
            assert!(Instant::now() < until, "not in time: {what}: {run}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait_for_rows(&self, rows: u64) {
        self.wait(1, "rows", |run| number(run, "next") >= rows);
    }

    fn wait_for_written(&self, id: u64, rows: u64) {
        self.wait(id, "what is written", |run| {
            number(&run["spool"], "written") >= rows
        });
    }

    fn ended(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill").success());
        self.child.wait().expect("its end")
    }
}

/// A number of what the daemon says.
fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name}: {of}"))
}

/// The numbers of all rows of the first run, as lines of text.
fn rows(daemon: &Daemon) -> Vec<u64> {
    rows_of(daemon, 1)
}

fn rows_of(daemon: &Daemon, id: u64) -> Vec<u64> {
    let text = daemon.get(&format!(
        "/api/runs/{id}/rows?format=csv&columns=sim.counter"
    ));
    let lines = text.lines().skip(1);
    let first = lines.map(|line| line.split(',').next().unwrap_or_default());
    first.map(|row| row.parse().expect("a number")).collect()
}

#[test]
fn a_daemon_that_is_killed_leaves_its_rows_to_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = start(command(folder.path()));
    daemon.make_run();
    daemon.wait_for_rows(500);
    daemon.ended("-KILL");
    let daemon = start(command(folder.path()));
    let next = daemon.number("next");
    assert_eq!(rows(&daemon), (0..next).collect::<Vec<_>>());
    let run = daemon.get("/api/runs/1");
    assert!(run.contains("the daemon ended before the run"), "{run}");
    // The next run has another number, and its own rows.
    daemon.make_run();
    assert!(daemon.get("/api/runs/2").contains("\"id\":2"));
}

#[test]
fn one_that_is_told_to_end_ends_its_runs_with_an_account_and_no_row_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = start(command(folder.path()));
    daemon.make_run();
    daemon.wait_for_rows(300);
    assert_eq!(daemon.ended("-TERM").code(), Some(0));
    let daemon = start(command(folder.path()));
    let made = daemon.number("rows");
    assert_eq!(rows(&daemon), (0..made).collect::<Vec<_>>());
    let (triggers, missed) = (daemon.number("triggers"), daemon.number("missed"));
    assert_eq!(made + missed + daemon.number("skipped"), triggers);
    assert!(daemon.get("/api/runs/1").contains("\"end\":\"stopped\""));
}

fn refusal(mut command: Command) -> String {
    let mut child = (command.stderr(Stdio::piped()).spawn()).expect("the program");
    assert_eq!(child.wait().expect("its end").code(), Some(1));
    let mut text = String::new();
    let mut said = child.stderr.take().expect("its words");
    said.read_to_string(&mut text).expect("text");
    text
}

#[test]
fn what_it_cannot_begin_with_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = start(command(folder.path()));
    let text = refusal(command(folder.path()));
    assert!(
        text.contains("another strobe serve uses this folder; end it"),
        "{text}"
    );
    let other = tempfile::tempdir().expect("a folder");
    let place = daemon.url.trim_start_matches("http://");
    let mut second = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    second
        .arg("--data")
        .arg(other.path())
        .args(["--http", place]);
    let text = refusal(second);
    assert!(
        text.contains(place) && text.contains("another address"),
        "{text}"
    );
    let config = other.path().join("serve.toml");
    std::fs::write(&config, "[spool]\nbites = 1\n").expect("a file");
    let mut third = command(other.path());
    third.arg(&config);
    let text = refusal(third);
    assert!(
        text.contains("serve.toml:2: unknown field `bites`"),
        "{text}"
    );
}

/// What a service manager is to the daemon.
struct Manager {
    path: PathBuf,
    words: Receiver<String>,
}

impl Manager {
    fn new(folder: &Path) -> Manager {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let (say, words) = channel();
        // As they come: a daemon waits, for ever perhaps, while the socket is full of words that nobody has taken.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = socket.recv(&mut buffer) {
                let word = String::from_utf8_lossy(buffer.get(..length).expect("it fits"));
                if say.send(word.into_owned()).is_err() {
                    return;
                }
            }
        });
        Manager { path, words }
    }

    /// The program, with this file handed over.
    fn command(&self, data: &Path, name: &str, file: OwnedFd) -> Command {
        let mut command = Command::new("sh");
        let script = "LISTEN_PID=$$ WATCHDOG_PID=$$ exec \"$@\" 3<&0 </dev/null";
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_strobe-serve")]);
        command.arg("--data").arg(data).stdin(file);
        command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", name);
        command.env("NOTIFY_SOCKET", &self.path);
        command
    }

    fn word(&self) -> String {
        self.words.recv_timeout(PATIENCE).expect("a word")
    }
}

/// What the manager calls a run of this folder that it keeps.
fn kept(data: &Path) -> String {
    let about = std::fs::read(data.join("runs/1/run.json")).expect("a run");
    let about: Value = serde_json::from_slice(&about).expect("what it is");
    format!("run-1-{}-{}", about["run"], about["made"])
}

#[test]
fn a_daemon_that_cannot_begin_leaves_runs_alone_that_the_service_manager_keeps() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let daemon = start(command(&data));
    daemon.make_run();
    daemon.wait_for_rows(100);
    daemon.ended("-KILL");
    let manager = Manager::new(folder.path());
    // It is no run: it cannot be adopted. And the place is taken.
    let file = File::open("/dev/null").expect("a file");
    let mut command = manager.command(&data, &kept(&data), file.into());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let place = taken.local_addr().expect("its address").to_string();
    command.args(["--http", &place]);
    let text = refusal(command);
    assert!(text.contains("another address"), "{text}");
    assert!(
        text.contains("it goes on: start the daemon again"),
        "{text}"
    );
    // Words come in their order.
    let ours = UnixDatagram::unbound().expect("a socket");
    ours.send_to(b"ours", &manager.path).expect("a word");
    assert_eq!(manager.word(), "ours", "the manager is told nothing");
}

#[test]
fn a_run_of_another_folder_that_the_service_manager_keeps_is_said_and_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let manager = Manager::new(folder.path());
    let data = folder.path().join("data");
    let daemon = start(command(&data));
    daemon.make_run();
    daemon.wait_for_rows(100);
    daemon.ended("-KILL");
    // The same number as that of one that is there, but it was made at another time.
    let kept = kept(&data);
    let (numbers, _) = kept.rsplit_once('-').expect("its numbers");
    for name in ["run-5-7-9".to_owned(), format!("{numbers}-9")] {
        let file = File::open("/dev/null").expect("a file");
        let mut command = manager.command(&data, &name, file.into());
        command.args(["--http", "127.0.0.1:0"]);
        let daemon = start(command);
        assert_eq!(manager.word(), format!("FDSTOREREMOVE=1\nFDNAME={name}"));
        assert_eq!(manager.word(), "READY=1");
        daemon.ended("-KILL");
    }
}

#[test]
fn sockets_of_the_service_manager_that_others_reach_are_no_panda_ports_unless_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("0.0.0.0:0").expect("a socket");
    let script = "LISTEN_PID=$$ exec \"$@\" 3<&0 4<&0 </dev/null";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_strobe-serve")]);
    (command.args(["--http", "127.0.0.1:0", "--data"])).arg(folder.path());
    command.stdin(OwnedFd::from(listener));
    (command.env("LISTEN_FDS", "2")).env("LISTEN_FDNAMES", "panda:panda");
    let text = refusal(command);
    assert!(
        text.contains("socket panda") && text.contains("anyone = true"),
        "{text}"
    );
}

#[test]
fn it_listens_where_the_service_manager_does_and_where_it_is_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let manager = Manager::new(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let theirs = listener.local_addr().expect("its address").to_string();
    let mut command = manager.command(&folder.path().join("data"), "http", listener.into());
    let config = folder.path().join("serve.toml");
    let text = format!("[http]\nlisten = [\"{theirs}\"]\nunix = \"socket\"\n");
    std::fs::write(&config, text).expect("a file");
    command.arg(&config);
    let daemon = start(command);
    assert_eq!(daemon.url, format!("http://{theirs}"));
    assert_eq!(manager.word(), "READY=1");
    let socket = UnixStream::connect(folder.path().join("socket"));
    assert!(socket.is_ok(), "{socket:?}");
}

#[test]
fn the_service_manager_hands_over_sockets_and_is_told_that_the_daemon_is_ready_and_alive() {
    let folder = tempfile::tempdir().expect("a folder");
    let manager = Manager::new(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let mut command = manager.command(&folder.path().join("data"), "http", listener.into());
    command.env("WATCHDOG_USEC", "300000");
    let daemon = start(command);
    assert_eq!(daemon.url, url);
    let word = || manager.word();
    assert_eq!(word(), "READY=1");
    assert_eq!((word(), word()), ("WATCHDOG=1".into(), "WATCHDOG=1".into()));
    assert!(daemon.get("/api").contains("strobe"));
    assert_eq!(daemon.ended("-TERM").code(), Some(0));
    let last = std::iter::from_fn(|| Some(word())).find(|word| word != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
}

/// Addresses at which the sockets of a network namespace listen, by its tables: those of UDP that are bound, too.
fn listening(tables: &str) -> Vec<(String, String)> {
    let mut table = "";
    let mut found = Vec::new();
    for line in tables.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["table", name] => table = *name,
            // A TCP socket that listens, or any other.
            [number, local, _, state, ..]
                if number.ends_with(':') && (!table.starts_with("tcp") || *state == "0A") =>
            {
                found.push((table.to_owned(), (*local).to_owned()));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn unless_told_otherwise_it_listens_at_loopback_only_whatever_it_offers() {
    let folder = tempfile::tempdir().expect("a folder");
    // A network of its own, where the usual ports are free; all that listens there is the daemon's.
    let script = "ip link set lo up; \"$@\" & \
                  while kill -0 $! && ! grep -q :1F40 /proc/net/tcp; do sleep 0.05; done; \
                  while kill -0 $! && ! grep -q :22B9 /proc/net/tcp; do sleep 0.05; done; \
                  for table in tcp tcp6 udp udp6 raw raw6; do echo table $table; cat /proc/net/$table; done; \
                  kill $!; wait $!";
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.arg(env!("CARGO_BIN_EXE_strobe-serve"));
    command.arg("--demo").arg("--data").arg(folder.path());
    let done = command.output().expect("unshare, of util-linux");
    let tables = String::from_utf8_lossy(&done.stdout);
    let said = String::from_utf8_lossy(&done.stderr);
    let mut places = listening(&tables);
    places.sort();
    // 127.0.0.1, with the ports 8000, 8888 and 8889.
    let ports = ["1F40", "22B8", "22B9"];
    let expected = ports.map(|port| ("tcp".to_owned(), format!("0100007F:{port}")));
    assert_eq!(places, expected, "{tables}\n{said}");
}
