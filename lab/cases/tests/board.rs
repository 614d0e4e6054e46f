// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards in the kernel: cards become devices, their interrupts triggers; damaged boards are refused; cards
//! may go at any moment.
//!
//! Besides the two edu cards of every guest there is one in a slot that shares the line of the first.
// lab: --device edu,addr=0x05 --module uio_pci_generic

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use rustix::io::Errno;
use strobe::engine::kernel::KernelRun;
use strobe::plan::{Plan, Step};
use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe_board::{Board, Outcome, Policy, System};
use strobe_cases::account::{begin, read_now, until, until_rows};
use strobe_cases::rounds::rounds;
use strobe_cases::{Account, Engine, Kernel, plan};
use strobe_ring::State;

const CARDS: [&str; 3] = ["0000:00:01.0", "0000:00:02.0", "0000:00:05.0"];
const NAMES: [&str; 3] = ["edu", "edu2", "edu3"];
/// Version 1.0 of the card.
const ID: u64 = 0x0100_00ed;
/// Where the boards are in a guest.
const MSI: &str = "/boards/edu.toml";
const INTX: &str = "/boards/edu-intx.toml";
/// Not a file: the board for INTx, which asks the card, with MSI.
const MSI_ASKED: &str = "MSI, and the card is asked";

fn text_of(board: &str) -> String {
    let read = |file| fs::read_to_string(file).expect(file);
    match board {
        MSI_ASKED => read(INTX).replace("kind = \"intx\"", "kind = \"msi\""),
        file => read(file),
    }
}

/// An installed board; removed when dropped.
struct Installed(Board);

impl Installed {
    fn new(file: &str) -> Installed {
        let toml = text_of(file);
        let board = Board::from_toml(file, &toml).expect("a good board");
        let installed = System::default()
            .install(&board, &toml, Policy::Free)
            .expect("to install");
        let found: Vec<_> = installed
            .bindings
            .iter()
            .map(|b| (b.address.as_str(), b.outcome.clone()))
            .collect();
        let bound = NAMES.map(|name| Outcome::Bound(Some(name.into())));
        assert_eq!(found, CARDS.into_iter().zip(bound).collect::<Vec<_>>());
        Installed(board)
    }

    fn remove(&self) -> Vec<Outcome> {
        let bindings = System::default()
            .remove(&self.0.hardware)
            .expect("to remove");
        bindings
            .into_iter()
            .map(|binding| binding.outcome)
            .collect()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if System::default()
            .firmware
            .join(self.0.hardware.stem())
            .with_extension("board")
            .exists()
        {
            self.remove();
        }
    }
}

fn bus(path: &str) -> PathBuf {
    Path::new("/sys/bus/pci").join(path)
}

fn tell(path: &str, what: &str) {
    fs::write(bus(path), what).unwrap_or_else(|why| panic!("{path} {what}: {why}"));
}

fn driver(card: &str) -> Option<String> {
    let link = fs::read_link(bus("devices").join(card).join("driver")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// What the kernel has said since the last call.
fn kernel_said() -> String {
    let done = Command::new("dmesg").arg("-c").output().expect("dmesg");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Interrupts of a card that the machine has delivered, on all CPUs.
fn delivered(card: &str) -> u64 {
    let text = fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    let line = text
        .lines()
        .find(|line| line.contains(&format!("strobe:{card}")));
    let words = line.expect("it is requested").split_whitespace().skip(1);
    words.map_while(|word| word.parse::<u64>().ok()).sum()
}

/// A run of one step that stores `value` whenever it is triggered.
fn writing(event: &str, output: &str, value: u64) -> Plan {
    let step = Step::Write {
        output: output.into(),
        value,
    };
    Plan {
        steps: vec![step],
        ..plan(event, &[])
    }
}

fn started(engine: &Kernel, plan: &Plan) -> KernelRun {
    let run = engine.run(plan);
    run.start().expect("to start");
    run
}

fn listening(engine: &Kernel, device: &str) -> KernelRun {
    let channels = ["id", "major", "irq_status", "liveness", "status"]
        .map(|channel| format!("{device}.{channel}"));
    let channels: Vec<&str> = channels.iter().map(String::as_str).collect();
    started(
        engine,
        &Plan {
            ring: Some(4096),
            ..plan(&format!("{device}.irq"), &channels)
        },
    )
}

fn stop(run: &KernelRun) {
    run.stop().expect("to stop");
}

#[test]
fn a_board_makes_devices_of_its_cards_until_it_is_removed() {
    let engine = Kernel::open();
    let board = Installed::new(MSI);
    let catalogue = engine.0.catalogue().expect("the catalogue");
    for name in NAMES {
        assert!(
            catalogue.devices.iter().any(|device| device.name == name),
            "{name}"
        );
        for channel in &board.0.channels {
            let name = format!("{name}.{}", channel.name);
            assert!(
                catalogue
                    .channels
                    .iter()
                    .any(|channel| channel.name == name),
                "{name}"
            );
        }
        for output in &board.0.outputs {
            let name = format!("{name}.{}", output.name);
            assert!(
                catalogue.outputs.iter().any(|output| output.name == name),
                "{name}"
            );
        }
        assert!(
            catalogue
                .events
                .iter()
                .any(|event| event.name == format!("{name}.irq"))
        );
    }
    assert_eq!(
        board.remove(),
        [Outcome::Free, Outcome::Free, Outcome::Free]
    );
    let catalogue = engine.0.catalogue().expect("the catalogue");
    assert!(
        !catalogue
            .devices
            .iter()
            .any(|device| device.name.starts_with("edu"))
    );
    assert!(CARDS.iter().all(|card| driver(card).is_none()));
}

#[test]
fn a_card_that_is_plugged_in_later_is_found_without_help() {
    let _board = Installed::new(MSI);
    let engine = Kernel::open();
    let run = started(&engine, &plan("timer:1kHz", &["edu2.id"]));
    let (mut reader, mut account) = begin(&run);
    until_rows(&reader, 3);
    tell(&format!("devices/{}/remove", CARDS[1]), "1");
    let end = reader.snapshot();
    assert_eq!(
        (end.state, end.error),
        (State::Failed, -Errno::NODEV.raw_os_error())
    );
    read_now(&mut reader, &mut account);
    account.settle(&end);
    assert!(account.column(0).all(|id| id == ID));
    drop(run);

    tell("rescan", "1");
    until("the card is back", || {
        driver(CARDS[1]).as_deref() == Some("strobe_board")
    });
    let run = started(
        &engine,
        &Plan {
            limit: Some(3),
            ..plan("timer:1kHz", &["edu2.id"])
        },
    );
    let (reader, _) = begin(&run);
    until("three rows", || reader.snapshot().state == State::Done);
}

/// Waits until the card's interrupt has been acknowledged.
struct Silence {
    run: KernelRun,
    reader: RunReader,
    account: Account,
}

impl Silence {
    fn of(engine: &Kernel, device: &str) -> Silence {
        let run = started(engine, &plan("soft", &[&format!("{device}.irq_status")]));
        let (reader, account) = begin(&run);
        Silence {
            run,
            reader,
            account,
        }
    }

    fn wait(&mut self) {
        until("the interrupt is silenced", || {
            self.run.trigger(1).expect("to trigger");
            read_now(&mut self.reader, &mut self.account);
            self.account
                .rows
                .last()
                .is_some_and(|row| row.values == [0])
        });
    }
}

/// One interrupt at a time, each waited for, so that the count must be exact.
///
/// A card that is asked merges what comes before it was acknowledged, so that has to be waited for, too.
fn every_interrupt_that_is_raised_is_one_trigger(board: &str) {
    const RAISED: u64 = 300;
    let _board = Installed::new(board);
    let engine = Kernel::open();
    let run = listening(&engine, "edu");
    let (mut reader, mut account) = begin(&run);
    let raise = started(&engine, &writing("soft", "edu.raise", 0x5a));
    let mut silence = Silence::of(&engine, "edu");
    for number in 1..=RAISED {
        raise.trigger(1).expect("to trigger");
        until("the interrupt", || reader.snapshot().triggers >= number);
        assert_eq!(reader.snapshot().triggers, number, "one trigger each");
        if board != MSI {
            silence.wait();
        }
    }
    stop(&run);
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(end.triggers, RAISED);
    assert_eq!(account.rows.len() as u64 + end.missed(), RAISED);
    for row in &account.rows {
        // Read before the handler acknowledged it.
        let status = if board == MSI {
            row.values[2] & 0x5a
        } else {
            0x5a
        };
        assert_eq!(row.values, [ID, 1, status, 0, 0], "{row:?}");
    }
}

#[test]
fn every_msi_that_is_raised_is_one_trigger() {
    every_interrupt_that_is_raised_is_one_trigger(MSI);
}

#[test]
fn every_msi_that_the_card_is_asked_for_is_one_trigger() {
    every_interrupt_that_is_raised_is_one_trigger(MSI_ASKED);
}

#[test]
fn every_intx_that_is_raised_is_one_trigger() {
    every_interrupt_that_is_raised_is_one_trigger(INTX);
}

/// A timer raises faster than the machine may follow; nothing is said about speed.
fn interrupts_of_a_timer_run_are_accounted_for(board: &str) {
    let _board = Installed::new(board);
    let engine = Kernel::open();
    let run = listening(&engine, "edu2");
    let (mut reader, mut account) = begin(&run);
    let raise = engine.run(&Plan {
        limit: Some(500),
        ..writing("timer:1kHz", "edu2.raise", 3)
    });
    let (raised, _) = begin(&raise);
    raise.start().expect("to start");
    until("the timer's rows", || {
        raised.snapshot().state == State::Done
    });
    let raised = raised.snapshot().head;
    Silence::of(&engine, "edu2").wait();
    if board == MSI {
        let end = reader.snapshot().triggers;
        assert_eq!(
            delivered(CARDS[1]),
            end,
            "every message that has come is a trigger"
        );
    }
    stop(&run);
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(end.triggers, account.rows.len() as u64 + end.missed());
    assert!(
        (1..=raised).contains(&end.triggers),
        "{} triggers of {raised} interrupts",
        end.triggers
    );
    assert!(
        account
            .rows
            .iter()
            .all(|row| row.values[..2] == [ID, 1] && (row.values[2] == 3 || board == MSI))
    );
    println!(
        "{raised} raised, {} triggers, {} rows, {} missed",
        end.triggers,
        end.head,
        end.missed()
    );
}

#[test]
fn msi_of_a_timer_run_are_accounted_for() {
    interrupts_of_a_timer_run_are_accounted_for(MSI);
}

#[test]
fn msi_that_the_card_is_asked_for_are_accounted_for() {
    interrupts_of_a_timer_run_are_accounted_for(MSI_ASKED);
}

#[test]
fn intx_of_a_timer_run_are_accounted_for() {
    interrupts_of_a_timer_run_are_accounted_for(INTX);
}

/// An interrupt from before the run is not a trigger, and does not keep the next one from coming.
fn what_was_raised_before_anybody_listened_is_not_a_trigger(board: &str) {
    let _board = Installed::new(board);
    let engine = Kernel::open();
    let raise = started(&engine, &writing("soft", "edu.raise", 1));
    for _ in 0..10 {
        raise.trigger(3).expect("to trigger");
        let run = listening(&engine, "edu");
        let (reader, _) = begin(&run);
        assert_eq!(reader.snapshot().triggers, 0);
        raise.trigger(1).expect("to trigger");
        until("the interrupt", || reader.snapshot().triggers > 0);
        stop(&run);
        assert_eq!(reader.snapshot().triggers, 1);
    }
}

#[test]
fn an_msi_from_before_the_run_is_not_a_trigger() {
    what_was_raised_before_anybody_listened_is_not_a_trigger(MSI);
}

#[test]
fn an_msi_from_before_the_run_is_not_a_trigger_if_the_card_is_asked() {
    what_was_raised_before_anybody_listened_is_not_a_trigger(MSI_ASKED);
}

#[test]
fn an_intx_from_before_the_run_is_not_a_trigger() {
    what_was_raised_before_anybody_listened_is_not_a_trigger(INTX);
}

#[test]
fn cards_that_share_a_line_do_not_take_each_others_interrupts() {
    const RAISED: u64 = 50;
    let _board = Installed::new(INTX);
    let engine = Kernel::open();
    let runs = [listening(&engine, "edu"), listening(&engine, "edu3")];
    let readers = runs.each_ref().map(|run| begin(run).0);
    let interrupts = fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    let shared = [CARDS[0], CARDS[2]].map(|card| format!("strobe:{card}"));
    assert!(
        interrupts
            .lines()
            .any(|line| shared.iter().all(|name| line.contains(name))),
        "the test needs both on one line:\n{interrupts}"
    );
    let raise =
        ["edu.raise", "edu3.raise"].map(|output| started(&engine, &writing("soft", output, 1)));
    for number in 1..=RAISED {
        for (raise, reader) in raise.iter().zip(&readers) {
            raise.trigger(1).expect("to trigger");
            until("the interrupt", || reader.snapshot().triggers >= number);
        }
    }
    // Only one of them listens any more; the other is silenced by nobody, and holds no line.
    stop(&runs[1]);
    raise[1].trigger(1).expect("to trigger");
    raise[0].trigger(1).expect("to trigger");
    until("the interrupt", || readers[0].snapshot().triggers > RAISED);
    stop(&runs[0]);
    assert_eq!(
        readers.map(|reader| reader.snapshot().triggers),
        [RAISED + 1, RAISED]
    );
}

#[test]
fn two_runs_on_one_interrupt_get_the_same_triggers() {
    let _board = Installed::new(MSI);
    let engine = Kernel::open();
    let runs = [listening(&engine, "edu"), listening(&engine, "edu")];
    let readers = runs.each_ref().map(|run| begin(run).0);
    let raise = started(&engine, &writing("soft", "edu.raise", 1));
    for number in 1..=20 {
        raise.trigger(1).expect("to trigger");
        until("both", || {
            readers
                .iter()
                .all(|reader| reader.snapshot().triggers == number)
        });
    }
    stop(&runs[0]);
    raise.trigger(1).expect("to trigger");
    until("the one that is left", || {
        readers[1].snapshot().triggers == 21
    });
    assert_eq!(readers[0].snapshot().triggers, 20);
}

/// All of a blob's bytes are tried by tests/blob; here it is shown that what the check says, the driver does.
#[test]
fn a_damaged_board_is_refused_with_a_reason_and_binds_nothing() {
    let board = Board::read(Path::new(MSI)).expect("a good board");
    let good = board.compile().expect("a blob");
    let directory = System::default().firmware;
    fs::create_dir_all(&directory).expect("the firmware directory");
    let blob = directory
        .join(board.hardware.stem())
        .with_extension("board");
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&blob, bytes).expect("to write");
        tell("drivers_probe", CARDS[0]);
        assert_eq!(driver(CARDS[0]), None, "{what}");
        let said = kernel_said();
        let reasons = said
            .lines()
            .filter(|line| line.contains("pci-1234-11e8.board: "));
        assert_eq!(reasons.count(), 1, "{what}:\n{said}");
    };
    kernel_said();
    for length in [0, 1, 19, 20, 167, 168, good.len() / 2, good.len() - 1] {
        refused(&good[..length], &format!("cut to {length} bytes"));
    }
    // Not random, but as good: a step that is prime to the length visits all of it.
    let scattered =
        (0..rounds(20, 20) as usize).map(|number| 168 + number * 7919 % (good.len() - 168));
    for at in (0..168).chain(scattered) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        refused(&bad, &format!("byte {at} flipped"));
    }
    let mut longer = good.clone();
    longer.push(0);
    refused(&longer, "a byte too much");
    let mut other = board.clone();
    other.hardware = Board::from_toml(
        "",
        &fs::read_to_string(MSI)
            .unwrap()
            .replace("1234:11e8", "1234:11e9"),
    )
    .expect("a good board")
    .hardware;
    refused(&other.compile().expect("a blob"), "for another card");
    let mut huge = board.clone();
    huge.bars[0].size = 0x20_0000;
    refused(&huge.compile().expect("a blob"), "more than the BAR has");

    fs::write(&blob, &good).expect("to write");
    tell("drivers_probe", CARDS[0]);
    assert_eq!(
        driver(CARDS[0]).as_deref(),
        Some("strobe_board"),
        "the undamaged one"
    );
    System::default()
        .remove(&board.hardware)
        .expect("to remove");
}

#[test]
fn a_card_without_a_board_is_declined_without_a_word_of_the_driver() {
    kernel_said();
    tell("drivers_probe", CARDS[0]);
    assert_eq!(driver(CARDS[0]), None);
    let said = kernel_said();
    // Debian's kernel notes every firmware file that is not there, whoever asks; a slow machine has words of its own.
    let words: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("strobe") || line.contains(CARDS[0]))
        .filter(|line| !line.contains("firmware: failed to load"))
        .collect();
    assert!(words.is_empty(), "{words:?}");
}

#[test]
fn a_name_is_free_when_nothing_is_left_of_who_had_it() {
    let _board = Installed::new(MSI);
    // Each takes the name that the other is giving back; who reads a file there keeps it a little longer.
    let going = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            while going.load(Ordering::Relaxed) {
                let _ = fs::read("/sys/class/strobe/edu/description");
            }
        });
        let cards = [CARDS[0], CARDS[1]].map(|card| {
            scope.spawn(move || {
                for round in 0..100 {
                    tell("drivers/strobe_board/unbind", card);
                    tell("drivers/strobe_board/bind", card);
                    let bound = driver(card);
                    assert_eq!(bound.as_deref(), Some("strobe_board"), "{round}");
                }
            })
        });
        let ends = cards.map(|card| card.join().is_ok());
        going.store(false, Ordering::Relaxed);
        assert_eq!(ends, [true, true]);
    });
}

#[test]
fn a_card_that_goes_under_a_running_run_ends_it_and_its_rows_stay() {
    let _board = Installed::new(MSI);
    let engine = Kernel::open();
    let begun = Instant::now();
    let often = rounds(50, 20);
    for round in 0..often {
        let sampling = started(&engine, &plan("timer:5kHz", &["edu.id", "edu2.id"]));
        let raising = started(&engine, &writing("timer:2kHz", "edu.raise", 1));
        let heard = listening(&engine, "edu");
        let (mut reader, mut account) = begin(&sampling);
        let (mut ear, mut heard_account) = begin(&heard);
        if round % 4 == 0 {
            until_rows(&ear, 1);
        }
        until_rows(&reader, 1);
        tell("drivers/strobe_board/unbind", CARDS[0]);
        for (reader, account) in [(&mut reader, &mut account), (&mut ear, &mut heard_account)] {
            let end = reader.snapshot();
            assert_eq!(
                (end.state, end.error),
                (State::Failed, -Errno::NODEV.raw_os_error()),
                "round {round}"
            );
            read_now(reader, account);
            account.settle(&end);
            assert!(
                account.column(0).all(|id| id == ID),
                "round {round}: a value of a card that was gone"
            );
        }
        assert_eq!(raising.state().expect("its state"), State::Failed);
        tell("drivers/strobe_board/bind", CARDS[0]);
        assert_eq!(
            driver(CARDS[0]).as_deref(),
            Some("strobe_board"),
            "round {round}"
        );
    }
    println!("{often} times in {:?}", begun.elapsed());
}

#[test]
fn a_card_of_another_driver_is_left_alone_and_forced_only_when_asked() {
    let path = format!("devices/{}/driver_override", CARDS[1]);
    tell(&path, "uio_pci_generic");
    tell("drivers_probe", CARDS[1]);
    assert_eq!(driver(CARDS[1]).as_deref(), Some("uio_pci_generic"));
    let strobe = |words: &[&str]| {
        let done = Command::new("strobe")
            .arg("board")
            .args(words)
            .output()
            .expect("strobe");
        let said = String::from_utf8_lossy(&done.stdout).into_owned()
            + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        said
    };
    let said = strobe(&["install", MSI]);
    assert!(
        said.contains(&format!("{}: device edu\n", CARDS[0])),
        "{said}"
    );
    assert!(
        said.contains(&format!(
            "{}: the driver uio_pci_generic has it and keeps it",
            CARDS[1]
        )),
        "{said}"
    );
    assert!(said.contains("--force"), "{said}");
    assert_eq!(driver(CARDS[1]).as_deref(), Some("uio_pci_generic"));

    let said = strobe(&["install", "--force", MSI]);
    assert!(
        said.contains(&format!("{}: device edu", CARDS[1])),
        "{said}"
    );
    let said = strobe(&["show", "edu"]);
    assert!(said.contains("PCI 1234:11e8, msi"), "{said}");
    let said = strobe(&["remove", "edu"]);
    assert!(said.contains(&format!("{}: free", CARDS[1])), "{said}");
    let chosen = fs::read_to_string(bus(&path)).expect("the override");
    assert_eq!(chosen.trim(), "(null)", "other drivers may have it again");
}

#[test]
fn who_may_not_install_is_told_to_use_sudo() {
    let done = Command::new("strobe")
        .args(["board", "install", MSI])
        .uid(1000)
        .gid(1000)
        .output()
        .expect("strobe");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        said.contains("/lib/firmware/strobe") && said.contains("sudo"),
        "{said}"
    );
}

#[test]
fn the_interrupt_is_requested_only_while_somebody_listens() {
    let _board = Installed::new(MSI);
    let engine = Kernel::open();
    let run = listening(&engine, "edu");
    let listening_lines = |card: &str| {
        let text = fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
        text.lines()
            .filter(|line| line.contains(&format!("strobe:{card}")))
            .count()
    };
    assert_eq!(listening_lines(CARDS[0]), 1, "while somebody listens");
    stop(&run);
    assert_eq!(listening_lines(CARDS[0]), 0, "and no longer");
}
