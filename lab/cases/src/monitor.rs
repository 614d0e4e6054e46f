// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for the machine's slots, by QEMU's monitor: cards are plugged in and pulled while all goes on. Needs a
//! guest of `lab/run --monitor`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::account::until;
use crate::machine::{patience, slowness};

const PORT: &str = "/run/lab/monitor";

/// A connection to QEMU. Only one at a time can be open.
pub struct Monitor {
    port: File,
    /// What has come, and is not a whole line yet.
    begun: Vec<u8>,
}

impl Monitor {
    /// Connects.
    pub fn open() -> Monitor {
        let port = File::options().read(true).write(true).open(PORT);
        let mut monitor = Monitor {
            port: port.unwrap_or_else(|why| panic!("{PORT}: {why}; lab/run --monitor gives it")),
            begun: Vec::new(),
        };
        // Refused if somebody was here before: the connection behind the port is always the same.
        let _ = monitor.ask("qmp_capabilities", &json!({}));
        monitor
    }

    /// Plugs a card into a slot; how soon the guest's kernel sees it is its affair.
    fn plug(&mut self, card: &str, id: &str, slot: &str) {
        let what = json!({"driver": card, "id": id, "bus": slot});
        self.ask("device_add", &what)
            .unwrap_or_else(|why| panic!("to plug {id}: {why}"));
    }

    /// Takes a card out in an orderly way, and waits until it is out: the kernel was asked, its driver has let go.
    fn unplug(&mut self, id: &str) {
        self.ask("device_del", &json!({"id": id}))
            .unwrap_or_else(|why| panic!("to unplug {id}: {why}"));
        loop {
            let said = self.line();
            if said["event"] == "DEVICE_DELETED" && said["data"]["device"] == id {
                break;
            }
        }
    }

    /// One command, and its answer or what is wrong.
    fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        let line = json!({"execute": command, "arguments": arguments}).to_string() + "\n";
        self.port
            .write_all(line.as_bytes())
            .unwrap_or_else(|why| panic!("{PORT}: {why}"));
        loop {
            let mut said = self.line();
            // Events and the greeting have neither.
            if said["error"].is_object() {
                return Err(said["error"]["desc"].to_string());
            }
            if !said["return"].is_null() {
                return Ok(said["return"].take());
            }
        }
    }

    fn line(&mut self) -> Value {
        let give_up = Instant::now() + patience(60);
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                return serde_json::from_slice(&line).expect("JSON from QEMU");
            }
            let left = give_up.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).expect("a time");
            let mut wait = [PollFd::new(&self.port, PollFlags::IN)];
            let ready = poll(&mut wait, Some(&timeout)).expect("to poll");
            assert!(ready > 0, "QEMU does not answer");
            let mut bytes = [0; 4096];
            let got = self.port.read(&mut bytes).expect("to read from QEMU");
            self.begun.extend_from_slice(&bytes[..got]);
        }
    }
}

/// A slot of the machine: a port of PCI Express.
///
/// A port forwards what is in its window of memory, and what is for its bus. What it does not forward falls into
/// the void, a ROM of ones under the window: so an empty slot reads as all ones, as it does on a real bus.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// What QEMU calls it.
    name: &'static str,
    port: &'static str,
    void: &'static str,
}

/// All of them, as labkit/qemu.py has them.
pub const SLOTS: [Slot; 2] = [
    Slot {
        name: "slot1",
        port: "0000:00:08.0",
        void: "0000:00:0a.0",
    },
    Slot {
        name: "slot2",
        port: "0000:00:09.0",
        void: "0000:00:0b.0",
    },
];

// Of the configuration space of any card, of a bridge, and of a card.
const COMMAND: u64 = 0x04;
const MEMORY: u32 = 2;
const BUSES: u64 = 0x18;
const WINDOW: u64 = 0x20;
const ROM: u64 = 0x30;
/// Its end lies before its begin.
const NO_WINDOW: u32 = 0x0000_fff0;

fn place(card: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(card)
}

fn config(card: &str) -> File {
    let path = place(card).join("config");
    let file = File::options().read(true).write(true).open(&path);
    file.unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn get(card: &str, offset: u64) -> u32 {
    let mut bytes = [0; 4];
    let read = config(card).read_exact_at(&mut bytes, offset);
    read.unwrap_or_else(|why| panic!("{card}: {why}"));
    u32::from_le_bytes(bytes)
}

fn put(card: &str, offset: u64, word: u32) {
    let written = config(card).write_all_at(&word.to_le_bytes(), offset);
    written.unwrap_or_else(|why| panic!("{card}: {why}"));
}

impl Slot {
    /// Puts the void under it.
    pub fn prepare(&self) {
        let window = (get(self.port, WINDOW) & 0xfff0) << 16;
        put(self.void, ROM, window | 1);
        put(self.void, COMMAND, MEMORY);
        // Of two that claim an address, QEMU takes the one that came last: the port.
        let command = get(self.port, COMMAND) & 0xffff;
        put(self.port, COMMAND, command & !MEMORY);
        put(self.port, COMMAND, command);
    }

    /// The card in it, as the kernel sees it: its directory in sysfs.
    pub fn card(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(place(self.port)).expect(self.port);
        // 0000:01:00.0, beside 0000:00:08.0:pcie001 and the like.
        let mut cards = entries.map(|entry| entry.expect("an entry").path());
        cards.find(|path| path.join("vendor").exists())
    }

    /// QEMU's name for the card in it.
    fn id(&self) -> String {
        format!("{}.card", self.name)
    }

    /// Plugs an edu card in; how soon the guest's kernel sees it is its affair.
    pub fn plug(&self, monitor: &mut Monitor) {
        monitor.plug("edu", &self.id(), self.name);
    }

    /// Plugs an edu card in, and waits until that driver has it; its address.
    pub fn plug_for(&self, monitor: &mut Monitor, driver: &str) -> String {
        self.plug(monitor);
        let mut address = None;
        until("the card to come", || {
            // On a slow kernel looking takes longer than what is looked for.
            thread::sleep(Duration::from_millis(10 * slowness()));
            let Some(card) = self.card() else {
                return false;
            };
            let found = fs::read_link(card.join("driver"));
            address = card
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            found.is_ok_and(|found| found.ends_with(driver))
        });
        address.expect("a name")
    }

    /// Takes the card out in an orderly way: the kernel is asked, and its driver lets go.
    pub fn unplug(&self, monitor: &mut Monitor) {
        monitor.unplug(&self.id());
    }

    /// Pulls the card out by surprise: it answers nothing from now on, and nobody is told.
    #[must_use]
    pub fn pull(&self) -> Pulled {
        let pulled = Pulled {
            port: self.port,
            buses: get(self.port, BUSES),
            window: get(self.port, WINDOW),
        };
        // The bus first: who reads all ones and asks whether the card is there must not be told that it is.
        put(self.port, BUSES, 0);
        put(self.port, WINDOW, NO_WINDOW);
        pulled
    }
}

/// A card that is out of its slot. It is there again when this is dropped.
pub struct Pulled {
    port: &'static str,
    buses: u32,
    window: u32,
}

impl Drop for Pulled {
    fn drop(&mut self) {
        put(self.port, WINDOW, self.window);
        put(self.port, BUSES, self.buses);
    }
}
