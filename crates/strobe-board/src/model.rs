// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board: what its file says, every reference resolved.

use std::fmt;

use crate::chip::Chip;
use crate::for_user::ForUserEngine;
use crate::hardware::Hardware;
use crate::instrument::Instrument;
use crate::kind::Kind;

/// A device, as its board file describes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Board {
    /// The file it was read from, to be named in what is said about it.
    pub file: String,
    /// Name of the device in the catalogue.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Which hardware it is.
    pub hardware: Hardware,
    /// How it raises interrupts, if it does.
    pub interrupt: Option<Interrupt>,
    /// The register blocks that are mapped, by number.
    pub bars: Vec<Bar>,
    /// Registers, in the order of the file; channels and the like refer to them by index.
    pub registers: Vec<Register>,
    /// What a row may read of the registers.
    pub channels: Vec<Channel>,
    /// What a row may read of files; only the user engine does.
    pub files: Vec<FileChannel>,
    /// What a row may write.
    pub outputs: Vec<Output>,
    /// What may trigger a row.
    pub events: Vec<Event>,
    /// Stores that are done once, when the driver takes the device.
    pub setup: Vec<Write>,
    /// How it is spoken to, if it is an instrument; then it has no registers and no events.
    pub instrument: Option<Instrument>,
    /// How its registers are reached, if it is a chip on a bus.
    pub chip: Option<Chip>,
}

/// How a board raises its interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Kind of interrupt.
    pub kind: InterruptKind,
    /// Vectors to ask for; 1 for INTx.
    pub vectors: u16,
}

/// Kind of interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// The level-triggered line of old, possibly shared.
    Intx,
    /// Message signalled.
    Msi,
    /// Message signalled, with a table.
    Msix,
    /// The interrupts of a platform device, which its description has.
    Line,
    /// None: messages of a co-processor.
    Message,
}

/// A block of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Number of the PCI BAR, 0 to 5; of a platform device, which of its blocks of memory; 0 for a frame.
    pub number: u8,
    /// Bytes it has at least.
    pub size: u64,
}

/// The block of registers that a register lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A BAR of a PCI card, by its number.
    Bar(u8),
    /// A map of a UIO device, by its number.
    Map(u32),
    /// A map of a UIO device, by its name.
    NamedMap(String),
    /// The frame of a co-processor.
    Frame,
    /// The registers of a chip: those of this page, or those of all pages.
    Chip(Option<u32>),
}

/// What a register allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Writes only.
    WriteOnly,
    /// Both.
    ReadWrite,
}

impl Access {
    /// Whether it may be read.
    pub fn reads(self) -> bool {
        self != Access::WriteOnly
    }

    /// Whether it may be written.
    pub fn writes(self) -> bool {
        self != Access::ReadOnly
    }
}

/// One register.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Register {
    /// Its name in the file.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Where it lies.
    pub block: Block,
    /// Bytes from the start of the block, a multiple of `width`; of a chip, the register's number.
    pub offset: u32,
    /// Line of the file where the offset is.
    pub line: usize,
    /// Bytes of one access: 1, 2, 4 or 8; of a chip, 1 to 8.
    pub width: u8,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
    /// Whether each channel of a row reads it anew. Else the channels of one register that stand in one row are cut
    /// from one access.
    pub reread: bool,
    /// What it allows.
    pub access: Access,
}

impl Register {
    /// Bits it has.
    pub fn bits(&self) -> u8 {
        8 * self.width
    }

    /// All its bits.
    pub fn all_ones(&self) -> u64 {
        u64::MAX >> (64 - u32::from(self.bits()))
    }
}

/// A field of a register that a row may read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Channel {
    /// Name, without the device.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Unit of `value * scale + offset`; empty if it has none.
    pub unit: String,
    /// Factor to that unit.
    pub scale: f64,
    /// What is added after it.
    pub offset: f64,
    /// Index of its register.
    pub register: usize,
    /// Lowest bit of the field.
    pub shift: u8,
    /// Bits of the field.
    pub bits: u8,
    /// How they are to be understood.
    pub kind: Kind,
}

/// A number in a file that a row may read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileChannel {
    /// Name, without the device.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Unit of `value * scale + offset`; empty if it has none.
    pub unit: String,
    /// Factor to that unit.
    pub scale: f64,
    /// What is added after it.
    pub offset: f64,
    /// The file, an absolute path.
    pub path: String,
    /// Which of its words, from 1.
    pub word: usize,
}

/// A register that a row may write.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Name, without the device.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Unit of `value * scale + offset`; empty if it has none.
    pub unit: String,
    /// Factor to that unit.
    pub scale: f64,
    /// What is added after it.
    pub offset: f64,
    /// Index of its register.
    pub register: usize,
}

/// An interrupt of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Name, without the device.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Interrupt vector, from 0.
    pub vector: u16,
    /// Where it is seen that this event is meant.
    pub pending: Option<Pending>,
    /// Index of the channel that counts triggers which the card has lost.
    pub missed: Option<usize>,
    /// Stores that withdraw the interrupt.
    pub silence: Vec<Write>,
    /// Stores when the first run starts to listen.
    pub enable: Vec<Write>,
    /// Stores when the last run has ended.
    pub disable: Vec<Write>,
}

/// The event has happened if any of these bits is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Index of the register.
    pub register: usize,
    /// Bits of it.
    pub mask: u64,
}

/// A store into a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Index of the register.
    pub register: usize,
    /// What to store.
    pub value: WriteValue,
}

/// What a [`Write`] stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteValue {
    /// This number.
    Fixed(u64),
    /// What was read from the event's pending register, masked.
    Pending,
}

impl Board {
    /// The channel that counts what the card has lost of an event.
    pub fn missed(&self, event: &Event) -> Option<&Channel> {
        self.channels.get(event.missed?)
    }

    /// Whether it is of no use to the kernel engine.
    pub fn is_for_user_engine_only(&self) -> bool {
        self.for_user_engine_only().is_some()
    }

    /// Why it is of no use to the kernel engine, if it is not.
    pub(super) fn for_user_engine_only(&self) -> Option<ForUserEngine> {
        let of_hardware = self.hardware.for_user_engine_only(&self.name);
        let of_files = || ForUserEngine::Files(self.name.clone());
        of_hardware.or_else(|| (!self.files.is_empty()).then(of_files))
    }

    /// Bytes of a frame, if it is for a co-processor.
    pub fn frame_bytes(&self) -> Option<usize> {
        match self.hardware {
            Hardware::Rpmsg { .. } => usize::try_from(self.bars.first()?.size).ok(),
            _ => None,
        }
    }

    /// What it has, in words: `9 channels, 2 outputs, 1 event`.
    pub fn summary(&self) -> String {
        let count = |number: usize, word: &str| {
            format!("{number} {word}{}", if number == 1 { "" } else { "s" })
        };
        let spoken = self.instrument.as_ref();
        let asked = spoken.map_or(0, |instrument| instrument.channels.len());
        let told = spoken.map_or(0, |instrument| instrument.outputs.len());
        [
            count(self.channels.len() + self.files.len() + asked, "channel"),
            count(self.outputs.len() + told, "output"),
            count(self.events.len(), "event"),
        ]
        .join(", ")
    }
}

impl fmt::Display for InterruptKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InterruptKind::Intx => "intx",
            InterruptKind::Msi => "msi",
            InterruptKind::Msix => "msix",
            InterruptKind::Line => "line",
            InterruptKind::Message => "message",
        })
    }
}

/// `BAR 0`, `map 0`, `map state`, `frame`.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Bar(number) => write!(f, "BAR {number}"),
            Block::Map(number) => write!(f, "map {number}"),
            Block::NamedMap(name) => write!(f, "map {name}"),
            Block::Frame => f.write_str("frame"),
            Block::Chip(Some(page)) => write!(f, "page {page}"),
            Block::Chip(None) => f.write_str("chip"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::ReadOnly => "ro",
            Access::WriteOnly => "wo",
            Access::ReadWrite => "rw",
        })
    }
}
