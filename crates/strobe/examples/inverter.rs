// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inverts a line: answers each edge of IN by driving OUT to the other level.
//!
//!     inverter CHIP IN OUT [--wait block|spin] [--edges N] [--priority P] [--cpu N]
//!
//! `block` sleeps until the kernel reports an edge; `spin` reads the level all the time, and takes a CPU for
//! itself. Ends after N edges, or when none has come for a second (ten for the first), and says how many it
//! answered, how many the kernel says it missed, and the price: CPU time from the first edge to the last.
//! How fast it was, others have to say: a program that measures itself does not see its own waking up.

use std::env;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use strobe::clock::{RunClock, monotonic};
use strobe::engine::user::WaitMode;
use strobe::engine::user::gpio::{Drive, Gpio};
use strobe::engine::user::provider::WriteOutput;
use strobe::engine::user::trigger::{EventSource, WaitOutcome};
use strobe::event::Edge;
use strobe::info::Clock;
use strobe::rt::{self, Policy};
use strobe::wakeup::{Waker, Wakeup, wakeup};

const USAGE: &str =
    "usage: inverter CHIP IN OUT [--wait block|spin] [--edges N] [--priority P] [--cpu N]";

struct Options {
    chip: String,
    input: String,
    output: String,
    wait: WaitMode,
    edges: u64,
    priority: u8,
    cpu: Option<usize>,
}

fn main() -> ExitCode {
    let done = options().and_then(|options| run(&options));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("inverter: {why}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
        text.parse()
            .map_err(|_| format!("{text}: not a number that can be used here; {USAGE}"))
    }
    let (mut wait, mut edges, mut priority, mut cpu) = (WaitMode::Block, u64::MAX, 80, None);
    let mut places = Vec::new();
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(USAGE);
        match word.as_str() {
            "--wait" => {
                wait = match value()?.as_str() {
                    "block" => WaitMode::Block,
                    "spin" => WaitMode::Spin,
                    _ => return Err(USAGE.to_owned()),
                }
            }
            "--edges" => edges = number(&value()?)?,
            "--priority" => priority = number(&value()?)?,
            "--cpu" => cpu = Some(number(&value()?)?),
            _ => places.push(word),
        }
    }
    let [chip, input, output] = places.try_into().map_err(|_| USAGE)?;
    Ok(Options {
        chip,
        input,
        output,
        wait,
        edges,
        priority,
        cpu,
    })
}

fn run(options: &Options) -> Result<(), String> {
    let (waker, mut wakeup) = wakeup().map_err(|error| error.to_string())?;
    let count = AtomicU64::new(0);
    rt::lock_memory();
    let line = thread::scope(|scope| {
        let answering = scope.spawn(|| {
            report(&rt::set_up_thread(
                options.cpu,
                Policy::Fifo(options.priority),
            ));
            answer(options, &mut wakeup, &count)
        });
        // Above the other one, which may have the only CPU to itself.
        scope
            .spawn(|| {
                rt::set_up_thread(None, Policy::Fifo(options.priority.saturating_add(1)));
                watch(&waker, &count, || answering.is_finished());
                answering.join()
            })
            .join()
    });
    match line {
        Ok(Ok(Ok(line))) => {
            println!("{line}");
            Ok(())
        }
        Ok(Ok(Err(why))) => Err(why),
        _ => Err("a thread has died".to_owned()),
    }
}

fn report(steps: &[rt::Step]) {
    for step in [rt::lock_memory()]
        .iter()
        .chain(steps)
        .filter(|step| !step.ok)
    {
        eprintln!("inverter: {}: {}", step.what, step.got);
    }
}

/// Rings when no edge has come for too long.
fn watch(waker: &Waker, count: &AtomicU64, is_finished: impl Fn() -> bool) {
    let (mut before, mut patience) = (0, 100);
    while !is_finished() && patience > 0 {
        thread::sleep(Duration::from_millis(100));
        let now = count.load(Ordering::Relaxed);
        patience = if now > before { 10 } else { patience - 1 };
        before = now;
    }
    waker.wake();
}

/// The price of answering: time and CPU time since the first edge.
#[derive(Default)]
struct Price {
    start: Option<(u64, u64)>,
    last: u64,
}

impl Price {
    /// An edge has been answered.
    fn edge(&mut self) {
        self.last = monotonic();
        self.start.get_or_insert_with(|| (self.last, cpu_time()));
    }

    fn line(&self, answered: u64, missed: u64) -> String {
        let (start, cpu_start) = self.start.unwrap_or_default();
        let (wall, cpu) = (
            self.last.saturating_sub(start),
            cpu_time().saturating_sub(cpu_start),
        );
        format!("answered {answered} missed {missed} wall_ns {wall} cpu_ns {cpu}")
    }
}

fn cpu_time() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}

fn answer(options: &Options, wakeup: &mut Wakeup, count: &AtomicU64) -> Result<String, String> {
    let gpio = Gpio::default();
    let output = gpio.drive(&options.chip, &options.output)?;
    let failed = |error: io::Error| format!("{}: {error}", options.chip);
    match options.wait {
        WaitMode::Spin => spin(options, &gpio, output, wakeup, count)?.map_err(failed),
        _ => block(options, &gpio, output, wakeup, count)?.map_err(failed),
    }
}

type Answered = Result<io::Result<String>, String>;

fn block(
    options: &Options,
    gpio: &Gpio,
    mut output: Drive,
    wakeup: &mut Wakeup,
    count: &AtomicU64,
) -> Answered {
    let mut edges = gpio.edges(&options.chip, &options.input, Edge::Both, options.wait)?;
    let mut serve = || {
        let clock = RunClock::new(Clock::Monotonic);
        let (mut price, mut answered, mut missed) = (Price::default(), 0, 0);
        edges.begin(&clock, clock.now())?;
        while answered + missed < options.edges {
            let WaitOutcome::Trigger(trigger) = edges.wait(&clock, wakeup)? else {
                break;
            };
            output.write(u64::from(!edges.is_high()))?;
            price.edge();
            answered += 1;
            missed += trigger.missed;
            count.store(answered, Ordering::Relaxed);
        }
        Ok(price.line(answered, missed))
    };
    Ok(serve())
}

fn spin(
    options: &Options,
    gpio: &Gpio,
    mut output: Drive,
    wakeup: &mut Wakeup,
    count: &AtomicU64,
) -> Answered {
    let input = gpio.level(&options.chip, &options.input)?;
    let mut serve = || {
        let (mut price, mut answered) = (Price::default(), 0);
        let mut before = input.is_high()?;
        output.write(u64::from(!before))?;
        while answered < options.edges && !wakeup.is_pending() {
            let high = input.is_high()?;
            if high != before {
                output.write(u64::from(!high))?;
                price.edge();
                before = high;
                answered += 1;
                count.store(answered, Ordering::Relaxed);
            }
        }
        // It was busy to the end, whether there were edges or not.
        price.last = monotonic();
        Ok(price.line(answered, 0))
    };
    Ok(serve())
}
