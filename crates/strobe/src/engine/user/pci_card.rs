// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PCI card: registers in its resource files in sysfs, interrupts through the UIO driver that has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strobe_board::{Block, Board, Register as BoardRegister};
use strobe_hw::map::Region;
use strobe_hw::uio::{MappedMemory, Uio};

use super::card::Place;
use super::presence::{Kind, Presence};

/// A card, by its directory in sysfs.
struct PciCard(PathBuf);

/// The cards with these ids, in the order of their addresses.
pub(super) fn find(
    devices: &Path,
    ids: (u16, u16),
    subsystem: Option<(u16, u16)>,
) -> Vec<Box<dyn Place>> {
    let entries = fs::read_dir(devices).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let has = |path: &Path, file: &str, id: u16| number(&path.join(file)) == Some(id.into());
    paths.retain(|path| {
        let subsystem_is = |(vendor, device)| {
            has(path, "subsystem_vendor", vendor) && has(path, "subsystem_device", device)
        };
        has(path, "vendor", ids.0)
            && has(path, "device", ids.1)
            && subsystem.is_none_or(subsystem_is)
    });
    paths.sort();
    let place = |path| Box::new(PciCard(path)) as Box<dyn Place>;
    paths.into_iter().map(place).collect()
}

fn number(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

impl PciCard {
    fn address(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The driver that has it.
    fn driver(&self) -> Option<String> {
        let link = fs::read_link(self.0.join("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether a BAR is of I/O ports: bit 8 of its flags, the third word of its line.
    fn is_ports(&self, number: u8) -> bool {
        let text = fs::read_to_string(self.0.join("resource")).unwrap_or_default();
        let line = text.lines().nth(number.into()).unwrap_or_default();
        let flags = line.split(' ').nth(2).unwrap_or_default();
        u64::from_str_radix(flags.trim_start_matches("0x"), 16)
            .is_ok_and(|flags| flags & 0x100 != 0)
    }

    /// Why a resource file cannot be used.
    fn refused(&self, path: &Path, number: u8, error: &io::Error) -> String {
        let address = self.address();
        match error.kind() {
            _ if self.is_ports(number) => format!(
                "{} cannot be mapped: these are I/O ports, which only the kernel engine reaches; use the kernel engine",
                path.display()
            ),
            io::ErrorKind::PermissionDenied => format!(
                "{}: no permission; be root, or let a udev rule give it to your group",
                path.display()
            ),
            io::ErrorKind::NotFound => {
                format!("card {address} has no BAR {number}; correct the board file")
            }
            io::ErrorKind::InvalidInput => match self.driver() {
                Some(driver) if !driver.starts_with("uio") => format!(
                    "the driver {driver} has exclusive use of card {address}; use the kernel engine, or bind the card \
                     to uio_pci_generic as root"
                ),
                _ => format!("{} cannot be mapped: its BAR is too small", path.display()),
            },
            _ => format!("{}: {error}", path.display()),
        }
    }
}

impl PciCard {
    /// The resource file of a BAR.
    fn open(&self, number: u8, writable: bool) -> Result<(PathBuf, File, u64), String> {
        let path = self.0.join(format!("resource{number}"));
        let failed = |error| self.refused(&path, number, &error);
        let mut options = File::options();
        let file = options.read(true).write(writable).open(&path);
        let file = file.map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok((path, file, bytes))
    }
}

fn bar(block: &Block) -> Result<u8, String> {
    match block {
        Block::Bar(number) => Ok(*number),
        _ => Err(format!("a PCI card has no {block}")),
    }
}

impl Place for PciCard {
    fn check(&self, board: &Board, register: &BoardRegister, writable: bool) -> Result<(), String> {
        let number = bar(&register.block)?;
        let described = board.bars.iter().find(|bar| bar.number == number);
        let need = described.map_or(0, |bar| bar.size);
        let address = self.address();
        let enabled = fs::read_to_string(self.0.join("enable"));
        if enabled.is_ok_and(|text| text.trim() == "0") {
            return Err(format!(
                "card {address} is not enabled; as root: echo 1 >/sys/bus/pci/devices/{address}/enable, or bind it to \
                 uio_pci_generic"
            ));
        }
        let (_, _, bytes) = self.open(number, writable)?;
        if bytes < need {
            return Err(format!(
                "BAR {number} of card {address} has 0x{bytes:x} bytes, not 0x{need:x} as the board file says"
            ));
        }
        let end = u64::from(register.offset) + u64::from(register.width);
        match end > bytes {
            true => Err("the register lies outside of its BAR".to_owned()),
            false => Ok(()),
        }
    }

    fn map(&self, block: &Block, writable: bool) -> Result<MappedMemory, String> {
        let number = bar(block)?;
        let (path, file, bytes) = self.open(number, writable)?;
        let region = Region::map(&file, 0, bytes, writable);
        let region = region.map_err(|error| self.refused(&path, number, &error))?;
        Ok(MappedMemory::from(region))
    }

    fn presence(&self) -> Result<Arc<Presence>, String> {
        let presence = Presence::of(&self.0, Kind::Card);
        presence.map_err(|error| format!("card {} cannot be watched: {error}", self.address()))
    }

    fn uio(&self) -> Result<Uio, String> {
        let entry = fs::read_dir(self.0.join("uio")).ok();
        let entry = entry.and_then(|entries| entries.flatten().next());
        let Some(entry) = entry else {
            let ids = ["vendor", "device"].map(|file| number(&self.0.join(file)).unwrap_or(0));
            return Err(format!(
                "card {} has no UIO driver, which its interrupts need; as root: modprobe uio_pci_generic, then echo \
                 '{:04x} {:04x}' >/sys/bus/pci/drivers/uio_pci_generic/new_id",
                self.address(),
                ids[0],
                ids[1]
            ));
        };
        Uio::find(&entry.file_name().to_string_lossy()).map_err(|error| error.to_string())
    }
}
