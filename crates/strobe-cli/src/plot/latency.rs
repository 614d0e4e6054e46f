// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe latency ... --json` has measured, as a picture: a chart of the steps of each run, or of the ways of each
//! case.

use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;
use strobe::stats::Stats;

use super::draw::{CURVES, INK, Outcome, SOFT, TITLE, font};
use super::shares;

const WIDTH: u32 = 1_560;
/// Of the name of a chart.
const NAME: u32 = 36;
/// Charts that find room in one picture.
const CHARTS: usize = 8;

/// What is drawn.
pub struct Latencies {
    kernel: String,
    charts: Vec<Chart>,
}

/// Distributions beside each other.
struct Chart {
    name: String,
    curves: Vec<(String, Stats)>,
}

impl Latencies {
    /// What a file says; `None` if there is no distribution in it.
    pub fn of(results: &Value) -> Option<Latencies> {
        let mut charts = Vec::new();
        // One run: of the kernel engine, or of a line.
        let name = ["event", "line"].map(|key| text(at(results, key)));
        charts.push(steps(name.concat().as_str(), results));
        // The same run twice.
        for side in ["untraced", "traced"] {
            let run = at(results, side);
            charts.push(steps(side, run));
            charts.push(steps("by the kernel's events", at(run, "traced")));
        }
        // Runs of several events.
        charts.extend(list(at(results, "runs")).map(|run| {
            let histogram = at(at(run, "delays"), "histogram");
            let curves = [
                ("interrupt latency", "interrupt"),
                ("channel read delay", "channel"),
                ("clock.time read delay", "clock"),
            ];
            let curves = curves.map(|(name, key)| (name.to_owned(), at(histogram, key)));
            Chart::new(text(at(run, "event")), curves)
        }));
        charts.extend(ways(results));
        charts.retain(|chart| !chart.curves.is_empty());
        (!charts.is_empty()).then(|| Latencies {
            kernel: text(at(at(results, "machine"), "kernel")).to_owned(),
            charts,
        })
    }

    /// Width and height of the picture.
    pub fn size(&self) -> (u32, u32) {
        let charts = self.charts.iter().take(CHARTS).count() as u32;
        (WIDTH, TITLE + charts * (NAME + shares::HEIGHT))
    }

    /// Draws all of it.
    pub fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        root.fill(&WHITE)?;
        let (title, mut below) = root.split_vertically(TITLE);
        title.draw_text("how long the steps take", &font(28, &INK), (20, 14))?;
        let mut words = match self.kernel.as_str() {
            "" => String::new(),
            kernel => format!("Linux {kernel}"),
        };
        if self.charts.len() > CHARTS {
            words += &format!("; the first {CHARTS} of {} charts", self.charts.len());
        }
        title.draw_text(&words, &font(18, &SOFT), (20, 54))?;
        for chart in self.charts.iter().take(CHARTS) {
            let (name, rest) = below.split_vertically(NAME);
            let mut words = chart.name.clone();
            if chart.curves.len() > CURVES.len() {
                let (first, all) = (CURVES.len(), chart.curves.len());
                words += &format!(" (the first {first} of {all} curves)");
            }
            name.draw_text(&words, &font(22, &INK), (20, 10))?;
            let (area, rest) = rest.split_vertically(shares::HEIGHT);
            let curves = chart.curves.iter().take(CURVES.len());
            let curves: Vec<_> = curves.map(|(name, stats)| (name.as_str(), stats)).collect();
            shares::draw(&area, "time", 0.0, &curves)?;
            below = rest;
        }
        Ok(())
    }
}

impl Chart {
    /// Of those curves that have samples.
    fn new<'v>(name: &str, curves: impl IntoIterator<Item = (String, &'v Value)>) -> Chart {
        let known = curves.into_iter().filter_map(|(name, value)| {
            let stats: Stats = serde_json::from_value(value.clone()).ok()?;
            (stats.count() > 0).then_some((name, stats))
        });
        Chart {
            name: name.to_owned(),
            curves: known.collect(),
        }
    }
}

/// The steps of a run.
fn steps(name: &str, run: &Value) -> Chart {
    let curves = list(at(run, "steps")).map(|step| {
        let ends = format!("{} -> {}", text(at(step, "from")), text(at(step, "to")));
        (ends, at(step, "histogram"))
    });
    Chart::new(name, curves)
}

/// The ways to wake a thread, a chart for each case that they were compared in.
fn ways(results: &Value) -> Vec<Chart> {
    let mut cases: Vec<(String, Vec<(String, &Value)>)> = Vec::new();
    for way in list(at(results, "ways")) {
        let case = format!(
            "{} CPU, {}",
            text(at(way, "place")),
            text(at(way, "policy"))
        );
        let curve = (text(at(way, "way")).to_owned(), at(way, "histogram"));
        match cases.iter_mut().find(|(name, _)| *name == case) {
            Some((_, curves)) => curves.push(curve),
            None => cases.push((case, vec![curve])),
        }
    }
    let charts = cases.into_iter();
    charts
        .map(|(name, curves)| Chart::new(&name, curves))
        .collect()
}

fn at<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.get(key).unwrap_or(&Value::Null)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(samples: u64) -> Value {
        let mut stats = Stats::around(0);
        (0..samples).for_each(|n| stats.add(n as i64));
        serde_json::to_value(&stats).expect("JSON")
    }

    fn names(results: &Value) -> Vec<(String, usize)> {
        let charts = Latencies::of(results).map_or_else(Vec::new, |it| it.charts);
        let charts = charts.into_iter();
        charts
            .map(|chart| (chart.name, chart.curves.len()))
            .collect()
    }

    #[test]
    fn each_run_has_a_chart_of_its_steps() {
        let step =
            |samples| serde_json::json!({"from": "a", "to": "b", "histogram": stats(samples)});
        let kernel =
            serde_json::json!({"event": "timer:1kHz", "steps": [step(3), step(0), step(1)]});
        assert_eq!(names(&kernel), [("timer:1kHz".to_owned(), 2)]);
        let uio = serde_json::json!({
            "device": "x",
            "untraced": {"steps": [step(1)]},
            "traced": {"steps": [step(1)], "traced": {"steps": [step(1), step(1)]}},
        });
        let expected = [
            ("untraced", 1),
            ("traced", 1),
            ("by the kernel's events", 2),
        ];
        assert_eq!(
            names(&uio),
            expected.map(|(name, curves)| (name.to_owned(), curves))
        );
    }

    #[test]
    fn ways_that_were_compared_are_in_one_chart() {
        let way = |way: &str, place: &str| serde_json::json!({"way": way, "place": place, "policy": "other", "histogram": stats(2)});
        let wake = serde_json::json!({"ways": [way("pipe", "same"), way("poll", "other"), way("spin", "other")]});
        let expected = [("same CPU, other", 1), ("other CPU, other", 2)];
        assert_eq!(
            names(&wake),
            expected.map(|(name, curves)| (name.to_owned(), curves))
        );
    }

    #[test]
    fn what_has_no_samples_is_not_drawn() {
        for nothing in [
            serde_json::json!({}),
            serde_json::json!([1]),
            serde_json::json!({"ways": []}),
        ] {
            assert!(Latencies::of(&nothing).is_none(), "{nothing}");
        }
    }
}
