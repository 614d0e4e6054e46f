// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for the machine's slots, by QEMU's monitor: cards are plugged in and pulled while all goes on. Needs a
//! guest of `lab/run --monitor`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use serde_json::{json, Value};

use crate::account::until;
use crate::machine::patience;

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
    pub fn plug(&mut self, card: &str, id: &str, slot: &str) {
        let what = json!({"driver": card, "id": id, "bus": slot});
        self.ask("device_add", &what)
            .unwrap_or_else(|why| panic!("to plug {id}: {why}"));
    }

    /// Takes a card out, and waits until it is out: the kernel was asked, and its driver has let go.
    pub fn unplug(&mut self, id: &str) {
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

/// A slot of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// What QEMU calls it.
    pub name: &'static str,
    /// The port of PCI Express that it is behind.
    port: &'static str,
}

/// All of them, as labkit/qemu.py has them.
pub const SLOTS: [Slot; 2] = [
    Slot {
        name: "slot1",
        port: "0000:00:08.0",
    },
    Slot {
        name: "slot2",
        port: "0000:00:09.0",
    },
];

impl Slot {
    /// The card in it, as the kernel sees it: its directory in sysfs.
    pub fn card(&self) -> Option<PathBuf> {
        let port = Path::new("/sys/bus/pci/devices").join(self.port);
        let entries = fs::read_dir(&port).unwrap_or_else(|why| panic!("{}: {why}", port.display()));
        // 0000:01:00.0, beside 0000:00:08.0:pcie001 and the like.
        let mut cards = entries.map(|entry| entry.expect("an entry").path());
        cards.find(|path| path.join("vendor").exists())
    }

    /// QEMU's name for the card in it.
    fn id(&self) -> String {
        format!("{}.card", self.name)
    }

    /// Takes the card out.
    pub fn unplug(&self, monitor: &mut Monitor) {
        monitor.unplug(&self.id());
    }

    /// Plugs an edu card in, and waits until that driver has it; its address.
    pub fn plug(&self, monitor: &mut Monitor, driver: &str) -> String {
        monitor.plug("edu", &self.id(), self.name);
        let mut address = None;
        until("the card to come", || {
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
}
