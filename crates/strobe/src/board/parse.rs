// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a board file's text to a [`Board`]: the device itself, its hardware, its registers.
//! What refers to registers is in `resolve`.

use std::ops::Range;

use toml::de::DeTable;

use super::fault::Log;
use super::resolve::{self, Registers};
use super::table::{self, Table};
use super::{pci, Access, Bar, Board, Faults, Hardware, Interrupt, InterruptKind, Register};

/// Longest name of a device: "edu" may have to become "edu2" or "edu123".
const DEVICE_NAME_MAX: usize = 27;
/// Longest name of a channel, output, event or register.
pub(super) const NAME_MAX: usize = 31;
/// Longest description, in bytes.
const TEXT_MAX: usize = 79;
/// Longest unit, in bytes.
pub(super) const UNIT_MAX: usize = 15;
/// Channels, and outputs, each.
const VALUES_MAX: usize = 1024;
const EVENTS_MAX: usize = 32;
/// Stores of all lists together.
const WRITES_MAX: usize = 256;
const VECTORS_MAX: u64 = 32;

pub(super) fn board(file: &str, text: &str) -> Result<Board, Faults> {
    let log = Log::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().unwrap_or(0..0);
        let found = match text.get(at.clone()).map(str::trim) {
            Some(found) if !found.is_empty() && !found.contains('\n') => format!(": `{found}`"),
            _ => String::new(),
        };
        log.add(&at, "", format!("not TOML: {}{found}", error.message()));
    }
    if !errors.is_empty() {
        // What could be saved of a broken text would only be complained about.
        return log.finish(file, None);
    }
    let board = whole(table::document(&document, &log));
    log.finish(file, board)
}

fn whole(mut root: Table<'_>) -> Option<Board> {
    root.at = 0..0;
    let identity = root.table("board").map(identity);
    root.missing(
        "board",
        "a table [board] with name = \"...\" and description = \"...\"",
    );
    let (name, description) = identity.unwrap_or_default();
    let object = |kind: &'static str| {
        let name = name.clone();
        move |part: &str| {
            if name.is_empty() {
                format!("{kind} {part}")
            } else {
                format!("{kind} {name}.{part}")
            }
        }
    };

    let matched = root.table("match").map(hardware);
    let interrupt = root.table("interrupt").map(interrupt);
    let bars = bars(&mut root);
    let registers = registers(&mut root, object("register"), &bars);
    let (channels, files) = resolve::channels(&mut root, object("channel"), &registers);
    let outputs = resolve::outputs(&mut root, object("output"), &registers);
    let events = resolve::events(&mut root, object("event"), &registers, interrupt.as_ref());
    let setup = root.table("setup").map_or_else(Vec::new, |mut setup| {
        let writes = resolve::writes(&mut setup, "writes", &registers, None);
        setup.finish();
        writes
    });

    let needs_no_hardware = !files.is_empty()
        && !["bar", "register", "interrupt", "output", "event", "setup"]
            .iter()
            .any(|key| root.has(key));
    let hardware = match matched {
        None if needs_no_hardware => Some(Hardware::Files),
        None => {
            root.missing(
                "match",
                "a table [match] with pci = \"VVVV:DDDD\", as `lspci -nn` shows it",
            );
            None
        }
        Some(hardware) => hardware,
    };
    if channels.is_empty() && files.is_empty() && outputs.is_empty() && events.is_empty() {
        let some = ["channel", "output", "event"]
            .iter()
            .any(|key| root.has(key));
        if !some {
            root.fault("there is nothing to read, to write or to wait for; add a [channel.NAME]");
        }
    }
    for (kind, count, most) in [
        ("channels", channels.len() + files.len(), VALUES_MAX),
        ("outputs", outputs.len(), VALUES_MAX),
        ("events", events.len(), EVENTS_MAX),
        (
            "writes in all lists together",
            setup.len() + events.iter().map(resolve::writes_of).sum::<usize>(),
            WRITES_MAX,
        ),
    ] {
        if count > most {
            root.fault(format!(
                "{count} {kind}, and a board may have {most}; leave some out"
            ));
        }
    }
    root.finish();

    Some(Board {
        name,
        description,
        hardware: hardware?,
        interrupt,
        bars: bars.into_iter().map(|(bar, _)| bar).collect(),
        registers: registers.list,
        channels,
        files,
        outputs,
        events,
        setup,
    })
}

fn identity(mut table: Table<'_>) -> (String, String) {
    let name = match table.string("name") {
        Some((name, at)) => name_at(&table, name, &at, DEVICE_NAME_MAX),
        None => {
            table.missing("name", "name = \"...\", the device's name in the catalogue");
            None
        }
    };
    let description = description(&mut table);
    table.finish();
    (name.unwrap_or_default(), description)
}

fn hardware(mut table: Table<'_>) -> Option<Hardware> {
    let pci = match table.string("pci") {
        Some((text, at)) => {
            let ids = pci::ids(text);
            if ids.is_none() {
                table.fault_at(&at, format!(
                    "`pci` is \"{text}\"; write vendor and device in hexadecimal, as `lspci -nn` shows them: \"1234:11e8\""));
            }
            ids
        }
        None => {
            table.missing("pci", "pci = \"VVVV:DDDD\", as `lspci -nn` shows it");
            None
        }
    };
    let subsystem = table.string("subsystem").map(|(text, at)| {
        let ids = pci::ids(text);
        if ids.is_none() {
            table.fault_at(&at, format!(
                "`subsystem` is \"{text}\"; write it in hexadecimal, as `lspci -nnv` shows it: \"1af4:1100\""));
        }
        ids
    });
    table.finish();
    let (vendor, device) = pci?;
    match subsystem {
        Some(None) => None,
        Some(subsystem) => Some(Hardware::Pci {
            vendor,
            device,
            subsystem,
        }),
        None => Some(Hardware::Pci {
            vendor,
            device,
            subsystem: None,
        }),
    }
}

fn interrupt(mut table: Table<'_>) -> Interrupt {
    let kinds = [
        ("intx", InterruptKind::Intx),
        ("msi", InterruptKind::Msi),
        ("msix", InterruptKind::Msix),
    ];
    let kind = table.choice("kind", &kinds);
    table.missing("kind", "kind = \"intx\", \"msi\" or \"msix\"");
    let vectors = table.integer("vectors", 1..=VECTORS_MAX);
    if let (Some(InterruptKind::Intx), Some((vectors @ 2.., at))) = (kind, &vectors) {
        table.fault_at(at, format!("intx has one vector, not {vectors}; leave `vectors` out, or use \"msi\" or \"msix\""));
    }
    table.finish();
    Interrupt {
        kind: kind.unwrap_or(InterruptKind::Msix),
        vectors: vectors.map_or(1, |(vectors, _)| u16::try_from(vectors).unwrap_or(1)),
    }
}

/// The BARs; one whose size is wrong is there with all the size there is, so that nothing else is blamed.
fn bars(root: &mut Table<'_>) -> Vec<(Bar, Range<usize>)> {
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

fn registers<'t>(
    root: &mut Table<'t>,
    object: impl Fn(&str) -> String,
    bars: &[(Bar, Range<usize>)],
) -> Registers<'t> {
    let mut registers = Registers::default();
    for (name, mut table) in root.tables("register", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        let register = register(name, &mut table, bars);
        table.finish();
        registers.add(name, register);
    }
    registers
}

fn register(name: &str, table: &mut Table<'_>, bars: &[(Bar, Range<usize>)]) -> Option<Register> {
    let description = description(table);
    let bar = table.integer("bar", 0..=5);
    let offset = table.integer("offset", 0..=u64::from(u32::MAX));
    table.missing(
        "offset",
        "offset = 0x..., in bytes from the start of the BAR",
    );
    let width = table
        .integer("width", 8..=64)
        .and_then(|(width, at)| match width {
            8 | 16 | 32 | 64 => Some(width as u8 / 8),
            _ => {
                table.fault_at(
                    &at,
                    format!("`width` is {width}; it must be 8, 16, 32 or 64, in bits"),
                );
                None
            }
        });
    let width_wrong = width.is_none() && table.has("width");
    let width = width.unwrap_or(4);
    let orders = [("little", false), ("big", true)];
    let big_endian = table.choice("endian", &orders).unwrap_or(false);
    if big_endian && width == 1 {
        table.fault("8 bits have no byte order; leave `endian` out");
    }
    let accesses = [
        ("ro", Access::ReadOnly),
        ("wo", Access::WriteOnly),
        ("rw", Access::ReadWrite),
    ];
    let access = table
        .choice("access", &accesses)
        .unwrap_or(Access::ReadWrite);

    let (offset, at) = offset?;
    if !width_wrong && offset % u64::from(width) != 0 {
        table.fault_at(&at, format!(
            "offset 0x{offset:x} is not a multiple of {width} bytes, the register's width; correct the offset or `width`"));
    }
    let number = match bar {
        Some((number, _)) => number as u8,
        None if table.has("bar") => return None,
        None => 0,
    };
    match bars.iter().find(|(bar, _)| bar.number == number) {
        None => table.fault_at(bar.as_ref().map_or(&at, |(_, at)| at), format!(
            "BAR {number} is not declared; add [bar.{number}] with its size, or correct `bar`")),
        Some((bar, _)) if !width_wrong && offset + u64::from(width) > bar.size => table.fault_at(&at, format!(
            "BAR {number} has 0x{:x} bytes, {} lies outside; correct the offset or the size of [bar.{number}]",
            bar.size,
            if offset >= bar.size { format!("offset 0x{offset:x}") } else { format!("the end of offset 0x{offset:x}") },
        )),
        Some(_) => {}
    }
    Some(Register {
        name: name.into(),
        description,
        bar: number,
        offset: u32::try_from(offset).ok()?,
        width,
        big_endian,
        access,
    })
}

/// The name if it may be one; otherwise that is noted.
pub(super) fn name_at(
    table: &Table<'_>,
    name: &str,
    at: &Range<usize>,
    most: usize,
) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.bytes().all(plain) {
        table.fault_at(at, format!(
            "\"{}\" cannot be a name; use letters, digits, `_` and `-`, and begin with a letter", name.escape_debug()));
        return None;
    }
    if name.len() > most {
        table.fault_at(
            at,
            format!(
                "a name of {} characters; at most {most} are possible, choose a shorter one",
                name.len()
            ),
        );
        return None;
    }
    Some(name.into())
}

/// A text that fits its place and can be printed on one line.
pub(super) fn text(table: &mut Table<'_>, key: &'static str, most: usize) -> String {
    let Some((text, at)) = table.string(key) else {
        return String::new();
    };
    if text.chars().any(char::is_control) {
        table.fault_at(
            &at,
            format!("`{key}` has a control character; write it on one line, without tabs"),
        );
    } else if text.len() > most {
        table.fault_at(
            &at,
            format!(
                "`{key}` has {} bytes, and {most} fit; shorten it",
                text.len()
            ),
        );
    }
    text.into()
}

pub(super) fn description(table: &mut Table<'_>) -> String {
    text(table, "description", TEXT_MAX)
}
