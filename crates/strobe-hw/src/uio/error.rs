// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a UIO device does not do what it was asked for.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why a UIO device does not do what it was asked for: the device, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such device.
    #[error("UIO device {name}: no such device; {}", instead(.there))]
    NotHere {
        /// The name asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// Several devices have this name.
    #[error("UIO device {name}: several devices have this name; choose one: {}", .nodes.join(", "))]
    Ambiguous {
        /// The name asked for.
        name: String,
        /// Their names in /dev.
        nodes: Vec<String>,
    },
    /// The device file may not be opened.
    #[error(
        "UIO device {name}: no permission to open {path}{}; be root, become a member of its group, or add a udev rule: \
         SUBSYSTEM==\"uio\", GROUP=\"uio\", MODE=\"0660\"", of_group(*.group)
    )]
    NoPermission {
        /// The device.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Number of the group that may open it, if there is one.
        group: Option<u32>,
    },
    /// The device has gone.
    #[error("UIO device {0}: it has gone: unplugged, or taken from its driver")]
    Gone(String),
    /// The driver has no way to enable and disable interrupts.
    #[error(
        "UIO device {0}: its driver cannot enable or disable interrupts (it has no irqcontrol); use the device's \
         registers, or leave it to the driver"
    )]
    NoControl(String),
    /// The card's configuration, where its interrupt is enabled, may not be written.
    #[error(
        "UIO device {name}: its interrupt is enabled by the PCI configuration, but {path} cannot be written; be root"
    )]
    Forbidden {
        /// The device.
        name: String,
        /// The file of the configuration.
        path: PathBuf,
    },
    /// The device has no interrupt.
    #[error(
        "UIO device {0}: it has no interrupt to wait for: its driver got none (see dmesg); its memory can still be \
         mapped"
    )]
    NoInterrupt(String),
    /// No such map.
    #[error("UIO device {name}: no map {number}; it has {}", maps(.there))]
    NoMap {
        /// The device.
        name: String,
        /// The number asked for.
        number: u32,
        /// The numbers that are there.
        there: Vec<u32>,
    },
    /// No such block of ports.
    #[error("UIO device {name}: no ports {number}; it has {}", ports(.there))]
    NoPorts {
        /// The device.
        name: String,
        /// The number asked for.
        number: u32,
        /// The numbers that are there.
        there: Vec<u32>,
    },
    /// The ports are not those of the processor.
    #[error(
        "UIO device {name}: ports {number} are of the kind {kind}; programs reach only ports of the kind port_x86 \
         below 65536"
    )]
    PortKind {
        /// The device.
        name: String,
        /// The number asked for.
        number: u32,
        /// What the kernel says of them.
        kind: String,
    },
    /// The thread has no right to ports.
    #[error(
        "UIO device {name}: no permission to use its I/O ports {number}; be root, or give the program CAP_SYS_RAWIO \
         (setcap cap_sys_rawio+ep PROGRAM); a kernel in lockdown allows it to no program"
    )]
    PortPermission {
        /// The device.
        name: String,
        /// The number asked for.
        number: u32,
    },
    /// A call failed.
    #[error("UIO device {name}: {doing} failed: {source}")]
    Io {
        /// The device.
        name: String,
        /// What was done.
        doing: &'static str,
        /// The errno.
        source: io::Error,
    },
    /// Sysfs cannot be read.
    #[error("{path}: {source}")]
    Sysfs {
        /// The file or directory.
        path: PathBuf,
        /// The errno.
        source: io::Error,
    },
    /// An attribute in sysfs is not a number.
    #[error("UIO device {name}: {path} is `{text}`, not a number; see the device's driver")]
    Number {
        /// The device.
        name: String,
        /// The attribute.
        path: PathBuf,
        /// What it is.
        text: String,
    },
}

impl Error {
    /// Whether the device has gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Error::Gone(_))
    }

    /// A file of the device in sysfs could not be read.
    pub(super) fn attribute(name: &str, path: &Path, source: io::Error) -> Error {
        match Errno::from_io_error(&source) {
            // The last is what attributes say while the device is being unregistered.
            Some(Errno::NOENT | Errno::NODEV | Errno::INVAL) => Error::Gone(name.to_owned()),
            _ => Error::Sysfs {
                path: path.to_owned(),
                source,
            },
        }
    }

    pub(super) fn number(name: &str, path: &Path, text: &str) -> Error {
        Error::Number {
            name: name.to_owned(),
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// With the errno, for who ends with one.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Gone(_) => Errno::NODEV.into(),
            Error::NoControl(_) => Errno::NOSYS.into(),
            Error::NoInterrupt(_) => Errno::IO.into(),
            Error::NoPermission { .. } | Error::Forbidden { .. } | Error::PortPermission { .. } => {
                Errno::ACCESS.into()
            }
            Error::NotHere { .. } => Errno::NOENT.into(),
            Error::Io { source, .. } | Error::Sysfs { source, .. } => source,
            error => io::Error::other(error),
        }
    }
}

fn instead(there: &[String]) -> String {
    match there {
        [] => "there are no UIO devices: load the driver of the device".to_owned(),
        [only] => format!("there is {only}"),
        names => format!("there are {}", names.join(", ")),
    }
}

fn maps(there: &[u32]) -> String {
    let numbers: Vec<String> = there.iter().map(u32::to_string).collect();
    match numbers.as_slice() {
        [] => "none; a PCI card's memory is in its resource files in sysfs".to_owned(),
        numbers => numbers.join(", "),
    }
}

fn ports(there: &[u32]) -> String {
    match there {
        [] => "none".to_owned(),
        there => there
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn of_group(number: Option<u32>) -> String {
    number.map_or(String::new(), |number| {
        format!(" (it is of the group {number})")
    })
}
