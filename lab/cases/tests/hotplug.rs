// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cards that are pulled and plugged in again while runs of both engines use them and readers read.
//!
//! `$STROBE_ROUNDS` says how often; lab/cases/hotplug does it a thousand times.
// lab: --monitor --module uio_pci_generic

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::io::Errno;
use strobe::board::{Board, Policy, System};
use strobe::engine::user::User;
use strobe::engine::Source;
use strobe::map::Region;
use strobe::plan::{Plan, Step};
use strobe::reader::RunReader;
use strobe_cases::account::{begin, read_now, until, until_rows};
use strobe_cases::monitor::{Monitor, Slot, SLOTS};
use strobe_cases::{plan, Account, Engine, Kernel};
use strobe_ring::State;

const BOARD: &str = "/boards/edu.toml";
/// For uio_pci_generic, which knows no MSI.
const INTX: &str = "/boards/edu-intx.toml";
/// Version 1.0 of the card.
const ID: u64 = 0x0100_00ed;
const KERNEL: &str = "strobe_board";
const UIO: &str = "uio_pci_generic";

/// The machine: the board is installed, the slots are empty.
struct Machine {
    monitor: Monitor,
    engine: Kernel,
    board: Board,
}

impl Machine {
    fn new() -> Machine {
        let toml = fs::read_to_string(BOARD).expect(BOARD);
        let board = Board::from_toml(BOARD, &toml).expect("a good board");
        let system = System::default();
        system
            .install(&board, &toml, Policy::Free)
            .expect("to install");
        let mut monitor = Monitor::open();
        for slot in SLOTS.iter().filter(|slot| slot.card().is_some()) {
            slot.unplug(&mut monitor);
        }
        Machine {
            monitor,
            engine: Kernel::open(),
            board,
        }
    }

    /// Plugs a card in: nothing but its firmware makes a device of it, whose name this is.
    fn plug(&mut self, slot: &Slot) -> String {
        let card = slot.plug(&mut self.monitor, KERNEL);
        let mut name = None;
        until("its device", || {
            name = device_of(&card);
            name.is_some()
        });
        name.expect("a name")
    }

    /// Plugs a card in, and gives it to the UIO driver.
    fn plug_for_uio(&mut self, slot: &Slot) -> Card {
        let address = slot.plug(&mut self.monitor, KERNEL);
        let path = Path::new("/sys/bus/pci/devices").join(&address);
        fs::write(path.join("driver_override"), UIO).expect("to choose a driver");
        fs::write(path.join("driver/unbind"), &address).expect("to unbind");
        fs::write("/sys/bus/pci/drivers_probe", &address).expect("to probe");
        let driver = fs::read_link(path.join("driver")).expect("a driver");
        assert!(driver.ends_with(UIO), "{driver:?}");
        Card::new(path)
    }

    fn unplug(&mut self, slot: &Slot) {
        slot.unplug(&mut self.monitor);
        assert_eq!(slot.card(), None, "the kernel lists what has gone");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for slot in SLOTS.iter().filter(|slot| slot.card().is_some()) {
                slot.unplug(&mut self.monitor);
            }
        }
        // Another test installs it again.
        let _ = System::default().remove(&self.board.hardware);
    }
}

/// The name of the device that strobe has made of the card at this address.
fn device_of(address: &str) -> Option<String> {
    let devices = fs::read_dir("/sys/class/strobe").expect("sysfs").flatten();
    let mut names = devices.filter(|entry| {
        fs::read_link(entry.path().join("device")).is_ok_and(|card| card.ends_with(address))
    });
    Some(names.next()?.file_name().to_string_lossy().into_owned())
}

/// A card of uio_pci_generic.
struct Card {
    /// What the user engine calls it: cards of a board are counted in the order of their addresses.
    name: String,
    registers: Region,
}

impl Card {
    fn new(path: PathBuf) -> Card {
        let entries = fs::read_dir("/sys/bus/pci/devices").expect("a PCI bus");
        let mut cards: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        cards.retain(|card| {
            fs::read_to_string(card.join("device")).is_ok_and(|id| id.trim() == "0x11e8")
        });
        cards.sort();
        let place = cards.iter().position(|card| *card == path).expect("itself");
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

    fn raise(&self) {
        let raise = self.registers.register(0x60, 4).expect("a register");
        raise.write(1);
    }
}

/// A run, and who reads it: each has an account of its own.
struct Watched {
    run: Box<dyn Source>,
    readers: Vec<(RunReader, Account)>,
}

impl Watched {
    fn new(run: impl Source + 'static, readers: usize) -> Watched {
        let readers = (0..readers).map(|_| begin(&run)).collect();
        run.start().expect("to start");
        Watched {
            run: Box::new(run),
            readers,
        }
    }

    fn until_rows(&self, rows: u64) {
        until_rows(&self.readers[0].0, rows);
    }

    /// It has failed because its device has gone; all that it made can be read, also after its owner has gone.
    fn settle(self, what: &str, sum: &mut Sum) -> Account {
        let Watched { run, mut readers } = self;
        until(what, || readers[0].0.snapshot().state.is_final());
        drop(run);
        for (reader, account) in &mut readers {
            let end = reader.snapshot();
            let gone = -Errno::NODEV.raw_os_error();
            assert_eq!((end.state, end.error), (State::Failed, gone), "{what}");
            read_now(reader, account);
            account.settle(&end);
            assert_eq!(end.triggers, end.head + end.missed(), "{what}");
            assert_eq!(account.rows.len() as u64 + account.lost, end.head, "{what}");
            sum.lost += account.lost;
        }
        let end = readers[0].0.snapshot();
        sum.runs += 1;
        sum.rows += end.head;
        sum.missed += end.missed();
        readers.swap_remove(0).1
    }
}

/// What all rounds have made.
#[derive(Default)]
struct Sum {
    rounds: u64,
    runs: u64,
    rows: u64,
    missed: u64,
    /// Of all readers.
    lost: u64,
    unplugging: std::time::Duration,
    plugging: std::time::Duration,
}

fn writing(event: &str, output: String, value: u64) -> Plan {
    Plan {
        steps: vec![Step::Write { output, value }],
        ..plan(event, &[])
    }
}

/// Unless a row says that its channel has failed, it is what a card says that is there.
fn values_are_of_a_card(account: &Account, channel: usize, what: &str) {
    for row in &account.rows {
        assert!(
            row.status.fault().is_some() || row.values[channel] == ID,
            "{what}: {row:?}"
        );
    }
}

/// One round: three runs of the kernel engine on the card in the first slot, one of which reads a card that stays
/// as well, and two of the user engine on that in the second.
fn round(machine: &mut Machine, number: u64, sum: &mut Sum) {
    let begun = Instant::now();
    let name = machine.plug(&SLOTS[0]);
    let card = machine.plug_for_uio(&SLOTS[1]);
    sum.plugging += begun.elapsed();

    let engine = &machine.engine;
    let of = |what: &str| format!("{name}.{what}");
    let sampling = plan("timer:5kHz", &[&of("id"), "edu.id"]);
    let sampling = Watched::new(engine.run(&sampling), 2);
    let heard = plan(&of("irq"), &[&of("id"), &of("irq_status")]);
    let heard = Watched::new(engine.run(&heard), 1);
    let raising = writing("timer:2kHz", of("raise"), 1);
    let raising = Watched::new(engine.run(&raising), 1);

    let board = || Board::read(Path::new(INTX)).expect("a good board");
    let of = |what: &str| format!("{}.{what}", card.name);
    let user = |plan: &Plan| {
        let made = User::default().with_board(board()).create(plan);
        made.unwrap_or_else(|why| panic!("round {number}: {why}"))
    };
    let looking = Watched::new(user(&plan("timer:1kHz", &[&of("id")])), 2);
    let listening = Watched::new(user(&plan(&of("irq"), &[&of("id")])), 1);
    card.raise();

    sampling.until_rows(2);
    looking.until_rows(1);
    if number % 2 == 0 {
        // Else it goes while the first interrupt may be on its way.
        heard.until_rows(1);
        listening.until_rows(1);
    }
    let begun = Instant::now();
    let (first, second) = if number % 4 < 2 { (0, 1) } else { (1, 0) };
    machine.unplug(&SLOTS[first]);
    machine.unplug(&SLOTS[second]);
    sum.unplugging += begun.elapsed();
    sum.rounds += 1;

    for (run, what) in [
        (sampling, "the timer run of the kernel engine"),
        (heard, "the interrupt run of the kernel engine"),
        (looking, "the timer run of the user engine"),
        (listening, "the interrupt run of the user engine"),
    ] {
        let what = format!("round {number}, {what}");
        let account = run.settle(&what, sum);
        if what.contains("kernel engine") {
            values_are_of_a_card(&account, 0, &what);
        }
    }
    raising.settle("the run that raises", sum);
    let catalogue = machine.engine.0.catalogue().expect("the catalogue");
    assert!(
        !catalogue.devices.iter().any(|device| device.name == name),
        "round {number}: {name} is still listed"
    );
}

fn rounds() -> u64 {
    let text = std::env::var("STROBE_ROUNDS").ok();
    text.map_or(20, |text| text.parse().expect("a number of rounds"))
}

#[test]
fn cards_that_are_pulled_and_plugged_again_end_runs_of_both_engines_and_lose_nothing() {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let begun = Instant::now();
    let before = held();
    for number in 0..rounds() {
        round(&mut machine, number, &mut sum);
    }
    println!(
        "{} rounds in {:.1} s ({:.1} s plugging, {:.1} s unplugging): {} runs, {} rows, {} missed, {} lost",
        sum.rounds,
        begun.elapsed().as_secs_f64(),
        sum.plugging.as_secs_f64(),
        sum.unplugging.as_secs_f64(),
        sum.runs,
        sum.rows,
        sum.missed,
        sum.lost
    );
    assert_eq!(held(), before, "what is left of the rounds");
}

/// What can be counted: fds and mappings of this process, devices and runs of strobe, mappings of its modules.
fn held() -> BTreeMap<&'static str, usize> {
    let lines = |path: &str, word: &str| {
        let text = fs::read_to_string(path).unwrap_or_else(|why| panic!("{path}: {why}"));
        text.lines().filter(|line| line.contains(word)).count()
    };
    let entries = |path: &str| fs::read_dir(path).expect(path).count();
    BTreeMap::from([
        ("fds", entries("/proc/self/fd")),
        (
            "mappings of hardware",
            lines("/proc/self/maps", "/devices/"),
        ),
        ("devices and runs", entries("/sys/class/strobe")),
        (
            "mappings of the kernel",
            lines("/proc/vmallocinfo", "[strobe"),
        ),
        ("cards", entries("/sys/bus/pci/devices")),
        ("UIO devices", entries("/sys/class/uio")),
    ])
}
