// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's figures as tables for people.

use std::fmt::Write;

use super::{Figure, Figures, Place, bus, undisturbed};
use crate::report::{machine, range};

/// Whether all targets are met, by the median of the rounds.
pub fn met(figures: &Figures) -> bool {
    figures
        .figures
        .iter()
        .all(|figure| is_met(figure) != Some(false))
}

fn is_met(figure: &Figure) -> Option<bool> {
    let target = figure.target?;
    Some(range(&figure.of_raw).1 >= target)
}

/// All tables.
pub fn markdown(figures: &Figures) -> String {
    let mut text = machine(&figures.machine);
    // Writing to a text cannot fail.
    let _ = throughput(&mut text, figures);
    if let Some(bus) = &figures.bus {
        let _ = published(&mut text, bus);
    }
    if !figures.undisturbed.is_empty() {
        text.push_str(&undisturbed(&figures.undisturbed));
    }
    text
}

fn throughput(text: &mut String, figures: &Figures) -> std::fmt::Result {
    writeln!(
        text,
        "\n| rows in | way | clients | million rows a second, least | median | most | of raw TCP | target | met | CPU a row, ns |"
    )?;
    writeln!(
        text,
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |"
    )?;
    for figure in &figures.figures {
        let (least, median, most) = range(&figure.rows_per_s);
        let place = match figure.place {
            Place::Memory => "memory",
            Place::Files => "files",
        };
        let target = figure
            .target
            .map_or("-".to_owned(), |target| format!(">= {target}"));
        let met = is_met(figure).map_or("-", |met| if met { "yes" } else { "no" });
        writeln!(
            text,
            "| {place} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {target} | {met} | {:.1} |",
            figure.way,
            figure.clients,
            least / 1e6,
            median / 1e6,
            most / 1e6,
            range(&figure.of_raw).1,
            figure.cpu_ns
        )?;
    }
    let rounds = figures
        .figures
        .first()
        .map_or(0, |figure| figure.of_raw.len());
    writeln!(
        text,
        "\nRows of 80 bytes, {} for each client; {rounds} rounds.",
        figures.rows
    )
}

fn published(text: &mut String, bus: &bus::Figure) -> std::fmt::Result {
    let (least, median, most) = range(&bus.rows_per_s);
    writeln!(
        text,
        "\nPublished to NATS JetStream and kept by it, beside raw TCP to one client in each of {} rounds: {:.2} to {:.2} million rows a\n\
         second, median {:.2}; {:.2} of raw TCP; {:.1} ns of the daemon a row.",
        bus.of_raw.len(),
        least / 1e6,
        most / 1e6,
        median / 1e6,
        range(&bus.of_raw).1,
        bus.cpu_ns
    )
}

/// What clients do to a run.
pub fn undisturbed(figures: &[undisturbed::Figure]) -> String {
    let mut text = "\n| engine | rate | clients | triggers | rows | missed | lost | late p50, us | p99 | p99.9 | most |\n\
                    | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n"
        .to_owned();
    for figure in figures {
        let late = figure
            .late_ns
            .map(|ns| format!("{:.1}", ns as f64 / 1000.0));
        let _ = writeln!(
            text,
            "| {} | {} Hz | {} | {} | {} | {} | {} | {} |",
            figure.engine,
            figure.rate,
            figure.clients,
            figure.triggers,
            figure.rows,
            figure.missed,
            figure.lost,
            late.join(" | ")
        );
    }
    text
}
