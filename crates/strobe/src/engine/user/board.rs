// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cards of a board file: the same text as for the kernel engine, the same names, the same values. Registers
//! are mapped through the PCI resource files; interrupts come through a UIO driver. With `--wait spin` they are
//! not waited for: the event's `pending` register is looked at again and again, and the driver only keeps the
//! interrupt quiet meanwhile.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::field::{Field, Store};
use super::presence::Presence;
use super::provider::{FoundChannel, FoundOutput, Provider};
use super::trigger::EventSource;
use super::{card_event, Settings};
use crate::board::{self, Board, Hardware, Kind};
use crate::catalogue::{Catalogue, Device, Event as ListedEvent};
use crate::channel::{Channel, Class, Type};
use crate::engine::Error;
use crate::event::{Event, EventSpec};
use crate::map::{Region, Register};

/// Rough time of an access to a register on a bus.
const ACCESS_NS: u32 = 500;

/// Provides the channels, outputs and events of every card that a board file is for.
pub struct Cards {
    board: Board,
    devices: PathBuf,
}

/// One card of the board.
pub(super) struct Card<'b> {
    /// Its name in the catalogue: that of the board, with a number from the second card on.
    pub(super) name: String,
    /// Its directory in sysfs.
    pub(super) path: PathBuf,
    pub(super) board: &'b Board,
}

impl Cards {
    /// The cards of this machine.
    pub fn new(board: Board) -> Self {
        Cards {
            board,
            devices: "/sys/bus/pci/devices".into(),
        }
    }

    /// In the order of their addresses, which is that of the kernel's search at boot.
    fn cards(&self) -> Vec<Card<'_>> {
        let entries = fs::read_dir(&self.devices).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| is(path, &self.board.hardware));
        paths.sort();
        let names = (1..).map(|number| match number {
            1 => self.board.name.clone(),
            number => format!("{}{number}", self.board.name),
        });
        let board = &self.board;
        let cards = paths.into_iter().zip(names);
        cards
            .map(|(path, name)| Card { name, path, board })
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

fn number(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

fn is(path: &Path, hardware: &Hardware) -> bool {
    let Hardware::Pci {
        vendor,
        device,
        subsystem,
    } = *hardware
    else {
        return false;
    };
    let has = |file: &str, id: u16| number(&path.join(file)) == Some(id.into());
    let subsystem_is =
        |(vendor, device)| has("subsystem_vendor", vendor) && has("subsystem_device", device);
    has("vendor", vendor) && has("device", device) && subsystem.is_none_or(subsystem_is)
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

    fn address(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// The driver that has it.
    pub(super) fn driver(&self) -> Option<String> {
        let link = fs::read_link(self.path.join("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    }

    /// A register, mapped. One that is only read is mapped so that it can only be read.
    pub(super) fn register(&self, index: usize, writable: bool) -> Result<Register, String> {
        let register = self
            .board
            .registers
            .get(index)
            .ok_or("the board has no such register")?;
        let bar = self
            .board
            .bars
            .iter()
            .find(|bar| bar.number == register.bar);
        let need = bar.map_or(0, |bar| bar.size);
        let path = self.path.join(format!("resource{}", register.bar));
        let address = self.address();
        let enabled = fs::read_to_string(self.path.join("enable"));
        if enabled.is_ok_and(|text| text.trim() == "0") {
            return Err(format!(
                "card {address} is off; as root: echo 1 >/sys/bus/pci/devices/{address}/enable, or bind it to uio_pci_generic"
            ));
        }
        let failed = |error: io::Error| {
            match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "{}: no permission; be root, or let a udev rule give it to your group",
                path.display()
            ),
            io::ErrorKind::NotFound => format!(
                "card {address} has no BAR {}; correct the board file",
                register.bar
            ),
            io::ErrorKind::InvalidInput => match self.driver() {
                Some(driver) if !driver.starts_with("uio") => format!(
                    "the driver {driver} has card {address}, and shares it with nobody; use --engine kernel, or as \
                     root bind it to uio_pci_generic"
                ),
                _ => format!("{} cannot be mapped: an I/O port, or too small a BAR", path.display()),
            },
            _ => format!("{}: {error}", path.display()),
        }
        };
        let file = File::options()
            .read(true)
            .write(writable)
            .open(&path)
            .map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if bytes < need {
            return Err(format!("BAR {} of card {address} has 0x{bytes:x} bytes, not 0x{need:x} as the board file says", register.bar));
        }
        let region = Region::map(&file, 0, bytes, writable).map_err(failed)?;
        let register = region.register(register.offset.into(), register.width);
        register.ok_or_else(|| "the register lies outside of its BAR".to_owned())
    }

    fn presence(&self) -> Result<Arc<Presence>, String> {
        let presence = Presence::of(&self.path);
        presence.map_err(|error| format!("card {} cannot be watched: {error}", self.address()))
    }

    fn big_endian(&self, index: usize) -> bool {
        self.board
            .registers
            .get(index)
            .is_some_and(|register| register.big_endian)
    }

    /// A register that is stored to.
    pub(super) fn store(&self, index: usize) -> Result<Store, String> {
        Ok(Store::new(
            self.register(index, true)?,
            self.presence()?,
            self.big_endian(index),
        ))
    }

    /// All bits of a register, to be read.
    pub(super) fn whole(&self, index: usize) -> Result<Field, String> {
        Ok(Field::whole(
            self.register(index, false)?,
            self.presence()?,
            self.big_endian(index),
        ))
    }

    /// The number of its UIO device, if a UIO driver has it.
    pub(super) fn uio(&self) -> Result<String, String> {
        let entry = fs::read_dir(self.path.join("uio")).ok();
        let entry = entry.and_then(|entries| entries.flatten().next());
        entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).ok_or_else(|| {
            let ids = ["vendor", "device"].map(|file| number(&self.path.join(file)).unwrap_or(0));
            format!(
                "no UIO driver has card {}, and interrupts come through one; as root: modprobe uio_pci_generic, then \
                 echo '{:04x} {:04x}' >/sys/bus/pci/drivers/uio_pci_generic/new_id",
                self.address(),
                ids[0],
                ids[1]
            )
        })
    }

    fn channel(&self, channel: &board::Channel) -> Channel {
        Channel {
            name: format!("{}.{}", self.name, channel.name),
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
            cost_ns: ACCESS_NS,
            in_use: false,
        }
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
        let big_endian = card.big_endian(channel.register);
        let register = card.register(channel.register, false);
        let found = register.and_then(|register| {
            let field = Field::new(register, card.presence()?, big_endian, channel);
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
