// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is different in the board file of a co-processor, whose registers are the fields of a frame.

use std::ops::Range;

use super::table::Table;
use super::words::{NAME_MAX, description, name_at};
use super::{Access, Bar, Event, Hardware, Interrupt, InterruptKind};
use crate::frame::{Counters, FRAME_MAX, FRAME_MIN, FRAME_STEP};

/// The name service has as many bytes, and one for the NUL.
const SERVICE_MAX: usize = 31;
/// What the provider counts, and gives each such device as channels.
pub(super) fn counters() -> [&'static str; 5] {
    Counters::CHANNELS.map(|(name, _)| name)
}

/// Each frame is a trigger.
pub(super) const INTERRUPT: Interrupt = Interrupt {
    kind: InterruptKind::Message,
    vectors: 1,
};

/// A co-processor by the name of its service, which becomes a part of a file's name.
pub(super) fn hardware(mut table: Table<'_>) -> Option<Hardware> {
    let service = table.string("rpmsg").and_then(|(name, at)| {
        let fits = (1..=SERVICE_MAX).contains(&name.len());
        let fit = |c: char| c.is_ascii_alphanumeric() || ",._-".contains(c);
        if !fits || !name.chars().all(fit) {
            table.fault_at(&at, format!(
                "`rpmsg` is \"{}\"; write the service that the co-processor announces, of 1 to {SERVICE_MAX} letters, \
                 digits, `,`, `.`, `_` and `-`",
                name.escape_debug()));
            return None;
        }
        Some(name.to_owned())
    });
    // The highest is that of nobody.
    let address = table.integer("address", 0..=u64::from(u32::MAX - 1));
    let address_wrong = address.is_none() && table.has("address");
    table.finish();
    let address = address.and_then(|(address, _)| u32::try_from(address).ok());
    let service = service?;
    (!address_wrong).then_some(Hardware::Rpmsg { service, address })
}

/// The frame as the one block of registers; with all the size there is if it is wrong, so that nothing else is blamed.
pub(super) fn frame(root: &mut Table<'_>) -> Bar {
    let example = format!(
        "bytes = 32, the bytes of a frame: a multiple of {FRAME_STEP} from {FRAME_MIN} to {FRAME_MAX}"
    );
    let mut size = None;
    if let Some(mut table) = root.table("frame") {
        size = table
            .integer("bytes", FRAME_MIN as u64..=FRAME_MAX as u64)
            .and_then(|(bytes, at)| {
                let fits = bytes % FRAME_STEP as u64 == 0;
                if !fits {
                    table.fault_at(
                        &at,
                        format!("`bytes` is {bytes}; it must be a multiple of {FRAME_STEP}"),
                    );
                }
                fits.then_some(bytes)
            });
        table.missing("bytes", &example);
        table.finish();
    } else {
        root.missing("frame", &format!("a table [frame] with {example}"));
    }
    Bar {
        number: 0,
        size: size.unwrap_or(u64::MAX >> 1),
    }
}

/// Notes what a co-processor cannot have.
pub(super) fn forbid(root: &mut Table<'_>) {
    for (key, why) in [
        (
            "interrupt",
            "the messages of a co-processor are its event; leave out [interrupt]",
        ),
        (
            "bar",
            "a co-processor has no BARs; leave out [bar.N], and write [frame]",
        ),
        ("output", "a frame can only be read; leave [output] out"),
        ("setup", "a frame can only be read; leave [setup] out"),
    ] {
        root.forbid(key, why);
    }
}

/// The keys of a register that a field of a frame has no use for.
pub(super) fn register(table: &mut Table<'_>) {
    for key in ["bar", "map"] {
        table.forbid(key, &format!("a frame is one block; leave `{key}` out"));
    }
}

/// Notes what a field of a frame cannot be.
pub(super) fn check_register(table: &Table<'_>, big_endian: bool, access: Option<Access>) {
    if big_endian {
        table.fault("a frame is little-endian; leave `endian` out");
    }
    if access.is_some_and(Access::writes) {
        table.fault("a frame can only be read; leave `access` out");
    }
}

/// The one event: a frame.
pub(super) fn events(root: &mut Table<'_>, object: impl Fn(&str) -> String) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for (name, mut table) in root.tables("event", object) {
        let at: Range<usize> = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        let description = description(&mut table);
        for key in [
            "vector", "pending", "missed", "silence", "enable", "disable",
        ] {
            table.forbid(
                key,
                &format!("`{key}` is for interrupts, but this event is a frame; leave it out"),
            );
        }
        if let Some(first) = events.first() {
            table.fault(format!(
                "event {} is each frame already, and a co-processor has no other event; keep one of them",
                first.name
            ));
        }
        table.finish();
        events.push(Event {
            name: name.into(),
            description,
            vector: 0,
            pending: None,
            missed: None,
            silence: Vec::new(),
            enable: Vec::new(),
            disable: Vec::new(),
        });
    }
    root.missing(
        "event",
        "[event.NAME], which stands for each frame that arrives",
    );
    events
}
