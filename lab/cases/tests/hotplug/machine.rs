// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine whose slots are empty until a card is plugged in, for either engine.

use std::fs;
use std::path::{Path, PathBuf};

use strobe::engine::user::{self, User};
use strobe::map::Region;
use strobe::plan::Plan;
use strobe_board::{Board, Policy, System};
use strobe_cases::account::until;
use strobe_cases::monitor::{Monitor, SLOTS, Slot};
use strobe_cases::pci::cards;
use strobe_cases::{Engine, Kernel};

pub const BOARD: &str = "/boards/edu.toml";
/// For uio_pci_generic, which knows no MSI.
pub const INTX: &str = "/boards/edu-intx.toml";
/// Version 1.0 of the card.
pub const ID: u64 = 0x0100_00ed;
pub const KERNEL: &str = "strobe_board";
pub const UIO: &str = "uio_pci_generic";

/// The machine: the board is installed, the slots are empty.
pub struct Machine {
    pub monitor: Monitor,
    pub engine: Kernel,
    pub board: Board,
}

impl Machine {
    pub fn new() -> Machine {
        let toml = fs::read_to_string(BOARD).expect(BOARD);
        let board = Board::from_toml(BOARD, &toml).expect("a good board");
        let system = System::default();
        system
            .install(&board, &toml, Policy::Free)
            .expect("to install");
        let mut machine = Machine {
            monitor: Monitor::open(),
            engine: Kernel::open(),
            board,
        };
        machine.empty();
        SLOTS.iter().for_each(Slot::prepare);
        machine
    }

    pub fn empty(&mut self) {
        for slot in SLOTS.iter().filter(|slot| slot.card().is_some()) {
            slot.unplug(&mut self.monitor);
        }
    }

    /// Plugs a card in: nothing but its firmware makes a device of it, whose name this is.
    pub fn plug(&mut self, slot: &Slot) -> String {
        let card = slot.plug_for(&mut self.monitor, KERNEL);
        let mut name = None;
        until("its device", || {
            name = device_of(&card);
            name.is_some()
        });
        name.expect("a name")
    }

    /// Plugs a card in, and gives it to the UIO driver.
    pub fn plug_for_uio(&mut self, slot: &Slot) -> Card {
        // With its device: the kernel names a driver before it probes, and a probe fails that finds another one chosen.
        self.plug(slot);
        let path = slot.card().expect("a card");
        let address = path.file_name().expect("an address").to_string_lossy();
        give_to_uio(&address);
        Card::new(&pci(&address))
    }

    pub fn unplug(&mut self, slot: &Slot) {
        slot.unplug(&mut self.monitor);
        assert_eq!(slot.card(), None, "the kernel lists what has gone");
    }

    pub fn lists(&self, device: &str) -> bool {
        let catalogue = self.engine.0.catalogue().expect("the catalogue");
        catalogue.devices.iter().any(|listed| listed.name == device)
    }

    /// A run of the user engine on cards of uio_pci_generic.
    pub fn user(&self, plan: &Plan) -> user::UserRun {
        let board = Board::read(Path::new(INTX)).expect("a good board");
        let run = User::default().with_board(board).create(plan);
        run.unwrap_or_else(|why| panic!("a run on {}: {why}", plan.event))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.empty();
        }
        // Another test installs it again.
        let _ = System::default().remove(&self.board.hardware);
    }
}

pub fn pci(address: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(address)
}

pub fn give_to_uio(address: &str) {
    let path = pci(address);
    fs::write(path.join("driver_override"), UIO).expect("to choose a driver");
    fs::write(path.join("driver/unbind"), address).expect("to unbind");
    fs::write("/sys/bus/pci/drivers_probe", address).expect("to probe");
    let driver = fs::read_link(path.join("driver")).expect("a driver");
    assert!(driver.ends_with(UIO), "{driver:?}");
}

/// The name of the device that strobe has made of the card at this address.
pub fn device_of(address: &str) -> Option<String> {
    let devices = fs::read_dir("/sys/class/strobe").expect("sysfs").flatten();
    let mut names = devices.filter(|entry| {
        fs::read_link(entry.path().join("device")).is_ok_and(|card| card.ends_with(address))
    });
    Some(names.next()?.file_name().to_string_lossy().into_owned())
}

/// A card of uio_pci_generic.
pub struct Card {
    /// What the user engine calls it: cards of a board are counted in the order of their addresses.
    pub name: String,
    pub registers: Region,
}

impl Card {
    pub fn new(path: &Path) -> Card {
        let place = cards(0x11e8)
            .iter()
            .position(|card| *card == path)
            .expect("itself");
        let mut options = fs::File::options();
        let file = options.read(true).write(true).open(path.join("resource0"));
        let registers = Region::map(&file.expect("BAR 0"), 0, 4096, true);
        Card {
            name: match place {
                0 => "edu".to_owned(),
                place => format!("edu{}", place + 1),
            },
            registers: registers.expect("its registers"),
        }
    }

    pub fn raise(&self) {
        let raise = self.registers.register(0x60, 4).expect("a register");
        raise.write(1);
    }
}
