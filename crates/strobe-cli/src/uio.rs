// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe uio`: UIO devices, their interrupts and registers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use strobe::quantity::duration_ns;
use strobe::uio::{Device, Error, Uio};

use crate::term::{COMPLETE, INTERRUPTED, NOT_WHOLE, answer, fail, say};

mod register;

/// Show UIO devices, wait for their interrupts, and try their registers
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show all devices: names, interrupts so far, the cards they belong to, memory and ports
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a line for each interrupt: the device's count, and how many were missed before it
    Wait(Wait),
    /// Read one register, and print it
    Read(register::Read),
    /// Write one register
    Write(register::Write),
}

#[derive(clap::Args)]
struct Wait {
    /// Name of the device, or uioN
    name: String,
    /// End after so many lines (default: at Ctrl-C)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End with exit status 3 if no interrupt comes for so long: 2s, 50ms
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Print no lines, but one JSON object at the end
    #[arg(long)]
    json: bool,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match duration_ns(text) {
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(args: &Args) -> ExitCode {
    match &args.action {
        Action::List { json } => list(*json),
        Action::Wait(args) => wait(args),
        Action::Read(args) => args.run(),
        Action::Write(args) => args.run(),
    }
}

#[derive(Serialize)]
struct Listing {
    devices: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    path: PathBuf,
    #[serde(flatten)]
    uio: Uio,
}

fn list(json: bool) -> ExitCode {
    let all = match Uio::list() {
        Ok(all) => all,
        Err(error) => return fail(error),
    };
    if !json {
        return answer(&text(&all));
    }
    let devices = all.into_iter().map(|uio| Listed {
        path: uio.path(),
        uio,
    });
    print_json(&Listing {
        devices: devices.collect(),
    })
}

fn print_json(value: &impl Serialize) -> ExitCode {
    match serde_json::to_string(value) {
        Ok(json) => answer(&(json + "\n")),
        Err(error) => fail(error),
    }
}

fn text(all: &[Uio]) -> String {
    if all.is_empty() {
        return "no UIO devices\n".to_owned();
    }
    let mut text = String::new();
    for uio in all {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}: {}, version {}, {} interrupts",
            uio.node(),
            uio.name,
            uio.version,
            uio.events
        );
        if let Some(parent) = &uio.parent {
            let _ = write!(text, "  device {}", parent.name);
            for (what, name) in [("on", &parent.bus), ("driver", &parent.driver)] {
                if !name.is_empty() {
                    let _ = write!(text, ", {what} {name}");
                }
            }
            for (name, value) in &parent.attributes {
                let _ = write!(text, ", {name} {value}");
            }
            text.push('\n');
        }
        for map in &uio.maps {
            let _ = write!(text, "  map {}: 0x{:x} bytes", map.number, map.size);
            let _ = write!(text, " at 0x{:x}", map.address);
            if map.offset != 0 {
                let _ = write!(text, ", from 0x{:x} on", map.offset);
            }
            let _ = writeln!(text, "{}", named(&map.name));
        }
        for port in &uio.ports {
            let (number, start, size) = (port.number, port.start, port.size);
            let _ = write!(text, "  port {number}: {size} ports from 0x{start:x}");
            let _ = writeln!(text, ", {}{}", port.kind, named(&port.name));
        }
    }
    text
}

fn named(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!(", {name}"),
    }
}

/// The account of a wait.
#[derive(Serialize)]
struct Account {
    device: String,
    path: PathBuf,
    /// Interrupts that made a line.
    interrupts: u64,
    /// Interrupts between two lines.
    missed: u64,
    /// The device's own count at the end.
    count: u32,
    elapsed_s: f64,
    end: String,
}

enum End {
    Complete,
    Interrupted,
    Failed(String),
}

fn wait(args: &Wait) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stop)) {
            return fail(format_args!("signals cannot be handled: {error}"));
        }
    }
    let opened = Uio::find(&args.name).and_then(|uio| {
        let mut device = uio.open()?;
        // One without an interrupt says so here.
        device.forget()?;
        Ok(device)
    });
    let mut device = match opened {
        Ok(device) => device,
        Err(error) => return fail(error),
    };
    let begin = Instant::now();
    let mut account = Account {
        device: device.about().name.clone(),
        path: device.about().path(),
        interrupts: 0,
        missed: 0,
        count: device.count(),
        elapsed_s: 0.0,
        end: String::new(),
    };
    let end = serve(args, &mut device, &stop, begin, &mut account);
    account.elapsed_s = begin.elapsed().as_secs_f64();
    account.count = device.count();
    let status = match end {
        End::Complete if account.missed == 0 => COMPLETE,
        End::Complete | End::Failed(_) => NOT_WHOLE,
        End::Interrupted => INTERRUPTED,
    };
    account.end = match end {
        End::Complete => "complete".to_owned(),
        End::Interrupted => "stopped".to_owned(),
        End::Failed(why) => {
            say(format_args!("strobe: {why}"));
            format!("failed: {why}")
        }
    };
    if args.json && print_json(&account) != ExitCode::SUCCESS {
        return ExitCode::FAILURE;
    }
    status.into()
}

fn serve(
    args: &Wait,
    device: &mut Device,
    stop: &AtomicBool,
    begin: Instant,
    account: &mut Account,
) -> End {
    while args.count.is_none_or(|count| account.interrupts < count) {
        // Some drivers need that before each; others have no such thing.
        let enabled = match device.enable() {
            Err(Error::NoControl(_)) => Ok(()),
            done => done,
        };
        let interrupt = match enabled.and_then(|()| next(args, device, stop)) {
            Ok(Next::Interrupt(interrupt)) => interrupt,
            Ok(Next::Stop) => return End::Interrupted,
            Ok(Next::Timeout) => {
                return End::Failed(format!(
                    "UIO device {}: no interrupt came in {:?}",
                    account.device,
                    args.timeout.unwrap_or_default()
                ));
            }
            Err(error) => return End::Failed(error.to_string()),
        };
        account.interrupts += 1;
        account.missed += u64::from(interrupt.missed);
        if !args.json {
            let line = format!(
                "{:.6} s: {}, {} missed\n",
                begin.elapsed().as_secs_f64(),
                interrupt.count,
                interrupt.missed
            );
            // Nobody may read any more, as after `| head`.
            if std::io::stdout().write_all(line.as_bytes()).is_err() {
                return End::Interrupted;
            }
        }
    }
    End::Complete
}

enum Next {
    Interrupt(strobe::uio::Interrupt),
    Timeout,
    Stop,
}

fn next(args: &Wait, device: &mut Device, stop: &AtomicBool) -> Result<Next, Error> {
    /// How soon a signal is answered.
    const SLICE: Duration = Duration::from_millis(100);
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = args
            .timeout
            .map(|timeout| timeout.saturating_sub(begin.elapsed()));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        if let Some(interrupt) = device.wait_timeout(slice)? {
            return Ok(Next::Interrupt(interrupt));
        }
        if left.is_some_and(|left| left <= slice) {
            return Ok(Next::Timeout);
        }
    }
    Ok(Next::Stop)
}
