// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board file of a UIO device: registers in its maps, its interrupt as the event, and its end under a run.
//!
//! A run that spins leaves nothing of its CPU to RCU's threads, unless they are above it.
// lab: --module uio_dummy --module uio_pci_generic --module lab_gpio --append rcutree.kthread_prio=70 --append irqaffinity=0

use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use strobe::channel::Type;
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe_board::Board;
use strobe_cases::account::{begin, read_now, read_to_end, until, until_counted, until_rows};
use strobe_cases::machine::{command, pin};
use strobe_cases::uio::{DUMMY, Dummy};
use strobe_cases::{Pace, plan};
use strobe_ring::{Missed, State};

/// Where the boards are in a guest.
const FILE: &str = "/boards/uio_dummy.toml";

/// The rest of the page is plain memory: a card whose bits whoever writes can set.
const SCRATCH: &str = r#"
[board]
name = "scratch"
[match]
uio = "uio_dummy"
version = "1"
[register]
status = { offset = 0x100 }
ack = { offset = 0x104 }
on = { offset = 0x108, width = 64 }
outside = { offset = 0x1000 }
nowhere = { map = "config", offset = 0 }
[channel]
status = {}
ack = {}
on = {}
outside = {}
nowhere = {}
[output]
status = {}
[event.bit]
pending = { register = "status", mask = 0xf0 }
silence = [{ register = "ack", write = "pending" }, { register = "status", write = 0 }]
enable = [{ register = "on", write = 0x1_0000_0001 }]
disable = [{ register = "on", write = 0 }]
"#;

fn engine(wait: WaitMode, board: Board) -> User {
    let settings = Settings {
        wait,
        // Where no interrupt comes: who spins there leaves nothing to the interrupt threads of PREEMPT_RT.
        cpu: Some(1),
        ..Settings::default()
    };
    User::new(settings).with_board(board)
}

fn dummy_board() -> Board {
    Board::read(Path::new(FILE)).unwrap_or_else(|faults| panic!("{faults}"))
}

fn scratch() -> Board {
    Board::from_toml("scratch.toml", SCRATCH).unwrap_or_else(|faults| panic!("{faults}"))
}

fn strobe(words: &[&str]) -> Output {
    Command::new("strobe")
        .args(words)
        .output()
        .expect("strobe runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn each_row_reads_in_the_map_what_its_event_has_written_there() {
    const ROWS: u64 = 1000;
    let _pinned = pin(0);
    let dummy = Dummy::silent(10_000);
    dummy.device().enable().expect("to enable");
    let before = dummy.page().events;
    let channels = [
        "uio_dummy.sequence",
        "event.count",
        "uio_dummy.events",
        "uio_dummy.time",
        "clock.time",
    ];
    let run = engine(WaitMode::Block, dummy_board()).create(&plan("uio_dummy.irq", &channels));
    let run = run.expect("a run");
    let listed: Vec<(&str, Type)> = run.info().channels[..1]
        .iter()
        .map(|channel| (channel.name.as_str(), channel.kind))
        .collect();
    assert_eq!(listed, [("uio_dummy.sequence", Type::U64)]);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    for rows in 1..=ROWS {
        // One by one: what a row reads is of its own event, and of no later one.
        dummy.allow(1);
        until_rows(&reader, rows);
        read_now(&mut reader, &mut account);
    }
    run.stop().expect("to stop");
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((end.head, end.missed(), account.lost), (ROWS, 0, 0));
    for (row, count) in account.rows.iter().zip(before + 1..) {
        assert!(row.faults.is_empty());
        assert_eq!(row.values[..3], [2 * count, count, count], "{row:?}");
        assert!(row.values[3] <= row.values[4], "{row:?}");
    }
    let times: Vec<u64> = account.column(3).collect();
    assert!(times.windows(2).all(|w| w[0] < w[1]));
    assert_eq!(dummy.page().events, before + ROWS);
}

#[test]
fn rows_and_missed_are_the_events_of_the_device() {
    const EVENTS: u64 = 10_000;
    let _pinned = pin(0);
    let dummy = Dummy::silent(100_000);
    dummy.device().enable().expect("to enable");
    let run = engine(WaitMode::Block, dummy_board())
        .create(&plan("uio_dummy.irq", &["event.count", "uio_dummy.events"]))
        .expect("a run");
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    dummy.allow(EVENTS);
    until_counted("events", EVENTS, || {
        read_now(&mut reader, &mut account);
        reader.snapshot().triggers
    });
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(end.triggers, EVENTS);
    assert_eq!(end.head + end.missed(), EVENTS);
    // More may have come until the register is read, but no less.
    assert!(
        account
            .rows
            .iter()
            .all(|row| row.values[1] >= row.values[0])
    );
    eprintln!("{} rows, {} missed", end.head, end.missed());
}

#[test]
fn bits_in_a_map_are_waited_for_and_the_writes_of_the_event_go_there() {
    let _pinned = pin(0);
    let dummy = Dummy::silent(1_000_000);
    let page = dummy.device().map(0).expect("its page");
    let status = page.register(0x100, 4).expect("a word of its page");
    let engine = engine(WaitMode::Spin, scratch());
    let names = ["scratch.status", "scratch.ack", "scratch.on"];
    let listener = engine.create(&plan("scratch.bit", &names)).expect("a run");
    let mut reader = listener.reader().expect("a reader");
    let raiser = |value| {
        let plan = Plan {
            steps: vec![Step::Write {
                output: "scratch.status".into(),
                value,
            }],
            ..plan("soft", &[])
        };
        let user = User::default().with_board(scratch());
        let run = user.create(&plan).expect("a run");
        run.start().expect("to start");
        run
    };
    // What is set before the start is history; what is not in the mask is no trigger.
    let [old, other, bit] = [0x80, 0x0f, 0x5a].map(raiser);
    old.trigger(1).expect("to raise");
    listener.start().expect("to start");
    other.trigger(1).expect("to raise");
    for (rows, pause) in [(1, 0), (2, 200), (3, 0)] {
        thread::sleep(Duration::from_millis(pause));
        // A row can be read before the engine has silenced its bit.
        until("a silenced bit", || status.read() & 0xf0 == 0);
        bit.trigger(1).expect("to raise");
        until_rows(&reader, rows);
    }
    listener.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    let end = reader.snapshot();
    assert_eq!((end.head, end.missed_by[Missed::Source as usize]), (3, 0));
    assert!(account.column(0).all(|status| status == 0x5a));
    // Of the trigger before, and of what was silenced at the start.
    assert!(account.column(1).eq([0x80, 0x50, 0x50]));
    assert!(account.column(2).eq([0x1_0000_0001; 3]));
    let off = User::default().with_board(scratch());
    let off = off.create(&plan("soft", &["scratch.on"])).expect("a run");
    let mut reader = off.reader().expect("a reader");
    off.start().expect("to start");
    off.trigger(1).expect("to trigger");
    until_rows(&reader, 1);
    off.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    assert!(account.column(0).eq([0]), "disabled at the end");
}

#[test]
fn a_device_that_goes_ends_the_run_and_what_was_read_stays() {
    let _pinned = pin(0);
    for (event, wait) in [
        ("timer:1ms", WaitMode::Block),
        ("uio_dummy.irq", WaitMode::Block),
        ("uio_dummy.irq", WaitMode::Hybrid),
    ] {
        let dummy = Dummy::silent(1_000_000);
        dummy.allow_all();
        dummy.device().enable().expect("to enable");
        let run = engine(wait, dummy_board())
            .create(&Plan {
                ring: Some(1 << 16),
                ..plan(event, &["uio_dummy.sequence", "uio_dummy.events"])
            })
            .expect("a run");
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        until_rows(&reader, 10);
        assert!(!command("rmmod uio_dummy"), "it is in use");
        dummy.set("plugged", 0);
        until("its end", || reader.snapshot().state.is_final());
        let end = reader.snapshot();
        assert_eq!(
            (end.state, end.error),
            (State::Failed, -libc::ENODEV),
            "{event} {wait}"
        );
        let account = read_to_end(&mut reader, Pace::FAST);
        let good = account.rows.iter().filter(|row| row.faults.is_empty());
        assert!(good.clone().count() as u64 >= 10);
        assert_eq!(good.count() as u64 + end.errors, end.head);
        assert_eq!(end.triggers, end.head + end.missed());

        // One that comes under the same name is another one.
        dummy.set("plugged", 1);
        let run = engine(wait, dummy_board())
            .create(&plan(event, &["uio_dummy.sequence"]))
            .expect("a run on the new one");
        let reader = run.reader().expect("a reader");
        run.start().expect("to start");
        until_rows(&reader, 10);
        run.stop().expect("to stop");
        drop(dummy);
    }
    // Nothing holds it any more.
    assert!(command("rmmod uio_dummy"));
    assert!(command("modprobe uio_dummy"));
}

#[test]
fn what_the_maps_have_not_is_said_with_the_line_of_the_board_file() {
    let engine = engine(WaitMode::Block, scratch());
    let refused = |plan: &Plan| engine.create(plan).err().expect("a refusal").to_string();
    for (plan, part) in [
        (
            plan("soft", &["scratch.outside"]),
            "scratch.toml:11: map 0 of uio_dummy (uio0) has 0x1000 bytes, and offset 0x1000 lies outside",
        ),
        (
            plan("soft", &["scratch.nowhere"]),
            "scratch.toml:12: uio_dummy (uio0) has no map config; it has 0 (state)",
        ),
        (
            plan("soft", &["scratch2.on"]),
            "there is no device scratch2, only",
        ),
        (plan("scratch.nothing", &[]), "scratch.bit"),
    ] {
        let message = refused(&plan);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn the_program_lists_checks_and_records_the_board_and_installs_nothing() {
    let dummy = Dummy::silent(1_000_000);
    dummy.allow_all();
    let list = strobe(&["list", "--board", FILE, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let engines = json["engines"].as_array().expect("engines");
    let user = engines.iter().find(|engine| engine["name"] == "user");
    let catalogue = &user.expect("the user engine")["catalogue"];
    let names = |kind: &str| -> Vec<&str> {
        let list = catalogue[kind].as_array().expect("a list");
        list.iter()
            .filter_map(|entry| entry["name"].as_str())
            .filter(|name| name.starts_with(DUMMY))
            .collect()
    };
    assert_eq!(names("devices"), ["uio_dummy"]);
    assert_eq!(
        names("channels"),
        ["uio_dummy.sequence", "uio_dummy.time", "uio_dummy.events"]
    );
    assert_eq!(names("events"), ["uio_dummy.irq"]);

    let checked = strobe(&["board", "check", FILE]);
    let said = text(&checked.stdout);
    assert!(checked.status.success(), "{checked:?}");
    assert!(said.contains("ok: 3 channels, 0 outputs, 1 event; only the user engine can use it"));
    let installed = strobe(&["board", "install", FILE]);
    assert_eq!(installed.status.code(), Some(1));
    let said = text(&installed.stderr);
    assert!(said.contains("only the user engine reaches"), "{said}");

    let file = "/tmp/uio_board.csv";
    let recorded = strobe(&[
        "record",
        "--board",
        FILE,
        "--event",
        "uio_dummy.irq",
        "--read",
        "uio_dummy.sequence,event.count",
        "--rows",
        "1000",
        "--allow-loss",
        "-o",
        file,
    ]);
    assert!(recorded.status.success(), "{recorded:?}");
    let csv = std::fs::read_to_string(file).expect("the file");
    assert_eq!(
        csv.lines().filter(|line| !line.starts_with('#')).count(),
        1001
    );
}
