// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same board file for both engines: the same names, and the same values.
// lab: --module uio_pci_generic

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use strobe::channel::{Channel, Type};
use strobe::engine::kernel::Control;
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::map::{Region, Register};
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_board::{Board, Policy, System};
use strobe_cases::account::{begin, read_now, read_to_end, until, until_rows};
use strobe_cases::pci::{self, Bound, row, set};
use strobe_cases::rounds::rounds;
use strobe_cases::uio::register;
use strobe_cases::{Pace, plan};
use strobe_ring::{Missed, State};

fn user(wait: WaitMode) -> User {
    let board = Board::read(Path::new("/boards/edu-intx.toml")).expect("a board");
    let settings = Settings {
        wait,
        ..Settings::default()
    };
    User::new(settings).with_board(board)
}

/// The cards, in the order of their addresses.
fn cards() -> Vec<PathBuf> {
    let paths = pci::cards(0x11e8);
    assert_eq!(paths.len(), 2);
    paths
}

/// What both engines tell of a channel.
fn about(channels: &[Channel]) -> Vec<(String, String, Type, u32, f64)> {
    let one = |c: &Channel| (c.name.clone(), c.unit.clone(), c.kind, c.bits, c.scale);
    channels.iter().map(one).collect()
}

#[test]
fn both_engines_read_the_same_values_of_the_same_card() {
    const WRITTEN: [u64; 4] = [0, 1, 0x1234_5678, 0xffff_ffff];
    let file = Path::new("/boards/edu-intx.toml");
    let board = Board::read(file).expect("a board");
    let text = fs::read_to_string(file).expect("its text");
    let system = System::default();
    system
        .install(&board, &text, Policy::FilesOnly)
        .expect("to install it");
    let user = user(WaitMode::Block);

    let card = Bound::to("strobe_board", &cards()[0]);
    let control = Control::open().expect("the module");
    let mut listed = control.catalogue().expect("a catalogue").channels;
    listed.retain(|channel| channel.name.starts_with("edu."));
    assert!(listed.len() >= 10, "{listed:?}");
    let names: Vec<&str> = listed.iter().map(|channel| channel.name.as_str()).collect();
    let plans = WRITTEN.map(|value| {
        let mut plan = plan("soft", &names);
        plan.steps.insert(0, set("edu.liveness", value));
        plan
    });
    let of_kernel = plans
        .each_ref()
        .map(|plan| row(&control.create(plan).expect("a run")));
    let error = user
        .create(&plans[0])
        .err()
        .expect("the card is taken")
        .to_string();
    assert!(
        error.contains("the driver strobe_board has exclusive use of card"),
        "{error}"
    );
    drop(card);

    let _card = Bound::to("uio_pci_generic", &cards()[0]);
    let of_user = plans.each_ref().map(|plan| {
        let run = user.create(plan).expect("a run");
        assert_eq!(about(&run.info().channels), about(&listed));
        row(&run)
    });
    assert_eq!(of_user, of_kernel);
    let column = names
        .iter()
        .position(|name| *name == "edu.liveness")
        .expect("a channel");
    assert_eq!(
        of_user.map(|row| row[column]),
        WRITTEN.map(|value| !value & 0xffff_ffff)
    );
}

/// Of the card there: what it has raised, and what raises.
fn registers(card: &Path) -> [Register; 2] {
    let mut options = fs::File::options();
    let file = options.read(true).write(true).open(card.join("resource0"));
    let bar = Region::map(&file.expect("BAR 0"), 0, 4096, true).expect("its registers");
    [0x24, 0x60].map(|offset| register(&bar, offset))
}

#[test]
fn each_interrupt_through_uio_makes_a_row_and_the_next_can_come() {
    let path = &cards()[0];
    let _card = Bound::to("uio_pci_generic", path);
    let [status, raise] = registers(path);

    let engine = user(WaitMode::Block);
    let listener = engine
        .create(&plan("edu.irq", &["edu.irq_status", "event.count"]))
        .expect("a run");
    let (mut reader, mut account) = begin(&listener);
    // What was raised before the start is history, as soon as UIO has counted it: that may take a moment on another CPU.
    let counted = || {
        let mut devices = fs::read_dir(path.join("uio")).expect("a UIO device");
        let device = devices.next().expect("one").expect("a UIO device");
        fs::read_to_string(device.path().join("event")).expect("its count")
    };
    let before = counted();
    raise.write(1);
    until("its interrupt", || counted() != before);
    listener.start().expect("to start");
    let often = 50 * rounds(40, 40);
    for rows in 1..=often {
        assert_eq!(status.read(), 0);
        raise.write(2);
        // It is acknowledged after the row; what is raised before that is merged with it.
        until("the acknowledgement", || status.read() == 0);
        if rows % 1000 == 0 {
            read_now(&mut reader, &mut account);
        }
    }
    listener.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((end.head, end.missed(), account.lost), (often, 0, 0));
    assert!(account.column(0).all(|status| status == 2));
    let counts: Vec<u64> = account.column(1).collect();
    assert!(
        counts.windows(2).all(|w| w[1] == w[0] + 1),
        "UIO has counted the same"
    );
}

#[test]
fn a_bit_of_a_register_is_waited_for_without_its_interrupt() {
    let _card = Bound::to("uio_pci_generic", &cards()[0]);
    let [status, _] = registers(&cards()[0]);
    let engine = user(WaitMode::Spin);
    let listener = engine
        .create(&plan("edu.irq", &["edu.irq_status"]))
        .expect("a run");
    let mut reader = listener.reader().expect("a reader");
    listener.start().expect("to start");
    let raiser = user(WaitMode::Block)
        .create(&Plan {
            steps: vec![set("edu.raise", 4)],
            ..plan("soft", &[])
        })
        .expect("a run");
    raiser.start().expect("to start");
    // The second pause is longer than the wait spins.
    for (rows, pause) in [(1, 0), (2, 300), (3, 0)] {
        thread::sleep(Duration::from_millis(pause));
        // A row can be read before the engine has silenced its bit.
        until("a silenced bit", || status.read() == 0);
        raiser.trigger(1).expect("to raise");
        until_rows(&reader, rows);
    }
    listener.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    assert_eq!(reader.snapshot().missed_by[Missed::Source as usize], 0);
    assert!(account.column(0).eq([4, 4, 4]));
}

#[test]
fn a_card_that_is_pulled_ends_the_run_and_what_was_read_stays() {
    let paths = cards();
    for (event, path) in [("timer:1ms", &paths[1]), ("edu2.irq", &paths[1])] {
        let _card = Bound::to("uio_pci_generic", path);
        let run = user(WaitMode::Block)
            .create(&Plan {
                // What is read at its end is all there.
                ring: Some(1 << 16),
                ..plan(event, &["edu2.id"])
            })
            .expect("a run");
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        if event == "timer:1ms" {
            until_rows(&reader, 10);
        }
        fs::write(path.join("remove"), "1").expect("to pull it");
        until("its end", || reader.snapshot().state.is_final());
        let end = reader.snapshot();
        assert_eq!(
            (end.state, end.error),
            (State::Failed, -libc::ENODEV),
            "{event}"
        );
        let account = read_to_end(&mut reader, Pace::FAST);
        let good = account.rows.iter().filter(|row| row.faults.is_empty());
        assert!(good.clone().count() as u64 + end.errors == end.head);
        assert!(
            good.clone().all(|row| row.values[0] & 0xff == 0xed),
            "{event}"
        );
        fs::write("/sys/bus/pci/rescan", "1").expect("to plug it in again");
        until("the card", || path.exists());
    }
}

#[test]
fn what_a_card_cannot_do_is_said_with_the_remedy() {
    let engine = user(WaitMode::Block);
    let refused = |plan: &Plan| engine.create(plan).err().expect("a refusal").to_string();
    let path = &cards()[0];
    // Nobody has it: it is off.
    let message = refused(&plan("soft", &["edu.id"]));
    assert!(
        message.contains("is not enabled; as root: echo 1"),
        "{message}"
    );
    fs::write(path.join("enable"), "1").expect("to switch it on");
    for (plan, part) in [
        (plan("edu.irq", &[]), "has no UIO driver"),
        (plan("edu.irq", &[]), "'1234 11e8'"),
        (plan("edu.nothing", &[]), "there are"),
        (plan("soft", &["edu.nothing"]), "edu has "),
        (plan("soft", &["edu3.id"]), "there is no device edu3, only"),
        (
            Plan {
                steps: vec![set("edu.liveness", 1 << 32)],
                ..plan("soft", &[])
            },
            "it has 32 bits",
        ),
    ] {
        let message = refused(&plan);
        assert!(message.contains(part), "{message}");
    }
    fs::write(path.join("enable"), "0").expect("to switch it off");
}
