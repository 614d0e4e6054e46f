// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account of a recording in words.

use std::fmt::Write;

use strobe::info::End;
use strobe::quantity::show_ns;
use strobe::stats::Figures;
use strobe_files::summary::Summary;

/// Lines of a histogram.
pub const LINES: usize = 8;
/// Longest bar of a histogram.
const BAR: u64 = 40;

/// Several lines; the last one ends with a newline.
pub fn text(summary: &Summary) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, summary);
    text
}

/// The first lines of it: how many rows, what is not there, and what failed.
pub fn account(summary: &Summary) -> String {
    let mut text = String::new();
    let _ = write_account(&mut text, summary);
    text
}

fn write_account(to: &mut String, s: &Summary) -> std::fmt::Result {
    let elapsed = show_ns(s.elapsed_s * 1e9);
    let end = match &s.end {
        End::Failed(why) => format!("failed: {why}"),
        end => end.word().to_owned(),
    };
    writeln!(
        to,
        "{}: {} rows in {elapsed} ({} engine), {end}",
        s.event,
        s.rows,
        s.engine.name()
    )?;
    let causes: Vec<String> = s
        .missed_by
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| format!("{cause} {count}"))
        .collect();
    let causes = if causes.is_empty() {
        String::new()
    } else {
        format!(" ({})", causes.join(", "))
    };
    writeln!(
        to,
        "missed {}{causes}, skipped {}, lost {}, errors {}",
        s.missed, s.skipped, s.lost, s.errors
    )?;
    for (name, rows) in &s.faults {
        writeln!(to, "  {name} failed in {rows} rows")?;
    }
    Ok(())
}

fn write_all(to: &mut String, s: &Summary) -> std::fmt::Result {
    write_account(to, s)?;
    if let Some(period) = &s.period_ns {
        writeln!(to, "period  {}", figures(period))?;
    }
    if let Some(late) = &s.late_ns {
        writeln!(to, "late    {}", figures(late))?;
    }
    if let Some(usage) = &s.usage {
        let share = 100.0 * usage.cpu_ns as f64 / (s.elapsed_s * 1e9).max(1.0);
        writeln!(
            to,
            "thread  {share:.1} % of a CPU, {} page faults, {} times interrupted",
            usage.minor_faults + usage.major_faults,
            usage.involuntary_switches
        )?;
        if usage.wakes > 0 {
            writeln!(to, "woke    readers {} times", usage.wakes)?;
        }
    }
    for step in s.set_up.iter().filter(|step| !step.ok) {
        writeln!(to, "without {}: {}", step.what, step.got)?;
    }
    if s.late.count() > 0 {
        histogram(to, "late", &s.late.histogram(LINES))?;
    } else {
        histogram(to, "period", &s.period.histogram(LINES))?;
    }
    for sink in &s.sinks {
        let error = sink.error.as_ref();
        let error = error.map_or(String::new(), |e| format!(", then FAILED: {e}"));
        let left_out = match sink.left_out {
            0 => String::new(),
            rows => format!("; {rows} earlier rows left out on purpose"),
        };
        writeln!(
            to,
            "{}: {} rows, {} bytes{left_out}{error}",
            sink.path, sink.rows, sink.bytes
        )?;
    }
    Ok(())
}

/// What [`cells`] are.
const HEAD: [&str; 8] = ["min", "mean", "max", "sd", "p50", "p99", "p99.9", "p99.99"];

/// The figures, in the order of [`HEAD`].
fn cells(f: &Figures) -> [String; 8] {
    let quantile = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| show_ns(ns as f64));
    [
        show_ns(f.min as f64),
        show_ns(f.mean),
        show_ns(f.max as f64),
        show_ns(f.sd),
        quantile(f.p50),
        quantile(f.p99),
        quantile(f.p999),
        quantile(f.p9999),
    ]
}

/// A line of a table of them; without any, of dashes.
pub fn line(what: &str, figures: Option<&Figures>) -> [String; 9] {
    let cells = figures.map_or_else(|| std::array::from_fn(|_| "-".to_owned()), cells);
    named(what, cells)
}

/// The head of such a table.
pub fn head(what: &str) -> [String; 9] {
    named(what, HEAD.map(str::to_owned))
}

fn named(what: &str, [a, b, c, d, e, f, g, h]: [String; 8]) -> [String; 9] {
    [what.to_owned(), a, b, c, d, e, f, g, h]
}

fn figures(f: &Figures) -> String {
    let named = std::iter::zip(HEAD, cells(f)).map(|(name, cell)| format!("{name} {cell}"));
    named.collect::<Vec<_>>().join(", ")
}

/// Lines with the start of a range, how many lie in it, and a bar; none without samples.
pub fn histogram(to: &mut String, what: &str, lines: &[(i64, u64)]) -> std::fmt::Result {
    let Some(most) = lines
        .iter()
        .map(|(_, count)| *count)
        .max()
        .filter(|n| *n > 0)
    else {
        return Ok(());
    };
    for &(start, count) in lines {
        // At least one mark for a line that is not empty.
        let marks = u128::from(count) * u128::from(BAR) / u128::from(most);
        let marks = if count > 0 { marks.max(1) } else { 0 };
        let bar = "#".repeat(usize::try_from(marks).unwrap_or(0));
        let start = show_ns(start as f64);
        let line = format!("  {what} from {start:>9}  {count:>9}  {bar}");
        writeln!(to, "{}", line.trim_end())?;
    }
    Ok(())
}
