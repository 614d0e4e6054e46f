// SPDX-License-Identifier: MIT OR Apache-2.0
//! What everything is set to or reads as, and when it changed.

use std::collections::HashMap;

use super::field::Kind;
use super::model::Model;
use super::number;

/// Kinds of values that a client can ask for alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What is set.
    Config,
    /// Bits.
    Bits,
    /// Positions.
    Position,
    /// What is read.
    Read,
    /// Attributes of fields.
    Attribute,
    /// Tables.
    Table,
    /// Labels and notes.
    Metadata,
}

impl Group {
    /// All, with their names.
    pub const ALL: [(&'static str, Group); 7] = [
        ("CONFIG", Group::Config),
        ("BITS", Group::Bits),
        ("POSN", Group::Position),
        ("READ", Group::Read),
        ("ATTR", Group::Attribute),
        ("TABLE", Group::Table),
        ("METADATA", Group::Metadata),
    ];
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Its whole name.
    pub name: String,
    /// Its kind.
    pub group: Group,
    /// What it is.
    pub content: Content,
    /// The change that made it so.
    pub changed: u64,
    /// The change that made it 1 the last time, if it is a bit or an input.
    pub rose: u64,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A line.
    Line(String),
    /// The words of a table.
    Words(Vec<u32>),
    /// Lines.
    Lines(Vec<String>),
}

/// All values.
#[derive(Debug)]
pub struct Values {
    list: Vec<Value>,
    places: HashMap<String, usize>,
    /// Changes there were.
    changes: u64,
}

impl Values {
    /// As they are at the start.
    pub fn new(model: &Model) -> Self {
        let mut values = Values {
            list: Vec::new(),
            places: HashMap::new(),
            changes: 1,
        };
        for (name, found) in model.fields() {
            let kind = &found.field.kind;
            let add = |values: &mut Values, suffix: &str, group, text: String| {
                values.add(format!("{name}{suffix}"), group, Content::Line(text));
            };
            match kind {
                Kind::Uint { start, .. } => add(&mut values, "", Group::Config, start.to_string()),
                Kind::Int | Kind::Bit => add(&mut values, "", Group::Config, "0".to_owned()),
                Kind::Enum(labels) | Kind::PosMux(labels) => {
                    let first = labels.first().cloned().unwrap_or_default();
                    add(&mut values, "", Group::Config, first);
                }
                Kind::Time(seconds) => {
                    add(&mut values, "", Group::Config, number::text(*seconds));
                    add(&mut values, ".UNITS", Group::Attribute, "s".to_owned());
                }
                Kind::BitMux(start, _) => {
                    add(&mut values, "", Group::Config, (*start).to_owned());
                    add(&mut values, ".DELAY", Group::Attribute, "0".to_owned());
                }
                Kind::ReadUint => add(&mut values, "", Group::Read, "0".to_owned()),
                Kind::ReadEnum(labels) => {
                    let first = labels.first().cloned().unwrap_or_default();
                    add(&mut values, "", Group::Read, first);
                }
                Kind::BitOut(_) => add(&mut values, "", Group::Bits, "0".to_owned()),
                Kind::PosOut(sources) => {
                    add(&mut values, "", Group::Position, "0".to_owned());
                    add(&mut values, ".CAPTURE", Group::Attribute, "No".to_owned());
                    if let Some(source) = sources.get(found.number) {
                        let (scale, offset) = (source.scale, source.offset);
                        add(&mut values, ".SCALE", Group::Attribute, number::text(scale));
                        add(
                            &mut values,
                            ".OFFSET",
                            Group::Attribute,
                            number::text(offset),
                        );
                        add(&mut values, ".UNITS", Group::Attribute, source.unit.clone());
                    }
                }
                Kind::ExtOut(_) => {
                    add(&mut values, ".CAPTURE", Group::Attribute, "No".to_owned());
                }
                Kind::Table => {
                    values.add(name.clone(), Group::Table, Content::Words(Vec::new()));
                }
            }
        }
        for block in &model.blocks {
            for number in 1..=block.count {
                let name = format!("*METADATA.LABEL_{}{number}", block.name);
                values.add(name, Group::Metadata, Content::Line(String::new()));
            }
        }
        let design = "*METADATA.DESIGN".to_owned();
        values.add(design, Group::Metadata, Content::Line(String::new()));
        values
    }

    fn add(&mut self, name: String, group: Group, content: Content) {
        self.places.insert(name.clone(), self.list.len());
        self.list.push(Value {
            name,
            group,
            content,
            changed: 1,
            rose: 0,
        });
    }

    /// All, in the order of their blocks.
    pub fn list(&self) -> &[Value] {
        &self.list
    }

    /// Changes there were.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.list.get(*self.places.get(name)?)
    }

    /// The line of this name; empty if there is none.
    pub fn line(&self, name: &str) -> &str {
        match self.get(name).map(|value| &value.content) {
            Some(Content::Line(line)) => line,
            _ => "",
        }
    }

    /// The words of this table.
    pub fn words(&self, name: &str) -> &[u32] {
        match self.get(name).map(|value| &value.content) {
            Some(Content::Words(words)) => words,
            _ => &[],
        }
    }

    /// Sets the value of this name. Answers whether that changed anything.
    pub fn set(&mut self, name: &str, content: Content) -> bool {
        let Some(place) = self.places.get(name).copied() else {
            return false;
        };
        let rises = match (self.list.get(place), &content) {
            (Some(value), Content::Line(line)) => self.rises(value, line),
            _ => false,
        };
        let Some(value) = self.list.get_mut(place).filter(|v| v.content != content) else {
            return false;
        };
        self.changes += 1;
        value.changed = self.changes;
        if rises {
            value.rose = self.changes;
        }
        value.content = content;
        true
    }

    /// Whether a bit rises, or an input with what it is connected to, when this is set.
    fn rises(&self, value: &Value, line: &str) -> bool {
        match (value.group, &value.content) {
            (Group::Bits, _) => line == "1",
            (Group::Config, Content::Line(before)) => self.bit(line) && !self.bit(before),
            _ => false,
        }
    }

    /// Sets the line of this name.
    pub fn set_line(&mut self, name: &str, line: impl Into<String>) -> bool {
        self.set(name, Content::Line(line.into()))
    }

    /// Sets a bit.
    pub fn set_bit(&mut self, name: &str, bit: bool) -> bool {
        self.set_line(name, if bit { "1" } else { "0" })
    }

    /// What the input is connected to: `ZERO`, `ONE`, or a bit.
    pub fn input(&self, name: &str) -> bool {
        self.bit(self.line(name))
    }

    /// The change at which this input rose the last time.
    pub fn rise(&self, name: &str) -> u64 {
        let rose = |name: &str| self.get(name).map_or(0, |value| value.rose);
        rose(name).max(rose(self.line(name)))
    }

    /// Whether the bit of this name is 1.
    pub fn bit(&self, name: &str) -> bool {
        match name {
            "ZERO" => false,
            "ONE" => true,
            name => self.line(name) == "1",
        }
    }
}
