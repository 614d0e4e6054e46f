// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a board file's text to a [`Board`]: the device itself, its hardware, its registers.
//! What refers to registers is in `resolve`.

use super::matching::Bus;
use super::resolve::{self, Channels, Registers};
use super::table::{self, Table};
use super::words::{NAME_MAX, description, name_at, outside};
use super::{
    Access, Block, Board, Faults, Hardware, Interrupt, InterruptKind, Register, chips, rpmsg,
};

mod blocks;
mod instrument;

use blocks::{Blocks, bar, bars, map, no_bars};

/// Longest name of a device: "edu" may have to become "edu2" or "edu123".
const DEVICE_NAME_MAX: usize = 27;
/// Channels, and outputs, each.
const VALUES_MAX: usize = 1024;
const EVENTS_MAX: usize = 32;
/// Stores of all lists together.
const WRITES_MAX: usize = 256;
const VECTORS_MAX: u64 = 32;

pub(super) fn board(file: &str, text: &str) -> Result<Board, Faults> {
    let mut board = table::read(file, text, "docs/reference/board.md", whole)?;
    file.clone_into(&mut board.file);
    Ok(board)
}

fn whole(mut root: Table<'_>) -> Option<Board> {
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

    if root.has("transport") {
        return instrument::instrument(root, name.clone(), description, object);
    }
    let (mut bus, mut at) = (Bus::Pci, 0..0);
    let matched = root.table("match").map(|table| {
        (bus, at) = (Bus::of(&table), table.at.clone());
        bus.hardware(table)
    });
    match bus {
        Bus::Rpmsg => rpmsg::forbid(&mut root),
        _ => root.forbid(
            "frame",
            "only a co-processor ([match] rpmsg = \"SERVICE\") sends frames; leave out [frame]",
        ),
    }
    match bus.is_of_chips() {
        true => chips::forbid(&mut root),
        false => root.forbid(
            "chip",
            "only a chip ([match] i2c = \"1-0048\", or spi = \"0.0\") has registers that are sent for; leave out [chip]",
        ),
    }
    let is_uio = bus == Bus::Uio;
    let interrupt = match bus {
        Bus::Rpmsg => Some(rpmsg::INTERRUPT),
        Bus::I2c | Bus::Spi => None,
        _ => root.table("interrupt").map(|table| {
            if is_uio {
                table.fault("a UIO device has one interrupt, which its driver sets up; leave out [interrupt]");
            }
            interrupt(table, bus == Bus::Platform)
        }),
    };
    let blocks = match bus {
        Bus::Uio => {
            no_bars(&mut root);
            Blocks::Maps
        }
        Bus::Rpmsg => Blocks::Frame(rpmsg::frame(&mut root)),
        Bus::I2c | Bus::Spi => Blocks::Chip(chips::said(&mut root, bus == Bus::Spi, at)),
        Bus::Pci | Bus::Platform => Blocks::Bars(bars(&mut root)),
    };
    let registers = registers(&mut root, object("register"), &blocks);
    let taken = match bus {
        Bus::Rpmsg => rpmsg::counters().into(),
        _ => Vec::new(),
    };
    let channels = resolve::channels(&mut root, object("channel"), &registers, &taken);
    let interrupt = interrupt.filter(|_| !is_uio);
    let (outputs, events) = match bus {
        Bus::Rpmsg => (Vec::new(), rpmsg::events(&mut root, object("event"))),
        Bus::I2c | Bus::Spi => (
            resolve::outputs(&mut root, object("output"), &registers),
            Vec::new(),
        ),
        _ => {
            let interrupts = match is_uio {
                true => resolve::Interrupts::Uio,
                false => resolve::Interrupts::Of(interrupt),
            };
            (
                resolve::outputs(&mut root, object("output"), &registers),
                resolve::events(
                    &mut root,
                    object("event"),
                    &registers,
                    &channels,
                    interrupts,
                ),
            )
        }
    };
    let Channels {
        list: channels,
        files,
        ..
    } = channels;
    let has_setup = bus != Bus::Rpmsg;
    let setup = root.table("setup").filter(|_| has_setup);
    let setup = setup.map_or_else(Vec::new, |mut setup| {
        if is_uio {
            setup.fault("the driver sets up a UIO device; leave out [setup], or move it into `enable` of an event");
        }
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
                "a table [match] with pci = \"VVVV:DDDD\", as `lspci -nn` shows it, or with uio = \"NAME\", \
                 as `strobe uio list` shows it",
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
            root.fault("the file has no channel, output or event; add a [channel.NAME]");
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
    let chip = match &blocks {
        Blocks::Chip(said) => chips::chip(&root, said, &registers),
        _ => None,
    };
    root.finish();

    let bars = match blocks {
        Blocks::Bars(bars) => bars.into_iter().map(|(bar, _)| bar).collect(),
        Blocks::Frame(frame) => vec![frame],
        Blocks::Maps | Blocks::Chip(_) => Vec::new(),
    };
    Some(Board {
        file: String::new(),
        name,
        description,
        hardware: hardware?,
        interrupt,
        bars,
        registers: registers.list,
        channels,
        files,
        outputs,
        events,
        setup,
        instrument: None,
        chip,
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

fn interrupt(mut table: Table<'_>, is_platform: bool) -> Interrupt {
    let of_pci = [
        ("intx", InterruptKind::Intx),
        ("msi", InterruptKind::Msi),
        ("msix", InterruptKind::Msix),
    ];
    let of_platform = [("line", InterruptKind::Line)];
    let (kinds, remedy) = match is_platform {
        true => (&of_platform[..], "kind = \"line\""),
        false => (&of_pci[..], "kind = \"intx\", \"msi\" or \"msix\""),
    };
    let kind = table.choice("kind", kinds);
    table.missing("kind", remedy);
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

fn registers<'t>(
    root: &mut Table<'t>,
    object: impl Fn(&str) -> String,
    blocks: &Blocks,
) -> Registers<'t> {
    let mut registers = Registers::default();
    for (name, mut table) in root.tables("register", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        let register = register(name, &mut table, blocks);
        table.finish();
        registers.add(name, register);
    }
    registers
}

fn register(name: &str, table: &mut Table<'_>, blocks: &Blocks) -> Option<Register> {
    let description = description(table);
    let block = match blocks {
        Blocks::Bars(_) => bar(table),
        Blocks::Maps => map(table),
        Blocks::Frame(_) => {
            rpmsg::register(table);
            Some((Block::Frame, None))
        }
        Blocks::Chip(said) => chips::register(table, said).map(|block| (block, None)),
    };
    let offset = table.integer("offset", 0..=u64::from(u32::MAX));
    table.missing(
        "offset",
        "offset = 0x..., in bytes from the start of the BAR, map or frame; of a chip, the register's number",
    );
    let is_chip = matches!(blocks, Blocks::Chip(_));
    let width = table
        .integer("width", 8..=64)
        .and_then(|(width, at)| match width {
            8 | 16 | 32 | 64 => Some(width as u8 / 8),
            24 | 40 | 48 | 56 if is_chip => Some(width as u8 / 8),
            _ => {
                let widths = match is_chip {
                    true => "a multiple of 8",
                    false => "8, 16, 32 or 64",
                };
                table.fault_at(
                    &at,
                    format!("`width` is {width}; it must be {widths}, in bits"),
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
    if is_chip && width > 1 {
        table.missing(
            "endian",
            "endian = \"big\" if the most significant byte comes first, else \"little\"",
        );
    }
    let accesses = [
        ("ro", Access::ReadOnly),
        ("wo", Access::WriteOnly),
        ("rw", Access::ReadWrite),
    ];
    let access = table.choice("access", &accesses);
    let reread = table.boolean("reread").unwrap_or(false);
    if reread && matches!(blocks, Blocks::Frame(_)) {
        table.fault("a frame comes once and cannot be read again; leave `reread` out");
    }
    let access = if let Blocks::Frame(_) = blocks {
        rpmsg::check_register(table, big_endian, access);
        Access::ReadOnly
    } else {
        access.unwrap_or(Access::ReadWrite)
    };

    let (offset, at) = offset?;
    if let Blocks::Chip(said) = blocks {
        chips::check_number(table, said, offset, &at);
    } else if !width_wrong && offset % u64::from(width) != 0 {
        table.fault_at(&at, format!(
            "offset 0x{offset:x} is not a multiple of {width} bytes, the register's width; correct the offset or `width`"));
    }
    let (block, block_at) = block?;
    if let Blocks::Frame(frame) = blocks {
        if !width_wrong && offset + u64::from(width) > frame.size {
            table.fault_at(
                &at,
                format!(
                "a frame has {} bytes, {} lies outside; correct the offset, or `bytes` of [frame]",
                frame.size,
                outside(offset, frame.size),
            ),
            );
        }
    }
    if let (Blocks::Bars(bars), Block::Bar(number)) = (blocks, &block) {
        match bars.iter().find(|(bar, _)| bar.number == *number) {
            None => table.fault_at(block_at.as_ref().unwrap_or(&at), format!(
                "BAR {number} is not declared; add [bar.{number}] with its size, or correct `bar`")),
            Some((bar, _)) if !width_wrong && offset + u64::from(width) > bar.size => table.fault_at(&at, format!(
                "BAR {number} has 0x{:x} bytes, {} lies outside; correct the offset or the size of [bar.{number}]",
                bar.size,
                outside(offset, bar.size),
            )),
            Some(_) => {}
        }
    }
    Some(Register {
        name: name.into(),
        description,
        block,
        offset: u32::try_from(offset).ok()?,
        line: table.line(&at),
        width,
        big_endian,
        reread,
        access,
    })
}
