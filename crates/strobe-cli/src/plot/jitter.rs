// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe jitter --json` has measured, as a picture: of each way how it went on, and all of them beside each other.

use plotters::coord::Shift;
use plotters::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use strobe::quantity::show_ns;
use strobe::stats::Stats;
use strobe_measure::jitter::timeline::Timeline;

use super::shares;
use crate::jitter::table::band;

use super::draw::{
    CURVES, GRID, INK, LABELS, MISSED, Outcome, RIGHT, SOFT, TIME_AXIS, TITLE, font,
};

/// Ways that find room in one picture.
const WAYS: usize = CURVES.len();
const WIDTH: u32 = 1_560;
const PANEL: u32 = 170;
const COMPARISON: u32 = shares::HEIGHT;

/// The object, as far as it is drawn.
#[derive(Deserialize)]
pub struct Results {
    target: Target,
    machine: Machine,
    ways: Vec<PacingResult>,
}

#[derive(Deserialize)]
struct Target {
    period_ns: u64,
    band_ns: u64,
    /// Older results have one for both sides.
    under_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Machine {
    kernel: String,
}

#[derive(Deserialize)]
struct PacingResult {
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
    pub fn of(results: Value) -> Result<Results, String> {
        let results: Results = serde_json::from_value(results).map_err(|error| {
            format!("is not what strobe jitter or strobe latency print with --json: {error}")
        })?;
        let has_rows = |way: &PacingResult| way.histogram.period.count() > 0;
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

    fn shown(&self) -> impl Iterator<Item = (&PacingResult, &RGBColor)> {
        self.ways.iter().take(WAYS).zip(&CURVES)
    }

    fn head<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        let ns = |ns: u64| show_ns(ns as f64);
        let over = self.target.band_ns;
        let band = band(over, self.target.under_ns.unwrap_or(over));
        let title = format!("period {}, in range {band}", ns(self.target.period_ns));
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
        way: &PacingResult,
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
        for band in [Some(self.target.band_ns), self.target.under_ns]
            .into_iter()
            .flatten()
        {
            let band = band.max(1) as f64;
            chart.draw_series(LineSeries::new([(0.0, band), (begin, band)], SOFT))?;
        }
        Ok(())
    }

    /// How many rows were how late, or how far off, of all ways in one chart.
    fn comparison<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        let is_late = self.shown().all(|(way, _)| way.histogram.late.count() > 0);
        let curves: Vec<(&str, &Stats)> = self
            .shown()
            .map(|(way, _)| match is_late {
                true => (way.way.as_str(), &way.histogram.late),
                false => (way.way.as_str(), &way.histogram.period),
            })
            .collect();
        let (what, expected) = match is_late {
            true => ("late by", 0.0),
            false => ("period off by", self.target.period_ns as f64),
        };
        shares::draw(area, what, expected, &curves)
    }
}
