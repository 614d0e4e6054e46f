// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device on its bus: whether a board is for it, and which driver it has.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{Binding, Doing, Hardware, Outcome, Result};

/// Takes a device from its driver, if it has one, and lets the kernel look for one anew.
pub(super) fn probe(device: &Device) -> Result<()> {
    if device.driver().is_some() {
        let path = device.path.join("driver/unbind");
        fs::write(&path, device.address()).doing("unbind the device", &path)?;
    }
    let path = device.bus.join("drivers_probe");
    match fs::write(&path, device.address()) {
        // How it ended is seen by the driver that the device then has.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(error).doing("bind the device", &path)
        }
        _ => Ok(()),
    }
}

/// A device.
pub(super) struct Device {
    /// Its directory in sysfs.
    pub(super) path: PathBuf,
    /// That of its bus.
    pub(super) bus: PathBuf,
}

impl Device {
    pub(super) fn address(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    pub(super) fn id(&self, file: &str) -> Option<u16> {
        let text = fs::read_to_string(self.path.join(file)).ok()?;
        u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    }

    /// Whether the driver would ask for a board of that name: see kernel/board/platform.c.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let alias = fs::read_to_string(self.path.join("modalias")).unwrap_or_default();
        match alias.trim().split_once(':') {
            Some(("platform", found)) => found == name,
            Some(("acpi", ids)) => ids.split(':').next() == Some(name),
            Some(("of", _)) => {
                let list = fs::read(self.path.join("of_node/compatible")).unwrap_or_default();
                list.split(|byte| *byte == 0)
                    .any(|word| word == name.as_bytes())
            }
            _ => false,
        }
    }

    pub(super) fn is(&self, hardware: &Hardware) -> bool {
        if let Hardware::Platform { name } = hardware {
            return self.is_called(name);
        }
        if let Hardware::Rpmsg { service, .. } = hardware {
            let name = fs::read_to_string(self.path.join("name"));
            return name.is_ok_and(|name| name.trim_end() == service);
        }
        let Hardware::Pci {
            vendor,
            device,
            subsystem,
        } = *hardware
        else {
            return false;
        };
        let subsystem_fits = subsystem.is_none_or(|(vendor, device)| {
            self.id("subsystem_vendor") == Some(vendor)
                && self.id("subsystem_device") == Some(device)
        });
        self.id("vendor") == Some(vendor) && self.id("device") == Some(device) && subsystem_fits
    }

    pub(super) fn driver(&self) -> Option<String> {
        let link = fs::read_link(self.path.join("driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }

    /// From now on only this driver may have the device.
    pub(super) fn set_override(&self, driver: &str) -> Result<()> {
        let path = self.path.join("driver_override");
        fs::write(&path, driver).doing("choose the driver", &path)
    }

    /// Takes back what `set_override` has done.
    pub(super) fn clear_override(&self, driver: &str) -> Result<()> {
        let path = self.path.join("driver_override");
        match fs::read_to_string(&path) {
            Ok(chosen) if chosen.trim() == driver => {
                fs::write(&path, "\n").doing("free the device for other drivers", &path)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn binding(&self, wanted: &str) -> Binding {
        let outcome = match self.driver() {
            Some(driver) if driver == wanted => Outcome::Bound(self.catalogue_name()),
            Some(driver) => Outcome::Other(driver),
            None => Outcome::Free,
        };
        Binding {
            address: self.address().into(),
            outcome,
        }
    }

    /// The device below it in the class strobe.
    pub(super) fn catalogue_name(&self) -> Option<String> {
        let entry = fs::read_dir(self.path.join("strobe")).ok()?.next()?.ok()?;
        entry.file_name().into_string().ok()
    }
}
