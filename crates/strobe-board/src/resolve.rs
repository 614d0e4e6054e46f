// SPDX-License-Identifier: MIT OR Apache-2.0
//! What refers to registers: channels, outputs, events and lists of writes.

use std::ops::Range;

use super::fault::hint;
use super::table::{Either, Table};
use super::words::{NAME_MAX, UNIT_MAX, description, name_at, text};
use super::{
    Channel, Event, FileChannel, Interrupt, InterruptKind, Kind, Output, Pending, Register,
};

mod writes;

use writes::{Source, writable};
pub(super) use writes::{writes, writes_of};

/// A narrower counter could wrap around between two interrupts.
const MISSED_BITS: u8 = 16;

/// The registers of a file, and the names of those that are wrong: who refers to one of them is not to blame.
#[derive(Default)]
pub(super) struct Registers<'t> {
    pub(super) list: Vec<Register>,
    names: Vec<(&'t str, Option<usize>)>,
}

impl<'t> Registers<'t> {
    pub(super) fn add(&mut self, name: &'t str, register: Option<Register>) {
        let index = register.map(|register| {
            self.list.push(register);
            self.list.len() - 1
        });
        self.names.push((name, index));
    }

    /// Whether the file has a register of this name, right or wrong.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| *known == name)
    }

    /// The register that `name` means; `None` was noted, here or before.
    fn find(&self, table: &Table<'_>, name: &str, at: &Range<usize>) -> Option<(usize, &Register)> {
        let Some((_, index)) = self.names.iter().find(|(known, _)| *known == name) else {
            let hint = hint(name, self.names.iter().map(|(name, _)| *name));
            table.fault_at(
                at,
                format!(
                    "there is no register `{name}`; add [register.{name}], or name another: {hint}"
                ),
            );
            return None;
        };
        let index = (*index)?;
        Some((index, self.list.get(index)?))
    }

    /// The register of a channel or output: the one it names, else its namesake.
    fn of(&self, table: &mut Table<'_>, name: &str) -> Option<(usize, &Register)> {
        match table.string("register") {
            Some((name, at)) => self.find(table, name, &at),
            None if table.has("register") => None,
            None => {
                let at = table.at.clone();
                self.find(table, name, &at)
            }
        }
    }

    /// The register that a `{ register = ... }` names.
    fn named(&self, table: &mut Table<'_>) -> Option<(usize, &Register)> {
        let named = table.string("register");
        table.missing("register", "register = \"NAME\"");
        let (name, at) = named?;
        self.find(table, name, &at)
    }
}

/// What channels and outputs have in common.
pub(super) struct Labels {
    pub(super) description: String,
    pub(super) unit: String,
    pub(super) scale: f64,
    pub(super) offset: f64,
}

pub(super) fn labels(table: &mut Table<'_>) -> Labels {
    let description = description(table);
    let unit = text(table, "unit", UNIT_MAX);
    let scale = table.number("scale");
    if let Some((0.0, at)) = &scale {
        table.fault_at(
            at,
            "a scale of 0 makes every value the same; write another, or leave it out",
        );
    }
    Labels {
        description,
        unit,
        scale: scale.map_or(1.0, |(scale, _)| scale),
        offset: table.number("offset").map_or(0.0, |(offset, _)| offset),
    }
}

/// The channels of a file, and the names of all that it has, right or wrong: who refers to a wrong one is not to blame.
#[derive(Default)]
pub(super) struct Channels<'t> {
    pub(super) list: Vec<Channel>,
    pub(super) files: Vec<FileChannel>,
    names: Vec<&'t str>,
}

impl Channels<'_> {
    /// The channel that counts what the card has lost.
    fn missed(&self, table: &mut Table<'_>, registers: &Registers<'_>) -> Option<usize> {
        let (name, at) = table.string("missed")?;
        if !self.names.contains(&name) {
            let hint = hint(name, self.names.iter().copied());
            table.fault_at(
                &at,
                format!(
                    "there is no channel `{name}`; add [channel.{name}], or name another: {hint}"
                ),
            );
        }
        if self.files.iter().any(|file| file.name == name) {
            table.fault_at(
                &at,
                format!("channel {name} is a number in a file; name one of a register"),
            );
        }
        let index = self.list.iter().position(|channel| channel.name == name)?;
        let channel = self.list.get(index)?;
        let reread = registers.list.get(channel.register)?.reread;
        if channel.kind != Kind::Unsigned || channel.bits < MISSED_BITS || reread {
            table.fault_at(
                &at,
                format!(
                    "channel {name} must be an unsigned counter of {MISSED_BITS} bits or more that reading leaves as it \
                     is (no `reread`); name another"
                ),
            );
        }
        Some(index)
    }
}

pub(super) fn channels<'t>(
    root: &mut Table<'t>,
    object: impl Fn(&str) -> String,
    registers: &Registers<'_>,
    taken: &[&str],
) -> Channels<'t> {
    let mut channels = Channels::default();
    for (name, mut table) in root.tables("channel", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        if taken.contains(&name) {
            table.fault(
                "each such device has a channel of this name, a count of messages; choose another",
            );
        }
        if table.has("file") {
            channels.files.extend(file(name, &mut table));
        } else {
            channels.list.extend(channel(name, &mut table, registers));
        }
        channels.names.push(name);
        table.finish();
    }
    channels
}

/// A channel whose number is in a file.
fn file(name: &str, table: &mut Table<'_>) -> Option<FileChannel> {
    let labels = labels(table);
    let word = table.integer("word", 1..=1000);
    let (path, at) = table.string("file")?;
    if !path.starts_with('/') {
        table.fault_at(&at, format!("`file` is \"{path}\"; write an absolute path, such as \"/sys/class/thermal/thermal_zone0/temp\""));
        return None;
    }
    Some(FileChannel {
        name: name.into(),
        description: labels.description,
        unit: labels.unit,
        scale: labels.scale,
        offset: labels.offset,
        path: path.into(),
        word: word.map_or(1, |(word, _)| word as usize),
    })
}

fn channel(name: &str, table: &mut Table<'_>, registers: &Registers<'_>) -> Option<Channel> {
    let labels = labels(table);
    let register = registers.of(table, name);
    let bits = table.either("bits");
    let signed = table.boolean("signed").unwrap_or(false);
    let float = table
        .choice("type", &[("integer", false), ("f64", true)])
        .unwrap_or(false);
    if float && signed {
        table.fault("an f64 has a sign of its own; leave `signed` out");
    }
    if let (true, Some((_, at))) = (float, &bits) {
        table.fault_at(at, "an f64 is a whole register; leave `bits` out");
    }
    let field = match &bits {
        None => None,
        Some((written, at)) => match field(written) {
            Some(field) => Some((field, at)),
            None => {
                table.fault_at(at, "`bits` is not a field; write \"HIGH:LOW\" such as \"11:4\", or one bit's number");
                return None;
            }
        },
    };

    let (index, register) = register?;
    if !register.access.reads() {
        table.fault(format!(
            "register {} is write-only, so it cannot be read; choose another, or give it access = \
             \"rw\"",
            register.name
        ));
    }
    if float && register.width != 8 {
        table.fault(format!(
            "an f64 needs a register of 64 bits, and {} has {}; correct its `width`, or leave `type` out",
            register.name, register.bits()));
    }
    let (shift, bits) = match field {
        None => (0, register.bits()),
        Some(((high, low), at)) if high >= u64::from(register.bits()) => {
            table.fault_at(at, format!(
                "register {} has bits 0 to {}, and {high}:{low} lies outside; correct `bits`, or the register's `width`",
                register.name, register.bits() - 1));
            return None;
        }
        Some(((high, low), _)) => (low as u8, (high - low + 1) as u8),
    };
    let kind = match (float, signed) {
        (true, _) => Kind::Float,
        (false, true) => Kind::Signed,
        (false, false) => Kind::Unsigned,
    };
    let Labels {
        description,
        unit,
        scale,
        offset,
    } = labels;
    Some(Channel {
        name: name.into(),
        description,
        unit,
        scale,
        offset,
        register: index,
        shift,
        bits,
        kind,
    })
}

/// Highest and lowest bit of `"11:4"`, `"7"` or `7`.
pub(super) fn field(written: &Either<'_>) -> Option<(u64, u64)> {
    let number = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten()
    };
    match written {
        Either::Number(bit) => Some((*bit, *bit)),
        Either::Text(text) => match text.split_once(':') {
            Some((high, low)) => {
                Some((number(high)?, number(low)?)).filter(|(high, low)| high >= low)
            }
            None => number(text).map(|bit| (bit, bit)),
        },
    }
}

pub(super) fn outputs(
    root: &mut Table<'_>,
    object: impl Fn(&str) -> String,
    registers: &Registers<'_>,
) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (name, mut table) in root.tables("output", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        let Labels {
            description,
            unit,
            scale,
            offset,
        } = labels(&mut table);
        if let Some((index, register)) = registers.of(&mut table, name) {
            writable(&table, register);
            outputs.push(Output {
                name: name.into(),
                description,
                unit,
                scale,
                offset,
                register: index,
            });
        }
        table.finish();
    }
    outputs
}

/// Where events come from.
#[derive(Clone, Copy)]
pub(super) enum Interrupts {
    /// The card's own interrupt, if it is described.
    Of(Option<Interrupt>),
    /// A UIO driver, which counts a device's only one.
    Uio,
}

pub(super) fn events(
    root: &mut Table<'_>,
    object: impl Fn(&str) -> String,
    registers: &Registers<'_>,
    channels: &Channels<'_>,
    interrupts: Interrupts,
) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for (name, mut table) in root.tables("event", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        if matches!(interrupts, Interrupts::Of(None)) {
            table.fault("an event needs the board's interrupt; add [interrupt] with kind = \"intx\", \"msi\" or \"msix\"");
        }
        let event = event(name, &mut table, registers, channels, interrupts);
        if let Some(other) = events.iter().find(|other| other.vector == event.vector) {
            let told_apart = other.pending.is_some() && event.pending.is_some();
            let wrong = table.has("pending") && event.pending.is_none();
            match interrupts {
                _ if told_apart || wrong => {}
                Interrupts::Of(Some(interrupt)) if interrupt.kind != InterruptKind::Intx => {
                    table.fault(format!(
                        "event {} has the same vector {}; give both a `pending` that tells them apart, or another `vector`",
                        other.name, event.vector));
                }
                Interrupts::Of(_) => {}
                Interrupts::Uio => table.fault(format!(
                    "event {} is of the same interrupt, and a UIO device has no other; give both a `pending` that \
                     tells them apart",
                    other.name)),
            }
        }
        table.finish();
        events.push(event);
    }
    events
}

fn event(
    name: &str,
    table: &mut Table<'_>,
    registers: &Registers<'_>,
    channels: &Channels<'_>,
    interrupts: Interrupts,
) -> Event {
    let description = description(table);
    let interrupt = match interrupts {
        Interrupts::Of(interrupt) => interrupt,
        Interrupts::Uio => None,
    };
    let vector = match table.integer("vector", 0..=u64::from(u16::MAX)) {
        Some((1.., at)) if matches!(interrupts, Interrupts::Uio) => {
            table.fault_at(&at, "a UIO device has one interrupt; leave `vector` out");
            0
        }
        Some((vector, at)) => {
            let vectors = interrupt.map_or(u64::MAX, |interrupt| u64::from(interrupt.vectors));
            if vector >= vectors {
                table.fault_at(&at, format!(
                    "vector {vector} of {vectors}, which are counted from 0; correct it, or `vectors` in [interrupt]"));
            }
            u16::try_from(vector).unwrap_or(0)
        }
        None => 0,
    };
    let pending = table
        .table("pending")
        .and_then(|table| pending(table, registers));
    if interrupt.is_some_and(|interrupt| interrupt.kind == InterruptKind::Intx)
        && !table.has("pending")
    {
        table.fault(
            "an intx line may be shared, and only `pending` tells whether this board raised it; add pending = { \
             register = \"NAME\", mask = 0x... }",
        );
    }
    let source = if table.has("pending") {
        Source::Pending(pending.map(|pending| pending.mask))
    } else {
        Source::Unknown
    };
    Event {
        name: name.into(),
        description,
        vector,
        pending,
        missed: channels.missed(table, registers),
        silence: writes(table, "silence", registers, Some(source)),
        enable: writes(table, "enable", registers, None),
        disable: writes(table, "disable", registers, None),
    }
}

fn pending(mut table: Table<'_>, registers: &Registers<'_>) -> Option<Pending> {
    let register = registers.named(&mut table);
    let mask = table.integer("mask", 1..=u64::MAX);
    let mask_wrong = mask.is_none() && table.has("mask");
    let found = register.and_then(|(index, register)| {
        if !register.access.reads() {
            table.fault(format!(
                "register {} is write-only, so it cannot show what is pending; choose another, or give it access = \
                 \"rw\"",
                register.name));
        }
        if let Some((mask, at)) = &mask {
            if *mask > register.all_ones() {
                table.fault_at(at, format!(
                    "mask 0x{mask:x} is wider than register {}, which has {} bits; correct it", register.name, register.bits()));
                return None;
            }
        }
        let mask = mask.as_ref().map_or(register.all_ones(), |(mask, _)| *mask);
        Some(Pending { register: index, mask })
    });
    table.finish();
    found.filter(|_| !mask_wrong)
}
