// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe jitter --json` has measured, as a picture: of each way how it went on, and all of them beside each other.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use serde::Deserialize;
use strobe::quantity::show_ns;
use strobe::stats::Stats;
use strobe_measure::jitter::timeline::Timeline;

use super::draw::{CURVES, GRID, INK, MISSED, Outcome, RIGHT, SOFT, TIME_AXIS, TITLE, font};

/// Ways that find room in one picture.
const WAYS: usize = CURVES.len();
const WIDTH: u32 = 1_560;
const LABELS: u32 = 130;
const PANEL: u32 = 170;
const COMPARISON: u32 = 460;
/// Bars of the comparison for each doubling of the time.
const BARS: f64 = 4.0;

/// The object, as far as it is drawn.
#[derive(Deserialize)]
pub struct Results {
    target: Target,
    machine: Machine,
    ways: Vec<Way>,
}

#[derive(Deserialize)]
struct Target {
    period_ns: u64,
    band_ns: u64,
}

#[derive(Deserialize)]
struct Machine {
    kernel: String,
}

#[derive(Deserialize)]
struct Way {
    way: String,
    all: Counts,
    rounds: Vec<Round>,
    histogram: Histograms,
}

#[derive(Deserialize)]
struct Counts {
    in_range: u64,
    over: u64,
    under: u64,
    missed: u64,
}

#[derive(Deserialize)]
struct Round {
    timeline: Timeline,
}

#[derive(Deserialize)]
struct Histograms {
    period: Stats,
    late: Stats,
}

impl Results {
    /// What a file says; an error in words.
    pub fn read(path: &Path) -> Result<Results, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let results: Results = serde_json::from_reader(BufReader::new(file))
            .map_err(|error| format!("is not what strobe jitter --json prints: {error}"))?;
        let has_rows = |way: &Way| way.histogram.period.count() > 0;
        match results.ways.iter().any(has_rows) && results.target.period_ns > 0 {
            true => Ok(results),
            false => Err("has no periods, so there is nothing to draw".to_owned()),
        }
    }

    /// Width and height of the picture.
    pub fn size(&self) -> (u32, u32) {
        let panels = self.shown().count() as u32;
        (WIDTH, TITLE + panels * (PANEL + TIME_AXIS) + COMPARISON)
    }

    /// Draws all of it.
    pub fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        root.fill(&WHITE)?;
        let (title, mut below) = root.split_vertically(TITLE);
        self.head(&title)?;
        for (way, color) in self.shown() {
            let (area, rest) = below.split_vertically(PANEL + TIME_AXIS);
            self.panel(&area, way, color)?;
            below = rest;
        }
        self.comparison(&below)
    }

    fn shown(&self) -> impl Iterator<Item = (&Way, &RGBColor)> {
        self.ways.iter().take(WAYS).zip(&CURVES)
    }

    fn head<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        let ns = |ns: u64| show_ns(ns as f64);
        let (period, band) = (ns(self.target.period_ns), ns(self.target.band_ns));
        let title = format!("period {period}, in range within {band} of it");
        area.draw_text(&title, &font(28, &INK), (20, 14))?;
        let mut words = format!("Linux {}; red: triggers were missed", self.machine.kernel);
        if self.ways.len() > WAYS {
            words += &format!("; the first {WAYS} of {} ways", self.ways.len());
        }
        area.draw_text(&words, &font(18, &SOFT), (20, 54))
    }

    /// The worst period of each part of the time, round after round.
    fn panel<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        way: &Way,
        color: &RGBColor,
    ) -> Outcome<DB> {
        let (mut bars, mut begin) = (Vec::new(), 0.0);
        for Round { timeline } in &way.rounds {
            let width = timeline.width_ns as f64 / 1e9;
            for part in &timeline.parts {
                bars.push((begin, begin + width, *part));
                begin += width;
            }
        }
        let worst = bars.iter().map(|(_, _, part)| part.worst_ns).max();
        let high = worst.unwrap_or(0).max(2 * self.target.band_ns).max(10) as f64;
        let Counts {
            in_range,
            over,
            under,
            missed,
        } = way.all;
        let caption = format!(
            "{}: {in_range} in range, {over} over, {under} under, {missed} missed",
            way.way
        );
        let mut chart = ChartBuilder::on(area)
            .caption(caption, font(18, color))
            .margin_right(RIGHT)
            .margin_left(16)
            .margin_top(4)
            .y_label_area_size(LABELS)
            .x_label_area_size(TIME_AXIS)
            .build_cartesian_2d(0.0..begin.max(1e-9), (1.0..high * 2.0).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(SOFT)
            .label_style(font(15, &INK))
            .axis_desc_style(font(16, &INK))
            .x_labels(12)
            .y_labels(5)
            .x_desc("time of the rounds, one after the other (s)")
            .y_desc("worst period, off by")
            .y_label_formatter(&|ns| show_ns(*ns))
            .draw()?;
        for (from, to, part) in &bars {
            if part.missed > 0 {
                let gap = [(*from, 1.0), (*to, high * 2.0)];
                chart.draw_series([Rectangle::new(gap, MISSED.mix(0.45).filled())])?;
            }
            if part.rows > 0 {
                let bar = [(*from, 1.0), (*to, (part.worst_ns as f64).max(1.0))];
                chart.draw_series([Rectangle::new(bar, color.mix(0.8).filled())])?;
            }
        }
        // Where the band ends.
        let band = self.target.band_ns.max(1) as f64;
        chart.draw_series(LineSeries::new([(0.0, band), (begin, band)], SOFT))?;
        Ok(())
    }

    /// How many rows were how late, or how far off, of all ways in one chart.
    fn comparison<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        let is_late = self.shown().all(|(way, _)| way.histogram.late.count() > 0);
        let period = self.target.period_ns as f64;
        let curves: Vec<Vec<(f64, f64)>> = self
            .shown()
            .map(|(way, _)| match is_late {
                true => shares(&way.histogram.late, 0.0),
                false => shares(&way.histogram.period, period),
            })
            .collect();
        let points = || curves.iter().flatten();
        let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let high = points().map(|point| point.0).fold(10.0, f64::max);
        let least = points().map(|point| point.1).fold(1.0, f64::min);
        let what = if is_late { "late by" } else { "period off by" };
        let mut chart = ChartBuilder::on(area)
            .margin_right(RIGHT)
            .margin_left(16)
            .margin_top(16)
            .margin_bottom(8)
            .y_label_area_size(LABELS)
            .x_label_area_size(TIME_AXIS)
            .build_cartesian_2d(
                (low.min(high / 2.0) / 1.2..high * 1.5).log_scale(),
                (least / 2.0..1.2).log_scale(),
            )?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(SOFT)
            .label_style(font(15, &INK))
            .axis_desc_style(font(16, &INK))
            .x_desc(what)
            .y_desc("share of the rows")
            .x_label_formatter(&|ns| show_ns(*ns))
            .y_label_formatter(&|share| format!("{share:e}"))
            .draw()?;
        for ((way, color), curve) in self.shown().zip(curves) {
            let stats = match is_late {
                true => &way.histogram.late,
                false => &way.histogram.period,
            };
            chart
                .draw_series(LineSeries::new(curve, color.stroke_width(2)))?
                .label(legend(&way.way, stats))
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 4), (x + 14, y + 4)], color.filled())
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font(font(16, &INK))
            .background_style(WHITE.mix(0.8))
            .border_style(GRID)
            .draw()
    }
}

fn legend(way: &str, stats: &Stats) -> String {
    stats.figures().map_or(way.to_owned(), |f| {
        let quantile = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| show_ns(ns as f64));
        format!(
            "{way}: p50 {}, p99 {}, max {}",
            quantile(f.p50),
            quantile(f.p99),
            show_ns(f.max as f64)
        )
    })
}

/// The outline of a histogram with bars that grow: distance from `expected`, and share of the samples.
fn shares(stats: &Stats, expected: f64) -> Vec<(f64, f64)> {
    let bar = |distance: f64| (BARS * distance.max(1.0).log2()).floor() as usize;
    let mut bars: Vec<u64> = Vec::new();
    for (value, samples) in stats.bins() {
        let bar = bar((value as f64 - expected).abs());
        bars.resize(bars.len().max(bar + 1), 0);
        if let Some(sum) = bars.get_mut(bar) {
            *sum += samples;
        }
    }
    let all = stats.count().max(1) as f64;
    let edge = |bar: usize| (bar as f64 / BARS).exp2();
    let some = bars.iter().enumerate().filter(|(_, samples)| **samples > 0);
    some.flat_map(|(bar, samples)| {
        let share = *samples as f64 / all;
        [(edge(bar), share), (edge(bar + 1), share)]
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_lie_where_the_samples_do() {
        let mut stats = Stats::default();
        for late in [0, 1, 100, 100, 1_000_000] {
            stats.add(late);
        }
        let points = shares(&stats, 0.0);
        let sum: f64 = points.iter().map(|point| point.1).sum();
        assert!(
            (sum - 2.0).abs() < 1e-9,
            "each bar has two ends: {points:?}"
        );
        let around = |ns: f64| {
            let pairs = points.chunks(2);
            pairs
                .map(|pair| (pair[0], pair[1]))
                .find(|(from, to)| from.0 <= ns && ns < to.0)
        };
        assert_eq!(around(100.0).map(|(from, _)| from.1), Some(0.4));
        assert_eq!(around(1_000_000.0).map(|(from, _)| from.1), Some(0.2));
        assert_eq!(around(5000.0), None);
    }
}
