// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late a timer's rows are, and what they cost, beside a bare loop of clock_nanosleep that does nothing but
//! stamp. Both keep the same grid, at the same priority, on the same CPU, and count the points they miss.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use serde::Serialize;
use strobe::clock::monotonic;
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::event::EventSpec;
use strobe::plan::CpuLatency;
use strobe::plan::Plan;
use strobe::rt::{self, Policy, Usage};
use strobe::run::{OwnedRun, Run};
use strobe_hw::cpu_latency_request::CpuLatencyRequest;

/// Rates that are measured.
const RATES: [u64; 2] = [1_000, 10_000];
/// Each way is measured in so many turns, one after the other.
pub const TURNS: u32 = 10;
const PRIORITY: u8 = 60;

/// A way to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitMethod {
    Bare,
    Block,
    Hybrid,
}

impl fmt::Display for WaitMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitMethod::Bare => "bare clock_nanosleep",
            WaitMethod::Block => "strobe, block",
            WaitMethod::Hybrid => "strobe, hybrid",
        })
    }
}

/// What was measured of one way at one rate.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub rate: u64,
    pub way: WaitMethod,
    /// Points of the grid.
    pub triggers: u64,
    pub missed: u64,
    /// From due to stamp, ns, sorted, over all turns.
    #[serde(serialize_with = "percentiles")]
    pub late: Vec<u64>,
    /// Distances of stamps that are off the period by less than 3 %, of all distances.
    pub in_band: u64,
    pub distances: u64,
    /// CPU of the thread, over the time that was measured, in percent.
    pub cpu_percent: f64,
    /// Page faults and involuntary switches of the thread.
    pub faults: u64,
    pub taken: u64,
}

/// One turn.
struct Turn {
    /// Number of the point, and when it was stamped.
    stamps: Vec<(u64, u64)>,
    first_due: u64,
    triggers: u64,
    usage: Usage,
}

/// How many turns there will be.
pub fn turns(seconds: u32) -> u64 {
    match seconds {
        0 => 0,
        _ => RATES.len() as u64 * 3 * u64::from(TURNS),
    }
}

/// All ways at all rates, in turn.
pub fn measure(
    seconds: u32,
    cpu: usize,
    mut tick: impl FnMut(),
) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut figures = Vec::new();
    if seconds == 0 {
        return Ok(figures);
    }
    for rate in RATES {
        let ways = [WaitMethod::Bare, WaitMethod::Block, WaitMethod::Hybrid];
        let mut of_rate = ways.map(|way| Figure::new(rate, way));
        let points = u64::from(seconds) * rate / u64::from(TURNS);
        for turn in 0..TURNS as usize {
            // Who comes first changes: what comes and goes with the time is everybody's.
            for index in (0..ways.len()).map(|index| (index + turn) % ways.len()) {
                let made = match ways[index] {
                    WaitMethod::Bare => bare(rate, points, cpu)?,
                    WaitMethod::Block => engine(rate, points, cpu, WaitMode::Block)?,
                    WaitMethod::Hybrid => engine(rate, points, cpu, WaitMode::Hybrid)?,
                };
                of_rate[index].add(&made, seconds)?;
                tick();
            }
        }
        figures.extend(of_rate.map(Figure::sorted));
    }
    Ok(figures)
}

/// The loop that everybody writes first.
fn bare(rate: u64, points: u64, cpu: usize) -> Result<Turn, Box<dyn Error>> {
    let period = 1_000_000_000 / rate;
    // As a run has them: what is compared is the loop.
    let _awake = CpuLatencyRequest::hold(CpuLatency::default().0);
    let work = std::thread::spawn(move || {
        rt::lock_memory();
        rt::set_up_thread(Some(cpu), Policy::Fifo(PRIORITY));
        let mut stamps = vec![(0, 0); points as usize];
        let before = Usage::of_this_thread();
        let first_due = monotonic() + period;
        let (mut point, mut made) = (0, 0);
        while point < points {
            let due = first_due + point * period;
            let until = Timespec {
                tv_sec: (due / 1_000_000_000) as _,
                tv_nsec: (due % 1_000_000_000) as _,
            };
            while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
            let now = monotonic();
            stamps[made] = (point, now);
            made += 1;
            point = (point + 1).max((now - first_due) / period + 1);
        }
        stamps.truncate(made);
        Turn {
            stamps,
            first_due,
            triggers: point,
            usage: Usage::of_this_thread().since(before),
        }
    });
    work.join().map_err(|_| "the bare loop has panicked".into())
}

/// The same by a run. Its ring holds all rows, so nobody reads meanwhile.
fn engine(rate: u64, points: u64, cpu: usize, wait: WaitMode) -> Result<Turn, Box<dyn Error>> {
    let settings = Settings {
        wait,
        cpu: Some(cpu),
        ..Settings::default()
    };
    let event: EventSpec = format!("timer:{rate}Hz").parse()?;
    let mut plan = Plan::new(event);
    (plan.ring, plan.limit) = (Some(points), Some(points));
    plan.priority = Some(PRIORITY);
    let run = User::new(settings).create(&plan)?;
    let mut reader = run.reader()?;
    run.start()?;
    std::thread::sleep(Duration::from_millis(points * 1000 / rate));
    while !reader.snapshot().state.is_final() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let end = reader.snapshot();
    let row_words = reader.ring().row_words();
    let mut buffer = vec![0; row_words * points as usize];
    let stamps: Vec<_> = reader
        .read(&mut buffer)
        .rows
        .map(|row| (row.trigger, row.time))
        .collect();
    if stamps.len() as u64 + end.missed() != end.triggers {
        return Err(format!("{} rows, {end:?}", stamps.len()).into());
    }
    Ok(Turn {
        stamps,
        first_due: end.start.first_due,
        triggers: end.triggers,
        usage: run.usage().unwrap_or_default(),
    })
}

impl Figure {
    fn new(rate: u64, way: WaitMethod) -> Self {
        Figure {
            rate,
            way,
            triggers: 0,
            missed: 0,
            late: Vec::new(),
            in_band: 0,
            distances: 0,
            cpu_percent: 0.0,
            faults: 0,
            taken: 0,
        }
    }

    fn add(&mut self, turn: &Turn, seconds: u32) -> Result<(), Box<dyn Error>> {
        let period = 1_000_000_000 / self.rate;
        self.triggers += turn.triggers;
        self.missed += turn.triggers - turn.stamps.len() as u64;
        for (point, stamp) in &turn.stamps {
            let due = turn.first_due + point * period;
            let late = stamp.checked_sub(due);
            self.late.push(late.ok_or("a stamp lies before its point")?);
        }
        for pair in turn.stamps.windows(2) {
            let distance = pair[1].1 - pair[0].1;
            self.distances += 1;
            self.in_band += u64::from(distance.abs_diff(period) * 100 < 3 * period);
        }
        self.cpu_percent += turn.usage.cpu_ns as f64 / (f64::from(seconds) * 1e7);
        self.faults += turn.usage.minor_faults + turn.usage.major_faults;
        self.taken += turn.usage.involuntary_switches;
        Ok(())
    }

    fn sorted(mut self) -> Self {
        self.late.sort_unstable();
        self
    }

    /// The lateness that this share of the rows, in 1/10000, does not exceed.
    pub fn late_at(&self, share: usize) -> u64 {
        at(&self.late, share).unwrap_or(0)
    }
}

/// What this share of sorted times, in 1/10000, does not exceed.
pub fn at(sorted: &[u64], share: usize) -> Option<u64> {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * share / 10_000).copied()
}

/// Not all of them into JSON.
pub fn percentiles<S: serde::Serializer>(late: &[u64], to: S) -> Result<S::Ok, S::Error> {
    let shares = [
        ("min", 0),
        ("p50", 5000),
        ("p90", 9000),
        ("p99", 9900),
        ("p99.9", 9990),
        ("max", 10_000),
    ];
    to.collect_map(shares.map(|(name, share)| (name, at(late, share))))
}
