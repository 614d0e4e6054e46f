// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels of another run, as both engines know them: `run:ID.row`, `run:ID.time` and `run:ID.CHANNEL`.

use crate::channel::{Channel, Class};

/// What a channel is of a row of that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum RunPart {
    /// Its number.
    Number,
    /// Its stamp.
    Time,
    /// The value of the channel with this index.
    Value(usize),
}

/// A part of a row of a run with these channels, as a channel of this name.
pub(in crate::engine) fn channel(
    name: &str,
    part: &str,
    channels: &[Channel],
    cost_ns: u32,
) -> Option<(Channel, RunPart)> {
    let number = |description, unit| Channel::plain(name, description, unit, cost_ns);
    match part {
        "row" => Some((number("number of the row of that run", ""), RunPart::Number)),
        "time" => Some((
            number("its stamp, on the clock of that run", "ns"),
            RunPart::Time,
        )),
        part => {
            let index = channels.iter().position(|channel| channel.name == part)?;
            let channel = Channel {
                name: name.to_owned(),
                class: Class::Hard,
                cost_ns,
                in_use: false,
                ..channels.get(index)?.clone()
            };
            Some((channel, RunPart::Value(index)))
        }
    }
}

/// Why a run with these channels has no such part, and what it has.
pub(in crate::engine) fn none(part: &str, channels: &[Channel]) -> String {
    let names: Vec<&str> = channels.iter().map(|channel| &*channel.name).collect();
    let names = names.join(", ");
    format!("that run has no channel {part}; it has row, time, {names}")
}
