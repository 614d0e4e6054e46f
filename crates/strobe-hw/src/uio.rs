// SPDX-License-Identifier: MIT OR Apache-2.0
//! UIO: interrupts and memory of a device, for drivers that are ordinary programs.
//!
//! [`Uio`] is what sysfs says of a device; [`Uio::open`] makes a [`Device`] of it, which waits for its interrupts,
//! enables them, and maps its memory. Interrupts that came between two reads are never lost silently: the
//! kernel counts them, and each [`Interrupt`] says how many went before it.
//!
//! ```no_run
//! let mut device = strobe_hw::uio::Uio::find("uio_dummy")?.open()?;
//! let registers = device.map(0)?;
//! let status = registers.register(0, 4).ok_or("no such register")?;
//! loop {
//!     let interrupt = device.wait()?;
//!     println!("{}: {:#x}, {} missed", interrupt.count, status.read(), interrupt.missed);
//!     device.enable()?;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

mod device;
mod error;
#[cfg(any(test, feature = "internals"))]
#[allow(missing_docs, clippy::new_without_default)] // for tests
pub mod fake;
mod parent;
mod ports;
mod switch;

pub use device::{Device, Interrupt, MappedMemory};
pub use error::Error;
pub use parent::Parent;
pub use ports::Ports;

/// Where the devices are; other places are for tests and containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/sys/class/uio`.
    pub class: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots {
            class: "/sys/class/uio".into(),
            dev: "/dev".into(),
        }
    }
}

/// A block of a device's memory, which can be mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Map {
    /// Its number N in `maps/mapN`.
    pub number: u32,
    /// Its name; may be empty.
    pub name: String,
    /// Where it begins, as the kernel says.
    pub address: u64,
    /// Bytes that can be mapped.
    pub size: u64,
    /// Bytes from the start of the mapping to the device's memory.
    pub offset: u64,
}

/// A block of I/O ports. They cannot be mapped: see [`Uio::ports`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its number N in `portio/portN`.
    pub number: u32,
    /// Its name; may be empty.
    pub name: String,
    /// The first port.
    pub start: u64,
    /// Number of ports.
    pub size: u64,
    /// What kind of ports: `port_x86`, `port_gpio`, `port_other`, as the kernel says.
    pub kind: String,
}

/// A UIO device, as sysfs describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uio {
    /// Its number N in `uioN`.
    pub number: u32,
    /// The name that its driver gives it; several devices may have the same.
    pub name: String,
    /// The version of its driver.
    pub version: String,
    /// Interrupts so far, when this was read; wraps at 2^32.
    pub events: u32,
    /// Its memory.
    pub maps: Vec<Map>,
    /// Its ports.
    pub ports: Vec<Port>,
    /// The device that it belongs to, if it belongs to one.
    pub parent: Option<Parent>,
    #[serde(skip)]
    roots: Roots,
}

impl Uio {
    /// All devices, by number.
    ///
    /// # Errors
    /// Sysfs cannot be read.
    pub fn list() -> Result<Vec<Uio>, Error> {
        Uio::list_in(&Roots::default())
    }

    /// All devices in these places.
    ///
    /// # Errors
    /// As of [`Uio::list`].
    pub fn list_in(roots: &Roots) -> Result<Vec<Uio>, Error> {
        let found = numbered(&roots.class, "uio")?;
        let read = found
            .into_iter()
            .map(|(number, path)| read(roots, number, &path));
        // One that goes meanwhile is not there.
        read.filter(|uio| !matches!(uio, Err(error) if error.is_gone()))
            .collect()
    }

    /// The device of this name: as its driver calls it, or `uioN`.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(name: &str) -> Result<Uio, Error> {
        Uio::find_in(&Roots::default(), name)
    }

    /// The device of this name in these places.
    ///
    /// # Errors
    /// As of [`Uio::find`].
    pub fn find_in(roots: &Roots, name: &str) -> Result<Uio, Error> {
        let all = Uio::list_in(roots)?;
        if let Some(uio) = all.iter().find(|uio| uio.node() == name) {
            return Ok(uio.clone());
        }
        let mut found = all.iter().filter(|uio| uio.name == name);
        match (found.next(), found.next()) {
            (Some(uio), None) => Ok(uio.clone()),
            (None, _) => Err(Error::NotHere {
                name: name.to_owned(),
                there: all.iter().map(Uio::to_string).collect(),
            }),
            _ => Err(Error::Ambiguous {
                name: name.to_owned(),
                nodes: all
                    .iter()
                    .filter(|uio| uio.name == name)
                    .map(Uio::node)
                    .collect(),
            }),
        }
    }

    /// Its name in /dev and /sys/class/uio: `uioN`.
    pub fn node(&self) -> String {
        format!("uio{}", self.number)
    }

    /// Its device file.
    pub fn path(&self) -> PathBuf {
        self.roots.dev.join(self.node())
    }

    /// Opens it.
    ///
    /// # Errors
    /// No permission, or the device has gone.
    pub fn open(&self) -> Result<Device, Error> {
        Device::open(self.clone())
    }

    /// Interrupts so far, read anew; wraps at 2^32.
    ///
    /// # Errors
    /// The device has gone.
    pub fn read_events(&self) -> Result<u32, Error> {
        let path = self.class().join("event");
        let value = number(&self.node(), &path)?;
        u32::try_from(value).map_err(|_| Error::number(&self.node(), &path, &value.to_string()))
    }

    /// Maps a block of its memory, without its interrupts; it stays open as long as the mapping is there.
    pub fn map(&self, number: u32, writable: bool) -> Result<MappedMemory, Error> {
        device::map(self, number, writable)
    }

    /// Its directory in sysfs.
    pub fn class(&self) -> PathBuf {
        self.roots.class.join(self.node())
    }
}

/// `uio0 (name)`, for people.
impl std::fmt::Display for Uio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (uio{})", self.name, self.number)
    }
}

fn read(roots: &Roots, number: u32, path: &Path) -> Result<Uio, Error> {
    let mut uio = Uio {
        number,
        name: String::new(),
        version: String::new(),
        events: 0,
        maps: Vec::new(),
        ports: Vec::new(),
        parent: Parent::of(path),
        roots: roots.clone(),
    };
    let node = uio.node();
    uio.name = text(&node, &path.join("name"))?;
    uio.version = text(&node, &path.join("version"))?;
    uio.events = uio.read_events()?;
    for (number, path) in numbered(&path.join("maps"), "map")? {
        uio.maps.push(Map {
            number,
            name: text(&node, &path.join("name"))?,
            address: self::number(&node, &path.join("addr"))?,
            size: self::number(&node, &path.join("size"))?,
            offset: self::number(&node, &path.join("offset"))?,
        });
    }
    for (number, path) in numbered(&path.join("portio"), "port")? {
        uio.ports.push(Port {
            number,
            name: text(&node, &path.join("name"))?,
            start: self::number(&node, &path.join("start"))?,
            size: self::number(&node, &path.join("size"))?,
            kind: text(&node, &path.join("porttype"))?,
        });
    }
    Ok(uio)
}

/// The entries `PREFIXn` of a directory, by number; none if there is no such directory.
fn numbered(directory: &Path, prefix: &str) -> Result<Vec<(u32, PathBuf)>, Error> {
    let failed = |source| Error::Sysfs {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(prefix));
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// An attribute, without the end of its line.
fn text(node: &str, path: &Path) -> Result<String, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        Err(source) => Err(Error::attribute(node, path, source)),
    }
}

/// An attribute that is a number: decimal, or hexadecimal with 0x.
fn number(node: &str, path: &Path) -> Result<u64, Error> {
    let text = text(node, path)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| Error::number(node, path, &text))
}

#[cfg(test)]
mod tests {
    use super::fake::Fake;
    use super::*;

    #[test]
    fn what_sysfs_says_of_a_device_is_read() {
        let fake = Fake::new();
        fake.device(10, "ten", 7);
        fake.device(2, "card", u32::MAX);
        fake.map(2, 0, "registers", 0xfe00_0040, 0x1000, 0x40);
        fake.map(2, 1, "", 0x1_0000_0000, 0x20_0000, 0);
        fake.port(2, 0, "serial", 0x3f8, 8, "port_x86");
        let all = Uio::list_in(&fake.roots).expect("devices");
        let numbers: Vec<u32> = all.iter().map(|uio| uio.number).collect();
        assert_eq!(numbers, [2, 10], "by number, not by text");
        let card = &all[0];
        assert_eq!(
            (card.name.as_str(), card.version.as_str(), card.events),
            ("card", "1.0", u32::MAX)
        );
        assert_eq!(
            card.maps[0],
            Map {
                number: 0,
                name: "registers".into(),
                address: 0xfe00_0040,
                size: 0x1000,
                offset: 0x40
            }
        );
        assert_eq!(card.maps[1].size, 0x20_0000);
        assert_eq!(
            card.ports,
            [Port {
                number: 0,
                name: "serial".into(),
                start: 0x3f8,
                size: 8,
                kind: "port_x86".into()
            }]
        );
        fake.events(2, 3);
        assert_eq!(card.read_events().ok(), Some(3));
    }

    #[test]
    fn a_device_is_found_by_its_name_and_by_its_number() {
        let fake = Fake::new();
        for (number, name) in [(0, "uio_dummy"), (1, "edu"), (2, "edu"), (3, "uio1")] {
            fake.device(number, name, 0);
        }
        let find = |name: &str| Uio::find_in(&fake.roots, name).map(|uio| uio.number);
        assert_eq!(find("uio_dummy").ok(), Some(0));
        assert_eq!(find("uio2").ok(), Some(2));
        assert_eq!(find("uio1").ok(), Some(1), "the number goes before a name");
        let message = |name| find(name).expect_err(name).to_string();
        assert_eq!(
            message("foo"),
            "UIO device foo: no such device; there are uio_dummy (uio0), edu (uio1), edu (uio2), uio1 (uio3)"
        );
        assert_eq!(
            message("edu"),
            "UIO device edu: several devices have this name; choose one: uio1, uio2"
        );
    }

    #[test]
    fn without_any_device_the_message_says_where_they_come_from() {
        let fake = Fake::new();
        assert_eq!(Uio::list_in(&fake.roots).expect("none"), []);
        let roots = Roots {
            class: fake.roots.class.join("nowhere"),
            ..fake.roots.clone()
        };
        let message = Uio::find_in(&roots, "foo")
            .expect_err("no device")
            .to_string();
        assert!(
            message.ends_with("there are no UIO devices: load the driver of the device"),
            "{message}"
        );
    }

    #[test]
    fn an_attribute_that_is_no_number_is_an_error_and_not_a_guess() {
        let fake = Fake::new();
        fake.device(0, "card", 0);
        fake.map(0, 0, "", 0, 0x1000, 0);
        fake.attribute(0, "maps/map0/size", "lots");
        let message = Uio::find_in(&fake.roots, "card").expect_err("no number");
        assert!(
            message
                .to_string()
                .contains("maps/map0/size is `lots`, not a number"),
            "{message}"
        );
    }
}
