// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture of a run.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Sparkline};
use strobe::channel::{Channel, Type};
use strobe::figures::Figures;
use strobe::info::known_causes;
use strobe::quantity::show_ns;
use strobe::ring::layout::MISSED_CAUSES;
use strobe::ring::{Missed, Snapshot};
use strobe::stats::Stats;

/// Lines of the histogram, with its title.
const HISTOGRAM: u16 = 8;
/// Columns for the name of a channel, at most.
const NAME: usize = 24;
/// Columns for a value with its unit.
const VALUE: usize = 18;
/// Steps of a sparkline, above its floor.
const STEPS: f64 = 7.0;

/// Draws all of it, as far as there is room.
pub fn draw(frame: &mut Frame<'_>, figures: &Figures) {
    let wanted = u16::try_from(figures.columns.len()).unwrap_or(u16::MAX);
    // Room beside what is always there. The histogram gives way to channels, but not more than half.
    let room = frame.area().height.saturating_sub(7);
    let channels = (room / 2).max(room.saturating_sub(HISTOGRAM));
    let channels = wanted.saturating_add(1).min(channels);
    let [title, counts, fill, values, times, _, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Length(channels),
        Constraint::Length(HISTOGRAM.min(room - channels)),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(self::title(figures), title);
    if let Some(now) = &figures.now {
        frame.render_widget(Paragraph::new(self::counts(figures, now)), counts);
    }
    ring_fill(frame, fill, figures);
    last_row(frame, values, figures);
    if let Some(timing) = &figures.timing {
        let (what, stats) = match timing.late.count() {
            0 => ("period", &timing.period),
            _ => ("late", &timing.late),
        };
        histogram(frame, times, what, stats);
    }
    let hint = match figures.is_live() {
        true => "q leaves; the run goes on",
        false => "the run has ended; q leaves",
    };
    frame.render_widget(Line::from(hint).dim(), keys);
}

fn title(figures: &Figures) -> Line<'_> {
    let state = figures.state();
    let colour = match state.as_str() {
        "running" => Color::Green,
        state if state.starts_with("failed") => Color::Red,
        _ => Color::Yellow,
    };
    Line::from(vec![
        Span::raw(format!("{}  {}  ", figures.name, figures.info.event)),
        Span::styled(state, Style::new().fg(colour).add_modifier(Modifier::BOLD)),
        Span::raw(format!("  {}", show_ns(figures.elapsed_ns as f64))),
    ])
}

fn counts(figures: &Figures, now: &Snapshot) -> Vec<Line<'static>> {
    let limit = figures
        .info
        .limit
        .map_or(String::new(), |n| format!(" of {n}"));
    let known = known_causes().count();
    let causes: Vec<String> = (0..MISSED_CAUSES)
        .filter_map(|cause| {
            let count = now.missed_by.get(cause)?;
            let name = Missed::NAMES.get(cause)?;
            (cause < known || *count > 0).then(|| format!("{name} {count}"))
        })
        .collect();
    let warn = |text: String, bad: bool| match bad {
        true => Line::from(text).fg(Color::Red),
        false => Line::from(text),
    };
    vec![
        Line::from(format!(
            "rows      {}{limit}, {:.1} a second, {} triggers, {} skipped",
            now.head, figures.rate, now.triggers, now.skipped
        )),
        warn(
            format!("missed    {} ({})", now.missed(), causes.join(", ")),
            now.missed() > 0,
        ),
        warn(
            format!(
                "lost      {} (this view was too slow for them)",
                figures.lost
            ),
            figures.lost > 0,
        ),
        warn(format!("errors    {}", now.errors), now.errors > 0),
    ]
}

fn ring_fill(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let [word, bar] = Layout::horizontal([Constraint::Length(10), Constraint::Min(0)]).areas(area);
    let capacity = figures.info.capacity.max(1);
    let ratio = (figures.waiting as f64 / capacity as f64).clamp(0.0, 1.0);
    let label = format!("{} of {capacity} rows to read", figures.waiting);
    frame.render_widget(Line::from("ring"), word);
    let gauge = Gauge::default().ratio(ratio).label(label);
    frame.render_widget(gauge.gauge_style(Color::Blue), bar);
}

/// The last row, a line a channel, with what it was before.
fn last_row(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let row = figures.last.as_ref();
    let row = row.map_or("no row yet".to_owned(), |last| {
        // Channels say it in their lines.
        let names = figures.info.fault_names();
        let outputs = last.failed.iter().filter(|n| **n >= figures.columns.len());
        let failed: Vec<&str> = outputs
            .filter_map(|n| Some(names.get(*n)?.as_str()))
            .collect();
        match failed.as_slice() {
            [] => format!("row {}", last.row),
            failed => format!("row {}, failed: {}", last.row, failed.join(", ")),
        }
    });
    let room = usize::from(area.height.saturating_sub(1));
    let hidden = figures.columns.len().saturating_sub(room);
    let hidden = match hidden {
        0 => String::new(),
        n => format!(", {n} more channels do not fit"),
    };
    let block = Block::new()
        .borders(Borders::TOP)
        .title(format!("{row}{hidden}"));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let longest = figures
        .columns
        .iter()
        .map(|name| name.chars().count())
        .max();
    let name_width = longest.unwrap_or(0).min(NAME) as u16 + 2;
    for (index, line) in inside.rows().enumerate() {
        let (Some(name), Some(channel)) =
            (figures.columns.get(index), figures.info.channels.get(index))
        else {
            return;
        };
        let [at_name, at_value, at_trace] = Layout::horizontal([
            Constraint::Length(name_width),
            Constraint::Length(VALUE as u16 + 2),
            Constraint::Min(0),
        ])
        .areas(line);
        frame.render_widget(Line::from(name.as_str()), at_name);
        let text = match (&figures.last, figures.value(index)) {
            (None, _) => Line::from("-"),
            (Some(_), None) => Line::from("failed").fg(Color::Red),
            (Some(last), Some(value)) => {
                let word = last.words.get(index).copied().unwrap_or(0);
                Line::from(show_value(channel, word, value))
            }
        };
        frame.render_widget(text, at_value);
        if let Some(trace) = figures.traces.get(index) {
            let width = usize::from(at_trace.width);
            let newest = trace.iter().skip(trace.len().saturating_sub(width));
            let bars = bars(&newest.copied().collect::<Vec<_>>());
            let line = Sparkline::default().data(&bars).max(STEPS as u64 + 1);
            frame.render_widget(line.style(Color::Cyan), at_trace);
        }
    }
}

/// A value with its unit: whole numbers as they are, others with six digits.
fn show_value(channel: &Channel, word: u64, value: f64) -> String {
    let number = match channel.kind {
        Type::U64 if !channel.is_scaled() => word.to_string(),
        Type::S64 if !channel.is_scaled() => (word as i64).to_string(),
        _ => match value.abs() {
            v if v == 0.0 || (1e-3..1e6).contains(&v) => {
                let digits = 5 - v.max(1.0).log10().floor() as i32;
                format!("{value:.*}", usize::try_from(digits).unwrap_or(0))
            }
            _ => format!("{value:.5e}"),
        },
    };
    match channel.unit.as_str() {
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// Heights of a sparkline from its least value to its greatest; 0 where there is none.
fn bars(values: &[f64]) -> Vec<u64> {
    // Halves: the distance of very large numbers is no number.
    let halves = || {
        values
            .iter()
            .map(|v| v / 2.0)
            .filter(|half| half.is_finite())
    };
    let least = halves().fold(f64::INFINITY, f64::min);
    let span = halves().fold(f64::NEG_INFINITY, f64::max) - least;
    let bar = |value: &f64| match value / 2.0 {
        half if !half.is_finite() => 0,
        _ if span <= 0.0 => 1,
        half => 1 + (STEPS * ((half - least) / span)).round() as u64,
    };
    values.iter().map(bar).collect()
}

fn histogram(frame: &mut Frame<'_>, area: Rect, what: &str, stats: &Stats) {
    let title = match stats.figures() {
        None => format!("{what}: nothing yet"),
        Some(f) => {
            let quantile = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| show_ns(ns as f64));
            format!(
                "{what}: min {}, p50 {}, p99 {}, max {}",
                show_ns(f.min as f64),
                quantile(f.p50),
                quantile(f.p99),
                show_ns(f.max as f64)
            )
        }
    };
    let block = Block::new().borders(Borders::TOP).title(title);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let lines = stats.histogram_doubling(usize::from(inside.height));
    let most = lines
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    for ((start, count), line) in lines.into_iter().zip(inside.rows()) {
        let text = format!("from {:>9} {count:>10} ", show_ns(start as f64));
        let room = usize::from(line.width).saturating_sub(text.chars().count());
        // At least one mark for a line that is not empty.
        let marks = (count as f64 / most as f64 * room as f64).round() as usize;
        let marks = marks.max(usize::from(count > 0)).min(room);
        frame.render_widget(Line::from(text + &"▬".repeat(marks)), line);
    }
}

#[cfg(test)]
mod tests;
