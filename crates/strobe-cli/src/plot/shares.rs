// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions of times beside each other: how many samples are how large, on logarithmic axes.

use plotters::coord::Shift;
use plotters::prelude::*;
use strobe::quantity::show_ns;
use strobe::stats::Stats;

use super::draw::{CURVES, GRID, INK, LABELS, Outcome, RIGHT, SOFT, TIME_AXIS, font};

/// Of one chart.
pub const HEIGHT: u32 = 460;
/// Bars for each doubling of the time.
const BARS: f64 = 4.0;

/// Draws the distances from `expected`, of each curve with its name.
pub fn draw<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    what: &str,
    expected: f64,
    curves: &[(&str, &Stats)],
) -> Outcome<DB> {
    let outlines: Vec<Vec<(f64, f64)>> = (curves.iter())
        .map(|(_, stats)| shares(stats, expected))
        .collect();
    let points = || outlines.iter().flatten();
    let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.0).fold(10.0, f64::max);
    let least = points().map(|point| point.1).fold(1.0, f64::min);
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
    for (((name, stats), outline), color) in curves.iter().zip(outlines).zip(CURVES.iter().cycle())
    {
        let parts = parts(&outline, least / 2.0);
        let lines = parts.map(|part| PathElement::new(part, color.stroke_width(2)));
        chart
            .draw_series(lines)?
            .label(legend(name, stats))
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], color.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .label_font(font(16, &INK))
        .background_style(WHITE.mix(0.8))
        .border_style(GRID)
        .draw()
}

fn legend(name: &str, stats: &Stats) -> String {
    stats.figures().map_or(name.to_owned(), |f| {
        let quantile = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| show_ns(ns as f64));
        format!(
            "{name}: p50 {}, p99 {}, max {}",
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

/// An outline in parts: between two of them are bars without samples. Each begins and ends at the floor.
fn parts(outline: &[(f64, f64)], floor: f64) -> impl Iterator<Item = Vec<(f64, f64)>> {
    let bars: Vec<&[(f64, f64)]> = outline.chunks(2).collect();
    let adjoins = |one: &&[(f64, f64)], next: &&[(f64, f64)]| {
        one.last().map(|end| end.0) == next.first().map(|begin| begin.0)
    };
    let parts = bars.chunk_by(adjoins).map(move |bars| {
        let points = bars.iter().flat_map(|bar| bar.iter().copied());
        let mut part: Vec<(f64, f64)> = points.collect();
        let ends = part.first().copied().zip(part.last().copied());
        if let Some((begin, end)) = ends {
            part.insert(0, (begin.0, floor));
            part.push((end.0, floor));
        }
        part
    });
    parts.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_without_samples_part_an_outline() {
        let outline = [
            (1.0, 0.5),
            (2.0, 0.5),
            (2.0, 0.3),
            (4.0, 0.3),
            (8.0, 0.2),
            (16.0, 0.2),
        ];
        let parts: Vec<_> = parts(&outline, 0.1).collect();
        let first = [&[(1.0, 0.1)], &outline[..4], &[(4.0, 0.1)]].concat();
        let second = [&[(8.0, 0.1)], &outline[4..], &[(16.0, 0.1)]].concat();
        assert_eq!(parts, [first, second]);
    }

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
