// SPDX-License-Identifier: MIT OR Apache-2.0
//! Board files of blocks that FPGA vendors have in their catalogues, as they are, against devices that were written from the
//! blocks' manuals. Time is made of instructions, so a clock too much in a period is seen.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::fs;

use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_board::{Board, Policy, System};
use strobe_cases::account::{begin, read_now, record, until};
use strobe_cases::machine::slowness;
use strobe_cases::pci::{get, put, set};
use strobe_cases::{Engine, Kernel, plan};
use strobe_ring::State;

/// A block that the driver was given for its board; it goes back to none when dropped.
struct Block {
    board: Board,
    device: String,
}

impl Block {
    /// The block of a board of /boards, by its compatible string.
    fn new(board: &str, device: &str) -> Block {
        let file = format!("/boards/{board}.toml");
        let text = fs::read_to_string(&file).expect("a board file");
        let board = Board::from_toml(&file, &text).unwrap_or_else(|faults| panic!("{faults}"));
        System::default()
            .install(&board, &text, Policy::FilesOnly)
            .expect("to install");
        let block = Block {
            board,
            device: device.to_owned(),
        };
        fs::write(block.file("driver_override"), "strobe_board").expect("to choose");
        fs::write("/sys/bus/platform/drivers_probe", device).expect("to probe");
        assert!(fs::metadata(block.file("driver")).is_ok(), "{device}");
        block
    }

    fn file(&self, name: &str) -> String {
        format!("/sys/bus/platform/devices/{}/{name}", self.device)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let _ = fs::write(self.file("driver/unbind"), &self.device);
        let _ = fs::write(self.file("driver_override"), "\n");
        let _ = fs::remove_file(format!(
            "/lib/firmware/strobe/{}.board",
            self.board.hardware.stem()
        ));
    }
}

#[test]
fn each_rollover_of_an_axi_timer_is_a_row_and_its_clock_agrees() {
    const ROWS: u64 = 200;
    const PERIOD_NS: u64 = 1_000_000;
    let _block = Block::new("axi-timer", "lab_axi_timer");
    let engine = Kernel::open();
    put(&engine, &[("axi_timer.load0", PERIOD_NS / 10 - 2)]);
    let names = [
        "axi_timer.left",
        "axi_timer.clock",
        "axi_timer.pending",
        "axi_timer.load0",
    ];
    let run = engine.run(&Plan {
        limit: Some(ROWS),
        ..plan("axi_timer.timeout0", &names)
    });
    let (account, end) = record(&run);
    assert_eq!((end.state, end.missed()), (State::Done, 0));
    let rows = &account.rows;
    assert_eq!(rows.len() as u64, ROWS);
    // A kernel that looks for faults has interrupts off for longer than a stock one.
    // It may also wait between two reads of a row.
    let [apart_ns, off_ns, apart_clocks] = match slowness() {
        1 => [5000, 1000, 100],
        _ => [PERIOD_NS / 2, PERIOD_NS / 2, PERIOD_NS / 20],
    };
    for pair in rows.windows(2) {
        let [before, after] = [0, 1].map(|one| &pair[one]);
        assert!(
            (after.time - before.time).abs_diff(PERIOD_NS) < apart_ns,
            "{pair:?}"
        );
        // What is left is read before the clock, as much before in each row.
        let clocks = after.values[1].wrapping_sub(before.values[1]) & 0xffff_ffff;
        let moved = before.values[0].wrapping_sub(after.values[0]) as i64;
        let apart = clocks as i64 - moved - (PERIOD_NS / 10) as i64;
        assert!(
            apart.unsigned_abs() < apart_clocks,
            "{apart} clocks: {pair:?}"
        );
        assert_eq!(after.values[2..], [1, PERIOD_NS / 10 - 2]);
    }
    // A clock too much in each would be 2 us by now.
    let whole = rows[rows.len() - 1].time - rows[0].time;
    assert!(whole.abs_diff((ROWS - 1) * PERIOD_NS) < off_ns, "{whole}");
    // Nobody listens: it is off.
    let left = get(&engine, "axi_timer.left");
    assert_eq!(
        (left, get(&engine, "axi_timer.pending")),
        (get(&engine, "axi_timer.left"), 0)
    );
}

#[test]
fn each_change_of_an_axi_gpios_inputs_is_a_row_with_what_they_became() {
    const CHANGES: u64 = 200;
    let _block = Block::new("axi-gpio", "lab_axi_gpio");
    let engine = Kernel::open();
    // Outside of it, its outputs are wired to its inputs.
    let run = engine.run(&plan(
        "axi_gpio.change",
        &["axi_gpio.inputs", "axi_gpio.input0", "axi_gpio.changed"],
    ));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    let values: Vec<u64> = (1..=CHANGES)
        .map(|n| (n * 0x0123_4567) & 0xffff_ffff)
        .collect();
    for (number, value) in values.iter().enumerate() {
        let mut writer = plan("soft", &[]);
        writer.steps = vec![set("axi_gpio.outputs", *value)];
        strobe_cases::pci::row(&engine.run(&writer));
        until("its row", || reader.snapshot().head > number as u64);
    }
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((end.head, end.missed()), (CHANGES, 0));
    assert!(account.column(0).eq(values.iter().copied()));
    assert!(account.column(1).eq(values.iter().map(|value| value & 1)));
    assert!(
        account.column(2).all(|changed| changed == 1),
        "not yet acknowledged"
    );
    // The same again is no change, and nobody listens.
    put(&engine, &[("axi_gpio.outputs", 5)]);
    assert_eq!(get(&engine, "axi_gpio.inputs"), 5);
    assert_eq!(get(&engine, "axi_gpio.changed"), 1);
}
