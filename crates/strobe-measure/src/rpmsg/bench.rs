// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it takes to make and end an endpoint, as a file and, where the stock driver is, as a node.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use strobe::stats::{Figures, Stats};
use strobe::stop::Stop;
use strobe_hw::rpmsg::{Address, Control, Endpoint, Error};

use crate::machine::Machine;
use crate::turns::order;

/// The stock driver's first control node.
const STOCK: &str = "rpmsg_ctrl0";

/// A node that has not come after this does not come.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The control node, such as strobe_rpmsg0.
    pub control: Option<String>,
    /// The stock driver's control node.
    pub stock: Option<String>,
    /// Endpoints in a round.
    pub count: u32,
    /// Rounds.
    pub rounds: u32,
    /// Make the endpoints of a round by so many threads at once; files only.
    pub threads: u32,
    /// So many other endpoints are there meanwhile; what one takes of memory is measured.
    pub live: u32,
}

/// How an endpoint is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointKind {
    /// The stock driver's.
    Node,
    /// strobe_rpmsg's.
    File,
}

/// Its steps.
const STEPS: [&str; 5] = ["create", "open", "destroy", "close", "all"];

/// Nanoseconds of each of STEPS.
type Times = [u64; 4];

/// What reading the clock takes, ns: no step's own.
#[derive(Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Clock(pub u64);

/// Times of the endpoints of a way, and of its rounds.
struct Sums {
    stats: Vec<Stats>,
    each_ns: Vec<f64>,
}

/// A case, in all rounds.
#[derive(Serialize)]
pub struct EndpointTimes {
    /// What the thread sleeps in.
    pub way: EndpointKind,
    /// Of each step, over all rounds, ns; null if the way has no such step.
    pub steps: Vec<(&'static str, Option<Figures>)>,
    /// Time of each whole round by its number of endpoints, ns.
    pub each_ns: Vec<f64>,
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcome {
    /// A signal came: this is what there was until then.
    pub interrupted: bool,
    /// Why it ended early; null if it did not.
    pub error: Option<String>,
    /// Why nodes were not measured; null if they were, or were not to be.
    pub without_nodes: Option<String>,
    /// Endpoints of a round.
    pub count: u32,
    /// Threads that make them.
    pub threads: u32,
    /// Other endpoints that are there.
    pub live: u32,
    /// What reading the clock takes, ns; taken off each step.
    pub clock_ns: Clock,
    /// Bytes of memory that one more endpoint takes; null without `--live`.
    pub bytes: Option<i64>,
    /// Where it was measured.
    pub machine: Machine,
    /// Each case.
    pub ways: Vec<EndpointTimes>,
    /// How many times longer a node takes than a file: of the medians, and of each round.
    pub ratio: Option<f64>,
    /// The same of each round.
    pub round_ratios: Vec<f64>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The endpoint's reason.
    #[error(transparent)]
    Rpmsg(#[from] Error),
    /// A node cannot be opened.
    #[error("{path}: {source}")]
    Node {
        /// The node.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A thread cannot be had, or has died.
    #[error("a thread did not finish")]
    Thread,
}

/// Makes endpoints both ways in turn, in another order each round.
///
/// # Errors
/// Nothing was measured; why.
pub fn measure(asked: &Options, stop: &Stop) -> Result<Outcome, Failure> {
    let control = Control::find(asked.control.as_deref())?;
    let address = Address {
        name: "strobe-bench".to_owned(),
        src: None,
        dst: None,
    };
    let (stock, without_nodes) = stock(asked)?;
    let clock = Clock::measure();
    let (bytes, _live) = live(&control, &address, asked.live)?;
    let machine = Machine::from_now();
    let mut ways = vec![EndpointKind::File];
    ways.extend(stock.as_ref().map(|_| EndpointKind::Node));
    let mut sums: Vec<Sums> = ways.iter().map(|_| Sums::new()).collect();
    let mut error = None;
    'rounds: for round in 0..asked.rounds {
        for turn in order(round, ways.len()) {
            let Some((way, sums)) = ways.get(turn).zip(sums.get_mut(turn)) else {
                continue;
            };
            let begun = Instant::now();
            let done = match (way, &stock) {
                (EndpointKind::Node, Some(stock)) => {
                    once_each(asked.count, stop, &mut sums.stats, || {
                        stock.once(&address, clock)
                    })
                }
                _ => files(&control, &address, asked, clock, stop, &mut sums.stats),
            };
            match done {
                Err(why) if round == 0 => return Err(why),
                Err(why) => error = Some(why.to_string()),
                Ok(()) if stop.is_interrupted() => {}
                Ok(()) => {
                    let ns = begun.elapsed().as_nanos() as f64;
                    sums.each_ns.push(ns / f64::from(asked.count));
                    continue;
                }
            }
            break 'rounds;
        }
    }
    let all: Vec<EndpointTimes> = std::iter::zip(ways, sums)
        .map(|(way, sums)| EndpointTimes {
            way,
            steps: std::iter::zip(STEPS, sums.stats.iter().map(Stats::figures)).collect(),
            each_ns: sums.each_ns,
        })
        .collect();
    let by = |way| all.iter().find(|it| it.way == way);
    let median = |it: &EndpointTimes| {
        it.steps
            .last()
            .and_then(|(_, figures)| figures.as_ref()?.p50)
    };
    let (file, node) = (by(EndpointKind::File), by(EndpointKind::Node));
    let ratio = node.and_then(median).zip(file.and_then(median));
    let rounds = node.zip(file).map(|(node, file)| {
        std::iter::zip(&node.each_ns, &file.each_ns)
            .map(|(node, file)| node / file)
            .collect()
    });
    Ok(Outcome {
        interrupted: stop.is_interrupted(),
        error,
        without_nodes,
        count: asked.count,
        threads: asked.threads,
        live: asked.live,
        clock_ns: clock,
        bytes,
        machine: machine.until_now(),
        ratio: ratio.map(|(node, file)| node as f64 / file as f64),
        round_ratios: rounds.unwrap_or_default(),
        ways: all,
    })
}

/// The stock driver, if it is there, or why it is not measured.
fn stock(asked: &Options) -> Result<(Option<Stock>, Option<String>), Failure> {
    if let Some(name) = &asked.stock {
        return Ok((Some(Stock::new(name)?), None));
    }
    if asked.threads > 1 {
        return Ok((None, None));
    }
    // It belongs to root: who may have endpoints as files need not be that.
    match Stock::new(STOCK) {
        Ok(stock) => Ok((Some(stock), None)),
        Err(Failure::Node { path, source }) => {
            Ok((None, Some(format!("{}: {source}", path.display()))))
        }
        Err(other) => Err(other),
    }
}

impl Sums {
    fn new() -> Sums {
        Sums {
            stats: STEPS.map(|_| Stats::around(0)).into(),
            each_ns: Vec::new(),
        }
    }
}

fn add(stats: &mut [Stats], times: Times) {
    let all: u64 = times.iter().sum();
    for (stats, ns) in std::iter::zip(stats, times.into_iter().chain([all])) {
        // A step that a way does not have.
        if ns > 0 {
            stats.add(i64::try_from(ns).unwrap_or(i64::MAX));
        }
    }
}

/// So many endpoints, one after the other, unless it is interrupted.
fn once_each(
    count: u32,
    stop: &Stop,
    stats: &mut [Stats],
    mut once: impl FnMut() -> Result<Times, Failure>,
) -> Result<(), Failure> {
    for _ in 0..count {
        if stop.is_interrupted() {
            break;
        }
        add(stats, once()?);
    }
    Ok(())
}

fn files(
    control: &Control,
    address: &Address,
    asked: &Options,
    clock: Clock,
    stop: &Stop,
    stats: &mut [Stats],
) -> Result<(), Failure> {
    let once = || Ok(file(control, address, clock)?);
    if asked.threads == 1 {
        return once_each(asked.count, stop, stats, once);
    }
    let work = |thread: u32| {
        // Together as many as were asked for.
        let some = asked.count / asked.threads + u32::from(thread < asked.count % asked.threads);
        (0..some)
            .take_while(|_| !stop.is_interrupted())
            .map(|_| once())
            .collect::<Result<Vec<Times>, Failure>>()
    };
    let all = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..asked.threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join())
            .collect::<Vec<_>>()
    });
    for times in all {
        for times in times.map_err(|_| Failure::Thread)?? {
            add(stats, times);
        }
    }
    Ok(())
}

/// Now, ns. An `Instant` takes twice as many instructions, nearly as many as a system call.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Clock {
    fn measure() -> Clock {
        let (mut since, clock) = (now(), Clock(0));
        let mut all: Vec<u64> = (0..1001).map(|_| clock.lap(&mut since)).collect();
        all.sort_unstable();
        Clock(all.get(all.len() / 2).copied().unwrap_or(0))
    }

    /// What has passed since, and now.
    fn lap(self, since: &mut u64) -> u64 {
        let now = now();
        let ns = now - std::mem::replace(since, now);
        // Nothing takes no time at all: 0 says that there was no such step.
        ns.saturating_sub(self.0).max(1)
    }
}

/// One endpoint as a file.
fn file(control: &Control, address: &Address, clock: Clock) -> Result<Times, Error> {
    let mut since = now();
    let endpoint = control.create(address)?;
    let create = clock.lap(&mut since);
    endpoint.destroy()?;
    let destroy = clock.lap(&mut since);
    drop(endpoint);
    Ok([create, 0, destroy, clock.lap(&mut since)])
}

/// The stock driver's way.
struct Stock {
    control: Control,
    /// The node that the next endpoint gets: the lowest number that is free.
    node: PathBuf,
}

impl Stock {
    fn new(control: &str) -> Result<Stock, Failure> {
        let node = (0..).map(|number| PathBuf::from(format!("/dev/rpmsg{number}")));
        let free = node.into_iter().find(|node| !node.exists());
        let opened =
            Control::open(&Path::new("/dev").join(control)).map_err(|error| match error {
                Error::Open { path, source } => Failure::Node { path, source },
                other => other.into(),
            })?;
        Ok(Stock {
            control: opened,
            node: free.unwrap_or_default(),
        })
    }

    fn once(&self, address: &Address, clock: Clock) -> Result<Times, Failure> {
        let mut since = now();
        self.control.create_node(address)?;
        let create = clock.lap(&mut since);
        let endpoint = Endpoint::from(self.open()?);
        let open = clock.lap(&mut since);
        endpoint.destroy()?;
        let destroy = clock.lap(&mut since);
        drop(endpoint);
        Ok([create, open, destroy, clock.lap(&mut since)])
    }

    /// The node is there as soon as the kernel's thread for nodes has made it.
    fn open(&self) -> Result<File, Failure> {
        let begun = Instant::now();
        loop {
            match OpenOptions::new().read(true).write(true).open(&self.node) {
                Ok(file) => return Ok(file),
                Err(error)
                    if begun.elapsed() < PATIENCE && error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    let path = self.node.clone();
                    return Err(Failure::Node { path, source });
                }
            }
        }
    }
}

/// Endpoints that stay, and what one takes of memory. That is measured with the second half of them: the first takes what
/// the kernel has kept of endpoints that have gone.
fn live(
    control: &Control,
    address: &Address,
    count: u32,
) -> Result<(Option<i64>, Vec<Endpoint>), Failure> {
    let create = |count: u32| (0..count).map(|_| control.create(address));
    let (first, second) = (count / 2, count - count / 2);
    let mut all = create(first).collect::<Result<Vec<Endpoint>, Error>>()?;
    let before = free_bytes();
    all.extend(create(second).collect::<Result<Vec<Endpoint>, Error>>()?);
    let taken = before
        .zip(free_bytes())
        .map(|(before, after)| before - after);
    let each = taken
        .filter(|_| count > 0)
        .map(|bytes| bytes / i64::from(second));
    Ok((each, all))
}

/// Memory that nobody uses: free pages of all zones, and those that each CPU keeps for itself, which MemFree leaves out.
fn free_bytes() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/zoneinfo").ok()?;
    let pages = free_pages(&text)?;
    Some(pages * i64::try_from(rustix::param::page_size()).ok()?)
}

fn free_pages(zoneinfo: &str) -> Option<i64> {
    let pages = |line: &str| -> Option<i64> {
        let line = line.trim_start();
        let number = line
            .strip_prefix("pages free")
            .or_else(|| line.strip_prefix("count:"))?;
        number.trim().parse().ok()
    };
    zoneinfo
        .lines()
        .filter_map(pages)
        .reduce(|all, more| all + more)
}

#[cfg(test)]
mod tests {
    use super::free_pages;

    #[test]
    fn pages_that_a_cpu_keeps_are_free_too() {
        let zoneinfo = "Node 0, zone      DMA\n  pages free     3840\n        boost    0\n  pagesets\n    cpu: 0\n              count:    12\n              high:     30\n    cpu: 1\n              count:    5\nNode 0, zone    DMA32\n  pages free     100\n";
        assert_eq!(free_pages(zoneinfo), Some(3840 + 12 + 5 + 100));
        assert_eq!(free_pages("nothing of the kind\n"), None);
    }
}
