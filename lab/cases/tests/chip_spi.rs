// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of a chip on an SPI bus by a board file: the lab's own bus, whose chip says in sysfs what it has.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x50' --module spidev --module 'lab_spi mode=3 dummy=1'
// lab: --module dummy_hcd --module usb_f_fs --module usbtmc

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use strobe::engine::user::User;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe_board::Board;
use strobe_cases::account::{record, until};
use strobe_cases::chip::{read, write};
use strobe_cases::plan;
use strobe_ring::State;

const DEVICE: &str = "/sys/devices/platform/lab_spi";
/// Where the pages begin in what sysfs has, and bytes of one.
const PAGES: u64 = 0x80;
const PAGE: u64 = 0x20;

const TEXT: &str = r#"
[board]
name = "chip"
[match]
spi = "7.0"
[chip]
mode = 3
dummy = 1
speed = 2000000
read = 0x80
page = "page"
[register]
byte  = { offset = 0x00, width = 8 }
big   = { offset = 0x10, width = 16, endian = "big" }
three = { offset = 0x20, width = 24, endian = "little" }
eight = { offset = 0x30, width = 64, endian = "big" }
zero  = { offset = 0x50, width = 8, page = 0 }
two   = { offset = 0x51, width = 16, endian = "big", page = 2 }
page  = { offset = 0x7f, width = 8 }
[channel]
byte = {}
low = { register = "byte", bits = "3:0" }
big = { signed = true }
three = {}
eight = {}
zero = {}
two = {}
[output]
byte = {}
two = {}
"#;

fn registers() -> File {
    let mut options = File::options();
    let file = options.read(true).write(true);
    file.open(format!("{DEVICE}/registers"))
        .expect("the registers")
}

fn count(attribute: &str) -> u64 {
    let text = fs::read_to_string(format!("{DEVICE}/{attribute}")).expect("a count");
    text.trim().parse().expect("a number")
}

fn user(text: &str) -> User {
    User::default().with_board(Board::from_toml("chip.toml", text).expect("a board"))
}

fn recorded(user: &User, steps: Vec<Step>, rows: u64) -> Vec<Vec<u64>> {
    let plan = Plan {
        limit: Some(rows),
        steps,
        ..plan("timer:2ms", &[])
    };
    let run = user.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let (account, end) = record(&run);
    assert_eq!((end.state, account.rows.len() as u64), (State::Done, rows));
    let rows = account.rows.into_iter();
    rows.map(|row| {
        assert!(row.faults.is_empty(), "{row:?}");
        row.values.to_vec()
    })
    .collect()
}

#[test]
fn registers_are_read_and_written_as_the_chip_has_them_one_transfer_for_all_fields_of_one() {
    let chip = registers();
    for (at, bytes) in [
        (0x10, &[0xff, 0xfe][..]),
        (0x20, &[1, 2, 3][..]),
        (0x30, &[1, 2, 3, 4, 5, 6, 7, 8][..]),
        (PAGES + 0x10, &[0x77][..]),
        (PAGES + 2 * PAGE + 0x11, &[0, 0][..]),
    ] {
        chip.write_all_at(bytes, at).expect("to write");
    }
    let mut steps = vec![write("byte", 0xa5), write("two", 0x1234)];
    let names = ["byte", "low", "big", "three", "eight", "zero", "two"];
    steps.extend(names.map(read));
    let before = count("transfers");
    let rows = recorded(&user(TEXT), steps, 50);
    // Byte and low are of one transfer; three accesses have their page selected.
    assert_eq!(count("transfers") - before, 50 * (2 + 6 + 3));
    assert_eq!(count("speed"), 2_000_000);
    let wanted = [
        0xa5,
        5,
        -2_i64 as u64,
        0x03_0201,
        0x0102_0304_0506_0708,
        0x77,
        0x1234,
    ];
    assert!(rows.iter().all(|row| row[..] == wanted), "{rows:?}");
    let mut bytes = [0; 2];
    chip.read_exact_at(&mut bytes[..1], 0).expect("to read");
    assert_eq!(bytes[0], 0xa5);
    chip.read_exact_at(&mut bytes, PAGES + 2 * PAGE + 0x11)
        .expect("to read");
    assert_eq!(bytes, [0x12, 0x34]);
}

#[test]
fn a_chip_hears_nothing_in_another_mode() {
    let text = TEXT.replace("mode = 3", "mode = 0");
    let rows = recorded(&user(&text), vec![Step::Read("chip.byte".to_owned())], 3);
    assert!(rows.iter().all(|row| row[..] == [0xff]), "{rows:?}");
}

#[test]
fn a_chip_that_has_gone_ends_the_run() {
    let run = user(TEXT).create(&plan("timer:2ms", &["chip.byte"]));
    let run = run.unwrap_or_else(|why| panic!("{why}"));
    run.start().expect("to start");
    fs::write("/sys/bus/spi/drivers/spidev/unbind", "spi7.0").expect("to unplug it");
    let reader = run.reader().expect("a reader");
    until("the end", || reader.snapshot().state.is_final());
    let end = reader.snapshot();
    fs::write("/sys/bus/spi/drivers/spidev/bind", "spi7.0").expect("to plug it in");
    let gone = -Errno::NODEV.raw_os_error();
    assert_eq!((end.state, end.error), (State::Failed, gone));
}
