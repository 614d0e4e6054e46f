// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a channel: how its 64-bit word is to be understood.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields;

/// How the 64-bit word of a channel is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// Unsigned.
    U64,
    /// Two's complement, extended to 64 bits.
    S64,
    /// IEEE 754 binary64.
    F64,
}

/// What it takes to read a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// May be read in hard interrupt context.
    #[default]
    Hard,
    /// May sleep.
    Sleep,
    /// Its value arrives later.
    Async,
}

/// A scalar: a channel, or an output that a row may write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// `device.channel`.
    pub name: String,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// Unit of the scaled value; empty if it has none.
    #[serde(default)]
    pub unit: String,
    /// How the word is to be understood.
    #[serde(rename = "type")]
    pub kind: Type,
    /// What it takes to read it.
    #[serde(default)]
    pub class: Class,
    /// Factor from the word to the value.
    #[serde(default = "one", deserialize_with = "fields::number")]
    pub scale: f64,
    /// What is added then.
    #[serde(default, deserialize_with = "fields::number")]
    pub offset: f64,
    /// Significant bits of the word.
    #[serde(default = "all_bits", deserialize_with = "fields::number")]
    pub bits: u32,
    /// Rough time one access takes.
    #[serde(default)]
    pub cost_ns: u32,
    /// A run uses it.
    #[serde(default)]
    pub in_use: bool,
}

impl Type {
    /// The word as a number, before scale and offset.
    pub fn number(self, word: u64) -> f64 {
        match self {
            Type::U64 => word as f64,
            Type::S64 => word as i64 as f64,
            Type::F64 => f64::from_bits(word),
        }
    }

    /// Its name, as in catalogues and files.
    pub fn name(self) -> &'static str {
        match self {
            Type::U64 => "u64",
            Type::S64 => "s64",
            Type::F64 => "f64",
        }
    }
}

impl Class {
    /// Its name, as in catalogues and files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Hard => "hard",
            Class::Sleep => "sleep",
            Class::Async => "async",
        }
    }
}

impl Channel {
    /// A channel whose word is a whole number of 64 bits, and what it says; so long does it take to be read, in any context.
    pub(crate) fn plain(name: &str, description: &str, unit: &str, cost_ns: u32) -> Channel {
        Channel {
            name: name.to_owned(),
            description: description.to_owned(),
            unit: unit.to_owned(),
            kind: Type::U64,
            class: Class::Hard,
            scale: 1.0,
            offset: 0.0,
            bits: 64,
            cost_ns,
            in_use: false,
        }
    }

    /// The value that a word stands for, in [`Channel::unit`].
    pub fn value(&self, word: u64) -> f64 {
        self.kind.number(word) * self.scale + self.offset
    }

    /// The value as JSON: a whole number where the channel has whole numbers. JSON has no numbers for those that are none:
    /// `"NaN"`, `"inf"` and `"-inf"` were read all the same, and `null` is for what was not.
    #[doc(hidden)]
    pub fn json(&self, word: u64) -> Value {
        match self.kind {
            Type::U64 if !self.is_scaled() => word.into(),
            Type::S64 if !self.is_scaled() => (word as i64).into(),
            _ => match self.value(word) {
                value if value.is_finite() => value.into(),
                value => value.to_string().into(),
            },
        }
    }

    /// Whether the value is anything but the word itself.
    pub fn is_scaled(&self) -> bool {
        self.scale != 1.0 || self.offset != 0.0
    }
}

fn one() -> f64 {
    1.0
}

fn all_bits() -> u32 {
    u64::BITS
}

/// Names for the columns of a table: those of the channels, but a channel that
/// is read several times in a row becomes `name`, `name#2`, `name#3`.
pub fn column_names(channels: &[Channel]) -> Vec<String> {
    let names: Vec<_> = channels.iter().map(|c| c.name.as_str()).collect();
    numbered(&names)
}

/// The names, but one that is there before is followed by its number.
pub(crate) fn numbered(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let before = names.iter().take(i);
            match before.filter(|other| *other == name).count() {
                0 => (*name).to_owned(),
                n => format!("{name}#{}", n + 1),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::channel;

    #[test]
    fn a_value_that_is_no_number_is_a_word_and_has_not_failed() {
        let of = |value: f64| channel("a.x", Type::F64).json(value.to_bits());
        let words = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(of);
        assert_eq!(words, ["NaN", "inf", "-inf"]);
        assert_eq!(of(0.5), 0.5);
        let whole = |kind| channel("a.x", kind).json(u64::MAX);
        assert_eq!(whole(Type::U64), u64::MAX);
        assert_eq!(whole(Type::S64), -1);
        let mut scaled = channel("a.x", Type::U64);
        scaled.scale = f64::INFINITY;
        assert_eq!(scaled.json(0), "NaN");
    }

    #[test]
    fn a_word_is_understood_by_its_type_and_scaled() {
        let mut c = channel("adc.x", Type::S64);
        assert_eq!(c.value(-3_i64 as u64), -3.0);
        assert!(!c.is_scaled());
        c.scale = 0.5;
        c.offset = 10.0;
        assert!(c.is_scaled());
        assert_eq!(c.value(-3_i64 as u64), 8.5);
        c.kind = Type::U64;
        assert_eq!(c.value(4), 12.0);
        c.kind = Type::F64;
        assert_eq!(c.value((-2.0_f64).to_bits()), 9.0);
    }

    #[test]
    fn a_channel_read_twice_gets_two_columns() {
        let names = ["a.x", "a.y", "a.x", "a.x"].map(|n| channel(n, Type::U64));
        assert_eq!(column_names(&names), ["a.x", "a.y", "a.x#2", "a.x#3"]);
    }
}
