// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for UIO devices: the module uio_dummy, and an edu card that uio_pci_generic drives.

use std::fs;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use strobe::map::{Region, Register};
use strobe::uio::{Device, Uio};

use crate::account::until;

/// The module uio_dummy, silent until told otherwise: it is disabled, and comes to its end at once.
pub struct Dummy {
    device: Device,
    words: [Register; 3],
}

/// What uio_dummy knows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Twice the events.
    pub sequence: u64,
    /// Of the last event.
    pub time: u64,
    /// Since the module was loaded.
    pub events: u64,
}

/// Name of the device and of its module.
pub const DUMMY: &str = "uio_dummy";

impl Dummy {
    /// Silent, with this period.
    pub fn silent(period_ns: u64) -> Dummy {
        let device = open(DUMMY);
        let page = device.map(0).expect("its page");
        let word = |n: u64| page.register(8 * n, 8).expect("a word of its page");
        let dummy = Dummy {
            words: [word(0), word(1), word(2)],
            device,
        };
        dummy.set("period_ns", period_ns);
        dummy.set("limit", 0);
        dummy.device.enable().expect("to enable");
        // A limit of 0 would be none.
        until("an event of uio_dummy", || dummy.page().events > 0);
        dummy.device.disable().expect("to disable");
        dummy.set("limit", dummy.page().events);
        dummy
    }

    /// Sets a parameter of the module.
    pub fn set(&self, name: &str, value: u64) {
        let path = format!("/sys/module/{DUMMY}/parameters/{name}");
        fs::write(&path, value.to_string()).unwrap_or_else(|why| panic!("{path}: {why}"));
    }

    /// So many events more, as soon as it is enabled.
    pub fn allow(&self, events: u64) {
        self.set("limit", self.page().events + events);
    }

    /// Without an end.
    pub fn allow_all(&self) {
        self.set("limit", 0);
    }

    /// Its device, opened a second time by this.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What it knows of itself, of one moment.
    pub fn page(&self) -> Page {
        let [sequence, time, events] = &self.words;
        loop {
            let before = sequence.read();
            fence(Ordering::Acquire);
            let page = Page {
                sequence: before,
                time: time.read(),
                events: events.read(),
            };
            fence(Ordering::Acquire);
            if before % 2 == 0 && sequence.read() == before {
                return page;
            }
        }
    }
}

/// Opens a device that has to be there.
pub fn open(name: &str) -> Device {
    let device = Uio::find(name).and_then(|uio| uio.open());
    device.unwrap_or_else(|why| panic!("{why}"))
}

/// An edu card, driven by uio_pci_generic from now on; given back when dropped.
pub struct Edu {
    card: &'static str,
    /// Its registers.
    pub bar: Region,
}

const DRIVER: &str = "/sys/bus/pci/drivers/uio_pci_generic";
/// The values that were raised and not acknowledged.
pub const IRQ_STATUS: u64 = 0x24;
const IRQ_RAISE: u64 = 0x60;
/// Acknowledges values.
pub const IRQ_ACK: u64 = 0x64;

impl Edu {
    /// Takes the card at this address of the PCI bus.
    pub fn bind(card: &'static str) -> Edu {
        let place = Path::new("/sys/bus/pci/devices").join(card);
        let tell = |what: &str, text: &str| {
            let path = place.join(what);
            fs::write(&path, text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        };
        tell("driver_override", "uio_pci_generic");
        fs::write(Path::new(DRIVER).join("bind"), card).expect("to bind the card");
        let file: std::io::Result<File> = OpenOptions::new()
            .read(true)
            .write(true)
            .open(place.join("resource0"));
        let bar = Region::map(&file.expect("its first BAR"), 0, 4096, true);
        Edu {
            card,
            bar: bar.expect("to map its first BAR"),
        }
    }

    /// Takes it from the driver.
    pub fn unbind(&self) {
        fs::write(Path::new(DRIVER).join("unbind"), self.card).expect("to unbind the card");
    }

    /// Whether the driver has it.
    pub fn is_bound(&self) -> bool {
        self.link().exists()
    }

    fn link(&self) -> PathBuf {
        Path::new(DRIVER).join(self.card)
    }

    /// `uioN` of the card.
    pub fn node(&self) -> String {
        let entries = fs::read_dir(self.link().join("uio")).expect("a UIO device");
        let mut names = entries.map(|entry| entry.expect("an entry").file_name());
        let name = names.next().expect("a UIO device");
        name.into_string().expect("a name")
    }

    /// Raises the interrupt.
    pub fn raise(&self, value: u64) {
        register(&self.bar, IRQ_RAISE).write(value);
    }

    /// Acknowledges it.
    pub fn ack(&self, value: u64) {
        register(&self.bar, IRQ_ACK).write(value);
    }
}

/// A register of the card.
pub fn register(bar: &Region, offset: u64) -> Register {
    bar.register(offset, 4).expect("a register")
}

impl Drop for Edu {
    fn drop(&mut self) {
        if self.is_bound() {
            // The next one who binds it says what is wrong.
            let _ = fs::write(Path::new(DRIVER).join("unbind"), self.card);
        }
        let place = format!("/sys/bus/pci/devices/{}/driver_override", self.card);
        let _ = fs::write(place, "\n");
    }
}
