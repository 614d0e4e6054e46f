// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers each edge of a line by driving another one to the other level, and stamps both.
//!
//! When the line has really changed, nobody but the hardware knows. The lab's chip does: it observes the answers.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use strobe::clock::{RunClock, monotonic};
use strobe::engine::user::WaitMode;
use strobe::engine::user::gpio::{Drive, Edges, Gpio};
use strobe::engine::user::provider::WriteOutput;
use strobe::engine::user::trigger::{EventSource, WaitOutcome};
use strobe::event::Edge;
use strobe::follow::Account;
use strobe::info::{Clock, End};
use strobe::plan::CpuLatency;
use strobe::stop::Stop;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::rt;
use strobe_hw::wakeup::{Wakeup, wakeup};

use super::super::steps::Steps;
use super::{Error, Line, Options};

/// Signals and the end of the time are looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a chip says that observes who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observer {
    /// Edges that were answered.
    pub answered: u64,
    /// Edges that were not.
    pub unanswered: u64,
    /// The soonest answer.
    pub best_ns: u64,
    /// Half of the answers came no later.
    pub typical_ns: u64,
    /// The latest answer.
    pub worst_ns: u64,
    /// The mean of all answers.
    pub mean_ns: u64,
}

impl Observer {
    /// Of the chip of this number or name, if it has such files.
    fn of(chip: &str) -> Option<Observer> {
        let chips = fs::read_dir("/sys/bus/gpio/devices").ok()?.flatten();
        let places = chips.filter_map(|entry| fs::canonicalize(entry.path()).ok());
        let mut devices = places.filter_map(|place| Some(place.parent()?.to_owned()));
        let device = devices.find(|device| {
            let name = device.file_name().unwrap_or_default();
            device.join("best_ns").exists() && name.to_string_lossy().starts_with(chip)
        })?;
        let figure = |name: &str| number(&device.join(name));
        Some(Observer {
            answered: figure("answered")?,
            unanswered: figure("unanswered")?,
            best_ns: figure("best_ns")?,
            typical_ns: figure("typical_ns")?,
            worst_ns: figure("worst_ns")?,
            mean_ns: figure("mean_ns")?,
        })
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What a thread has seen of the edges: the kernel's stamp, its own, and that of its answer.
#[derive(Default)]
struct Answers {
    edges: Vec<[u64; 3]>,
    missed: u64,
}

pub fn invert(
    asked: &Options,
    output: &Line,
    stop: &Stop,
) -> Result<(Account, Steps, Option<Observer>), Error> {
    let gpio = Gpio::default();
    let wrong = |line: &Line| {
        let line = line.clone();
        move |why| Error::Line(line, why)
    };
    let wait = match asked.spin {
        true => WaitMode::Spin,
        false => WaitMode::Block,
    };
    let drive = gpio.drive(&output.chip, &output.line);
    let drive = drive.map_err(wrong(output))?;
    let edges = gpio.edges(&asked.input.chip, &asked.input.line, Edge::Both, wait);
    let edges = edges.map_err(wrong(&asked.input))?;
    let (waker, mut wakeup) = wakeup().map_err(Error::Thread)?;
    let finished = AtomicBool::new(false);
    let deadline = Instant::now().checked_add(Duration::from_nanos(asked.common.duration));
    let (set_up, answered) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            let awake = CpuLatencyRequest::hold(CpuLatency::default().0);
            let set_up: Vec<rt::Step> = [rt::lock_memory(), awake.step.clone()]
                .into_iter()
                .chain(rt::set_up_thread(asked.common.cpu, asked.common.policy))
                .collect();
            let answered = answer(asked.common.rows, edges, drive, &mut wakeup);
            finished.store(true, Ordering::Release);
            (set_up, answered)
        });
        let thread = thread.map_err(Error::Thread)?;
        while !finished.load(Ordering::Acquire) && !thread.is_finished() {
            if stop.is_interrupted() || deadline.is_some_and(|end| Instant::now() >= end) {
                waker.wake();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let dead = |_| Error::Thread(io::Error::other("it did not finish"));
        thread.join().map_err(dead)
    })?;
    let (answers, failed) = answered;
    let mut steps = Steps::new(&["edge", "stamp", "answered"], asked.common.list);
    for (nth, times) in (0..).zip(&answers.edges) {
        steps.add(nth, &times.map(Some));
    }
    let account = Account {
        rows: answers.edges.len() as u64,
        missed: answers.missed,
        lost: 0,
        begun: 0,
        end: match failed {
            Some(error) => End::Failed(error.to_string()),
            None if stop.is_interrupted() => End::Stopped,
            None => End::Complete,
        },
        refused: set_up.into_iter().filter(|step| !step.ok).collect(),
    };
    Ok((account, steps, Observer::of(&asked.input.chip)))
}

/// Until there are so many, or the thread is woken.
fn answer(
    count: u64,
    mut edges: Edges,
    mut output: Drive,
    wakeup: &mut Wakeup,
) -> (Answers, Option<io::Error>) {
    let mut answers = Answers {
        edges: Vec::with_capacity(usize::try_from(count).unwrap_or(0)),
        missed: 0,
    };
    let clock = RunClock::new(Clock::Monotonic);
    let mut serve = || -> io::Result<()> {
        edges.begin(&clock, clock.now())?;
        while (answers.edges.len() as u64) < count {
            let WaitOutcome::Trigger(trigger) = edges.wait(&clock, wakeup)? else {
                break;
            };
            let stamp = monotonic();
            output.write(u64::from(!edges.is_high()))?;
            answers.edges.push([trigger.time, stamp, monotonic()]);
            answers.missed += trigger.missed;
        }
        Ok(())
    };
    let failed = serve().err();
    (answers, failed)
}
