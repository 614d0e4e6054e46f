// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks that registers lie in: BARs, maps, a frame, a chip.

use std::ops::Range;

use crate::table::{Either, Table};
use crate::words::line;
use crate::{Bar, Block, chips};

/// The BARs; one whose size is wrong is there with all the size there is, so that nothing else is blamed.
pub(super) fn bars(root: &mut Table<'_>) -> Vec<(Bar, Range<usize>)> {
    let mut bars = Vec::new();
    for (name, mut table) in root.tables("bar", |name| format!("[bar.{name}]")) {
        let size = table.integer("size", 1..=u64::MAX >> 1);
        table.missing(
            "size",
            "size = 0x..., the bytes it has, as `lspci -v` shows them",
        );
        let at = table.at.clone();
        match name.parse::<u8>() {
            Ok(number @ 0..=5) if name.len() == 1 => {
                bars.push((
                    Bar {
                        number,
                        size: size.map_or(u64::MAX >> 1, |(size, _)| size),
                    },
                    at,
                ));
            }
            _ => table.fault("a PCI card has BARs 0 to 5; write [bar.0]"),
        }
        table.finish();
    }
    bars
}

/// Where registers may lie.
pub(super) enum Blocks {
    /// In these BARs.
    Bars(Vec<(Bar, Range<usize>)>),
    /// In maps of a UIO device; what they have is known when it is here.
    Maps,
    /// In the frame of a co-processor.
    Frame(Bar),
    /// In a chip, which is sent their numbers.
    Chip(chips::Said),
}

/// Notes that BARs are of PCI cards only.
pub(super) fn no_bars(root: &mut Table<'_>) {
    for (_, mut table) in root.tables("bar", |name| format!("[bar.{name}]")) {
        table.integer("size", 0..=u64::MAX);
        table.fault("a UIO device has maps, whose sizes its driver tells; leave [bar.N] out");
        table.finish();
    }
}

/// A block, and where the register says so.
pub(super) type Placed = (Block, Option<Range<usize>>);

/// The BAR of a register.
pub(super) fn bar(table: &mut Table<'_>) -> Option<Placed> {
    let bar = table.integer("bar", 0..=5);
    if let Some((_, at)) = table.either("map") {
        table.fault_at(
            &at,
            "`map` is for a UIO device, [match] uio = \"NAME\"; write `bar`",
        );
    }
    match bar {
        Some((number, at)) => Some((Block::Bar(number as u8), Some(at))),
        None if table.has("bar") => None,
        None => Some((Block::Bar(0), None)),
    }
}

/// The map of a register.
pub(super) fn map(table: &mut Table<'_>) -> Option<Placed> {
    let map = table.either("map");
    if let Some((_, at)) = table.either("bar") {
        table.fault_at(
            &at,
            "`bar` is for a PCI card; write `map`, a number or a name as `strobe uio list` shows them",
        );
    }
    match map {
        Some((Either::Text(name), at)) => {
            let name = line(table, "map", name, &at)?;
            Some((Block::NamedMap(name), Some(at)))
        }
        Some((Either::Number(number), at)) => match u32::try_from(number) {
            Ok(number) => Some((Block::Map(number), Some(at))),
            Err(_) => {
                table.fault_at(
                    &at,
                    format!(
                    "`map` is {number}; write a number or a name as `strobe uio list` shows them"),
                );
                None
            }
        },
        None if table.has("map") => None,
        None => Some((Block::Map(0), None)),
    }
}
