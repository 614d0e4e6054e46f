// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks and their fields: what a client sees when it looks around.

/// What can be captured of a channel, in the words of the protocol.
const CAPTURES: [&str; 9] = [
    "No",
    "Value",
    "Diff",
    "Sum",
    "Mean",
    "Min",
    "Max",
    "Min Max",
    "Min Max Mean",
];

/// A kind of block, of which there are some.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its name, which does not end in a digit.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Description for people.
    pub about: String,
    /// What each of them has.
    pub fields: Vec<Field>,
}

impl Block {
    /// The name of one of them, as in values: with its number if there are several.
    pub fn name_of(&self, number: usize) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{}{}", self.name, number + 1),
        }
    }
}

/// A part of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Description for people.
    pub about: String,
    /// What it is, and what it starts with.
    pub kind: Kind,
}

/// What a field is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A number that is set.
    Uint {
        /// What it starts with.
        start: u32,
        /// The greatest.
        max: u32,
    },
    /// A number that is set, and may be negative.
    Int,
    /// A bit that is set.
    Bit,
    /// A choice; the first to begin with.
    Enum(Vec<String>),
    /// A time that is set, s.
    Time(f64),
    /// A number that is read.
    ReadUint,
    /// A state that is read.
    ReadEnum(Vec<String>),
    /// A bit that others can be connected to; its place in `PCAP.BITS0`, if a row has it.
    BitOut(Option<u8>),
    /// What this bit is connected to; the start, and all that there is.
    BitMux(&'static str, Vec<String>),
    /// What this position is connected to.
    PosMux(Vec<String>),
    /// A channel; of each block, which.
    PosOut(Vec<Source>),
    /// What every row has beside its channels.
    ExtOut(Extra),
    /// The table of a sequencer.
    Table,
}

/// A channel as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its name here, `device.channel`.
    pub channel: String,
    /// How its word is to be understood.
    pub kind: strobe::channel::Type,
    /// Factor from the word to the value.
    pub scale: f64,
    /// What is added then.
    pub offset: f64,
    /// Unit of the value.
    pub unit: String,
}

/// What every row has beside its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// When it was made, s since the start.
    Time,
    /// Its number.
    Row,
    /// The number of its trigger.
    Trigger,
    /// Time since the row before it, s.
    Duration,
    /// How often its channels were read since the row before it.
    Samples,
    /// What is to be known of it.
    Bits,
}

impl Kind {
    /// Type and subtype, in the words of the protocol.
    pub fn words(&self) -> &'static str {
        match self {
            Kind::Uint { .. } => "param uint",
            Kind::Int => "param int",
            Kind::Bit => "param bit",
            Kind::Enum(_) => "param enum",
            Kind::Time(_) => "time",
            Kind::ReadUint => "read uint",
            Kind::ReadEnum(_) => "read enum",
            Kind::BitOut(_) => "bit_out",
            Kind::BitMux(..) => "bit_mux",
            Kind::PosMux(_) => "pos_mux",
            Kind::PosOut(_) => "pos_out",
            Kind::ExtOut(Extra::Time) => "ext_out timestamp",
            Kind::ExtOut(Extra::Bits) => "ext_out bits",
            Kind::ExtOut(_) => "ext_out samples",
            Kind::Table => "table",
        }
    }

    /// What it can be.
    pub fn labels(&self) -> Option<&[String]> {
        match self {
            Kind::Enum(labels)
            | Kind::ReadEnum(labels)
            | Kind::BitMux(_, labels)
            | Kind::PosMux(labels) => Some(labels),
            _ => None,
        }
    }

    /// How it can be captured, if it can.
    pub fn captures(&self) -> Option<&'static [&'static str]> {
        match self {
            Kind::PosOut(_) => Some(&CAPTURES),
            Kind::ExtOut(_) => Some(&["No", "Value"]),
            _ => None,
        }
    }
}

/// A field of a kind of block.
pub fn field(name: &str, kind: Kind, about: &str) -> Field {
    Field {
        name: name.to_owned(),
        about: about.to_owned(),
        kind,
    }
}
