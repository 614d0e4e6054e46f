// SPDX-License-Identifier: MIT OR Apache-2.0
//! One card of a board file: its registers, and what tells of its interrupts, wherever it is.

use std::sync::Arc;

use strobe_board::{self as board, Block, Board, Kind};
use strobe_hw::map::Register;
use strobe_hw::uio::{MappedMemory, Uio};

use super::field::{Field, Load, Store};
use super::presence::Presence;
use crate::channel::{Channel, Class, Type};
use crate::error::Error;

/// Rough time of an access to a register on a bus.
const ACCESS_NS: u32 = 500;

/// One card of the board.
pub(super) struct Card<'b> {
    /// Its name in the catalogue: that of the board, with a number from the second card on.
    pub(super) name: String,
    pub(super) place: Box<dyn Place>,
    pub(super) board: &'b Board,
}

/// Where a card is: what reaches its registers and its interrupts.
pub(super) trait Place {
    /// Whether the register is there and can be had. Nothing is opened that does something when it is.
    fn check(
        &self,
        board: &Board,
        register: &board::Register,
        writable: bool,
    ) -> Result<(), String>;

    /// A block of registers, mapped anew. One that is only read is mapped so that it can only be read.
    fn map(&self, block: &Block, writable: bool) -> Result<MappedMemory, String>;

    /// The watch over it.
    fn presence(&self) -> Result<Arc<Presence>, String>;

    /// The UIO device that its interrupts come through.
    fn uio(&self) -> Result<Uio, String>;
}

impl Card<'_> {
    /// What is wrong with using a part of it.
    pub(super) fn unusable(
        &self,
        what: &'static str,
        part: &str,
    ) -> impl FnOnce(String) -> Error + use<> {
        let name = format!("{}.{part}", self.name);
        move |why| Error::Unusable { what, name, why }
    }

    /// What the board file says of a register.
    pub(super) fn described(&self, index: usize) -> Result<&board::Register, String> {
        let register = self.board.registers.get(index);
        register.ok_or_else(|| "the board has no such register".to_owned())
    }

    /// Whether a register is there and can be had; it is not opened.
    pub(super) fn check(&self, index: usize, writable: bool) -> Result<(), String> {
        self.place
            .check(self.board, self.described(index)?, writable)
    }

    /// A register, in its mapped block, and the watch over the card.
    fn register(&self, index: usize, writable: bool) -> Result<(Register, Arc<Presence>), String> {
        let described = self.described(index)?;
        self.place.check(self.board, described, writable)?;
        let presence = self.place.presence()?;
        let block = &described.block;
        let memory = presence.block(block, writable, || self.place.map(block, writable))?;
        let register = memory.register(described.offset.into(), described.width);
        let register = register.ok_or_else(|| "the register lies outside of its block".to_owned());
        Ok((register?, presence))
    }

    fn big_endian(&self, index: usize) -> bool {
        self.described(index)
            .is_ok_and(|register| register.big_endian)
    }

    /// A register that is stored to.
    pub(super) fn store(&self, index: usize) -> Result<Store, String> {
        let (register, presence) = self.register(index, true)?;
        Ok(Store::new(register, presence, self.big_endian(index)))
    }

    /// A register that is read.
    pub(super) fn load(&self, index: usize) -> Result<Load, String> {
        let (register, presence) = self.register(index, false)?;
        Ok(Load::new(register, presence, self.big_endian(index)))
    }

    /// A field of a register that is read.
    pub(super) fn field(&self, channel: &board::Channel) -> Result<Field, String> {
        let load = self.load(channel.register)?;
        let described = self.described(channel.register)?.clone();
        Ok(Field::new(load, described, channel))
    }

    /// The UIO device that its interrupts come through.
    pub(super) fn uio(&self) -> Result<Uio, String> {
        self.place.uio()
    }

    /// A channel, as it is listed.
    pub(super) fn channel(&self, channel: &board::Channel) -> Channel {
        about(&self.name, channel, ACCESS_NS)
    }

    /// An output, as it is listed.
    pub(super) fn output(&self, output: &board::Output) -> Channel {
        about_output(&self.name, self.board, output)
    }
}

/// An output of a device, as the board file describes it.
pub(super) fn about_output(device: &str, board: &Board, output: &board::Output) -> Channel {
    let register = board.registers.get(output.register);
    Channel {
        name: format!("{device}.{}", output.name),
        description: output.description.clone(),
        unit: output.unit.clone(),
        kind: Type::U64,
        class: Class::Hard,
        scale: output.scale,
        offset: output.offset,
        bits: register.map_or(64, |register| register.bits().into()),
        cost_ns: ACCESS_NS,
        in_use: false,
    }
}

/// A channel of a device, as the board file describes it; what an access costs.
pub(super) fn about(device: &str, channel: &board::Channel, cost_ns: u32) -> Channel {
    Channel {
        name: format!("{device}.{}", channel.name),
        description: channel.description.clone(),
        unit: channel.unit.clone(),
        kind: match channel.kind {
            Kind::Unsigned => Type::U64,
            Kind::Signed => Type::S64,
            Kind::Float => Type::F64,
        },
        class: Class::Hard,
        scale: channel.scale,
        offset: channel.offset,
        bits: channel.bits.into(),
        cost_ns,
        in_use: false,
    }
}
