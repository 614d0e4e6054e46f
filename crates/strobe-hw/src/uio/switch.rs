// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the interrupt of a device is enabled and disabled.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{Error, Uio};

/// The driver that leaves it to the program.
const PCI_GENERIC: &str = "uio_pci_generic";
/// The register "command" of a PCI card's configuration, and in it the bit that keeps the card from pulling its
/// line. Both bytes are written: QEMU does not notice a change of the upper one alone, and loses interrupts.
const COMMAND: u64 = 4;
const INTX_DISABLE: u16 = 1 << 10;

/// What enables and disables the interrupt.
#[derive(Debug)]
pub(super) enum Switch {
    /// The driver, by a word written to the device file.
    Driver,
    /// A bit in the configuration of a PCI card. The driver uio_pci_generic sets it at each interrupt, and has
    /// no other way to clear it.
    Command(File),
    /// As before, but the configuration may not be written.
    Forbidden(PathBuf),
}

impl Switch {
    pub fn of(uio: &Uio) -> Switch {
        let card = uio.class().join("device");
        let driver = std::fs::read_link(card.join("driver"));
        let is_generic = |link: &Path| link.file_name().is_some_and(|name| name == PCI_GENERIC);
        if !driver.is_ok_and(|link| is_generic(&link)) {
            return Switch::Driver;
        }
        let path = card.join("config");
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => Switch::Command(file),
            Err(_) => Switch::Forbidden(path),
        }
    }

    /// Whether it may be used at all; it is not touched.
    pub fn permitted(&self, name: &str) -> Result<(), Error> {
        match self {
            Switch::Forbidden(path) => Err(Error::Forbidden {
                name: name.to_owned(),
                path: path.clone(),
            }),
            _ => Ok(()),
        }
    }

    pub fn set(&self, name: &str, device: &File, on: bool) -> Result<(), Error> {
        let done = match self {
            Switch::Driver => rustix::io::write(device, &u32::from(on).to_ne_bytes()).map(|_| ()),
            Switch::Command(config) => command(config, on),
            Switch::Forbidden(_) => return self.permitted(name),
        };
        done.map_err(|errno| match (errno, self) {
            (Errno::NOSYS, Switch::Driver) => Error::NoControl(name.to_owned()),
            (Errno::NODEV, _) => Error::Gone(name.to_owned()),
            // Also said of a device that has gone, which the caller knows.
            (Errno::IO, Switch::Driver) => Error::NoInterrupt(name.to_owned()),
            (errno, _) => Error::Io {
                name: name.to_owned(),
                doing: "enabling or disabling its interrupt",
                source: errno.into(),
            },
        })
    }
}

fn command(config: &File, on: bool) -> Result<(), Errno> {
    let mut bytes = [0; 2];
    if rustix::io::pread(config, &mut bytes, COMMAND)? != bytes.len() {
        return Err(Errno::NODEV);
    }
    let command = u16::from_le_bytes(bytes);
    let command = match on {
        true => command & !INTX_DISABLE,
        false => command | INTX_DISABLE,
    };
    rustix::io::pwrite(config, &command.to_le_bytes(), COMMAND).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_card_of_uio_pci_generic_is_enabled_in_its_configuration() {
        let fake = Fake::new();
        let _node = fake.device(3, "uio_pci_generic", 0);
        let bytes: Vec<u8> = (0..=255).collect();
        fake.attribute(3, "device/config", "");
        let card = fake.roots.class.join("uio3/device");
        let config = card.join("config");
        std::fs::write(&config, &bytes).expect("a configuration");
        symlink("../drivers/uio_pci_generic", card.join("driver")).expect("a driver");
        let uio = Uio::find_in(&fake.roots, "uio3").expect("the device");
        let device = uio.open().expect("to open it");
        for (on, command) in [(true, 0x01), (false, 0x05), (true, 0x01)] {
            match on {
                true => device.enable().expect("to enable"),
                false => device.disable().expect("to disable"),
            }
            let mut wanted = bytes.clone();
            wanted[5] = command;
            assert_eq!(std::fs::read(&config).expect("to read"), wanted);
        }
        // Who may do all is not kept from it by the mode of a file.
        std::fs::remove_file(&config).expect("to remove");
        std::fs::create_dir(&config).expect("a directory");
        std::fs::set_permissions(&config, PermissionsExt::from_mode(0o500)).expect("a mode");
        let device = uio.open().expect("to open it");
        let message = device.enable().expect_err("forbidden").to_string();
        let before = device.permitted().expect_err("forbidden").to_string();
        assert_eq!(message, before, "known before it is tried");
        assert!(
            message.contains("/uio3/device/config cannot be written; be root"),
            "{message}"
        );
    }
}
