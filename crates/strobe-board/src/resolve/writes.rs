// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of writes: what an event stores in registers when it is enabled, disabled or silenced.

use super::Registers;
use crate::table::{Either, Table};
use crate::{Event, Register, Write, WriteValue};

/// Notes a register that cannot be written.
pub(super) fn writable(table: &Table<'_>, register: &Register) {
    if !register.access.writes() {
        table.fault(format!(
            "register {} is read-only; choose another, or give it access = \"rw\"",
            register.name
        ));
    }
}

/// Where `write = "pending"` takes its value from.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// The event has no `pending`.
    Unknown,
    /// It has, with this mask unless it is wrong.
    Pending(Option<u64>),
}

/// A list of writes; `pending` is given where a write may store what was pending.
pub(crate) fn writes(
    table: &mut Table<'_>,
    key: &'static str,
    registers: &Registers<'_>,
    source: Option<Source>,
) -> Vec<Write> {
    let mut writes = Vec::new();
    for mut item in table.list(key) {
        writes.extend(write(&mut item, registers, source));
        item.finish();
    }
    writes
}

fn write(item: &mut Table<'_>, registers: &Registers<'_>, source: Option<Source>) -> Option<Write> {
    let register = registers.named(item);
    let value = item.either("write");
    item.missing("write", "write = 0x..., what to store");
    let (value, at) = value?;
    let value = match value {
        Either::Number(number) => WriteValue::Fixed(number),
        Either::Text("pending") => WriteValue::Pending,
        Either::Text(other) => {
            item.fault_at(
                &at,
                format!("`write` is \"{other}\"; it must be a whole number or \"pending\""),
            );
            return None;
        }
    };
    let widest = match (value, source) {
        (WriteValue::Fixed(number), _) => number,
        (WriteValue::Pending, Some(Source::Pending(mask))) => mask.unwrap_or(0),
        (WriteValue::Pending, Some(Source::Unknown)) => {
            item.fault_at(&at, "its event has no `pending`; add pending = { register = \"NAME\" }, or write a number");
            return None;
        }
        (WriteValue::Pending, None) => {
            item.fault_at(&at, "only `silence` can write \"pending\"; write a number");
            return None;
        }
    };
    let (index, register) = register?;
    writable(item, register);
    if widest > register.all_ones() {
        let remedy = match value {
            WriteValue::Fixed(_) => "correct the value, or the register's `width`",
            WriteValue::Pending => "narrow the event's `mask`, or correct the register's `width`",
        };
        item.fault_at(
            &at,
            format!(
                "0x{widest:x} does not fit register {}, which has {} bits; {remedy}",
                register.name,
                register.bits()
            ),
        );
    }
    Some(Write {
        register: index,
        value,
    })
}

/// How many writes an event has.
pub(crate) fn writes_of(event: &Event) -> usize {
    event.silence.len() + event.enable.len() + event.disable.len()
}
