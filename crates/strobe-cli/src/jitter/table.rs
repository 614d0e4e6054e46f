// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe jitter` says to people.

use std::fmt::Write;

use strobe::info::End;
use strobe::quantity::show_ns;
use strobe::stats::{Figures, Stats};
use strobe_measure::jitter::compare::{Outcome, PacingResult};
use strobe_measure::jitter::judge::CounterReport;
use strobe_measure::jitter::round::Round;

use crate::report;
use crate::term;
use crate::why;

/// Several tables; the last line ends with a newline.
pub fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, outcome);
    text
}

fn write(to: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let target = outcome.target;
    write!(
        to,
        "period {}, in range {}; {}",
        show_ns(target.period_ns as f64),
        band(target.band_ns, target.under_ns),
        outcome.machine
    )?;
    writeln!(to, "\n\n{}", counts(&outcome.ways))?;
    if outcome.ways.iter().any(|way| judged(way).is_some()) {
        writeln!(to, "{}", by_counter(&outcome.ways))?;
    }
    let late = figures("late", outcome, |way| way.all.late_ns.as_ref());
    let period = figures("period", outcome, |way| way.all.period_ns.as_ref());
    writeln!(to, "{late}\n{period}")?;
    if outcome.ways.iter().any(|way| way.rounds.len() > 1) {
        writeln!(to, "{}", ranges(&outcome.ways))?;
    }
    for way in &outcome.ways {
        histogram(to, way)?;
        remarks(to, way)?;
        if let Some(found) = &way.late_rows {
            writeln!(to, "{}", why::text(found))?;
        }
    }
    Ok(())
}

/// The words for a band.
pub fn band(over_ns: u64, under_ns: u64) -> String {
    let [over, under] = [over_ns, under_ns].map(|ns| show_ns(ns as f64));
    match over_ns == under_ns {
        true => format!("within {over} of it"),
        false => format!("up to {over} longer or {under} shorter"),
    }
}

/// What the counter says of all rounds of a way.
fn judged(way: &PacingResult) -> Option<CounterReport> {
    let each = way.rounds.iter().filter_map(|round| round.judged);
    each.reduce(|mut all, round| {
        all.merge(round);
        all
    })
}

fn by_counter(ways: &[PacingResult]) -> String {
    let head = [
        "counter", "edges", "in range", "over", "under", "longest", "shortest",
    ];
    let lines = ways.iter().filter_map(|way| {
        let it = judged(way)?;
        let periods = (it.in_range + it.over + it.under).max(1) as f64;
        Some([
            way.way.clone(),
            it.edges.to_string(),
            format!("{:.2} %", 100.0 * it.in_range as f64 / periods),
            it.over.to_string(),
            it.under.to_string(),
            show_ns(it.longest_ns as f64),
            show_ns(it.shortest_ns as f64),
        ])
    });
    let table: Vec<[String; 7]> = std::iter::once(head.map(str::to_owned))
        .chain(lines)
        .collect();
    term::table("", &table)
}

fn counts(ways: &[PacingResult]) -> String {
    let head = [
        "",
        "rounds",
        "rows",
        "in range",
        "over",
        "under",
        "missed",
        "drift ppm",
        "CPU",
        "a row",
        "faults",
        "taken",
    ];
    let lines = ways.iter().map(|way| {
        let all = &way.all;
        let sum = |of: fn(&Round) -> u64| way.rounds.iter().map(of).sum::<u64>();
        let periods = (all.in_range + all.over + all.under).max(1) as f64;
        let share = |count: u64| format!("{:.2} %", 100.0 * count as f64 / periods);
        let usage = |of: fn(&strobe::rt::Usage) -> u64| {
            let each = way
                .rounds
                .iter()
                .map(|round| Some(of(round.usage.as_ref()?)));
            each.sum::<Option<u64>>()
        };
        let or_not = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let seconds: f64 = way.rounds.iter().map(|round| round.elapsed_s).sum();
        let rows = sum(|round| round.rows);
        let cpu_ns = usage(|usage| usage.cpu_ns);
        [
            way.way.clone(),
            way.rounds.len().to_string(),
            rows.to_string(),
            share(all.in_range),
            all.over.to_string(),
            all.under.to_string(),
            all.missed.to_string(),
            or_not(all.drift_ppm.map(|ppm| format!("{ppm:.1}"))),
            or_not(cpu_ns.map(|ns| format!("{:.1} %", ns as f64 / (seconds * 1e7).max(1.0)))),
            or_not(cpu_ns.map(|ns| show_ns(ns as f64 / rows.max(1) as f64))),
            or_not(usage(|u| u.minor_faults + u.major_faults).map(|n| n.to_string())),
            or_not(usage(|u| u.involuntary_switches).map(|n| n.to_string())),
        ]
    });
    let table: Vec<[String; 12]> = std::iter::once(head.map(str::to_owned))
        .chain(lines)
        .collect();
    term::table("", &table)
}

fn figures(what: &str, outcome: &Outcome, of: fn(&PacingResult) -> Option<&Figures>) -> String {
    let lines = outcome.ways.iter();
    let lines = lines.map(|way| report::line(&way.way, of(way)));
    let table: Vec<[String; 9]> = std::iter::once(report::head(what)).chain(lines).collect();
    term::table("", &table)
}

/// From the least to the greatest of the rounds: what lies within both ranges of two ways is no difference.
fn ranges(ways: &[PacingResult]) -> String {
    let head = [
        "over rounds",
        "in range",
        "late p50",
        "late p99",
        "late max",
    ]
    .map(str::to_owned);
    let lines = ways.iter().map(|way| {
        let late = |of: fn(&Figures) -> Option<i64>| {
            let each = way
                .rounds
                .iter()
                .filter_map(|round| of(round.report.late_ns.as_ref()?));
            range(each.map(|ns| ns as f64), show_ns)
        };
        let in_range = way.rounds.iter().map(|round| {
            let report = &round.report;
            let periods = report.in_range + report.over + report.under;
            100.0 * report.in_range as f64 / periods.max(1) as f64
        });
        [
            way.way.clone(),
            range(in_range, |share| format!("{share:.2} %")),
            late(|figures| figures.p50),
            late(|figures| figures.p99),
            late(|figures| Some(figures.max)),
        ]
    });
    let table: Vec<[String; 5]> = std::iter::once(head).chain(lines).collect();
    term::table("", &table)
}

fn range(values: impl Iterator<Item = f64>, show: impl Fn(f64) -> String) -> String {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (least, most) = ends.unwrap_or((value, value));
        Some((least.min(value), most.max(value)))
    });
    ends.map_or("-".to_owned(), |(least, most)| {
        format!("{} .. {}", show(least), show(most))
    })
}

fn histogram(to: &mut String, way: &PacingResult) -> std::fmt::Result {
    let (what, stats): (&str, &Stats) = match way.jitter.late().count() {
        0 => ("period", way.jitter.period()),
        _ => ("late", way.jitter.late()),
    };
    writeln!(to, "{}", way.way)?;
    report::histogram(to, what, &stats.histogram_doubling(report::LINES))
}

fn remarks(to: &mut String, way: &PacingResult) -> std::fmt::Result {
    let Some(last) = way.rounds.last() else {
        return Ok(());
    };
    for step in last.set_up.iter().filter(|step| !step.ok) {
        writeln!(to, "  without {}: {}", step.what, step.got)?;
    }
    let sum = |of: fn(&Round) -> u64| way.rounds.iter().map(of).sum::<u64>();
    let (rows, missed) = (sum(|round| round.rows), sum(|round| round.report.missed));
    if missed > rows {
        writeln!(
            to,
            "  this machine cannot keep up with this rate: {missed} of {} triggers were missed; choose a lower --rate",
            rows + missed
        )?;
    }
    for round in &way.rounds {
        if round.skipped > 0 {
            writeln!(to, "  {} triggers were skipped on purpose", round.skipped)?;
        }
        if round.lost > 0 {
            writeln!(to, "  {} rows were made but not read in time", round.lost)?;
        }
        if let End::Failed(why) = &round.end {
            writeln!(to, "  failed: {why}")?;
        }
    }
    Ok(())
}
