// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is captured: the columns of a run, as they are chosen when it is armed.

use strobe::channel::Type;

use super::field::{Extra, Kind, Source};
use super::model::Model;
use super::number;
use super::values::Values;

/// What of a field is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Its value.
    Value,
    /// The difference from the row before.
    Diff,
}

impl How {
    /// In the words of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            How::Value => "Value",
            How::Diff => "Diff",
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// Name of the field.
    pub name: String,
    /// What of it.
    pub how: How,
    /// Where it comes from.
    pub from: Origin,
    /// Factor, offset and unit, as they are set.
    pub scaling: Scaling,
}

/// From the word to the value.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Factor.
    pub scale: f64,
    /// What is added then.
    pub offset: f64,
    /// Unit of the value.
    pub unit: String,
}

/// Where a column comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// A channel.
    Channel(Source),
    /// What every row has.
    Extra(Extra),
}

impl Capture {
    /// Type of its values, as numpy calls it.
    pub fn type_name(&self) -> &'static str {
        match (&self.from, self.how) {
            (Origin::Channel(_), How::Diff) => "double",
            (Origin::Channel(source), How::Value) => match source.kind {
                Type::F64 => "double",
                _ if self.is_scaled() => "double",
                Type::U64 => "uint64",
                Type::S64 => "int64",
            },
            (Origin::Extra(Extra::Row | Extra::Trigger), _) => "uint64",
            (Origin::Extra(Extra::Bits), _) => "uint32",
            (Origin::Extra(Extra::Time | Extra::Duration), _) => "double",
        }
    }

    /// Bytes of a value.
    pub fn bytes(&self) -> usize {
        match self.from {
            Origin::Extra(Extra::Bits) => 4,
            _ => 8,
        }
    }

    /// Whether the value is anything but the word.
    pub fn is_scaled(&self) -> bool {
        self.scaling.scale != 1.0 || self.scaling.offset != 0.0
    }
}

/// Bytes of a row.
pub fn row_bytes(captures: &[Capture]) -> usize {
    captures.iter().map(Capture::bytes).sum()
}

/// Channels of the run: each once, in the order of the columns. A run has one at least.
pub fn channels(captures: &[Capture]) -> Vec<String> {
    let mut channels: Vec<String> = Vec::new();
    for capture in captures {
        if let Origin::Channel(source) = &capture.from {
            if !channels.contains(&source.channel) {
                channels.push(source.channel.clone());
            }
        }
    }
    channels
}

/// The columns that are chosen now.
pub fn chosen(model: &Model, values: &Values) -> Vec<Capture> {
    let mut captures = Vec::new();
    for (name, found) in model.fields() {
        let how = match values.line(&format!("{name}.CAPTURE")) {
            "Value" => How::Value,
            "Diff" => How::Diff,
            _ => continue,
        };
        let read = |suffix: &str| number::read(values.line(&format!("{name}{suffix}")));
        let (from, scaling) = match &found.field.kind {
            Kind::PosOut(sources) => {
                let Some(source) = sources.get(found.number) else {
                    continue;
                };
                let scaling = Scaling {
                    scale: read(".SCALE").unwrap_or(source.scale),
                    offset: read(".OFFSET").unwrap_or(source.offset),
                    unit: values.line(&format!("{name}.UNITS")).to_owned(),
                };
                (Origin::Channel(source.clone()), scaling)
            }
            Kind::ExtOut(extra) => {
                let unit = match extra {
                    Extra::Time | Extra::Duration => "s",
                    _ => "",
                };
                let scaling = Scaling {
                    scale: 1.0,
                    offset: 0.0,
                    unit: unit.to_owned(),
                };
                (Origin::Extra(*extra), scaling)
            }
            _ => continue,
        };
        captures.push(Capture {
            name,
            how,
            from,
            scaling,
        });
    }
    captures
}
