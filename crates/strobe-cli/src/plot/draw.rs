// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture: channels over time, one below the other, then histograms of
//! period and lateness.

use plotters::coord::Shift;
use plotters::prelude::*;
use strobe::info::Totals;
use strobe::quantity::show_ns;
use strobe::stats::{Figures, QUANTILE_ERROR, Stats};

use super::trace::{CHANNELS, COLUMNS, Curve, Trace};

pub type Outcome<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

const FONT: &str = "sans-serif";
/// Room for the labels of a vertical axis; the width of the plot is that of `COLUMNS`.
pub const LABELS: u32 = 130;
pub const RIGHT: u32 = 30;
pub const TITLE: u32 = 92;
const PANEL: u32 = 190;
pub const TIME_AXIS: u32 = 50;
const HISTOGRAM: u32 = 340;
const BARS: usize = 70;

pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub const SOFT: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
pub const MISSED: RGBColor = RGBColor(0xd6, 0x27, 0x28);
const LOST: RGBColor = RGBColor(0xff, 0x9f, 0x1c);
pub const CURVES: [RGBColor; 8] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0x2c, 0x8a, 0x2c),
    RGBColor(0x94, 0x67, 0xbd),
    RGBColor(0x8c, 0x56, 0x4b),
    RGBColor(0x17, 0x8f, 0xa0),
    RGBColor(0x7f, 0x7f, 0x20),
    RGBColor(0xc0, 0x5a, 0xa6),
    RGBColor(0x50, 0x50, 0x50),
];

/// Width and height of the picture.
pub fn size(trace: &Trace) -> (u32, u32) {
    let panels = trace.channels.len() as u32;
    let height = TITLE + panels * PANEL + TIME_AXIS + HISTOGRAM;
    (COLUMNS as u32 + LABELS + RIGHT, height)
}

/// Draws all of it.
pub fn draw<DB: DrawingBackend>(root: &DrawingArea<DB, Shift>, trace: &Trace) -> Outcome<DB> {
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE);
    head(&title, trace)?;
    let panels = trace.channels.len() as u32;
    let (curves, histograms) = rest.split_vertically(panels * PANEL + TIME_AXIS);
    let mut below = curves;
    for (index, curve) in trace.channels.iter().enumerate() {
        let is_last = index + 1 == trace.channels.len();
        let height = if is_last { PANEL + TIME_AXIS } else { PANEL };
        let (area, rest) = below.split_vertically(height);
        let color = CURVES.get(index % CURVES.len()).unwrap_or(&INK);
        panel(&area, trace, curve, *color, is_last)?;
        below = rest;
    }
    let (period, late) = (&trace.timing.period, &trace.timing.late);
    let usual = trace.info.period_ns.unwrap_or(0);
    let shown: Vec<(&str, u64, &Stats)> = [("period", usual, period), ("late", 0, late)]
        .into_iter()
        .filter(|(_, _, stats)| stats.count() > 0)
        .collect();
    for (area, (what, expected, stats)) in histograms
        .split_evenly((1, shown.len().max(1)))
        .iter()
        .zip(shown)
    {
        histogram(area, what, expected, stats)?;
    }
    Ok(())
}

pub fn font(size: u32, color: &RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().color(color)
}

fn head<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, trace: &Trace) -> Outcome<DB> {
    let info = &trace.info;
    let title = format!(
        "{}: {} rows in {}",
        info.event,
        trace.rows,
        show_ns(1e9 * (trace.span.1 - trace.span.0))
    );
    area.draw_text(&title, &font(28, &INK), (20, 14))?;
    let end = match &trace.totals {
        Some(Totals { end, .. }) => end.word(),
        None => "cut off",
    };
    let mut words = format!(
        "{end}; {} engine, kernel {}",
        info.engine.name(),
        info.kernel
    );
    if info.channels.len() > CHANNELS {
        words += &format!("; the first {CHANNELS} of {} channels", info.channels.len());
    }
    if trace.skipped > 0 {
        words += &format!("; {} triggers skipped", trace.skipped);
    }
    if trace.errors > 0 {
        words += &format!("; something failed in {} rows", trace.errors);
    }
    area.draw_text(&words, &font(18, &SOFT), (20, 54))?;
    let counts = [("missed", trace.missed, MISSED), ("lost", trace.lost, LOST)];
    for (index, (what, count, color)) in counts.into_iter().enumerate() {
        let x = size(trace).0 as i32 - 420 + 210 * index as i32;
        area.draw(&Rectangle::new([(x, 24), (x + 16, 40)], color.filled()))?;
        area.draw_text(&format!("{what} {count}"), &font(18, &INK), (x + 24, 23))?;
    }
    Ok(())
}

fn panel<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    trace: &Trace,
    curve: &Curve,
    color: RGBColor,
    is_last: bool,
) -> Outcome<DB> {
    let (low, high) = room(curve.least, curve.greatest);
    let unit = if curve.unit.is_empty() {
        String::new()
    } else {
        format!(" ({})", curve.unit)
    };
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}{unit}", curve.name), font(18, &color))
        .margin_right(RIGHT)
        .margin_top(4)
        .y_label_area_size(LABELS)
        .x_label_area_size(if is_last { TIME_AXIS } else { 6 })
        .build_cartesian_2d(trace.span.0..trace.span.1, low..high)?;
    let digits = digits(low, high);
    let value = |v: &f64| number(*v, digits);
    let seconds = |v: &f64| number(*v, self::digits(trace.span.0, trace.span.1));
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(SOFT)
        .label_style(font(15, &INK))
        .x_labels(if is_last { 12 } else { 0 })
        .y_labels(5)
        .x_desc(if is_last {
            "time since the start of the run (s)"
        } else {
            ""
        })
        .axis_desc_style(font(16, &INK))
        .x_label_formatter(&seconds)
        .y_label_formatter(&value)
        .draw()?;
    let width = (trace.span.1 - trace.span.0) / COLUMNS as f64;
    for (gap, color) in trace.gaps.iter().zip([MISSED, LOST]) {
        for (from, to) in runs(gap) {
            let at = |column: usize| trace.span.0 + width * column as f64;
            // Seen even if it is one column.
            let corners = [(at(from), low), (at(to) + width, high)];
            chart.draw_series([Rectangle::new(corners, color.mix(0.45).filled())])?;
        }
    }
    for piece in &curve.pieces {
        match piece.as_slice() {
            [] => {}
            [point] => {
                chart.draw_series([Circle::new(*point, 2, color.filled())])?;
            }
            points => {
                chart.draw_series(LineSeries::new(
                    points.iter().copied(),
                    color.stroke_width(1),
                ))?;
            }
        }
    }
    Ok(())
}

fn histogram<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    what: &str,
    expected: u64,
    stats: &Stats,
) -> Outcome<DB> {
    let Some(figures) = stats.figures() else {
        return Ok(());
    };
    let bars = stats.histogram(bars(&figures, expected));
    let (unit, ns) = match figures.max.unsigned_abs().max(figures.min.unsigned_abs()) {
        0..10_000 => ("ns", 1.0),
        10_000..10_000_000 => ("us", 1e3),
        10_000_000..10_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let width = match bars.as_slice() {
        [(first, _), (second, _), ..] => (second - first) as f64 / ns,
        _ => 1.0 / ns,
    };
    let bar = |start: i64| start as f64 / ns;
    let from = bars.first().map_or(0.0, |(start, _)| bar(*start));
    let to = bars.last().map_or(1.0, |(start, _)| bar(*start) + width);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1);
    // Counts differ by powers of ten, and the rare ones matter most.
    let counts = (0.5..(most as f64 * 2.0)).log_scale();
    let (low, high) = (from - width, to + width);
    let mut chart = ChartBuilder::on(area)
        .caption(sentence(what, &figures), font(18, &INK))
        .margin_right(RIGHT)
        .margin_top(10)
        .margin_bottom(8)
        .margin_left(16)
        .y_label_area_size(LABELS - 30)
        .x_label_area_size(TIME_AXIS)
        .build_cartesian_2d(low..high, counts)?;
    let digits = digits(low, high);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(SOFT)
        .label_style(font(15, &INK))
        .axis_desc_style(font(16, &INK))
        .x_labels(8)
        .x_desc(format!("{what} ({unit})"))
        .y_desc("rows")
        .x_label_formatter(&|v| number(*v, digits))
        .y_label_formatter(&|v| number(*v, 0))
        .draw()?;
    let color = CURVES.first().unwrap_or(&INK);
    chart.draw_series(
        bars.iter()
            .filter(|(_, count)| *count > 0)
            .map(|(start, count)| {
                let corners = [(bar(*start), 0.5), (bar(*start) + width, *count as f64)];
                Rectangle::new(corners, color.mix(0.8).filled())
            }),
    )?;
    Ok(())
}

/// As many bars as the samples are known for: finer ones would be a comb.
fn bars(figures: &Figures, expected: u64) -> usize {
    let distance = |sample: i64| i128::from(sample) - i128::from(expected);
    let (min, max) = (distance(figures.min), distance(figures.max));
    let greatest = min.unsigned_abs().max(max.unsigned_abs());
    let known = (1_u128 << greatest.max(1).ilog2()) as f64 * 2.0 * QUANTILE_ERROR;
    let bars = ((max - min) as f64 / known.max(1.0)) as usize;
    bars.clamp(1, BARS)
}

fn sentence(what: &str, f: &Figures) -> String {
    let p99 = f
        .p99
        .map_or(String::new(), |p| format!(", p99 {}", show_ns(p as f64)));
    format!(
        "{what}: min {}, mean {}{p99}, max {}, sd {}",
        show_ns(f.min as f64),
        show_ns(f.mean),
        show_ns(f.max as f64),
        show_ns(f.sd)
    )
}

/// Bounds of an axis that leave some room, and are never equal.
fn room(least: f64, greatest: f64) -> (f64, f64) {
    if least > greatest {
        return (0.0, 1.0);
    }
    let same = if least == 0.0 {
        1.0
    } else {
        least.abs() * 1e-3
    };
    let more = match greatest - least {
        // So that the ticks between them can be told apart.
        range if range <= least.abs().max(greatest.abs()) * 1e-9 => same,
        range => range * 0.06,
    };
    (least - more, greatest + more)
}

/// Digits after the point that ticks between two values need.
fn digits(low: f64, high: f64) -> usize {
    let magnitude = (high - low).abs().log10().floor();
    (2.0 - magnitude).clamp(0.0, 9.0) as usize
}

fn number(value: f64, digits: usize) -> String {
    if value.abs() >= 1e7 {
        return format!("{value:.4e}");
    }
    let text = format!("{value:.digits$}");
    if text.trim_matches(['-', '0', '.']).is_empty() {
        // Also what is a little less than 0.
        return "0".to_owned();
    }
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// First and last index of each run of `true`.
fn runs(marks: &[bool]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in marks
        .iter()
        .enumerate()
        .filter_map(|(i, mark)| mark.then_some(i))
    {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_room_whatever_the_values() {
        assert_eq!(room(f64::INFINITY, f64::NEG_INFINITY), (0.0, 1.0));
        assert_eq!(room(0.0, 0.0), (-1.0, 1.0));
        assert_eq!(room(0.0, 100.0), (-6.0, 106.0));
        for same in [1.8e19, -3.0, 1e-200] {
            let (low, high) = room(same, same);
            assert!(low < same && same < high, "{same}");
        }
    }

    #[test]
    fn ticks_are_short_and_differ() {
        assert_eq!(number(0.5, digits(0.0, 10.0)), "0.5");
        assert_eq!(number(2.0, digits(0.0, 10.0)), "2");
        assert_eq!(number(-0.0125, digits(0.0, 0.05)), "-0.0125");
        assert_eq!(number(-1e-17, 3), "0");
        assert_eq!(number(1500.0, digits(0.0, 5000.0)), "1500");
        assert_eq!(number(1.25e9, 0), "1.2500e9");
    }

    #[test]
    fn marks_that_touch_are_one_run() {
        assert_eq!(runs(&[true, true, false, true]), [(0, 1), (3, 3)]);
        assert_eq!(runs(&[false]), []);
    }
}
