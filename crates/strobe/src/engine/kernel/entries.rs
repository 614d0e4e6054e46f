// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of the kernel's catalogue, in words of this crate.

use strobe_hw::uapi::{self, entry_flag, kind};
use strobe_ring::{Engine, State};

use super::{lines, run_names};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Device, Event, RunStatus};
use crate::channel::{Channel, Class, Type};

/// The text before the NUL.
pub(super) fn text(array: &[u8]) -> String {
    let text = array.split(|byte| *byte == 0).next().unwrap_or(array);
    String::from_utf8_lossy(text).into_owned()
}

/// What an entry is called, as people write it.
pub(super) fn named(entry: &uapi::Entry) -> String {
    run_names::shown(lines::shown(text(&entry.name)))
}

pub(super) fn catalogue(entries: &[uapi::Entry], generation: u64) -> Catalogue {
    let mut catalogue = Catalogue {
        generation,
        ..Catalogue::default()
    };
    for entry in entries {
        let in_use = entry.flags & entry_flag::IN_USE != 0;
        let (name, description) = (named(entry), text(&entry.text));
        match entry.kind {
            kind::DEVICE => catalogue.devices.push(Device {
                name,
                description,
                in_use,
            }),
            kind::CHANNEL => catalogue.channels.push(channel(entry)),
            kind::OUTPUT => catalogue.outputs.push(channel(entry)),
            kind::EVENT => catalogue.events.push(Event {
                name,
                description,
                periodic: entry.flags & entry_flag::PERIODIC != 0,
                accounting: accounting(entry.flags),
                in_use,
            }),
            kind::RUN => catalogue.runs.push(run_status(entry)),
            // A kind of a later module; nothing to show for it.
            _ => {}
        }
    }
    catalogue
}

/// Of an event, or of that of a run.
pub(super) fn accounting(flags: u32) -> Accounting {
    if flags & entry_flag::EXACT != 0 {
        Accounting::Exact
    } else if flags & entry_flag::BY_TIME != 0 {
        Accounting::ByTime
    } else {
        Accounting::None
    }
}

/// That of the event of a run.
pub(super) fn accounting_of_run(entries: &[uapi::Entry]) -> Accounting {
    let run = entries.iter().find(|entry| entry.kind == kind::RUN);
    run.map_or(Accounting::None, |entry| accounting(entry.flags))
}

/// The channels of a run, in the order of the columns.
pub(super) fn channels(entries: &[uapi::Entry]) -> Vec<Channel> {
    let channels = entries.iter().filter(|e| e.kind == kind::CHANNEL);
    channels.map(channel).collect()
}

/// The names of the columns that show tunables, in their order.
pub(super) fn tunables(entries: &[uapi::Entry]) -> Vec<String> {
    let is_tunable = |entry: &&uapi::Entry| {
        entry.kind == kind::CHANNEL && entry.flags & entry_flag::TUNABLE != 0
    };
    entries.iter().filter(is_tunable).map(named).collect()
}

/// The names of the outputs that a run writes, in the order of its steps.
pub(super) fn outputs(entries: &[uapi::Entry]) -> Vec<String> {
    let outputs = entries.iter().filter(|e| e.kind == kind::OUTPUT);
    outputs.map(named).collect()
}

fn channel(entry: &uapi::Entry) -> Channel {
    let value = entry.value();
    Channel {
        name: named(entry),
        description: text(&entry.text),
        unit: text(&value.unit),
        kind: match value.kind {
            1 => Type::S64,
            2 => Type::F64,
            _ => Type::U64,
        },
        class: match value.cost_class {
            1 => Class::Sleep,
            2 => Class::Async,
            _ => Class::Hard,
        },
        scale: f64::from_bits(value.scale),
        offset: f64::from_bits(value.offset),
        bits: value.bits,
        cost_ns: value.cost_ns,
        in_use: entry.flags & entry_flag::IN_USE != 0,
    }
}

fn run_status(entry: &uapi::Entry) -> RunStatus {
    let run = entry.run();
    RunStatus {
        run: entry.id,
        engine: Engine::Kernel.name(),
        event: named(entry),
        program: text(&entry.text),
        state: State::from_raw(run.state),
        error: run.error,
        channels: run.channels,
        readers: run.readers,
        uid: run.uid,
        pid: run.pid,
        capacity: run.capacity,
        limit: Some(run.limit).filter(|limit| *limit != uapi::NO_LIMIT),
        rows: run.head,
        triggers: run.triggers,
        missed: (run.triggers)
            .saturating_sub(run.head)
            .saturating_sub(run.skipped),
        skipped: run.skipped,
        errors: run.errors,
        period_ns: run.period_ns,
        elapsed_ns: run.elapsed_ns,
    }
}
