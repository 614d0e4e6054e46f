// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurement of the UIO paper, and what has become of each part of it.
//!
//! H. J. Koch, "Userspace I/O drivers in a realtime context", sets tracing up by hand, and takes the difference
//! between the call of uio_event_notify and the return of the program's select, row by row. Here the program is the
//! user engine, which stamps its rows itself: so it is measured twice, without tracing and with it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use strobe::engine;
use strobe::engine::user::{Lock, Settings, User};
use strobe::event::EventSpec;
use strobe::follow::{self, Account, FollowSettings, follow};
use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe::stop::Stop;
use strobe_board::{Board, Faults};
use strobe_hw::rt::Policy;
use strobe_hw::uio::{self, Uio};

use super::Common;
use super::steps::{Report, Steps};
use crate::cpu::{NoCpu, check_cpu};
use crate::machine::Machine;
use crate::trace::{self, Instance, Settings as TraceSettings};

mod chain;
pub mod cyclictest;

use chain::Chain;
use cyclictest::Cyclictest;

/// When the module uio_dummy raised its event, for all to read.
const DUMMY: (&str, &str) = ("uio_dummy", "/sys/module/uio_dummy/parameters/time_ns");
/// Name of the thread of a run.
const THREAD: &str = "strobe-run";
/// Memory for the events of a row, and for others meanwhile.
const ROW_BYTES: u64 = 1024;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The device: as its driver calls it, or uioN.
    pub device: String,
    /// A board file for the device, with the event that it has there, such as edu.irq.
    pub board: Option<PathBuf>,
    /// The event of the rows.
    pub event: Option<EventSpec>,
    /// A channel with the time at which the device raised its interrupt, CLOCK_MONOTONIC in ns.
    pub raised: Option<String>,
    /// Do not trace.
    pub no_trace: bool,
    /// What is asked of every way.
    pub common: Common,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The CPU cannot be had.
    #[error(transparent)]
    Cpu(#[from] NoCpu),
    /// Nothing has happened.
    #[error(
        "{0}: no interrupt came; is the device running and its interrupt enabled? `strobe uio wait {0}` shows its \
         interrupts"
    )]
    Silent(String),
    /// Tracing is not possible.
    #[error("{0}; it can be measured without tracing")]
    Trace(#[from] trace::Error),
    /// The thread of the run cannot be found.
    #[error(
        "the thread of the run cannot be found in /proc/self/task, so it cannot be traced; is /proc mounted? It can be measured without tracing"
    )]
    NoThread,
    /// The device cannot be used.
    #[error(transparent)]
    Uio(#[from] uio::Error),
    /// What is wrong with the board file.
    #[error(transparent)]
    Board(#[from] Faults),
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The rows could not be followed.
    #[error("{0}: {1}")]
    Follow(String, follow::Error),
}

/// One run.
#[derive(Serialize)]
pub struct Side {
    /// What became of the run.
    #[serde(flatten)]
    pub account: Account,
    /// As strobe itself sees it: raised (if the device says when), stamp, visible.
    pub own: Report,
    /// Rows that another interrupt had overtaken: when their own was raised the device does not say any more.
    pub overtaken: u64,
    /// As the kernel's events say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traced: Option<TraceReport>,
}

/// What the kernel's events say.
#[derive(Serialize)]
pub struct TraceReport {
    /// From each instant of a row to the next.
    #[serde(flatten)]
    pub report: Report,
    /// What the paper prints: from the call of uio_event_notify to the return of the wait.
    pub paper: Report,
    /// Rows of which every event is there.
    pub rows: u64,
    /// Of these, rows whose own stamps do not lie where the kernel's events say, to a microsecond.
    pub disagree: u64,
    /// Events that this kernel does not have.
    pub missing: Vec<String>,
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcome {
    /// The device.
    pub device: String,
    /// A signal came: this is what there was until then.
    pub interrupted: bool,
    /// Where it was measured.
    pub machine: Machine,
    /// As it is.
    pub untraced: Side,
    /// With tracing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traced: Option<Side>,
    /// What cyclictest says beside it.
    pub cyclictest: Option<Cyclictest>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_cyclictest: Option<String>,
}

/// What is known of a row.
struct RowInstants {
    row: u64,
    raised: Option<u64>,
    overtaken: bool,
    stamp: u64,
    visible: u64,
}

/// Makes a run as it is, and one that is traced; then lets cyclictest run.
///
/// # Errors
/// Nothing was measured; why.
pub fn measure(asked: &Options, stop: &Stop) -> Result<Outcome, Error> {
    check_cpu(asked.common.cpu)?;
    let device = Uio::find(&asked.device)?;
    // Before anything is measured: what cannot be had is said at once.
    if !asked.no_trace {
        Instance::create(&TraceSettings::of(chain::wanted(&device.name, 0, false)))?;
    }
    let machine = Machine::from_now();
    let (untraced, period_us) = side(asked, &device, false, stop)?;
    let traced = match asked.no_trace || stop.is_interrupted() {
        true => None,
        false => Some(side(asked, &device, true, stop)?.0),
    };
    let priority = match asked.common.policy {
        Policy::Fifo(priority) => priority,
        _ => 0,
    };
    let beside = match stop.is_interrupted() {
        true => Err(cyclictest::Error::Interrupted),
        false => cyclictest::run(priority, period_us, asked.common.rows, stop),
    };
    Ok(Outcome {
        device: device.to_string(),
        interrupted: stop.is_interrupted(),
        machine: machine.until_now(),
        untraced,
        traced,
        cyclictest: beside.as_ref().ok().copied(),
        without_cyclictest: beside.err().map(|error| error.to_string()),
    })
}

/// One run, and the mean distance of its rows.
fn side(asked: &Options, device: &Uio, traced: bool, stop: &Stop) -> Result<(Side, u64), Error> {
    let run = create(asked, device)?;
    // Removed when it is dropped, whatever happens from here on.
    let instance = match traced {
        true => {
            let thread = thread_of_run().ok_or(Error::NoThread)?;
            Some((tracing(asked, device, thread)?, thread))
        }
        false => None,
    };
    if let Some((instance, _)) = &instance {
        instance.turn_on()?;
    }
    let (seen, account) = rows(asked, run.as_ref(), stop)?;
    let period_us = match (seen.first(), seen.last()) {
        (Some(first), Some(last)) if seen.len() > 1 => {
            (last.stamp - first.stamp) / (seen.len() as u64 - 1) / 1000
        }
        (None, _) if !stop.is_interrupted() => return Err(Error::Silent(device.name.clone())),
        _ => 1000,
    };
    let kernel = match &instance {
        Some((instance, thread)) => {
            instance.turn_off()?;
            let begun = account.begun;
            Some(traced_rows(asked, device, instance, *thread, begun, &seen)?)
        }
        None => None,
    };
    let side = Side {
        account,
        own: own(asked, &seen),
        overtaken: seen.iter().filter(|row| row.overtaken).count() as u64,
        traced: kernel,
    };
    Ok((side, period_us.clamp(100, 1_000_000)))
}

/// The run; its thread is there when this is back.
fn create(asked: &Options, device: &Uio) -> Result<Box<dyn OwnedRun>, Error> {
    let mut user = User::new(Settings {
        lock: Lock::Process,
        cpu: asked.common.cpu,
        policy: Some(asked.common.policy),
        ..Settings::default()
    });
    if let Some(board) = &asked.board {
        user = user.with_board(Board::read(board)?);
    }
    let event = asked.event.clone();
    let event = event.map_or_else(|| format!("uio:{}", device.node()).parse(), Ok);
    let event: EventSpec = event.map_err(|_| uio::Error::Gone(device.name.clone()))?;
    let plan = Plan {
        steps: raised(asked, device).map(Step::Read).into_iter().collect(),
        limit: Some(asked.common.rows),
        ..Plan::new(event)
    };
    Ok(Box::new(user.create(&plan)?))
}

/// The channel that says when the device raised its interrupt.
fn raised(asked: &Options, device: &Uio) -> Option<String> {
    let dummy = || {
        let (name, path) = DUMMY;
        let is_here = device.name == name && std::path::Path::new(path).exists();
        is_here.then(|| format!("file:{path}"))
    };
    asked.raised.clone().or_else(dummy)
}

/// The number of the thread that makes the rows.
fn thread_of_run() -> Option<u32> {
    let mut tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    tasks.find_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let is_it = name.trim_end() == THREAD;
        is_it.then(|| task.file_name().to_str()?.parse().ok())?
    })
}

fn tracing(asked: &Options, device: &Uio, thread: u32) -> Result<Instance, Error> {
    let interrupts = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let of_device = |line: &str| {
        line.split_whitespace()
            .any(|word| word.trim_end_matches(',') == device.name)
    };
    let has_interrupt = interrupts.lines().any(of_device);
    let bytes = asked.common.rows.saturating_mul(ROW_BYTES);
    let mut settings = TraceSettings::of(chain::wanted(&device.name, thread, has_interrupt));
    settings.buffer_kb = settings.buffer_kb.max((bytes / 1024).min(64 * 1024) as u32);
    Ok(Instance::create(&settings)?)
}

fn rows(
    asked: &Options,
    run: &dyn OwnedRun,
    stop: &Stop,
) -> Result<(Vec<RowInstants>, Account), Error> {
    let mut seen: Vec<RowInstants> =
        Vec::with_capacity(usize::try_from(asked.common.rows).unwrap_or(0));
    let reading = FollowSettings {
        policy: None,
        cpu: None,
        spin: false,
        duration: Duration::from_nanos(asked.common.duration),
    };
    let (mut next, mut last) = (0, None);
    let account = follow(run, &reading, stop, |row, visible| {
        let said = row.values.first().copied();
        if let Some(before) = seen.last_mut().filter(|_| last.is_some() && last == said) {
            // The row before has read already when the interrupt of this one was raised.
            before.overtaken = true;
            before.raised = None;
        }
        // Interrupts that made no row went before, or another came after the stamp, before the channel was read.
        let merged = row.trigger != next;
        (next, last) = (row.trigger + 1, said);
        let raised = said.filter(|raised| !merged && *raised <= row.time);
        seen.push(RowInstants {
            row: row.row,
            raised,
            overtaken: raised.is_none() && said.is_some(),
            stamp: row.time,
            visible,
        });
    });
    let account = account.map_err(|error| Error::Follow(run.info().event.clone(), error))?;
    Ok((seen, account))
}

fn own(asked: &Options, seen: &[RowInstants]) -> Report {
    let is_raised = seen.iter().any(|row| row.raised.is_some());
    let points: &[&str] = match is_raised {
        true => &["raised", "stamp", "visible"],
        false => &["stamp", "visible"],
    };
    let mut steps = Steps::new(points, asked.common.list);
    for row in seen {
        let times = [row.raised, Some(row.stamp), Some(row.visible)];
        let times = if is_raised { &times[..] } else { &times[1..] };
        steps.add(row.row, times);
    }
    steps.report()
}

fn traced_rows(
    asked: &Options,
    device: &Uio,
    instance: &Instance,
    thread: u32,
    begun: u64,
    seen: &[RowInstants],
) -> Result<TraceReport, Error> {
    let text = instance.text()?;
    let stamps: Vec<u64> = seen.iter().map(|row| row.stamp).collect();
    let ways = chain::chains(&text.trace(), &device.name, thread, begun, &stamps);
    // Of a device with an interrupt both are one.
    let apart = ways.iter().any(|way| way.handler != way.interrupt);
    let names = [
        "interrupt",
        "handler",
        "woken",
        "running",
        "wait returns",
        "stamp",
        "visible",
    ];
    let is_used = |nth: &usize| *nth != 1 || apart;
    let used: Vec<usize> = (0..names.len()).filter(is_used).collect();
    let points: Vec<&'static str> = used
        .iter()
        .filter_map(|nth| names.get(*nth).copied())
        .collect();
    let mut steps = Steps::new(&points, asked.common.list);
    let mut paper = Steps::new(&["woken", "wait returns"], false);
    for (row, way) in seen.iter().zip(&ways) {
        paper.add(row.row, &[way.woken, way.returned]);
        let times = [
            way.interrupt,
            way.handler,
            way.woken,
            way.running,
            way.returned,
            Some(row.stamp),
            Some(row.visible),
        ];
        let times: Vec<Option<u64>> = used
            .iter()
            .filter_map(|nth| times.get(*nth).copied())
            .collect();
        steps.add(row.row, &times);
    }
    let whole = || seen.iter().zip(&ways).filter(|(_, way)| way.is_whole());
    Ok(TraceReport {
        report: steps.report(),
        paper: paper.report(),
        rows: whole().count() as u64,
        disagree: whole().filter(|(row, way)| !agree(row, way)).count() as u64,
        missing: instance.missing().to_vec(),
    })
}

/// Whether the order of what the device, the kernel and the program have stamped is as it must be.
fn agree(row: &RowInstants, way: &Chain) -> bool {
    let raised = row.raised;
    let times = [
        way.interrupt,
        way.handler,
        raised,
        way.woken,
        way.running,
        way.returned,
    ];
    let known: Vec<u64> = times.into_iter().flatten().chain([row.stamp]).collect();
    known
        .windows(2)
        .all(|ends| matches!(*ends, [from, to] if from <= to + chain::RESOLUTION_NS))
}
