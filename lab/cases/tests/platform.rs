// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board of a platform device, in the driver of the cards: the lab's counter, of which the module lab_platform leaves
//! memory and interrupts. It is found by its name, or by a compatible string.
// lab: --device lab-counter --module lab_platform

use std::fs;
use std::process::Command;

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_board::{Board, Outcome, Policy, System};
use strobe_cases::account::{begin, read_now, record, until};
use strobe_cases::machine::command;
use strobe_cases::pci::{counted, get, once, put, steps};
use strobe_cases::{Engine, Kernel, plan};
use strobe_ring::State;

const DEVICE: &str = "/sys/bus/platform/devices/lab_platform";

/// The counter's board, for a device of this name.
fn text(name: &str) -> String {
    let text = fs::read_to_string("/boards/lab-counter.toml").expect("a board file");
    text.replace("pci = \"1234:1ab1\"", &format!("platform = \"{name}\""))
        .replace("kind = \"msix\"", "kind = \"line\"")
        .replace("[bar.2]", "[bar.1]")
        .replace("bar = 2", "bar = 1")
}

fn board(name: &str) -> Board {
    Board::from_toml("platform.toml", &text(name)).unwrap_or_else(|faults| panic!("{faults}"))
}

/// An installed board; removed when dropped.
struct Installed(Board);

impl Installed {
    fn new() -> Installed {
        let board = board("lab_platform");
        let installed = System::default()
            .install(&board, &text("lab_platform"), Policy::Free)
            .expect("to install");
        let found: Vec<_> = installed
            .bindings
            .into_iter()
            .map(|binding| (binding.address, binding.outcome))
            .collect();
        let bound = Outcome::Bound(Some("counter".into()));
        assert_eq!(found, [("lab_platform".to_owned(), bound)]);
        Installed(board)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = System::default().remove(&self.0.hardware);
    }
}

#[test]
fn a_platform_device_becomes_a_device_of_strobe_and_its_interrupts_rows() {
    const ENDS: u64 = 200;
    let _board = Installed::new();
    let engine = Kernel::open();
    let outputs = [("period", 1_000_000), ("limit", ENDS), ("clear", 3)];
    for (output, value) in outputs {
        put(&engine, &[(&format!("counter.{output}"), value)]);
    }
    let runs = [
        steps(
            "counter.eoc",
            None,
            &[("counter.output", 1), ("counter.output", 0)],
            &["counter.index"],
        ),
        plan("counter.edge", &["counter.count"]),
    ]
    .map(|plan| {
        engine.run(&Plan {
            ring: Some(1024),
            ..plan
        })
    });
    let mut readers = runs.each_ref().map(begin);
    for run in &runs {
        run.start().expect("to start");
    }
    put(&engine, &[("counter.run", 1)]);
    until("the last end of count", || get(&engine, "counter.run") == 0);
    until("its rows", || get(&engine, "counter.irq_status") == 0);
    for ((run, (reader, account)), source) in runs.iter().zip(&mut readers).zip(["eoc", "edge"]) {
        run.stop().expect("to stop");
        read_now(reader, account);
        let end = reader.snapshot();
        account.settle(&end);
        let (raised, coalesced) = counted(&engine, "counter", source);
        assert!(raised > 0, "{source}");
        assert_eq!(end.head + end.missed() + coalesced, raised, "{end:?}");
    }
    let held = [
        "counter.start",
        "counter.period",
        "counter.held",
        "counter.id",
    ];
    let row = once(&engine, &[("counter.hold", 1)], &held);
    assert_eq!((row[1], row[3]), (1_000_000, 0x6c61_1ab1));
    assert!(row[2] > row[0], "memory 1 is that of 64 bits: {row:?}");
}

#[test]
fn a_platform_device_that_goes_ends_its_runs_and_leaves_nothing() {
    let _board = Installed::new();
    let engine = Kernel::open();
    let run = engine.run(&plan("timer:1kHz", &["counter.count"]));
    run.start().expect("to start");
    let listener = engine.run(&plan("counter.eoc", &["counter.index"]));
    listener.start().expect("to start");
    fs::write(format!("{DEVICE}/driver/unbind"), "lab_platform").expect("to unbind");
    for run in [&run, &listener] {
        assert_eq!(
            run.reader().expect("a reader").snapshot().state,
            State::Failed
        );
    }
    let interrupts = fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    assert!(!interrupts.contains("strobe:lab_platform"), "{interrupts}");
    // With its override it is found again.
    fs::write("/sys/bus/platform/drivers_probe", "lab_platform").expect("to probe");
    let (account, end) = record(&engine.run(&Plan {
        limit: Some(3),
        ..plan("timer:1kHz", &["counter.id"])
    }));
    assert_eq!(end.state, State::Done);
    assert!(account.column(0).eq([0x6c61_1ab1; 3]));
    // And the card itself may go, with all that stands on it.
    let run = engine.run(&plan("timer:1kHz", &["counter.count"]));
    run.start().expect("to start");
    assert!(command("rmmod lab_platform"));
    assert_eq!(
        run.reader().expect("a reader").snapshot().state,
        State::Failed
    );
    assert!(command("modprobe lab_platform"));
    assert!(fs::metadata(DEVICE).is_ok());
}

#[test]
fn without_its_board_no_platform_device_is_touched() {
    let probe = || {
        fs::write(format!("{DEVICE}/driver_override"), "strobe_board").expect("to choose");
        let _ = fs::write("/sys/bus/platform/drivers_probe", "lab_platform");
        let bound = fs::metadata(format!("{DEVICE}/driver")).is_ok();
        fs::write(format!("{DEVICE}/driver_override"), "\n").expect("to free");
        bound
    };
    assert!(!probe());
    // A board of another name, under this one's.
    let system = System::default();
    let foreign = board("another");
    system
        .install(&foreign, &text("another"), Policy::FilesOnly)
        .expect("to install");
    let (from, to) = ("platform-another.board", "platform-lab_platform.board");
    fs::rename(system.firmware.join(from), system.firmware.join(to)).expect("to rename");
    assert!(!probe());
    fs::remove_file(system.firmware.join(to)).expect("to remove");
}

#[test]
fn the_board_of_a_co_processor_is_refused_for_a_platform_device_of_its_name() {
    let system = System::default();
    let text = fs::read_to_string("/boards/adc-frames.toml").expect("a board file");
    let text = text.replace("adc-frames", "lab_platform");
    let frames = Board::from_toml("frames.toml", &text).expect("it is right");
    system
        .install(&frames, &text, Policy::FilesOnly)
        .expect("to install");
    let blob = system.firmware.join("platform-lab_platform.board");
    fs::rename(system.firmware.join("rpmsg-lab_platform.board"), &blob).expect("to rename");
    fs::write(format!("{DEVICE}/driver_override"), "strobe_board").expect("to choose");
    let _ = fs::write("/sys/bus/platform/drivers_probe", "lab_platform");
    let bound = fs::metadata(format!("{DEVICE}/driver")).is_ok();
    fs::write(format!("{DEVICE}/driver_override"), "\n").expect("to free");
    fs::remove_file(blob).expect("to remove");
    fs::remove_file(system.firmware.join("rpmsg-lab_platform.toml")).expect("to remove");
    assert!(!bound);
    let said = log();
    assert!(
        said.contains("co-processor, which has no registers"),
        "{said}"
    );
}

#[test]
fn a_compatible_string_finds_its_board() {
    let system = System::default();
    let board = board("lab,counter");
    system
        .install(&board, &text("lab,counter"), Policy::FilesOnly)
        .expect("to install");
    fs::write(format!("{DEVICE}/driver_override"), "strobe_board").expect("to choose");
    fs::write("/sys/bus/platform/drivers_probe", "lab_platform").expect("to probe");
    assert_eq!(get(&Kernel::open(), "counter.id"), 0x6c61_1ab1);
    fs::write(format!("{DEVICE}/driver/unbind"), "lab_platform").expect("to unbind");
    fs::write(format!("{DEVICE}/driver_override"), "\n").expect("to free");
    for extension in ["board", "toml"] {
        let file = format!("platform-lab,counter.{extension}");
        fs::remove_file(system.firmware.join(file)).expect("to remove");
    }
}

/// What the kernel has said, whole.
fn log() -> String {
    let said = Command::new("dmesg").output().expect("dmesg");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

#[test]
fn clock_and_power_are_on_while_the_driver_has_the_device() {
    let on = |name: &str| {
        let path = format!("/sys/module/lab_platform/parameters/{name}");
        fs::read_to_string(path).expect("a parameter").trim() == "Y"
    };
    let state = || ["clocked", "powered"].map(on);
    assert_eq!(state(), [false; 2]);
    for _ in 0..3 {
        let board = Installed::new();
        assert_eq!(state(), [true; 2]);
        assert_eq!(get(&Kernel::open(), "counter.id"), 0x6c61_1ab1);
        drop(board);
        assert_eq!(state(), [false; 2]);
    }
    // A device that is refused is left as it was.
    fs::write(format!("{DEVICE}/driver_override"), "strobe_board").expect("to choose");
    let _ = fs::write("/sys/bus/platform/drivers_probe", "lab_platform");
    fs::write(format!("{DEVICE}/driver_override"), "\n").expect("to free");
    assert_eq!(state(), [false; 2]);
}

#[test]
fn interrupts_whose_handlers_run_in_a_thread_are_refused_with_the_remedy() {
    assert!(command("rmmod lab_platform"));
    assert!(command("modprobe lab_platform nested=1"));
    let system = System::default();
    let board = board("lab_platform");
    let found = system
        .install(&board, &text("lab_platform"), Policy::Free)
        .expect("to install");
    let bound = fs::metadata(format!("{DEVICE}/driver")).is_ok();
    let _ = system.remove(&board.hardware);
    assert!(command("rmmod lab_platform"));
    assert!(command("modprobe lab_platform"));
    assert!(!bound, "{:?}", found.bindings.len());
    let said = log();
    let why = "its interrupt 0 is handled in a thread, as behind a slow bus; read it with the user engine, by UIO";
    assert!(said.contains(why), "{said}");
}
