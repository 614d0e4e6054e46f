// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cards that are pulled and plugged in again while runs of both engines use them and readers read.
//!
//! `$STROBE_ROUNDS` says how often; lab/cases/hotplug does it a thousand times.
// lab: --monitor --module uio_pci_generic

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libc::{ENOENT, ESHUTDOWN};
use rustix::io::Errno;
use strobe::engine::user::{self, User};
use strobe::map::Region;
use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe_board::{Board, Policy, System};
use strobe_cases::account::{begin, read_now, record, until, until_rows};
use strobe_cases::machine::{command, slowness};
use strobe_cases::monitor::{Monitor, SLOTS, Slot};
use strobe_cases::pci::cards;
use strobe_cases::rounds::{held, rounds};
use strobe_cases::{Account, Engine, Kernel, plan, raw};
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
        let mut machine = Machine {
            monitor: Monitor::open(),
            engine: Kernel::open(),
            board,
        };
        machine.empty();
        SLOTS.iter().for_each(Slot::prepare);
        machine
    }

    fn empty(&mut self) {
        for slot in SLOTS.iter().filter(|slot| slot.card().is_some()) {
            slot.unplug(&mut self.monitor);
        }
    }

    /// Plugs a card in: nothing but its firmware makes a device of it, whose name this is.
    fn plug(&mut self, slot: &Slot) -> String {
        let card = slot.plug_for(&mut self.monitor, KERNEL);
        let mut name = None;
        until("its device", || {
            name = device_of(&card);
            name.is_some()
        });
        name.expect("a name")
    }

    /// Plugs a card in, and gives it to the UIO driver.
    fn plug_for_uio(&mut self, slot: &Slot) -> Card {
        // With its device: the kernel names a driver before it probes, and a probe fails that finds another one chosen.
        self.plug(slot);
        let path = slot.card().expect("a card");
        let address = path.file_name().expect("an address").to_string_lossy();
        give_to_uio(&address);
        Card::new(&pci(&address))
    }

    fn unplug(&mut self, slot: &Slot) {
        slot.unplug(&mut self.monitor);
        assert_eq!(slot.card(), None, "the kernel lists what has gone");
    }

    fn lists(&self, device: &str) -> bool {
        let catalogue = self.engine.0.catalogue().expect("the catalogue");
        catalogue.devices.iter().any(|listed| listed.name == device)
    }

    /// A run of the user engine on cards of uio_pci_generic.
    fn user(&self, plan: &Plan) -> user::UserRun {
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

fn pci(address: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(address)
}

fn give_to_uio(address: &str) {
    let path = pci(address);
    fs::write(path.join("driver_override"), UIO).expect("to choose a driver");
    fs::write(path.join("driver/unbind"), address).expect("to unbind");
    fs::write("/sys/bus/pci/drivers_probe", address).expect("to probe");
    let driver = fs::read_link(path.join("driver")).expect("a driver");
    assert!(driver.ends_with(UIO), "{driver:?}");
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
    fn new(path: &Path) -> Card {
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

    fn raise(&self) {
        let raise = self.registers.register(0x60, 4).expect("a register");
        raise.write(1);
    }
}

/// A run, and who reads it: each has an account of its own.
struct Watched {
    run: Box<dyn OwnedRun>,
    readers: Vec<(RunReader, Account)>,
}

impl Watched {
    fn new(run: impl OwnedRun + 'static, readers: usize) -> Watched {
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
    /// How often a run was tuned.
    tuned: u64,
    /// How long it took to plug, to start the runs, ...
    phases: BTreeMap<&'static str, Duration>,
}

impl Sum {
    fn phase<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        *self.phases.entry(name).or_default() += begun.elapsed();
        done
    }
}

/// So many times a second; on a slow kernel as many times less, lest nothing is left of its CPUs.
fn timer(rate: u64) -> String {
    format!("timer:{}Hz", rate / slowness())
}

/// With a ring that holds all rows of a round, for they are read at its end.
fn long(plan: Plan) -> Plan {
    Plan {
        ring: Some(1 << 15),
        ..plan
    }
}

fn writing(event: &str, output: String, value: u64) -> Plan {
    Plan {
        steps: vec![Step::Write { output, value }],
        ..plan(event, &[])
    }
}

/// A run whose program writes an output in every other row, and later in those that it is tuned to.
fn acting(event: &str, channel: String, output: String) -> Plan {
    let mut plan = plan(event, &[&channel, "sim.counter"]);
    plan.program = ProgramText {
        tunables: vec!["wanted = 0".to_owned()],
        rules: vec![Rule {
            when: "sim.counter & 1 == wanted & 1".to_owned(),
            then: vec!["wanted += 2".to_owned()],
        }],
        derive: vec!["wanted_then = wanted".to_owned()],
        ..ProgramText::default()
    };
    plan.steps.push(Step::Act {
        output,
        value: 1,
        rule: 0,
    });
    plan
}

/// Tunes the run as long as it goes on, and answers how often.
fn tuned(run: u32) -> u64 {
    let control = raw::control();
    for times in 0.. {
        match raw::program::tune(&control, run, times % 1000) {
            Ok(()) => std::thread::sleep(Duration::from_millis(1)),
            Err(ENOENT | ESHUTDOWN) => return times,
            Err(errno) => panic!("a run cannot be tuned: errno {errno}"),
        }
    }
    0
}

/// What a run has read of a card that has gone: what the card says that is there, but for the last row, which may say
/// that it is there no more.
fn rows_are_of_the_card(account: &Account, what: &str) {
    let Some((last, others)) = account.rows.split_last() else {
        return;
    };
    for row in others {
        assert!(row.faults.is_empty(), "{what}: {row:?}");
        assert_eq!(row.values[0], ID, "{what}: {row:?}");
    }
    // The word of a channel that failed means nothing.
    let failed = last.faults.first() == Some(&0);
    assert!(failed || last.values[0] == ID, "{what}: {last:?}");
}

/// One round: three runs of the kernel engine on the card in the first slot, one of which reads a card that stays
/// as well, and one has a program and is tuned all the time; and two of the user engine on that in the second.
fn round(machine: &mut Machine, number: u64, sum: &mut Sum) {
    let name = sum.phase("plug", || machine.plug(&SLOTS[0]));
    let card = sum.phase("plug for uio", || machine.plug_for_uio(&SLOTS[1]));

    let of = |what: &str| format!("{name}.{what}");
    let (sampling, heard, raising) = sum.phase("start in the kernel", || {
        let run = |plan: &Plan, readers| Watched::new(machine.engine.run(plan), readers);
        (
            run(&long(plan(&timer(1000), &[&of("id"), "edu.id"])), 2),
            run(&plan(&of("irq"), &[&of("id"), &of("irq_status")]), 1),
            run(&long(acting(&timer(1000), of("id"), of("raise"))), 1),
        )
    });
    let id = raising.run.info().run;
    let tuner = std::thread::spawn(move || tuned(id));
    let of = |what: &str| format!("{}.{what}", card.name);
    let (looking, listening) = sum.phase("start in user space", || {
        let run = |plan: &Plan, readers| Watched::new(machine.user(plan), readers);
        (
            run(&long(plan(&timer(500), &[&of("id")])), 2),
            run(&plan(&of("irq"), &[&of("id")]), 1),
        )
    });
    card.raise();
    sum.phase("first rows", || {
        sampling.until_rows(2);
        looking.until_rows(1);
        if number % 2 == 0 {
            // Else it goes while the first interrupt may be on its way.
            heard.until_rows(1);
            listening.until_rows(1);
        }
    });
    sum.phase("unplug", || {
        let (first, second) = if number % 4 < 2 { (0, 1) } else { (1, 0) };
        machine.unplug(&SLOTS[first]);
        machine.unplug(&SLOTS[second]);
    });
    sum.rounds += 1;

    let begun = Instant::now();
    for (run, what) in [
        (sampling, "the timer run of the kernel engine"),
        (heard, "the interrupt run of the kernel engine"),
        (looking, "the timer run of the user engine"),
        (listening, "the interrupt run of the user engine"),
    ] {
        let what = format!("round {number}, {what}");
        rows_are_of_the_card(&run.settle(&what, sum), &what);
    }
    raising.settle("the run that raises", sum);
    sum.tuned += tuner.join().expect("a tuner");
    assert!(!machine.lists(&name), "round {number}: {name} is there");
    *sum.phases.entry("read to the end").or_default() += begun.elapsed();
}

#[test]
fn cards_that_are_pulled_and_plugged_again_end_runs_of_both_engines_and_lose_nothing() {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let begun = Instant::now();
    let before = held();
    // Under sanitizers the kernel works for seconds on each new card.
    for number in 0..rounds(50, 5) {
        round(&mut machine, number, &mut sum);
    }
    println!(
        "{} rounds in {:.1?} {:.1?}: {} runs, {} rows, {} missed, {} lost, tuned {} times",
        sum.rounds,
        begun.elapsed(),
        sum.phases,
        sum.runs,
        sum.rows,
        sum.missed,
        sum.lost,
        sum.tuned
    );
    assert!(sum.tuned > sum.rounds, "nothing was tuned");
    assert_eq!(sum.lost, 0, "rings hold what their readers have not read");
    until("nothing to be left of the rounds", || held() == before);
}

/// A card that was pulled by surprise has been recognised: only the last row says so, and holds nothing of it.
fn only_the_last_row_is_at_fault(account: &Account, of_card: &[usize], what: &str) {
    let (last, others) = account.rows.split_last().expect("a row");
    assert!(others.iter().all(|row| row.faults.is_empty()), "{what}");
    assert!(!last.faults.is_empty(), "{what}: {last:?}");
    // What was read before the card had gone stays, and what is of another card; from the first read that failed on, all
    // of the card has failed.
    let first = last.faults[0];
    let gone = of_card.iter().copied().filter(|column| *column >= first);
    assert_eq!(last.faults, gone.collect::<Vec<_>>(), "{what}: {last:?}");
    for (column, value) in last.values.iter().enumerate() {
        let mut before = others.iter().map(|row| row.values[column]);
        let good = before.next().expect("two rows");
        if !last.faults.contains(&column) && before.all(|value| value == good) {
            assert_eq!(*value, good, "{what}, column {column}: {last:?}");
        }
    }
}

#[test]
fn a_card_that_is_pulled_by_surprise_ends_the_runs_that_read_it_and_the_others_when_the_kernel_knows()
 {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let name = machine.plug(&SLOTS[0]);
    let uio = machine.plug_for_uio(&SLOTS[1]);
    let of = |what: &str| format!("{name}.{what}");
    let of_uio = |what: &str| format!("{}.{what}", uio.name);
    // Whole registers, fields, 64 bits; alone, beside another card, in a thread.
    let plans: [(&str, &[&str], &[usize]); 5] = [
        ("timer:500Hz", &[&of("id")], &[0]),
        (
            "timer:100Hz",
            &["edu.id", &of("id"), "edu2.id", &of("status")],
            &[1, 3],
        ),
        ("timer:100Hz", &[&of("major"), "edu.major"], &[0]),
        ("timer:100Hz", &[&of("dma_source"), "edu.id"], &[0]),
        ("timer:100Hz", &["edu.id", &of("id"), "sim.slow"], &[1]),
    ];
    let reading = plans.map(|(event, channels, of_card)| {
        let run = Watched::new(machine.engine.run(&plan(event, channels)), 2);
        run.until_rows(5);
        (run, of_card, format!("{event} {channels:?}"))
    });
    let heard = Watched::new(machine.engine.run(&plan(&of("irq"), &[&of("id")])), 1);
    let raising = writing(&timer(500), of("raise"), 1);
    let raising = Watched::new(machine.engine.run(&raising), 1);
    heard.until_rows(5);
    let listening = Watched::new(machine.user(&plan(&of_uio("irq"), &[&of_uio("id")])), 1);
    let looking = Watched::new(
        machine.user(&plan(&timer(1000), &[&of_uio("id"), "clock.late"])),
        2,
    );
    looking.until_rows(5);

    let card = SLOTS[0].card().expect("a card");
    let uio_card = SLOTS[1].card().expect("a card");
    let pulled = SLOTS.map(|slot| slot.pull());
    for (run, of_card, what) in reading {
        only_the_last_row_is_at_fault(&run.settle(&what, &mut sum), of_card, &what);
    }
    let account = looking.settle("the timer run of the user engine", &mut sum);
    let last = account.rows.last().expect("a row");
    assert_eq!(last.faults.first(), Some(&0), "{last:?}");
    // Who only writes to it, or waits for it, sees nothing of that.
    let rows = raising.readers[0].0.snapshot().head;
    raising.until_rows(rows + 10);
    assert!(machine.lists(&name), "the kernel does not know yet");

    for card in [card, uio_card] {
        fs::write(card.join("remove"), "1").expect("to tell the kernel");
    }
    assert!(!machine.lists(&name));
    rows_are_of_the_card(&heard.settle("the interrupt run", &mut sum), "interrupts");
    raising.settle("the run that raises", &mut sum);
    listening.settle("the interrupt run of the user engine", &mut sum);
    drop(pulled);
    for slot in SLOTS {
        slot.unplug(&mut machine.monitor);
    }
    // Another one in the same place.
    let name = machine.plug(&SLOTS[0]);
    let run = machine.engine.run(&Plan {
        limit: Some(10),
        ..plan("timer:1kHz", &[&format!("{name}.id")])
    });
    let (account, end) = record(&run);
    assert_eq!(end.state, State::Done);
    assert!(account.column(0).eq([ID; 10]));
}

#[test]
fn what_follows_a_run_whose_card_goes_has_its_last_row_and_fails_as_it_does() {
    let mut machine = Machine::new();
    for round in 0..rounds(10, 3) {
        let name = machine.plug(&SLOTS[0]);
        let of_card = format!("{name}.id");
        let followed = long(plan(&timer(1000), &[&of_card]));
        let followed = Watched::new(machine.engine.run(&followed), 1);
        let run = format!("run:kernel:{}", followed.run.info().run);
        let parts = ["row".to_owned(), of_card].map(|part| format!("{run}.{part}"));
        let parts = parts.each_ref().map(String::as_str);
        let follower = long(plan(&format!("{run}.row"), &parts));
        let follower: Box<dyn OwnedRun> = match round % 2 {
            0 => Box::new(machine.user(&follower)),
            _ => Box::new(machine.engine.run(&follower)),
        };
        let (mut reader, mut account) = begin(&*follower);
        follower.start().expect("to start");
        until_rows(&reader, 10);
        machine.unplug(&SLOTS[0]);
        let what = format!("round {round}, the run that is followed");
        let theirs = followed.settle(&what, &mut Sum::default());
        until("the end of what follows", || {
            reader.snapshot().state.is_final()
        });
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        assert_eq!(end.state, State::Failed, "{end:?}");
        for row in &account.rows {
            let their = &theirs.rows[row.values[0] as usize];
            if row.faults.is_empty() {
                assert_eq!(row.values[1], their.values[0], "{row:?}");
            } else {
                assert_eq!(their.faults, [0], "{row:?}");
            }
        }
    }
}

/// All of the card has failed in the last row, for it was one access; the rows before have its values.
fn all_fields_of_the_last_row_are_at_fault(account: &Account, of_card: &[usize], what: &str) {
    let (last, others) = account.rows.split_last().expect("a row");
    assert_eq!(last.faults, of_card, "{what}: {last:?}");
    for row in others {
        assert!(row.faults.is_empty(), "{what}: {row:?}");
        let of_card: Vec<u64> = of_card.iter().map(|column| row.values[*column]).collect();
        assert_eq!(of_card, [ID >> 24, ID >> 16 & 0xff, ID], "{what}: {row:?}");
    }
}

#[test]
fn a_card_that_is_pulled_by_surprise_has_no_value_in_any_field_of_a_register() {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let name = machine.plug(&SLOTS[0]);
    let uio = machine.plug_for_uio(&SLOTS[1]);
    let fields = |name: &str| ["major", "minor", "id"].map(|part| format!("{name}.{part}"));
    let [major, minor, id] = &fields(&name);
    // Alone, with another card between them, in a thread; in the user engine, that has but its card.
    let plans: [(&[&str], &[usize]); 3] = [
        (&[major, minor, id], &[0, 1, 2]),
        (&[major, "edu.id", minor, id], &[0, 2, 3]),
        (&[major, minor, "sim.slow", id], &[0, 1, 3]),
    ];
    let mut reading = plans
        .map(|(channels, of_card)| {
            let run = Watched::new(machine.engine.run(&plan("timer:100Hz", channels)), 1);
            (run, of_card, format!("{channels:?}"))
        })
        .into_iter()
        .collect::<Vec<_>>();
    let [major, minor, id] = &fields(&uio.name);
    let of_user = plan("timer:100Hz", &[major, "clock.time", minor, id]);
    let what = "the user engine".to_owned();
    reading.push((Watched::new(machine.user(&of_user), 1), &[0, 2, 3], what));
    for (run, ..) in &reading {
        run.until_rows(5);
    }

    let gone = SLOTS.each_ref().map(|slot| slot.card().expect("a card"));
    let pulled = SLOTS.each_ref().map(Slot::pull);
    for (run, of_card, what) in reading {
        all_fields_of_the_last_row_are_at_fault(&run.settle(&what, &mut sum), of_card, &what);
    }
    for card in gone {
        fs::write(card.join("remove"), "1").expect("to tell the kernel");
    }
    drop(pulled);
    for slot in &SLOTS {
        slot.unplug(&mut machine.monitor);
    }
}

#[test]
fn all_ones_that_a_card_says_which_is_there_are_a_value() {
    let machine = Machine::new();
    let liveness = |name: &str, event: &str| Plan {
        // It reads as the inverse of what was written.
        steps: vec![
            Step::Write {
                output: format!("{name}.liveness"),
                value: 0,
            },
            Step::Read(format!("{name}.liveness")),
            Step::Read(format!("{name}.id")),
            // At the last one the card is asked.
            Step::Read(format!("{name}.liveness")),
        ],
        limit: Some(100),
        ..plan(event, &[])
    };
    let of_kernel = record(&machine.engine.run(&liveness("edu", "timer:1kHz")));
    give_to_uio("0000:00:02.0");
    let of_user = record(&machine.user(&liveness("edu2", "timer:1kHz")));
    for (account, end) in [of_kernel, of_user] {
        assert_eq!((end.state, end.errors), (State::Done, 0));
        assert_eq!(account.rows.len(), 100);
        for liveness in [0, 2] {
            assert!(account.column(liveness).all(|value| value == 0xffff_ffff));
        }
        assert!(account.column(1).all(|value| value == ID));
    }
    let address = "0000:00:02.0";
    fs::write(pci(address).join("driver/unbind"), address).expect("to unbind");
    fs::write(pci(address).join("driver_override"), "\n").expect("to leave it to anybody");
}

/// Starts the program, lets it wait for what is not there, and answers what it has written in the end.
fn recorded_after(
    words: &[&str],
    missing: &str,
    plugs: impl FnOnce(&mut Child),
) -> serde_json::Value {
    let said = "/tmp/hotplug.said";
    let mut child = Command::new("strobe")
        .arg("record")
        .args(words)
        .args([
            "--rows",
            "100",
            "--wait-for-device",
            "--allow-loss",
            "--json",
            "--overwrite",
            "-o",
            "/tmp/hotplug.csv",
        ])
        .stdout(Stdio::piped())
        .stderr(fs::File::create(said).expect(said))
        .spawn()
        .expect("strobe");
    until("it waits", || {
        fs::read_to_string(said)
            .is_ok_and(|text| text.contains("waiting: ") && text.contains(missing))
    });
    plugs(&mut child);
    let done = child.wait_with_output().expect("its end");
    let said = fs::read_to_string(said).expect("what it said");
    assert!(done.status.success(), "{said}{done:?}");
    let csv = fs::read_to_string("/tmp/hotplug.csv").expect("its file");
    let rows = csv
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    assert_eq!(rows.count(), 100, "{csv}");
    assert!(csv.contains(&format!(",{ID}")), "{csv}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

#[test]
fn the_program_waits_for_a_card_that_is_plugged_in_later_and_records_it() {
    let mut machine = Machine::new();
    let words = [
        "--engine",
        "kernel",
        "--event",
        "timer:1kHz",
        "--read",
        "edu3.id",
    ];
    let account = recorded_after(&words, "edu3", |_| {
        assert_eq!(machine.plug(&SLOTS[0]), "edu3");
    });
    assert_eq!(
        (&account["rows"], &account["end"]),
        (&100.into(), &"complete".into()),
        "{account}"
    );
    machine.unplug(&SLOTS[0]);

    let words = [
        "--engine", "user", "--board", INTX, "--event", "edu3.irq", "--read", "edu3.id",
    ];
    let account = recorded_after(&words, "edu3", |program| {
        let card = machine.plug_for_uio(&SLOTS[0]);
        // An interrupt that comes before the run is none of its.
        until("100 rows", || {
            card.raise();
            program.try_wait().expect("to look").is_some()
        });
    });
    assert_eq!(account["rows"], 100, "{account}");
    assert_eq!(account["end"], "complete", "{account}");
}

#[test]
fn the_driver_of_boards_stays_while_a_run_uses_a_card_and_may_go_when_the_card_has_gone() {
    let mut machine = Machine::new();
    let name = machine.plug(&SLOTS[0]);
    let run = plan("timer:1kHz", &[&format!("{name}.id")]);
    let run = Watched::new(machine.engine.run(&run), 1);
    run.until_rows(1);
    assert_eq!(raw::unload("strobe_board"), Err(libc::EWOULDBLOCK));
    assert!(raw::references("strobe_board") > 0);
    machine.unplug(&SLOTS[0]);
    // The owner has its run still, which holds nothing any more.
    assert_eq!(raw::unload("strobe_board"), Ok(0));
    run.settle("a run of a module that has gone", &mut Sum::default());
    assert!(command("modprobe strobe_board"));
    assert!(machine.lists("edu"), "found again, by its firmware");
    let name = machine.plug(&SLOTS[0]);
    assert!(machine.lists(&name));
}
