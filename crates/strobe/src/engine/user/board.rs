// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cards of a board file: the same text as for the kernel engine, the same names, the same values. Registers
//! are mapped through the PCI resource files, or through the maps of a UIO device; interrupts come through a UIO
//! driver. With `--wait spin` they are
//! not waited for: the event's `pending` register is looked at again and again, and the driver only keeps the
//! interrupt quiet meanwhile.

use std::path::PathBuf;
use std::sync::Arc;

use super::field::{Field, Load, Store};
use super::presence::Presence;
use super::provider::{FoundChannel, FoundOutput, Provider};
use super::settings::Settings;
use super::trigger::EventSource;
use super::{card_event, pci_card, uio_card};
use crate::catalogue::{Catalogue, Device, Event as ListedEvent};
use crate::channel::{Channel, Class, Type};
use crate::engine::Error;
use crate::event::{Event, EventSpec};
use strobe_board::{self as board, Board, Hardware, Kind};
use strobe_hw::map::Register;
use strobe_hw::uio::{Roots, Uio};

/// Rough time of an access to a register on a bus.
const ACCESS_NS: u32 = 500;

/// Provides the channels, outputs and events of every card that a board file is for.
pub struct Cards {
    board: Board,
    /// The cards of the PCI bus.
    devices: PathBuf,
    roots: Roots,
}

/// One card of the board.
pub(super) struct Card<'b> {
    /// Its name in the catalogue: that of the board, with a number from the second card on.
    pub(super) name: String,
    place: Box<dyn Place>,
    board: &'b Board,
}

/// Where a card is: what reaches its registers and its interrupts.
pub(super) trait Place {
    /// A register, mapped. One that is only read is mapped so that it can only be read.
    fn register(
        &self,
        board: &Board,
        register: &board::Register,
        writable: bool,
    ) -> Result<Register, String>;

    /// The watch over it.
    fn presence(&self) -> Result<Arc<Presence>, String>;

    /// The UIO device that its interrupts come through.
    fn uio(&self) -> Result<Uio, String>;
}

impl Cards {
    /// The cards of this machine.
    pub fn new(board: Board) -> Self {
        Cards {
            board,
            devices: "/sys/bus/pci/devices".into(),
            roots: Roots::default(),
        }
    }

    /// The devices of other places.
    #[cfg(test)]
    pub(super) fn in_roots(board: Board, roots: Roots) -> Self {
        Cards {
            roots,
            ..Cards::new(board)
        }
    }

    /// In the order of their addresses, which is that of the kernel's search at boot; UIO devices in that of
    /// their numbers.
    fn cards(&self) -> Vec<Card<'_>> {
        let places = match &self.board.hardware {
            // A platform device's memory is its driver's: the kernel engine has it, or UIO under another name.
            // A co-processor's frames are no registers, but come by themselves.
            Hardware::Files | Hardware::Platform { .. } | Hardware::Rpmsg { .. } => Vec::new(),
            Hardware::Pci {
                vendor,
                device,
                subsystem,
            } => pci_card::find(&self.devices, (*vendor, *device), *subsystem),
            Hardware::Uio { name, version } => {
                uio_card::find(&self.roots, name, version.as_deref())
            }
        };
        let names = (1..).map(|number| match number {
            1 => self.board.name.clone(),
            number => format!("{}{number}", self.board.name),
        });
        let board = &self.board;
        let cards = places.into_iter().zip(names);
        cards
            .map(|(place, name)| Card { name, place, board })
            .collect()
    }

    /// The card and the part of `card.part`.
    fn find<'n>(&self, name: &'n str) -> Option<(Card<'_>, &'n str)> {
        let (card, part) = name.split_once('.')?;
        if !card.starts_with(self.board.name.as_str()) {
            return None;
        }
        let card = self.cards().into_iter().find(|known| known.name == card)?;
        Some((card, part))
    }
}

impl Card<'_> {
    /// What is wrong with using a part of it.
    pub(super) fn unusable(&self, what: &'static str, part: &str, why: impl Into<String>) -> Error {
        Error::Unusable {
            what,
            name: format!("{}.{part}", self.name),
            why: why.into(),
        }
    }

    fn described(&self, index: usize) -> Result<&board::Register, String> {
        let register = self.board.registers.get(index);
        register.ok_or_else(|| "the board has no such register".to_owned())
    }

    /// A register, mapped. One that is only read is mapped so that it can only be read.
    fn register(&self, index: usize, writable: bool) -> Result<Register, String> {
        self.place
            .register(self.board, self.described(index)?, writable)
    }

    fn big_endian(&self, index: usize) -> bool {
        self.described(index)
            .is_ok_and(|register| register.big_endian)
    }

    /// A register that is stored to.
    pub(super) fn store(&self, index: usize) -> Result<Store, String> {
        Ok(Store::new(
            self.register(index, true)?,
            self.place.presence()?,
            self.big_endian(index),
        ))
    }

    /// A register that is read.
    pub(super) fn load(&self, index: usize) -> Result<Load, String> {
        Ok(Load::new(
            self.register(index, false)?,
            self.place.presence()?,
            self.big_endian(index),
        ))
    }

    /// The UIO device that its interrupts come through.
    pub(super) fn uio(&self) -> Result<Uio, String> {
        self.place.uio()
    }

    fn channel(&self, channel: &board::Channel) -> Channel {
        about(&self.name, channel, ACCESS_NS)
    }

    fn output(&self, output: &board::Output) -> Channel {
        let register = self.board.registers.get(output.register);
        Channel {
            name: format!("{}.{}", self.name, output.name),
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

impl Provider for Cards {
    fn list(&self, catalogue: &mut Catalogue) {
        for card in self.cards() {
            catalogue.devices.push(Device {
                name: card.name.clone(),
                description: self.board.description.clone(),
                in_use: false,
            });
            catalogue.channels.extend(
                self.board
                    .channels
                    .iter()
                    .map(|channel| card.channel(channel)),
            );
            catalogue
                .outputs
                .extend(self.board.outputs.iter().map(|output| card.output(output)));
            catalogue
                .events
                .extend(self.board.events.iter().map(|event| ListedEvent {
                    name: format!("{}.{}", card.name, event.name),
                    description: event.description.clone(),
                    periodic: false,
                    in_use: false,
                }));
        }
    }

    fn channel(&self, name: &str) -> Option<Result<FoundChannel, Error>> {
        let (card, part) = self.find(name)?;
        let channel = self
            .board
            .channels
            .iter()
            .find(|channel| channel.name == part)?;
        let found = card.load(channel.register).and_then(|load| {
            let described = card.described(channel.register)?.clone();
            let field = Field::new(load, described, channel);
            Ok(FoundChannel {
                about: card.channel(channel),
                reader: Box::new(field),
            })
        });
        Some(found.map_err(|why| card.unusable("channel", part, why)))
    }

    fn output(&self, name: &str) -> Option<Result<FoundOutput, Error>> {
        let (card, part) = self.find(name)?;
        let output = self
            .board
            .outputs
            .iter()
            .find(|output| output.name == part)?;
        Some(match card.store(output.register) {
            Ok(store) => Ok(FoundOutput {
                about: card.output(output),
                writer: Box::new(store),
            }),
            Err(why) => Err(card.unusable("output", part, why)),
        })
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<Box<dyn EventSource>, Error>> {
        let Event::Device(name) = event.event() else {
            return None;
        };
        let (card, part) = self.find(name)?;
        let event = self.board.events.iter().find(|event| event.name == part)?;
        let source = card_event::source(&card, event, settings.wait);
        Some(source.map_err(|why| card.unusable("event", part, why)))
    }
}
