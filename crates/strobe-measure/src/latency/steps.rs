// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a row, from what made it to who reads it, as differences between instants.

use serde::Serialize;
use strobe::stats::{Figures, Stats};

/// Instants that each row passes, in their order; statistics of the steps between them.
#[derive(Debug, Clone)]
pub struct Steps {
    points: Vec<&'static str>,
    /// From each point to the next.
    steps: Vec<Stats>,
    /// From the first to the last.
    whole: Stats,
    /// Of each row, its number and the time of each point, if they are to be listed.
    list: Option<Vec<(u64, Vec<Option<u64>>)>>,
}

/// The same in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// One from each point to the next, and, if there are several, one from the first to the last.
    pub steps: Vec<Step>,
    /// Of each row, if asked for: its number, and ns from each point to the next; null where one is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<(u64, Vec<Option<i64>>)>>,
}

/// One step of the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// From this instant.
    pub from: &'static str,
    /// To this one.
    pub to: &'static str,
    /// ns; null if no row has both ends.
    pub ns: Option<Figures>,
    /// All of them, to be drawn.
    pub histogram: Stats,
}

impl Steps {
    /// For rows that pass these points; with a list of all of them, if it is wanted.
    pub fn new(points: &[&'static str], list: bool) -> Steps {
        Steps {
            points: points.to_vec(),
            steps: points.iter().skip(1).map(|_| Stats::around(0)).collect(),
            whole: Stats::around(0),
            list: list.then(Vec::new),
        }
    }

    /// One more row: when it passed each point, as far as that is known.
    pub fn add(&mut self, row: u64, times: &[Option<u64>]) {
        for (stats, ns) in self.steps.iter_mut().zip(differences(times)) {
            if let Some(ns) = ns {
                stats.add(ns);
            }
        }
        let ends = times.first().copied().flatten();
        let ends = ends.zip(times.last().copied().flatten());
        if let Some((from, to)) = ends {
            self.whole.add(to.wrapping_sub(from) as i64);
        }
        if let Some(list) = &mut self.list {
            list.push((row, times.to_vec()));
        }
    }

    /// In figures.
    pub fn report(&self) -> Report {
        let named = |(ends, stats): (&[&'static str], &Stats)| match *ends {
            [from, to] => Some(Step {
                from,
                to,
                ns: stats.figures(),
                histogram: stats.clone(),
            }),
            _ => None,
        };
        let each = self.points.windows(2).zip(&self.steps);
        let mut steps: Vec<Step> = each.filter_map(named).collect();
        if let [from, _, .., to] = *self.points.as_slice() {
            let ns = self.whole.figures();
            let histogram = self.whole.clone();
            steps.push(Step {
                from,
                to,
                ns,
                histogram,
            });
        }
        let list = self.list.as_ref();
        Report {
            steps,
            list: list.map(|rows| {
                let rows = rows.iter();
                rows.map(|(row, times)| (*row, differences(times).collect()))
                    .collect()
            }),
        }
    }
}

fn differences(times: &[Option<u64>]) -> impl Iterator<Item = Option<i64>> + '_ {
    times.windows(2).map(|ends| match *ends {
        [Some(from), Some(to)] => Some(to.wrapping_sub(from) as i64),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_from_each_point_to_the_next_and_the_last_one_is_the_whole_way() {
        let mut steps = Steps::new(&["raised", "stamp", "visible"], true);
        steps.add(0, &[Some(100), Some(130), Some(200)]);
        steps.add(1, &[None, Some(1130), Some(1190)]);
        let report = steps.report();
        let figures = |at: usize| report.steps[at].ns.as_ref().map(|ns| (ns.min, ns.max));
        assert_eq!(figures(0), Some((30, 30)));
        assert_eq!(figures(1), Some((60, 70)));
        assert_eq!(figures(2), Some((100, 100)));
        assert_eq!(
            (report.steps[2].from, report.steps[2].to),
            ("raised", "visible")
        );
        let list = report.list.clone().expect("a list");
        assert_eq!(list[1], (1, vec![None, Some(60)]));
    }

    #[test]
    fn one_step_is_the_whole_way_already() {
        assert_eq!(Steps::new(&["due", "stamp"], false).report().steps.len(), 1);
    }
}
