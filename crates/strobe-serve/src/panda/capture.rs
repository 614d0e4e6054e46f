// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is captured: the columns of a run, as they are chosen when it is armed.

use strobe::channel::Type;

use super::field::{Extra, Kind, Source};
use super::model::Model;
use super::number;
use super::values::Values;

/// The column of a run that says how often its channels were read for a row.
pub const SAMPLES: &str = "samples";

/// What of a field is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Its value.
    Value,
    /// The difference from the row before.
    Diff,
    /// The sum of the samples since the row before.
    Sum,
    /// Their mean.
    Mean,
    /// The least of them.
    Min,
    /// The greatest of them.
    Max,
}

impl How {
    /// All that a label asks for.
    fn of(label: &str) -> &'static [How] {
        match label {
            "Value" => &[How::Value],
            "Diff" => &[How::Diff],
            "Sum" => &[How::Sum],
            "Mean" => &[How::Mean],
            "Min" => &[How::Min],
            "Max" => &[How::Max],
            "Min Max" => &[How::Min, How::Max],
            "Min Max Mean" => &[How::Min, How::Max, How::Mean],
            _ => &[],
        }
    }

    /// In the words of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            How::Value => "Value",
            How::Diff => "Diff",
            How::Sum => "Sum",
            How::Mean => "Mean",
            How::Min => "Min",
            How::Max => "Max",
        }
    }

    /// The function of row programs that makes it of the samples, if it is made of them.
    fn function(self) -> Option<&'static str> {
        match self {
            How::Value | How::Diff => None,
            How::Sum => Some("sum"),
            How::Mean => Some("mean"),
            How::Min => Some("min"),
            How::Max => Some("max"),
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
            (Origin::Channel(_), How::Diff | How::Mean) => "double",
            (Origin::Channel(source), _) => match source.kind {
                Type::F64 => "double",
                _ if self.is_scaled() => "double",
                Type::U64 => "uint64",
                Type::S64 => "int64",
            },
            (Origin::Extra(Extra::Row | Extra::Trigger | Extra::Samples), _) => "uint64",
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

    /// The column of the run that it is made of; `None`: of what every row has.
    pub fn column(&self) -> Option<String> {
        match &self.from {
            Origin::Channel(source) => Some(match self.how.function() {
                Some(function) => format!("{}.{function}", source.channel),
                None => source.channel.clone(),
            }),
            Origin::Extra(Extra::Samples) => Some(SAMPLES.to_owned()),
            Origin::Extra(_) => None,
        }
    }

    /// Whether it is made of what was read between two rows.
    pub fn is_of_samples(&self) -> bool {
        self.how.function().is_some()
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

/// What a row program computes for these columns.
pub fn derived(captures: &[Capture]) -> Vec<String> {
    let mut derived = Vec::new();
    let mut needs_samples = false;
    for capture in captures {
        match (&capture.from, capture.how.function(), capture.column()) {
            (Origin::Channel(source), Some(function), Some(column)) => {
                let word = format!("raw(`{}`)", source.channel);
                derived.push(format!("`{column}` = {function}({word} since emit)"));
                needs_samples |= capture.how == How::Sum && capture.scaling.offset != 0.0;
            }
            (Origin::Extra(Extra::Samples), ..) => needs_samples = true,
            _ => {}
        }
    }
    if needs_samples {
        derived.push(format!("`{SAMPLES}` = count(since emit)"));
    }
    derived
}

/// The columns that are chosen now.
pub fn chosen(model: &Model, values: &Values) -> Vec<Capture> {
    let mut captures = Vec::new();
    for (name, found) in model.fields() {
        let label = values.line(&format!("{name}.CAPTURE"));
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
        captures.extend(How::of(label).iter().map(|how| Capture {
            name: name.clone(),
            how: *how,
            from: from.clone(),
            scaling: scaling.clone(),
        }));
    }
    captures
}
