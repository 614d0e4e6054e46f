// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter in hardware that judges the rows: each row raises and lowers an output of its board, and the board counts the
//! periods between the rising edges that are in range, longer and shorter. No clock of this machine has a part in it.
//!
//! The board has the outputs `output`, `nominal`, `tolerance` and `clear`, and the channels `edges`, `in_range`, `over`,
//! `under`, `longest` and `shortest`, as boards/lab-counter.toml describes them.

use serde::Serialize;
use strobe::once::{self, Once, once};
use strobe::plan::Step;
use strobe::select::{self, Selection};

use super::Target;

/// What `clear` takes to zero the counts of the output.
const CLEAR: u64 = 2;
const COUNTS: [&str; 6] = ["edges", "in_range", "over", "under", "longest", "shortest"];

/// A device that judges.
pub struct Judge {
    /// Its name in the catalogue.
    pub device: String,
    /// The engine that reaches it.
    pub engine: Selection,
}

/// What the counter says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CounterReport {
    /// Rising edges: rows.
    pub edges: u64,
    /// Periods in the band.
    pub in_range: u64,
    /// Longer ones.
    pub over: u64,
    /// Shorter ones.
    pub under: u64,
    /// The longest, ns; 0 without any.
    pub longest_ns: u64,
    /// The shortest, ns; 0 without any.
    pub shortest_ns: u64,
}

/// Why the counter does not judge.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It judges by one distance.
    #[error(
        "a hardware counter has one tolerance for both sides; give a band that is as wide above as below"
    )]
    Band,
    /// There is no engine that has it.
    #[error(transparent)]
    Select(#[from] select::Error),
    /// It cannot be read or written.
    #[error(transparent)]
    Once(#[from] once::Error),
    /// A register of it does not answer.
    #[error("{0}: it cannot be read or written now; is the card still there?")]
    Failed(String),
}

impl Judge {
    /// What a row does for it.
    pub fn steps(&self) -> Vec<Step> {
        [1, 0].map(|level| self.write("output", level)).into()
    }

    /// The next edge has none before it, and periods are judged by this.
    ///
    /// # Errors
    /// The counter cannot be had, or not judge by this.
    pub fn begin(&self, target: Target) -> Result<(), Error> {
        if target.band_ns != target.under_ns {
            return Err(Error::Band);
        }
        self.row(vec![
            self.write("output", 0),
            self.write("nominal", target.period_ns),
            self.write("tolerance", target.band_ns),
            self.write("clear", CLEAR),
        ])?;
        // That it has these is known before anything is measured.
        self.end().map(|_| ())
    }

    /// What it has counted since.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn end(&self) -> Result<CounterReport, Error> {
        let name = |count: &str| format!("{}.{count}", self.device);
        let row = self.row(COUNTS.iter().map(|count| Step::Read(name(count))).collect())?;
        let word = |nth: usize| row.values.get(nth).and_then(|(_, word)| *word).unwrap_or(0);
        Ok(CounterReport {
            edges: word(0),
            in_range: word(1),
            over: word(2),
            under: word(3),
            longest_ns: word(4),
            shortest_ns: word(5),
        })
    }

    fn write(&self, output: &str, value: u64) -> Step {
        Step::Write {
            output: format!("{}.{output}", self.device),
            value,
        }
    }

    fn row(&self, steps: Vec<Step>) -> Result<Once, Error> {
        let plan = once::plan(steps);
        let run = self.engine.choose(&plan)?.create(&plan);
        let row = once(run.map_err(once::Error::from)?.as_ref())?;
        let channels = row.values.iter();
        let channels =
            channels.filter_map(|(channel, word)| word.is_none().then_some(&channel.name));
        let outputs = row.outputs.iter();
        let outputs = outputs.filter_map(|(output, written)| (!written).then_some(output));
        match channels.chain(outputs).next() {
            Some(name) => Err(Error::Failed(name.clone())),
            None => Ok(row),
        }
    }
}

impl CounterReport {
    /// Those of another round as well.
    pub fn merge(&mut self, other: CounterReport) {
        self.edges += other.edges;
        self.in_range += other.in_range;
        self.over += other.over;
        self.under += other.under;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        // Without any period there is none that could be the shortest.
        self.shortest_ns = match (self.shortest_ns, other.shortest_ns) {
            (0, shortest) | (shortest, 0) => shortest,
            (one, another) => one.min(another),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::select::EnginePreference;

    fn judge() -> Judge {
        Judge {
            device: "counter".into(),
            engine: Selection {
                engine: EnginePreference::User,
                ..Selection::default()
            },
        }
    }

    #[test]
    fn a_row_raises_the_output_once() {
        let steps = judge().steps();
        let names: Vec<&str> = steps.iter().map(Step::name).collect();
        assert_eq!(names, ["counter.output", "counter.output"]);
    }

    #[test]
    fn a_band_that_is_wider_on_one_side_is_refused_and_so_is_a_counter_that_is_not_there() {
        let target = Target {
            period_ns: 1000,
            band_ns: 30,
            under_ns: 20,
        };
        let error = judge().begin(target).expect_err("two widths").to_string();
        assert!(error.contains("as wide above as below"), "{error}");
        let target = Target {
            under_ns: 30,
            ..target
        };
        let error = judge().begin(target).expect_err("no card").to_string();
        assert!(
            error.contains("output counter.output: no such output"),
            "{error}"
        );
    }

    #[test]
    fn rounds_are_added_up() {
        let mut all = CounterReport::default();
        for (longest_ns, shortest_ns) in [(12, 9), (0, 0), (15, 8)] {
            all.merge(CounterReport {
                edges: 10,
                in_range: 7,
                over: 1,
                under: 1,
                longest_ns,
                shortest_ns,
            });
        }
        assert_eq!((all.edges, all.in_range), (30, 21));
        assert_eq!((all.longest_ns, all.shortest_ns), (15, 8));
    }
}
