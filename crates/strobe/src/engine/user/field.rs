// SPDX-License-Identifier: MIT OR Apache-2.0
//! A field of a mapped register as a channel, and a mapped register as an output.

use std::io;
use std::sync::Arc;

use super::presence::{gone, Presence};
use super::provider::{ReadChannel, Row, WriteOutput};
use crate::board::{Channel, Kind};
use crate::map::Register;

/// Some bits of a register.
pub(super) struct Field {
    register: Register,
    card: Arc<Presence>,
    all_ones: u64,
    big_endian: bool,
    bits: Bits,
}

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

impl Field {
    /// The field that a board file describes.
    pub(super) fn new(
        register: Register,
        card: Arc<Presence>,
        big_endian: bool,
        channel: &Channel,
    ) -> Self {
        Field {
            all_ones: all_ones(&register),
            register,
            card,
            big_endian,
            bits: Bits::new(channel),
        }
    }

    /// All bits of a register.
    pub(super) fn whole(register: Register, card: Arc<Presence>, big_endian: bool) -> Self {
        Field {
            bits: Bits {
                shift: 0,
                unused: 64 - 8 * u32::from(register.width()),
                signed: false,
            },
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
    pub(super) fn value(&self) -> io::Result<u64> {
        let mut value = self.register.read();
        let is_there = value != self.all_ones || self.card.look();
        if !is_there || !self.card.is_there() {
            return Err(gone());
        }
        if self.big_endian {
            value = turned(value, &self.register);
        }
        Ok(self.bits.of(value))
    }
}

impl ReadChannel for Field {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        self.value()
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
