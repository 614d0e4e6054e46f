// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an advice is worth on this machine, by doing with it and without it in turn.
//!
//! Only what ends with this program is tried. What a run does by itself in any case (memory locked, timer slack) has no
//! other side; what changes the machine for others is never done.

use std::time::Duration;

use serde::Serialize;
use strobe::engine::user::{Lock, WaitMode};
use strobe::plan::CpuLatency;
use strobe::stats::Figures;
use strobe::stop::Stop;
use strobe_files::record::{self as recording, Options};
use strobe_hw::rt;

use super::Intent;
use crate::jitter::Target;
use crate::jitter::pacing::{self, Pacing, PacingSettings, Policy};
use crate::jitter::round::{Round, Show};
use crate::turns::order;

/// 1 kHz, and 3 % of it.
const TARGET: Target = Target {
    period_ns: 1_000_000,
    band_ns: 30_000,
    under_ns: 30_000,
};
/// Of fewer rounds the ranges are apart by chance too often: of 4 and 4 once in 35 times.
const ROUNDS_MIN: usize = 4;
/// Where more CPUs than this are busy with something else, or more of the time is stolen, a difference is theirs.
const FOREIGN_MAX: f64 = 0.25;
const STOLEN_MAX_PERCENT: f64 = 5.0;

/// What the comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Each round with it is better than each without.
    Helps,
    /// The ranges overlap.
    NoDifferenceSeen,
    /// Each round with it is worse than each without.
    Hurts,
}

impl Verdict {
    /// By the ranges over the rounds; less is better. `None` if a side has none.
    fn of(without: Option<Range>, with: Option<Range>) -> Option<Verdict> {
        let (without, with) = (without?, with?);
        Some(match () {
            () if with.most < without.least => Verdict::Helps,
            () if with.least > without.most => Verdict::Hurts,
            () => Verdict::NoDifferenceSeen,
        })
    }
}

/// From the least to the greatest of the rounds, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Range {
    /// That of the best round.
    pub least: i64,
    /// That of the worst.
    pub most: i64,
}

impl Range {
    fn of(values: impl Iterator<Item = i64>) -> Option<Range> {
        values.fold(None, |range: Option<Range>, value| {
            let range = range.unwrap_or(Range {
                least: value,
                most: value,
            });
            Some(Range {
                least: range.least.min(value),
                most: range.most.max(value),
            })
        })
    }
}

/// One figure of lateness, on both sides.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Without what is advised.
    pub without_ns: Option<Range>,
    /// With it.
    pub with_ns: Option<Range>,
    /// Null if it is refused.
    pub verdict: Option<Verdict>,
}

/// What was seen of one advice.
#[derive(Debug, Serialize)]
pub struct Proof {
    /// The check that gives it.
    pub advice: &'static str,
    /// Without it, in words.
    pub without: String,
    /// With it, in words.
    pub with: String,
    /// Half of the rows are not later.
    pub p50: Figure,
    /// 99 of 100 rows are not later.
    pub p99: Figure,
    /// Why there is no verdict.
    pub refused: Option<String>,
}

/// A way to make rows, measured once a round.
struct Side {
    words: String,
    wait: WaitMode,
    asked: PacingSettings,
    rounds: Vec<Round>,
}

/// Measures all sides in turn, each once a round, in another order each time.
///
/// # Errors
/// A run cannot be made.
pub fn prove(
    intent: &Intent,
    time: Duration,
    rounds: u32,
    stop: &Stop,
    show: &Show<'_>,
) -> Result<Vec<Proof>, recording::Error> {
    let (mut sides, pairs) = sides(intent);
    let options = Options {
        duration: Some(time),
        ..Options::default()
    };
    let turns = (0..rounds).flat_map(|round| order(round, sides.len()));
    for turn in turns.collect::<Vec<_>>() {
        if stop.is_interrupted() {
            break;
        }
        let Some(side) = sides.get_mut(turn) else {
            continue;
        };
        let run = Pacing::User(side.wait)
            .run(&side.asked)
            .map_err(engine_error)?;
        let (_, round, _) = Round::measure(run.as_ref(), TARGET, &options, stop, None, show)?;
        side.rounds.push(round);
    }
    let side = |index: usize| sides.get(index);
    let proofs = pairs.into_iter().filter_map(|pair| {
        let (without, with) = (side(pair.without)?, side(pair.with)?);
        Some(judge(pair.advice, without, with))
    });
    Ok(proofs.collect())
}

/// The ways of this command are all of the user engine.
fn engine_error(error: pacing::Error) -> recording::Error {
    match error {
        pacing::Error::Engine(error) | pacing::Error::NoLoop(error) => error.into(),
        pacing::Error::Period => strobe::engine::Error::Period {
            event: "timer".to_owned(),
            period_ns: Some(TARGET.period_ns),
        }
        .into(),
    }
}

/// Two sides, by their numbers.
struct Pair {
    advice: &'static str,
    without: usize,
    with: usize,
}

/// The sides, and which are compared; the first is what a run does if nothing is said.
fn sides(intent: &Intent) -> (Vec<Side>, Vec<Pair>) {
    let side = |words: String, wait, policy, cpu| Side {
        words,
        wait,
        asked: PacingSettings {
            period_ns: TARGET.period_ns,
            policy: Some(policy),
            cpu,
            wake_within: CpuLatency::default(),
            slack_ns: 0,
            steps: Vec::new(),
            board: None,
            lock: Lock::Process,
        },
        rounds: Vec::new(),
    };
    let (cpu, fifo) = (intent.cpu, Policy::As(rt::Policy::Fifo(intent.priority)));
    let plain = format!("block, fifo:{}", intent.priority);
    let mut sides = vec![
        side(plain.clone(), WaitMode::Block, fifo, cpu),
        side(
            "block, other".to_owned(),
            WaitMode::Block,
            Policy::As(rt::Policy::Other),
            cpu,
        ),
        side(
            format!("hybrid, fifo:{}", intent.priority),
            WaitMode::Hybrid,
            fifo,
            cpu,
        ),
    ];
    let mut pairs = vec![pair("fifo", 1, 0), pair("hybrid", 0, 2)];
    let mut asleep = side(
        format!("{plain}, CPUs may sleep"),
        WaitMode::Block,
        fifo,
        cpu,
    );
    asleep.asked.wake_within = CpuLatency(None);
    pairs.push(pair("idle-states", sides.len(), 0));
    sides.push(asleep);
    let all = rt::cpus();
    // One that was asked for is what the other sides have already.
    let (with, without) = match (cpu, all.last()) {
        (Some(_), _) => (
            0,
            side(format!("{plain}, any CPU"), WaitMode::Block, fifo, None),
        ),
        (None, Some(last)) => {
            let pinned = format!("{plain}, CPU {last}");
            (
                sides.len(),
                side(pinned, WaitMode::Block, fifo, Some(*last)),
            )
        }
        (None, None) => return (sides, pairs),
    };
    let without_number = if with == 0 { sides.len() } else { 0 };
    pairs.push(pair("one-cpu", without_number, with));
    sides.push(without);
    (sides, pairs)
}

fn pair(advice: &'static str, without: usize, with: usize) -> Pair {
    Pair {
        advice,
        without,
        with,
    }
}

fn judge(advice: &'static str, without: &Side, with: &Side) -> Proof {
    let refused = why_not(without, with);
    let figure = |of: fn(&Figures) -> Option<i64>| {
        let range = |side: &Side| {
            let late = side
                .rounds
                .iter()
                .filter_map(|round| round.report.late_ns.as_ref());
            Range::of(late.filter_map(of))
        };
        let (without_ns, with_ns) = (range(without), range(with));
        Figure {
            without_ns,
            with_ns,
            verdict: Verdict::of(without_ns, with_ns).filter(|_| refused.is_none()),
        }
    };
    Proof {
        advice,
        without: without.words.clone(),
        with: with.words.clone(),
        p50: figure(|late| late.p50),
        p99: figure(|late| late.p99),
        refused,
    }
}

/// What makes a comparison mean nothing.
fn why_not(without: &Side, with: &Side) -> Option<String> {
    let fewest = without.rounds.len().min(with.rounds.len());
    if fewest < ROUNDS_MIN {
        return Some(format!(
            "{fewest} rounds are too few: a verdict needs {ROUNDS_MIN}"
        ));
    }
    // CPUs that sleep on both sides make no difference between them.
    let awake = (without.asked.wake_within != with.asked.wake_within).then_some("awake CPUs");
    let needed: Vec<&str> = ["policy", "cpu"].into_iter().chain(awake).collect();
    for side in [without, with] {
        // What was not got is not compared.
        let missing = side.rounds.iter().flat_map(|round| &round.set_up);
        if let Some(step) = missing
            .into_iter()
            .find(|step| !step.ok && needed.contains(&step.what.as_ref()))
        {
            let why = step.got.split(": ").next().unwrap_or_default();
            return Some(format!("{} was not granted: {why}", step.what));
        }
        let foreign = mean(side.rounds.iter().map(foreign));
        if foreign > FOREIGN_MAX {
            return Some(format!("other programs kept {foreign:.1} CPUs busy"));
        }
        let stolen = mean(
            side.rounds
                .iter()
                .map(|round| round.stolen_percent.unwrap_or(0.0)),
        );
        if stolen > STOLEN_MAX_PERCENT {
            return Some(format!("a hypervisor took {stolen:.1} % of the time"));
        }
    }
    None
}

/// CPUs that were busy, but not with the run.
fn foreign(round: &Round) -> f64 {
    let own = round.usage.map_or(0.0, |usage| {
        usage.cpu_ns as f64 / (round.elapsed_s * 1e9).max(1.0)
    });
    (round.busy.unwrap_or(0.0) - own).max(0.0)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(least: i64, most: i64) -> Option<Range> {
        Some(Range { least, most })
    }

    #[test]
    fn only_ranges_that_do_not_overlap_are_a_difference() {
        let of = |with| Verdict::of(range(100, 200), with);
        assert_eq!(of(range(50, 99)), Some(Verdict::Helps));
        assert_eq!(of(range(201, 300)), Some(Verdict::Hurts));
        for same in [
            range(50, 100),
            range(200, 300),
            range(120, 130),
            range(0, 900),
        ] {
            assert_eq!(of(same), Some(Verdict::NoDifferenceSeen), "{same:?}");
        }
        assert_eq!(of(None), None);
    }

    #[test]
    fn a_range_is_from_the_least_to_the_greatest() {
        assert_eq!(Range::of([3, 1, 2].into_iter()), range(1, 3));
        assert_eq!(Range::of(std::iter::empty()), None);
    }

    #[test]
    fn each_pair_differs_in_what_it_is_about() {
        for cpu in [None, Some(0)] {
            let intent = Intent {
                cpu,
                ..Intent::default()
            };
            let (sides, pairs) = sides(&intent);
            let advices: Vec<&str> = pairs.iter().map(|pair| pair.advice).collect();
            assert_eq!(advices, ["fifo", "hybrid", "idle-states", "one-cpu"]);
            for pair in &pairs {
                let (without, with) = (&sides[pair.without], &sides[pair.with]);
                let (one, other) = (&without.asked, &with.asked);
                let differs = match pair.advice {
                    "fifo" => {
                        one.policy == Some(Policy::As(rt::Policy::Other))
                            && other.policy != one.policy
                    }
                    "hybrid" => with.wait == WaitMode::Hybrid && without.wait == WaitMode::Block,
                    "idle-states" => {
                        one.wake_within == CpuLatency(None) && other.wake_within != one.wake_within
                    }
                    _ => other.cpu.is_some() && one.cpu.is_none(),
                };
                assert!(
                    differs,
                    "{}: {} and {}",
                    pair.advice, without.words, with.words
                );
            }
        }
    }

    #[test]
    fn too_few_rounds_are_no_proof() {
        let (sides, _) = sides(&Intent::default());
        let proof = judge("hybrid", &sides[0], &sides[2]);
        assert!(proof.refused.is_some_and(|why| why.contains("too few")));
        assert_eq!(proof.p99.verdict, None);
    }
}
