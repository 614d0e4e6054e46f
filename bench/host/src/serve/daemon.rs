// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon of its own, with a run that was armed at its PandA port: an ordinary run, which all faces give.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Bytes of a row: in the ring and as Arrow its number, trigger, time and status, on the PandA port its number, trigger, time
/// and duration; and six values.
pub const ROW_BYTES: u64 = 80;
const CAPTURED: [&str; 9] = [
    "PCAP.INDEX",
    "PCAP.TRIG_INDEX",
    "PCAP.TS_TRIG",
    "PCAP.GATE_DURATION",
    "SIM.COUNTER",
    "SIM.RAMP",
    "SIM.SINE",
    "SIM.NOISE",
    "CLOCK.ELAPSED",
];
/// Only a failure takes so long.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);
/// Triggers at once: fewer than a ring has room for.
const TRIGGERS: u64 = 4_000;

/// What a run says of itself.
#[derive(Debug, Clone, Deserialize)]
pub struct View {
    pub id: u64,
    pub rows: u64,
    pub triggers: u64,
    pub missed: u64,
    pub skipped: u64,
    pub lost: u64,
    pub next: u64,
    pub end: Option<Value>,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<View>,
}

/// The daemon, as a child of this process. It ends with this.
pub struct Daemon {
    child: Child,
    pub http: SocketAddr,
    pub panda: SocketAddr,
    control: BufReader<TcpStream>,
    agent: ureq::Agent,
    _folder: TempDir,
}

impl Daemon {
    /// With this engine, so many bytes of rows in memory, and this added to its configuration.
    pub fn start(engine: &str, recent: u64, more: &str) -> Result<Daemon, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let [http, control, panda] = [free_port()?, free_port()?, free_port()?];
        let config = format!(
            "data = \"data\"\n[http]\nlisten = [\"{http}\"]\n[limits]\nrequests = 100000\n[spool]\nrecent = {recent}\n[panda]\nlisten = \"127.0.0.1\"\n\
             control = {}\ndata = {}\nengine = \"{engine}\"\n{more}",
            control.port(),
            panda.port()
        );
        let path = folder.path().join("serve.toml");
        fs::write(&path, config)?;
        let program = std::env::current_exe()?.with_file_name("strobe-serve");
        let mut child = Command::new(&program)
            .arg(&path)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}; run `make build`", program.display()))?;
        let begun = Instant::now();
        let control = loop {
            match TcpStream::connect(control) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    return Err(format!("the daemon does not listen: {error}").into());
                }
                Err(_) => sleep(LOOK),
            }
        };
        control.set_read_timeout(Some(PATIENCE))?;
        Ok(Daemon {
            child,
            http,
            panda,
            control: BufReader::new(control),
            agent: ureq::Agent::new_with_defaults(),
            _folder: folder,
        })
    }

    /// Says something at the port of commands, which must be granted.
    pub fn say(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        self.control
            .get_mut()
            .write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.control.read_line(&mut answer)?;
        match answer.trim_end() {
            "OK" => Ok(()),
            answer => Err(format!("{line}: {answer}").into()),
        }
    }

    /// A run of ten columns, one of which is `more`; these lines say its event.
    pub fn arm(&mut self, more: &str, event: &[&str]) -> Result<u64, Box<dyn Error>> {
        for name in CAPTURED.into_iter().chain([more]) {
            self.say(&format!("{name}.CAPTURE=Value"))?;
        }
        for line in ["PCAP.TRIG=EVENT1.OUT"].iter().chain(event) {
            self.say(line)?;
        }
        self.say("*PCAP.ARM=")?;
        let runs: Runs = serde_json::from_str(&self.get("/api/runs")?)?;
        let newest = runs.runs.iter().map(|run| run.id).max();
        newest.ok_or_else(|| "nothing was armed".into())
    }

    /// So many rows of the event `soft`, all of which are in the spool then.
    pub fn trigger(&self, run: u64, rows: u64) -> Result<(), Box<dyn Error>> {
        let url = format!("http://{}/api/runs/{run}/trigger", self.http);
        let mut made = 0;
        while made < rows {
            let count = TRIGGERS.min(rows - made);
            let request = self.agent.post(&url).content_type("application/json");
            request.send(json!({"count": count}).to_string())?;
            made += count;
            // Who triggers faster than rows are made misses some.
            self.until(run, |view| view.next + view.lost + view.missed >= made)?;
        }
        let view = self.view(run)?;
        match (view.next, view.missed, view.lost) == (rows, 0, 0) {
            true => Ok(()),
            false => Err(format!("of {rows} triggers there is {view:?}").into()),
        }
    }

    /// The run, as soon as this is so.
    pub fn until(&self, run: u64, so: impl Fn(&View) -> bool) -> Result<View, Box<dyn Error>> {
        let begun = Instant::now();
        loop {
            let view = self.view(run)?;
            if so(&view) {
                return Ok(view);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("the run gets no further: {view:?}").into());
            }
            sleep(LOOK);
        }
    }

    pub fn view(&self, run: u64) -> Result<View, Box<dyn Error>> {
        Ok(serde_json::from_str(
            &self.get(&format!("/api/runs/{run}"))?,
        )?)
    }

    /// What is there, as text.
    pub fn get(&self, path: &str) -> Result<String, Box<dyn Error>> {
        let answer = self.agent.get(format!("http://{}{path}", self.http)).call();
        let body = answer?.into_body().into_with_config().limit(u64::MAX);
        Ok({ body }.read_to_string()?)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine that is free now.
pub fn free_port() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Time that a process has spent on CPUs, in s.
pub fn cpu_s(pid: u32) -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Behind the name, which may have anything in it.
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: f64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum();
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}
