// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the steps of a plan really take on this machine, measured by rows of short runs before the recording.
//!
//! The plan's event is not used for it. Its steps are read on a timer that is faster than they are, so that row follows
//! row: once with a reading of the clock after each step, which tells the steps apart, and once as they are, which tells
//! how fast rows can be, to a period of that timer. Timers in between tell it exactly. The events of a timer are then
//! rehearsed at their own rate.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use strobe::channel::{Channel, Class};
use strobe::engine::DryRun;
use strobe::event::EventSpec;
use strobe::plan::{Plan, Step};
use strobe::program::ProgramText;
use strobe::run::OwnedRun;
use strobe::stats::{Figures, Stats};
use strobe::stop::Stop;
use strobe_files::record::{Error, Observer, Options, Progress, record};
use strobe_hw::rt::Usage;
use strobe_hw::uapi::STEPS_MAX;
use strobe_ring::{Engine, Row};

/// Rows of each short run, unless they take too long.
const ROWS: u64 = 1000;
/// The longest of them.
const AT_MOST: Duration = Duration::from_millis(500);
/// Faster than any row, and the shortest period of a timer.
const FAST_NS: u64 = 1_000;
/// A rate is tried for this time: the machine's own work, such as its tick, comes in between.
const TRIED_NS: u64 = 20_000_000;
/// Of so many triggers one may be missed for that.
const FEW: u64 = 50;
const CLOCK: &str = "clock.time";

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preflight {
    /// Of each step, in its order.
    pub steps: Vec<Cost>,
    /// From row to row, one after the other, ns.
    pub row_ns: Option<Figures>,
    /// Rows a second that the engine makes of these steps at most; in the kernel with what its budget leaves to others.
    pub highest_hz: Option<f64>,
    /// Time until a row is overwritten if nobody reads, s; `None` without a period.
    pub ring_s: Option<f64>,
    /// Share of a CPU that the run takes, percent; `None` without a period.
    pub cpu_percent: Option<f64>,
    /// Some rows at the plan's own rate; `None` if its event has no period.
    pub rehearsal: Option<Rehearsal>,
}

/// What one step takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// The channel or output.
    pub name: String,
    /// From the step before to this one, less a reading of the clock, ns. `None`: it was left out.
    pub ns: Option<Figures>,
}

/// The first rows of the run, without its outputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rehearsal {
    /// Rows made.
    pub rows: u64,
    /// Triggers that made none.
    pub missed: u64,
    /// Time from due to row, ns.
    pub late_ns: Option<Figures>,
    /// What the user engine's thread has cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Preflight {
    /// Whether rows cannot be made as often as the plan wants them.
    pub fn is_impossible(&self, plan: &Plan) -> bool {
        let asked = plan.event.period_ns().map(|period| 1e9 / period as f64);
        asked
            .zip(self.highest_hz)
            .is_some_and(|(asked, highest)| asked > highest)
    }
}

/// Measures `plan`, of which `dry` is known, and whose runs `create` makes. Its outputs are written only if `writes` says
/// so.
///
/// # Errors
/// A run cannot be made, or not be started.
pub fn measure<E: From<Error>>(
    create: impl Fn(&Plan) -> Result<Arc<dyn OwnedRun>, E>,
    plan: &Plan,
    dry: &DryRun,
    writes: bool,
) -> Result<Preflight, E> {
    let options = Options {
        duration: Some(AT_MOST),
        ..Options::default()
    };
    // It computes on each trigger, and makes a row of each.
    let program = ProgramText {
        tunables: plan.program.tunables.clone(),
        derive: plan.program.derive.clone(),
        variables: plan.program.variables.clone(),
        rules: plan.program.rules.clone(),
        ..ProgramText::default()
    };
    let run = |event: EventSpec,
               steps: &[Step],
               program: &ProgramText,
               rows: u64,
               observer: &mut dyn Observer| {
        let run = create(&Plan {
            event,
            steps: steps.to_vec(),
            limit: Some(rows),
            ring: Some(2 * rows),
            program: program.clone(),
            ..plan.clone()
        })?;
        Ok::<_, E>(record(run.as_ref(), &options, &Stop::default(), observer)?)
    };
    // What rules write is seldom done, and is left out.
    let is_done = |step: &&Step| match step {
        Step::Read(_) => true,
        Step::Write { .. } => writes,
        Step::Act { .. } => false,
    };
    let steps: Vec<Step> = plan.steps.iter().filter(is_done).cloned().collect();
    let fast = || EventSpec::timer(FAST_NS);

    let mut between = Between::new(&steps);
    // The program may need columns that are left out here.
    let none = ProgramText::default();
    run(fast(), &between.steps.clone(), &none, ROWS, &mut between)?;
    let fastest = run(fast(), &steps, &program, ROWS, &mut |_| {})?;
    let mean = fastest.period_ns.as_ref().map(|figures| figures.mean);
    // A thread shares its CPU with others, and may keep up at one moment and not at the next.
    let shortest = match mean.filter(|_| fastest.engine == Engine::Kernel) {
        None => mean,
        Some(mean) => Some(shortest(mean, |period| {
            // What the run before has taken beyond its budget is paid back: else it would be taken from this one.
            thread::sleep(Duration::from_nanos(TRIED_NS));
            let rows = ROWS.max(TRIED_NS / period);
            let summary = run(
                EventSpec::timer(period),
                &steps,
                &program,
                rows,
                &mut |_| {},
            )?;
            Ok::<_, E>(summary.missed * FEW <= summary.rows)
        })?),
    };
    let rehearsal = match plan.event.period_ns() {
        Some(_) => Some(run(
            plan.event.clone(),
            &steps,
            &program,
            ROWS,
            &mut |_| {},
        )?),
        None => None,
    };

    let period = plan.event.period_ns().map(|ns| ns as f64);
    let cpu_percent = match fastest.engine {
        // At its fastest it takes all that the budget allows.
        Engine::Kernel => (|| Some(budget_percent()? * shortest? / period?))(),
        _ => rehearsal.as_ref().and_then(|summary| {
            let usage = summary.usage.as_ref()?;
            Some(100.0 * usage.cpu_ns as f64 / (summary.elapsed_s * 1e9).max(1.0))
        }),
    };
    let mut costs = between.costs.into_iter();
    let cost = |step: &Step| Cost {
        name: step.name().to_owned(),
        ns: match is_done(&step) {
            true => costs.next().and_then(|ns| ns.figures()),
            false => None,
        },
    };
    Ok(Preflight {
        steps: plan.steps.iter().map(cost).collect(),
        row_ns: fastest.period_ns,
        highest_hz: shortest.map(|ns| 1e9 / ns.max(1.0)),
        ring_s: period.map(|ns| dry.ring_rows as f64 * ns / 1e9),
        cpu_percent: cpu_percent.map(|percent| percent.min(100.0)),
        rehearsal: rehearsal.map(|summary| Rehearsal {
            rows: summary.rows,
            missed: summary.missed,
            late_ns: summary.late_ns,
            usage: summary.usage,
        }),
    })
}

/// What the drivers say that a row takes, if that is more than its period.
pub fn too_long(channels: &[Channel], period_ns: Option<u64>) -> Option<u64> {
    // Values that arrive later are awaited together.
    let one_by_one = channels.iter().filter(|c| c.class != Class::Async);
    let cost = one_by_one.map(|c| u64::from(c.cost_ns)).sum();
    period_ns.and_then(|period| (cost > period).then_some(cost))
}

/// The shortest period at which rows keep up, ns: to two parts in a hundred. `mean` is from row to row on the fast timer,
/// where each waits for its next point, and for one more if the budget is used up just then: too long by up to two of its
/// periods.
fn shortest<E>(mean: f64, keeps_up: impl Fn(u64) -> Result<bool, E>) -> Result<f64, E> {
    let fast = FAST_NS as f64;
    let mut enough = mean.max(fast);
    let mut too_short = (enough - 2.0 * fast).max(fast);
    while enough - too_short > enough / 50.0 {
        let between = (enough + too_short) / 2.0;
        match keeps_up(between as u64)? {
            true => enough = between,
            false => too_short = between,
        }
    }
    Ok(enough)
}

/// Percent of a CPU that the kernel engine's interrupts may take; `None` if the module does not say.
fn budget_percent() -> Option<f64> {
    let text = std::fs::read_to_string("/sys/module/strobe/parameters/budget").ok()?;
    text.trim_end().parse().ok()
}

/// The time of each step: the clock is read before the first, after it, and so on. Between two readings with nothing in
/// between is what a reading takes.
struct Between {
    steps: Vec<Step>,
    /// Columns of the clock: before the first step, and after each.
    clocks: Vec<usize>,
    costs: Vec<Stats>,
}

impl Between {
    fn new(steps: &[Step]) -> Between {
        let clock = || Step::Read(CLOCK.to_owned());
        let mut all = vec![clock(), clock()];
        let (mut clocks, mut columns) = (vec![1], 2);
        // A row of very many channels has no room for as many clocks: the last are not told apart.
        for step in steps.iter().take((STEPS_MAX - all.len()) / 2) {
            all.extend([step.clone(), clock()]);
            columns += usize::from(matches!(step, Step::Read(_)));
            clocks.push(columns);
            columns += 1;
        }
        Between {
            costs: vec![Stats::default(); clocks.len() - 1],
            steps: all,
            clocks,
        }
    }
}

impl Observer for Between {
    fn row(&mut self, row: &Row<'_>) {
        let time = |column: usize| row.values.get(column).copied().unwrap_or(0);
        let reading = time(1).saturating_sub(time(0));
        let after = self.clocks.iter().skip(1);
        for ((before, after), cost) in self.clocks.iter().zip(after).zip(&mut self.costs) {
            let ns = time(*after).saturating_sub(time(*before));
            cost.add(ns.saturating_sub(reading).try_into().unwrap_or(i64::MAX));
        }
    }

    fn progress(&mut self, _: Progress) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe_ring::{RowShape, Rows};

    fn read(name: &str) -> Step {
        Step::Read(name.to_owned())
    }

    fn write() -> Step {
        let output = "sim.level".to_owned();
        Step::Write { output, value: 1 }
    }

    #[test]
    fn a_step_takes_the_time_between_two_clocks_less_a_reading() {
        let mut between = Between::new(&[read("a.x"), write(), read("a.y")]);
        // Header; clock, clock, x, clock, (write,) clock, y, clock.
        let words = [0, 0, 0, 0, 1000, 1010, 7, 1120, 1150, 8, 1165];
        Rows::new(&words, RowShape::of_channels(7)).for_each(|row| between.row(&row));
        let costs = between.costs.iter().map(|cost| cost.max());
        assert_eq!(costs.collect::<Vec<_>>(), [Some(100), Some(20), Some(5)]);
    }

    #[test]
    fn a_row_never_has_more_steps_than_it_may() {
        for steps in [0, 1, 510, 511, 512, STEPS_MAX] {
            let between = Between::new(&vec![read("a.x"); steps]);
            assert!(between.steps.len() <= STEPS_MAX, "{steps}");
            assert_eq!(between.costs.len(), steps.min(511), "{steps}");
        }
    }

    #[test]
    fn the_shortest_period_is_found_between_two_points_of_the_fast_timer() {
        for needed in [300, 1000, 1001, 1999, 2405, 30_017, 1_000_000] {
            // As rows on the fast timer are: at its next point, or at the one after it, for the budget.
            for point in [0.0, 1.0] {
                let points = (needed as f64 / FAST_NS as f64).ceil() + point;
                let mean = FAST_NS as f64 * points;
                let found = shortest(mean, |period| Ok::<_, ()>(period >= needed));
                let found = found.expect("a period");
                let right = needed.max(FAST_NS) as f64;
                assert!(
                    (right - 1.0..=right * 1.021).contains(&found),
                    "{needed}, {point}: {found}"
                );
            }
        }
    }

    #[test]
    fn what_is_faster_than_the_fastest_is_impossible_and_what_has_no_period_is_not() {
        let mut preflight = Preflight {
            steps: Vec::new(),
            row_ns: None,
            highest_hz: Some(10_000.0),
            ring_s: None,
            cpu_percent: None,
            rehearsal: None,
        };
        let plan = |event: &str| Plan::new(event.parse().expect("an event"));
        assert!(preflight.is_impossible(&plan("timer:90us")));
        assert!(!preflight.is_impossible(&plan("timer:100us")));
        assert!(!preflight.is_impossible(&plan("soft")));
        preflight.highest_hz = None;
        assert!(!preflight.is_impossible(&plan("timer:1us")));
    }
}
