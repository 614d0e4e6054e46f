// SPDX-License-Identifier: MIT OR Apache-2.0
//! A field of a register as a channel, and a mapped register as an output.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::io::Errno;
use strobe_board::{self as board, Channel, Kind};
use strobe_hw::map::Register;

use super::chip_register::ChipRegister;
use super::presence::{Presence, gone};
use super::provider::{ReadChannel, Row, WriteOutput};

/// Which bits of a word a field is.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    shift: u32,
    /// 64 minus the bits of the field.
    unused: u32,
    signed: bool,
}

impl Bits {
    /// Those that a board file describes.
    pub(super) fn new(channel: &Channel) -> Bits {
        Bits {
            shift: u32::from(channel.shift).min(63),
            unused: 64 - u32::from(channel.bits).clamp(1, 64),
            signed: channel.kind == Kind::Signed,
        }
    }

    /// The same of a word of which this one is a part, so many bits from its lowest.
    pub(super) fn above(self, bits: u32) -> Bits {
        let shift = (self.shift + bits).min(63);
        Bits { shift, ..self }
    }

    /// The value of the field, its sign extended.
    #[inline]
    pub(super) fn of(self, word: u64) -> u64 {
        let top = (word >> self.shift) << self.unused;
        match self.signed {
            true => ((top as i64) >> self.unused) as u64,
            false => top >> self.unused,
        }
    }
}

fn all_ones(register: &Register) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(register.width()))
}

/// The value as the board has it: its bytes may be the other way round.
#[inline]
fn turned(value: u64, register: &Register) -> u64 {
    value.swap_bytes() >> (64 - 8 * u32::from(register.width()))
}

/// A register that is read as a whole.
pub(super) struct Load {
    register: Register,
    card: Arc<Presence>,
    all_ones: u64,
    big_endian: bool,
}

impl Load {
    /// A register, mapped to be read.
    pub(super) fn new(register: Register, card: Arc<Presence>, big_endian: bool) -> Self {
        Load {
            all_ones: all_ones(&register),
            register,
            card,
            big_endian,
        }
    }

    /// What the card says now.
    ///
    /// # Errors
    /// ENODEV if it is gone. All ones may be a value; then it is looked for the card.
    #[inline]
    pub(super) fn get(&self) -> io::Result<u64> {
        let value = self.register.read();
        let is_there = value != self.all_ones || self.card.look();
        if !is_there || !self.card.is_there() {
            return Err(gone());
        }
        Ok(match self.big_endian {
            true => turned(value, &self.register),
            false => value,
        })
    }
}

/// Where a register is.
enum Source {
    /// In memory that is mapped.
    Memory(Load),
    /// In a chip on a bus.
    Chip(ChipRegister),
}

impl Source {
    #[inline]
    fn get(&self) -> io::Result<u64> {
        match self {
            Source::Memory(load) => load.get(),
            Source::Chip(register) => register.get(),
        }
    }

    /// Whether another one is of the same device.
    fn is_of_same_device(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Memory(one), Source::Memory(other)) => Arc::ptr_eq(&one.card, &other.card),
            (Source::Chip(one), Source::Chip(other)) => one.is_of_same_chip(other),
            _ => false,
        }
    }
}

/// Some bits of a register.
pub struct Field {
    source: Source,
    bits: Bits,
    /// The register, as the board file describes it.
    described: board::Register,
    /// Where what was read is left for later fields of the row; `None`: nobody wants it.
    access: Option<Arc<Access>>,
}

impl Field {
    /// The field that a board file describes, of this register.
    pub(super) fn new(load: Load, described: board::Register, channel: &Channel) -> Self {
        Field::of(Source::Memory(load), described, channel)
    }

    /// The same of a register of a chip.
    pub(super) fn of_chip(register: ChipRegister, channel: &Channel) -> Self {
        let described = register.described().clone();
        Field::of(Source::Chip(register), described, channel)
    }

    fn of(source: Source, described: board::Register, channel: &Channel) -> Self {
        Field {
            source,
            bits: Bits::new(channel),
            described,
            access: None,
        }
    }

    /// What it is now, for no row.
    pub(super) fn get(&self) -> io::Result<u64> {
        Ok(self.bits.of(self.source.get()?))
    }

    /// Whether its register may not be read for another field.
    pub(super) fn is_read_anew(&self) -> bool {
        self.described.reread
    }

    /// Whether another field is of the same register of the same device, and reads it the same way.
    fn is_beside(&self, other: &Field) -> bool {
        let place = |field: &Field| {
            let register = &field.described;
            (register.offset, register.width, register.big_endian)
        };
        self.source.is_of_same_device(&other.source)
            && self.described.block == other.described.block
            && place(self) == place(other)
    }

    /// The other field, cut from what this one reads; `None` if it is of another register.
    pub(super) fn cut(&mut self, other: &Field) -> Option<Cut> {
        let access = self.is_beside(other).then_some(&mut self.access)?;
        Some(Cut {
            access: Arc::clone(access.get_or_insert_default()),
            bits: other.bits,
        })
    }
}

impl ReadChannel for Field {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let word = self.source.get();
        if let Some(access) = &self.access {
            access.put(&word);
        }
        Ok(self.bits.of(word?))
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// What one access to a register has said. Written by its first field in a row and read by the later ones, all in
/// the thread of the run.
#[derive(Default)]
struct Access {
    word: AtomicU64,
    /// Why there is no word: an errno, or 0.
    errno: AtomicI32,
}

impl Access {
    fn put(&self, word: &io::Result<u64>) {
        let (word, errno) = match word {
            Ok(word) => (*word, 0),
            Err(error) => (0, error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())),
        };
        self.word.store(word, Ordering::Relaxed);
        self.errno.store(errno, Ordering::Relaxed);
    }

    fn get(&self) -> io::Result<u64> {
        match self.errno.load(Ordering::Relaxed) {
            0 => Ok(self.word.load(Ordering::Relaxed)),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Some bits of a register that the row has read for a field before.
pub(super) struct Cut {
    access: Arc<Access>,
    bits: Bits,
}

impl ReadChannel for Cut {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(self.bits.of(self.access.get()?))
    }
}

/// A register that is written as a whole.
pub(super) struct Store {
    register: Register,
    card: Arc<Presence>,
    big_endian: bool,
}

impl Store {
    /// A register, mapped to be written.
    pub(super) fn new(register: Register, card: Arc<Presence>, big_endian: bool) -> Self {
        Store {
            register,
            card,
            big_endian,
        }
    }

    /// Stores, unless the card has gone: another one may be at its addresses by now.
    #[inline]
    pub(super) fn put(&self, value: u64) {
        if !self.card.is_there() {
            return;
        }
        self.register.write(match self.big_endian {
            true => turned(value, &self.register),
            false => value,
        });
    }
}

impl WriteOutput for Store {
    fn write(&mut self, word: u64) -> io::Result<()> {
        self.put(word);
        match self.card.is_there() {
            true => Ok(()),
            false => Err(gone()),
        }
    }
}
