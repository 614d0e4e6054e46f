// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which hardware a board file is for, and who takes it.

use std::fmt;

use crate::chip::Wire;
use crate::for_user::ForUserEngine;

/// Which hardware a board file is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// None: all channels are files.
    Files,
    /// An instrument; its transport says which.
    Instrument,
    /// A chip on an I2C or SPI bus.
    Chip(Wire),
    /// A PCI card.
    Pci {
        /// Vendor id.
        vendor: u16,
        /// Device id.
        device: u16,
        /// Subsystem vendor and subsystem id, if only such cards are meant.
        subsystem: Option<(u16, u16)>,
    },
    /// A platform device: described by a device tree, by ACPI, or by code of the kernel.
    Platform {
        /// A `compatible` of the device tree, a hardware id of ACPI, or the name that the code gives it.
        name: String,
    },
    /// A device that a UIO driver has, and whose memory it lets programs map.
    Uio {
        /// The name that the driver gives it.
        name: String,
        /// The version of the driver, if only that one is meant.
        version: Option<String>,
    },
    /// A co-processor that sends frames: see docs/reference/frames.md.
    Rpmsg {
        /// The service that it announces.
        service: String,
        /// Its address, for one that announces nothing; the user engine can do with it.
        address: Option<u32>,
    },
}

impl Hardware {
    /// Why no driver takes such a device, whose board is called so.
    pub(super) fn for_user_engine_only(&self, board: &str) -> Option<ForUserEngine> {
        let board = board.to_owned();
        match self {
            Hardware::Files => Some(ForUserEngine::Files(board)),
            Hardware::Uio { .. } => Some(ForUserEngine::Uio(board)),
            Hardware::Instrument => Some(ForUserEngine::Instrument(board)),
            Hardware::Chip(_) => Some(ForUserEngine::Chip(board)),
            Hardware::Pci { .. } | Hardware::Platform { .. } | Hardware::Rpmsg { .. } => None,
        }
    }

    /// The driver that takes such a device when its board is installed.
    pub fn driver(&self) -> &'static str {
        match self {
            Hardware::Rpmsg { .. } => "strobe_frames",
            _ => "strobe_board",
        }
    }

    /// Name, without extension, of the files of a board for this hardware in the firmware directory.
    pub fn stem(&self) -> String {
        match *self {
            Hardware::Files => "files".to_owned(),
            Hardware::Instrument => "instrument".to_owned(),
            Hardware::Chip(ref wire) => format!("chip-{wire}"),
            Hardware::Platform { ref name } => format!("platform-{name}"),
            Hardware::Uio { ref name, .. } => format!("uio-{name}"),
            Hardware::Rpmsg { ref service, .. } => format!("rpmsg-{service}"),
            Hardware::Pci {
                vendor,
                device,
                subsystem: None,
            } => format!("pci-{vendor:04x}-{device:04x}"),
            Hardware::Pci {
                vendor,
                device,
                subsystem: Some((subvendor, subdevice)),
            } => {
                format!("pci-{vendor:04x}-{device:04x}-{subvendor:04x}-{subdevice:04x}")
            }
        }
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Hardware::Files => f.write_str("files"),
            Hardware::Instrument => f.write_str("instrument"),
            Hardware::Chip(wire @ Wire::I2c { .. }) => write!(f, "I2C {wire}"),
            Hardware::Chip(wire @ Wire::Spi { .. }) => write!(f, "SPI {wire}"),
            Hardware::Platform { ref name } => write!(f, "platform {name}"),
            Hardware::Uio {
                ref name,
                ref version,
            } => {
                write!(f, "UIO {name}")?;
                match version {
                    Some(version) => write!(f, ", version {version}"),
                    None => Ok(()),
                }
            }
            Hardware::Rpmsg {
                ref service,
                address,
            } => {
                write!(f, "rpmsg {service}")?;
                match address {
                    Some(address) => write!(f, ", address 0x{address:x}"),
                    None => Ok(()),
                }
            }
            Hardware::Pci {
                vendor,
                device,
                subsystem,
            } => {
                write!(f, "PCI {vendor:04x}:{device:04x}")?;
                match subsystem {
                    Some((vendor, device)) => write!(f, ", subsystem {vendor:04x}:{device:04x}"),
                    None => Ok(()),
                }
            }
        }
    }
}
