// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon, as a process of its own: what it holds is seen in /proc.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crowd::PATIENCE;
use crate::crowd::clients::{COLUMNS, Place};

pub struct Daemon {
    child: Child,
    http: SocketAddr,
    panda: SocketAddr,
    control: BufReader<TcpStream>,
    _folder: tempfile::TempDir,
}

impl Daemon {
    /// With so many bytes of rows in memory, and on the disk.
    pub fn start(recent: u64, bytes: u64) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder");
        let [http, control, panda] = [free_port(), free_port(), free_port()];
        let config = format!(
            "data = \"data\"\n[http]\nlisten = [\"{http}\"]\n[spool]\nrecent = {recent}\nbytes = {bytes}\n[panda]\n\
             listen = \"127.0.0.1\"\ncontrol = {}\ndata = {}\nengine = \"user\"\n",
            control.port(),
            panda.port()
        );
        let path = folder.path().join("serve.toml");
        fs::write(&path, config).expect("a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
        let child = command.arg(path).spawn().expect("the daemon");
        let begun = Instant::now();
        let control = loop {
            match TcpStream::connect(control) {
                Ok(stream) => break BufReader::new(stream),
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        Daemon {
            child,
            http,
            panda,
            control,
            _folder: folder,
        }
    }

    fn say(&mut self, line: &str) {
        let stream = self.control.get_mut();
        let said = stream.write_all(format!("{line}\n").as_bytes());
        said.expect("sent");
        let mut answer = String::new();
        self.control.read_line(&mut answer).expect("an answer");
        assert_eq!(answer, "OK\n", "{line}");
    }

    /// A run of so many rows that waits for its gate; its number.
    pub fn arm(&mut self, rate: u64, rows: u64) -> u64 {
        let captured = COLUMNS
            .split(',')
            .map(|name| format!("{name}.CAPTURE=Value"));
        let event = [
            "EVENT1.SOURCE=timer".to_owned(),
            format!("EVENT1.PERIOD={}", 1.0 / rate as f64),
            format!("PCAP.NUM_TRIG={rows}"),
            "PCAP.TRIG=EVENT1.OUT".to_owned(),
            "PCAP.ENABLE=BITS.OUTA".to_owned(),
            "*PCAP.ARM=".to_owned(),
        ];
        captured.chain(event).for_each(|line| self.say(&line));
        let runs = self.get("/api/runs");
        runs["runs"][0]["id"].as_u64().expect("a run")
    }

    pub fn open_gate(&mut self) {
        self.say("BITS.A=1");
    }

    fn get(&self, path: &str) -> Value {
        let answer = ureq::get(format!("http://{}{path}", self.http)).call();
        let text = answer.expect("an answer").into_body().read_to_string();
        serde_json::from_str(&text.expect("a text")).expect("JSON")
    }

    pub fn view(&self, run: u64) -> Value {
        self.get(&format!("/api/runs/{run}"))
    }

    pub fn place(&self, run: u64) -> Place {
        let (http, panda) = (self.http, self.panda);
        Place { http, panda, run }
    }

    /// Bytes of its memory.
    pub fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let text = text.expect("its state");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        1024 * number.expect("a size").parse::<u64>().expect("a number")
    }

    /// How many files it has open.
    pub fn fds(&self) -> usize {
        let fds = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        fds.expect("its files").count()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> SocketAddr {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    port.expect("a port")
}
