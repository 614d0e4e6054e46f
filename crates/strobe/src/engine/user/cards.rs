// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cards of a board file: the same text as for the kernel engine, the same names, the same values. Registers
//! are mapped through the PCI resource files, or through the maps of a UIO device; interrupts come through a UIO
//! driver. With `--wait spin` they are
//! not waited for: the event's `pending` register is looked at again and again, and the driver only keeps the
//! interrupt quiet meanwhile.

use std::path::PathBuf;

use strobe_board::{Board, Hardware};
use strobe_hw::uio::Roots;

use super::card::Card;
use super::provider::{ChannelOpener, EventOpener, OutputOpener, Provider};
use super::settings::Settings;
use super::trigger::Cadence;
use super::{card_event, pci_card, uio_card};
use crate::catalogue::{Catalogue, Device, Event as ListedEvent};
use crate::error::Error;
use crate::event::{Event, EventSpec};

/// Provides the channels, outputs and events of every card that a board file is for.
pub struct Cards {
    board: Board,
    /// The cards of the PCI bus.
    devices: PathBuf,
    roots: Roots,
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
            Hardware::Files
            | Hardware::Platform { .. }
            | Hardware::Rpmsg { .. }
            | Hardware::Instrument
            | Hardware::Chip(_) => Vec::new(),
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
                    accounting: card_event::accounting(event),
                    in_use: false,
                }));
        }
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let (card, part) = self.find(name)?;
        let channel = self
            .board
            .channels
            .iter()
            .find(|channel| channel.name == part)?;
        let unusable = card.unusable("channel", part);
        if let Err(why) = card.check(channel.register, false) {
            return Some(Err(unusable(why)));
        }
        let about = card.channel(channel);
        Some(Ok(ChannelOpener::new(about, move || {
            let field = card.field(channel).map_err(unusable)?;
            Ok(Box::new(field))
        })))
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let (card, part) = self.find(name)?;
        let output = self
            .board
            .outputs
            .iter()
            .find(|output| output.name == part)?;
        let unusable = card.unusable("output", part);
        if let Err(why) = card.check(output.register, true) {
            return Some(Err(unusable(why)));
        }
        let about = card.output(output);
        Some(Ok(OutputOpener::new(about, move || {
            let store = card.store(output.register).map_err(unusable)?;
            Ok(Box::new(store))
        })))
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Device(name) = event.event() else {
            return None;
        };
        let (card, part) = self.find(name)?;
        let event = self.board.events.iter().find(|event| event.name == part)?;
        let unusable = card.unusable("event", part);
        if let Err(why) = card_event::check(&card, event, settings.wait) {
            return Some(Err(unusable(why)));
        }
        let wait = settings.wait;
        let cadence = Cadence {
            accounting: card_event::accounting(event),
            ..Cadence::default()
        };
        Some(Ok(EventOpener::new(cadence, move || {
            card_event::source(&card, event, wait).map_err(unusable)
        })))
    }
}
