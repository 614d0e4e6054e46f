// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the daemon publishes to NATS JetStream. That is another kind of thing than giving rows to a client: the server
//! writes each message to its disk and says so, and only then the next one comes.

use std::error::Error;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::daemon::{Daemon, PATIENCE, ROW_BYTES, cpu_s, free_port};

/// How often the server is asked what it has.
const LOOK: Duration = Duration::from_millis(5);
/// Nothing more comes when nothing has come for so long.
const QUIET: Duration = Duration::from_secs(2);

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Rows that were kept, a second, of each round.
    pub rows_per_s: Vec<f64>,
    /// The same as a share of what raw TCP has given in the same round.
    pub of_raw: Vec<f64>,
    /// Time of the daemon on CPUs, ns a row, over all rounds.
    pub cpu_ns: f64,
}

/// Rows a second and CPU a row of each round, and beside it what `raw` takes for as many rows. `None`: there is no nats-server.
pub fn measure(
    rows: u64,
    rounds: u32,
    mut raw: impl FnMut() -> Result<Duration, Box<dyn Error>>,
) -> Result<Option<Figure>, Box<dyn Error>> {
    let mut figure = Figure {
        rows_per_s: Vec::new(),
        of_raw: Vec::new(),
        cpu_ns: 0.0,
    };
    for _ in 0..rounds {
        let Some((rows_per_s, cpu_ns)) = published(rows)? else {
            return Ok(None);
        };
        let of_raw = rows_per_s * raw()?.as_secs_f64() / rows as f64;
        figure.rows_per_s.push(rows_per_s);
        figure.of_raw.push(of_raw);
        figure.cpu_ns += cpu_ns / f64::from(rounds);
    }
    Ok(Some(figure))
}

/// All rows are in the daemon before the bus is there.
fn published(rows: u64) -> Result<Option<(f64, f64)>, Box<dyn Error>> {
    let (port, monitor) = (free_port()?, free_port()?);
    let publish = format!("[publish.nats]\nurl = \"nats://{port}\"\n");
    let mut daemon = Daemon::start("user", 2 * rows * ROW_BYTES, &publish)?;
    let run = daemon.arm("SIM.LATCH", &["EVENT1.SOURCE=soft"])?;
    daemon.trigger(run, rows)?;
    daemon.say("*PCAP.DISARM=")?;
    daemon.until(run, |view| view.end.is_some())?;
    let before = cpu_s(daemon.pid())?;
    let Some(bus) = Bus::start(port.port(), monitor.port())? else {
        return Ok(None);
    };
    let (mut begun, mut last, mut had) = (Instant::now(), Instant::now(), Kept::default());
    while had.messages == 0 || last.elapsed() < QUIET {
        let has = bus.kept().unwrap_or_default();
        if has.messages > had.messages {
            last = Instant::now();
            // What is there at the first look took a time that nobody knows.
            begun = if had.messages == 0 { last } else { begun };
            had = has;
        }
        if begun.elapsed() > PATIENCE {
            return Err("nothing comes to nats-server".into());
        }
        sleep(LOOK);
    }
    if had.bytes < rows * ROW_BYTES {
        return Err(format!("nats-server has {} bytes of {rows} rows", had.bytes).into());
    }
    let rows_per_s = rows as f64 / (last - begun).as_secs_f64();
    let cpu_ns = 1e9 * (cpu_s(daemon.pid())? - before) / rows as f64;
    Ok(Some((rows_per_s, cpu_ns)))
}

/// What the server says of all its streams.
#[derive(Debug, Default, Deserialize)]
struct Kept {
    messages: u64,
    bytes: u64,
}

struct Bus {
    child: Child,
    monitor: u16,
    _folder: TempDir,
}

impl Bus {
    fn start(port: u16, monitor: u16) -> Result<Option<Bus>, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let child = Command::new("nats-server")
            .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string()])
            .args(["-m", &monitor.to_string(), "-sd"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log"))?)
            .spawn();
        match child {
            Ok(child) => Ok(Some(Bus {
                child,
                monitor,
                _folder: folder,
            })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("nats-server: {error}").into()),
        }
    }

    fn kept(&self) -> Option<Kept> {
        let url = format!("http://127.0.0.1:{}/jsz", self.monitor);
        let text = ureq::get(url).call().ok()?.body_mut().read_to_string();
        serde_json::from_str(&text.ok()?).ok()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
