// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures as a table for people.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use strobe_measure::machine::Machine;

use crate::{Figures, files, moving, visible};

/// A row that is stamped, ten words of it read, stored and read by another process.
const ROW_NS: f64 = 50.0;
/// A row moved to another process.
const MOVE_NS: f64 = 10.0;

/// The least, the middle and the most of some rounds.
pub fn range(rounds: &[f64]) -> (f64, f64, f64) {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    (
        at(0),
        at(sorted.len() / 2),
        at(sorted.len().saturating_sub(1)),
    )
}

/// What was measured on, as a paragraph.
pub fn machine(machine: &Machine) -> String {
    format!(
        "Linux {}, {} CPUs ({}), {:.1} of them busy on average, {:.1} % stolen by the hypervisor.\n",
        machine.kernel, machine.cpus, machine.cpu, machine.busy, machine.stolen_percent
    )
}

/// Whether all targets are met, by the median of the rounds.
pub fn met(figures: &Figures) -> bool {
    let ring = figures
        .moving
        .iter()
        .find(|figure| figure.way == moving::RING);
    ring.is_some_and(|ring| range(&ring.ns).1 <= MOVE_NS) && range(&figures.engine.ns).1 <= ROW_NS
}

/// The tables.
pub fn markdown(figures: &Figures) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write(&mut text, figures);
    text
}

fn write(text: &mut String, figures: &Figures) -> std::fmt::Result {
    writeln!(text, "{}", machine(&figures.machine))?;
    writeln!(
        text,
        "| a row, ns | least | median | most | x ring of 112 | target | met |"
    )?;
    writeln!(text, "| --- | --: | --: | --: | --: | --: | --: |")?;
    let ring = figures
        .moving
        .iter()
        .find(|figure| figure.way == moving::WIDE);
    let ring = ring.map_or(f64::NAN, |figure| range(&figure.ns).1);
    let mut line = |name: &str, rounds: &[f64], target: Option<f64>| {
        let (least, median, most) = range(rounds);
        let judged = target.map_or("- | -".to_owned(), |target| {
            format!(
                "<= {target} | {}",
                if median <= target { "yes" } else { "no" }
            )
        });
        writeln!(
            text,
            "| {name} | {least:.1} | {median:.1} | {most:.1} | {:.1} | {judged} |",
            median / ring
        )
    };
    for figure in &figures.moving {
        let target = (figure.way == moving::RING).then_some(MOVE_NS);
        line(figure.way, &figure.ns, target)?;
    }
    line(
        "made, stamped, ten words read, and read",
        &figures.engine.ns,
        Some(ROW_NS),
    )?;
    let engine = &figures.engine;
    writeln!(
        text,
        "\nRounds: {}; in the last line {} rows were made, {} of them lost to the reader, {} page faults.",
        engine.ns.len(),
        engine.rows,
        engine.lost,
        engine.faults
    )?;
    files(text, &figures.files)?;
    if figures.periods.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\n| rate | | late p50, us | p99 | p99.9 | most | within 3 % | missed | CPU | faults |"
    )?;
    writeln!(
        text,
        "| --: | --- | --: | --: | --: | --: | --: | --: | --: | --: |"
    )?;
    for figure in &figures.periods {
        let late = [5000, 9900, 9990, 10_000].map(|share| figure.late_at(share) as f64 / 1000.0);
        writeln!(
            text,
            "| {} Hz | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} % | {} of {} | {:.1} % | {} |",
            figure.rate,
            figure.way,
            late[0],
            late[1],
            late[2],
            late[3],
            100.0 * figure.in_band as f64 / figure.distances.max(1) as f64,
            figure.missed,
            figure.triggers,
            figure.cpu_percent,
            figure.faults
        )?;
    }
    visible(text, &figures.visible)
}

fn visible(text: &mut String, figures: &[visible::Figure]) -> std::fmt::Result {
    writeln!(
        text,
        "\n| rate | from a row's stamp until its reader has it | p50, us | p99 | p99.9 | most | calls a row |\n| --: | --- | --: | --: | --: | --: | --: |"
    )?;
    for figure in figures {
        let after = [5000, 9900, 9990, 10_000].map(|share| figure.after_at(share) as f64 / 1000.0);
        writeln!(
            text,
            "| {} Hz | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} |",
            figure.rate,
            figure.way,
            after[0],
            after[1],
            after[2],
            after[3],
            figure.wakes as f64 / figure.after.len().max(1) as f64
        )?;
    }
    Ok(())
}

fn files(text: &mut String, files: &[files::Figure]) -> std::fmt::Result {
    let bare = files.iter().find(|figure| figure.output == files::BARE);
    let bare = bare.map_or(f64::NAN, |figure| range(&figure.ns).1);
    writeln!(
        text,
        "\n| a row into a file, ns | least | median | most | x write | bytes a row |\n| --- | --: | --: | --: | --: | --: |"
    )?;
    for figure in files {
        let (least, median, most) = range(&figure.ns);
        writeln!(
            text,
            "| {} | {least:.1} | {median:.1} | {most:.1} | {:.1} | {:.1} |",
            figure.output,
            median / bare,
            figure.bytes_a_row
        )?;
    }
    Ok(())
}

/// Puts the tables between the marks of this name in a document.
pub fn write_into(document: &Path, name: &str, tables: &str) -> Result<(), Box<dyn Error>> {
    let (begin, end) = (
        format!("<!-- {name}: begin -->"),
        format!("<!-- {name}: end -->"),
    );
    let text = fs::read_to_string(document)?;
    let parts = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}\n\n{tables}\n{end}{after}"))
    });
    let changed = parts.ok_or_else(|| format!("{}: no {begin} and {end}", document.display()))?;
    fs::write(document, changed)?;
    Ok(())
}
