// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of a chip on an I2C bus by a board file: the kernel's simulated bus, whose second chip has pages.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48,0x51 bank_reg=0,0x4e bank_mask=0,7 bank_start=0,0x50 bank_end=0,0x5f'
// lab: --module strobe_sample --module strobe_sample_i2c

use std::thread;

use rustix::io::Errno;
use strobe::channel::Class;
use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe_board::Board;
use strobe_cases::account::record;
use strobe_cases::chip::{read, write};
use strobe_cases::machine::command;
use strobe_cases::plan;
use strobe_cases::thermometer::{Thermometer, bus};
use strobe_ring::State;

const CHIP: u8 = 0x51;

fn board(address: u8, rest: &str) -> Board {
    let (_, bus) = bus();
    let text = format!("[board]\nname = \"chip\"\n[match]\ni2c = \"{bus}-{address:04x}\"\n{rest}");
    Board::from_toml("chip.toml", &text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn user(rest: &str) -> User {
    User::default().with_board(board(CHIP, rest))
}

/// Writes a register by the tool of others.
fn i2cset(register: u8, value: u16, size: &str) {
    let (_, bus) = bus();
    let line = format!("i2cset -y {bus} {CHIP:#04x} {register:#04x} {value:#06x} {size}");
    assert!(command(&line), "{line}");
}

const WIDTHS: &str = r#"
[register]
byte    = { offset = 0x00, width = 8 }
big     = { offset = 0x10, width = 16, endian = "big" }
little  = { offset = 0x12, width = 16, endian = "little" }
three   = { offset = 0x20, width = 24, endian = "big" }
four    = { offset = 0x20, width = 32, endian = "little" }
eight   = { offset = 0x20, width = 64, endian = "big" }
[channel]
byte = {}
low  = { register = "byte", bits = "3:0" }
high = { register = "byte", bits = "7:4", signed = true }
big = {}
little = { signed = true }
three = {}
four = {}
eight = {}
[output]
byte = {}
little = {}
eight = {}
[setup]
writes = [{ register = "big", write = 0x1234 }]
"#;

#[test]
fn registers_of_all_widths_are_read_and_written_in_one_row() {
    i2cset(0x10, 0, "w");
    let plan = Plan {
        limit: Some(100),
        steps: vec![
            write("byte", 0xa5),
            write("little", 0xfffe),
            write("eight", 0x0102_0304_0506_0708),
            read("byte"),
            read("low"),
            read("high"),
            read("big"),
            read("little"),
            read("three"),
            read("four"),
            read("eight"),
        ],
        ..plan("timer:10ms", &[])
    };
    let user = user(WIDTHS);
    let listed = user.catalogue();
    let of_chip = |name: &str| name.starts_with("chip.");
    let mut all = listed.channels.iter().chain(&listed.outputs);
    assert!(all.all(|c| !of_chip(&c.name) || c.class == Class::Sleep));
    let run = user.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let (account, end) = record(&run);
    assert_eq!((end.state, account.rows.len()), (State::Done, 100));
    for row in &account.rows {
        assert!(row.faults.is_empty(), "{row:?}");
        let all = [
            0xa5,
            5,
            -6_i64 as u64,
            0x1234,
            -2_i64 as u64,
            0x01_0203,
            0x0403_0201,
            0x0102_0304_0506_0708,
        ];
        assert_eq!(row.values, all);
    }
}

const PAGES: &str = r#"
[chip]
page = "page"
[register]
page  = { offset = 0x4e, width = 8 }
same  = { offset = 0x40, width = 8, access = "ro" }
zero  = { offset = 0x50, width = 16, endian = "little", access = "ro", page = 0 }
three = { offset = 0x50, width = 16, endian = "little", page = 3 }
[channel]
same = {}
zero = {}
three = {}
[output]
three = {}
"#;

#[test]
fn the_page_of_a_register_is_selected_also_beside_another_run_that_selects_others() {
    i2cset(0x40, 7, "b");
    for (page, value) in [(0, 1000), (3, 3000)] {
        i2cset(0x4e, page, "b");
        i2cset(0x50, value, "w");
    }
    let of = |names: [&str; 3]| Plan {
        limit: Some(400),
        ring: Some(1024),
        steps: names.map(read).to_vec(),
        ..plan("timer:1ms", &[])
    };
    // Each has opened the chip by itself, as two processes have.
    let runs = [["zero", "same", "zero"], ["three", "zero", "three"]].map(|names| {
        let run = user(PAGES).create(&of(names));
        thread::spawn(move || record(&run.unwrap_or_else(|why| panic!("{why}"))))
    });
    let wanted = [[1000, 7, 1000], [3000, 1000, 3000]];
    for (run, wanted) in runs.into_iter().zip(wanted) {
        let (account, end) = run.join().expect("a run");
        assert_eq!((end.state, account.rows.len()), (State::Done, 400));
        for row in &account.rows {
            assert_eq!(
                (row.faults.as_slice(), &row.values[..]),
                (&[][..], &wanted[..])
            );
        }
    }
    let plan = Plan {
        limit: Some(1),
        steps: vec![write("three", 3333), read("zero"), read("three")],
        ..plan("timer:1ms", &[])
    };
    let run = user(PAGES)
        .create(&plan)
        .unwrap_or_else(|why| panic!("{why}"));
    let (account, _) = record(&run);
    assert_eq!(account.rows[0].values, [1000, 3333]);
}

const BYTE: &str = "[register]\nbyte = { offset = 0, width = 8 }\n[channel.byte]\n";

#[test]
fn a_bus_that_has_gone_ends_the_run() {
    // The simulated bus has no such chip, and says so by ENODEV, as an adapter does that was unplugged.
    let user = User::default().with_board(board(0x29, BYTE));
    let run = user.create(&plan("timer:10ms", &["chip.byte"]));
    let (account, end) = record(&run.unwrap_or_else(|why| panic!("{why}")));
    let gone = -Errno::NODEV.raw_os_error();
    assert_eq!((end.state, end.error), (State::Failed, gone));
    assert_eq!((account.rows.len(), end.errors), (1, 1));
}

#[test]
fn a_chip_that_cannot_be_used_is_refused_with_the_remedy() {
    let refused = |board: Board| {
        let user = User::default().with_board(board);
        let run = user.create(&plan("timer:10ms", &["chip.byte"]));
        run.err().expect("a refusal").to_string()
    };
    let _thermometer = Thermometer::new();
    let message = refused(board(0x48, BYTE));
    assert!(
        message.starts_with("channel chip.byte: ")
            && message.contains("a kernel driver uses the chip at 0x48; read the driver's files in /sys, or unbind it"),
        "{message}"
    );
    let setup = format!("{BYTE}[setup]\nwrites = [{{ register = \"byte\", write = 1 }}]\n");
    let message = refused(board(0x29, &setup));
    assert!(
        message.contains("register byte cannot be written: ")
            && message.contains("check that the chip is there and has power"),
        "{message}"
    );
    let text = "[board]\nname = \"chip\"\n[match]\ni2c = \"97-0048\"\n";
    let nowhere = Board::from_toml("chip.toml", &format!("{text}{BYTE}")).expect("a board");
    let message = refused(nowhere);
    assert!(message.contains("/dev/i2c-97"), "{message}");
}

#[test]
fn the_kernel_engine_refuses_the_board_of_a_chip_and_says_who_takes_it() {
    let text = format!("[board]\nname = \"chip\"\n[match]\ni2c = \"1-0051\"\n{BYTE}");
    let folder = std::env::temp_dir().join(format!("chip-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("chip.toml");
    std::fs::write(&file, text).expect("to write");
    let file = file.to_str().expect("text");
    let said = |words: &str| {
        let output = std::process::Command::new("strobe")
            .args(words.split(' '))
            .output()
            .expect("strobe");
        assert_eq!(output.status.code(), Some(1), "{words}");
        String::from_utf8(output.stderr).expect("text")
    };
    let record = said(&format!(
        "record --engine kernel --board {file} --event timer:1kHz --read chip.byte --rows 1 -o -"
    ));
    assert!(
        record.contains(file)
            && record
                .contains("only the user engine can reach the registers and files of this board"),
        "{record}"
    );
    let install = said(&format!("board install {file}"));
    assert!(
        install.starts_with("board chip: only the user engine reads its chip on I2C or SPI")
            && install.contains("strobe record --board FILE"),
        "{install}"
    );
}
