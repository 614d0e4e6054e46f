// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chip on an SPI bus as an instrument, by /dev/spidevN.M: the lab's own bus, whose chip says in sysfs what it has.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x50' --module spidev --module 'lab_spi mode=3 dummy=1'
// lab: --module dummy_hcd --module usb_f_fs --module usbtmc

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_board::Board;
use strobe_cases::account::{begin, read_now, read_until, record};
use strobe_cases::chip::{read, write};
use strobe_cases::plan;
use strobe_ring::State;

const REGISTERS: &str = "/sys/devices/platform/lab_spi/registers";
const DRIVER: &str = "/sys/bus/spi/drivers/spidev";

fn user(device: &str, mode: u8, channels: &str) -> User {
    let text = format!(
        "[board]\nname = \"chip\"\n[transport]\nkind = \"spi\"\ndevice = \"{device}\"\nmode = {mode}\nspeed = 2000000\n\
         retry = 0.01\n{channels}"
    );
    let board = Board::from_toml("chip.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    User::default().with_board(board)
}

fn chip() -> File {
    let mut options = File::options();
    let file = options.read(true).write(true).open(REGISTERS);
    file.expect("the registers")
}

/// A command and a byte that says nothing come back before the first value.
const CHANNELS: &str = r#"
[channel.byte]
query = "80 00 00"
binary = "u8"
at = 2
[channel.word]
query = "90 00 00 00"
binary = "i16"
endian = "little"
at = 2
[channel.float]
query = "a0 00 00 00 00 00"
binary = "f32"
endian = "big"
at = 2
[output.byte]
send = "00 {}"
binary = "u8"
[output.word]
send = "10 {}"
binary = "i16"
endian = "little"
"#;

#[test]
fn bytes_of_a_chip_are_exchanged_in_one_row() {
    chip()
        .write_all_at(&[0x3f, 0xc0, 0, 0], 0x20)
        .expect("to write");
    let plan = Plan {
        limit: Some(100),
        steps: vec![
            write("byte", 0x5a),
            write("word", -2_i64 as u64),
            read("byte"),
            read("word"),
            read("float"),
            read("questions"),
            read("answers"),
            read("reconnects"),
        ],
        ..plan("timer:10ms", &[])
    };
    let user = user("/dev/spidev7.0", 3, CHANNELS);
    let run = user.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let (account, end) = record(&run);
    assert_eq!((end.state, account.rows.len()), (State::Done, 100));
    for (number, row) in (1..).zip(&account.rows) {
        assert!(row.faults.is_empty(), "{row:?}");
        let asked = 5 * number;
        let float = 1.5_f64.to_bits();
        assert_eq!(row.values, [0x5a, -2_i64 as u64, float, asked, asked, 0]);
    }
    let mut bytes = [0; 2];
    chip().read_exact_at(&mut bytes, 0x10).expect("to read");
    assert_eq!(bytes, [0xfe, 0xff]);
}

#[test]
fn a_chip_hears_nothing_in_another_mode() {
    let plan = Plan {
        limit: Some(3),
        ..plan("timer:10ms", &["chip.byte"])
    };
    let user = user("/dev/spidev7.0", 0, CHANNELS);
    let run = user.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let (account, _) = record(&run);
    assert!(
        account.rows.iter().all(|row| row.values[..] == [0xff]),
        "{:?}",
        account.rows
    );
}

#[test]
fn a_chip_that_is_unplugged_is_a_named_fault_until_it_is_there_again() {
    chip().write_all_at(&[0x77], 0).expect("to write");
    let names = [
        "chip.byte",
        "chip.cut",
        "chip.absent",
        "chip.questions",
        "chip.answers",
    ];
    let user = user("/dev/spidev7.0", 3, CHANNELS);
    let run = user
        .create(&plan("timer:10ms", &names))
        .unwrap_or_else(|why| panic!("{why}"));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    read_until("rows", false, &mut reader, &mut account);
    fs::write(format!("{DRIVER}/unbind"), "spi7.0").expect("to unplug it");
    assert!(!Path::new("/dev/spidev7.0").exists());
    read_until("rows that failed", true, &mut reader, &mut account);
    fs::write(format!("{DRIVER}/bind"), "spi7.0").expect("to plug it in");
    read_until("rows again", false, &mut reader, &mut account);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    for row in &account.rows {
        let [byte, cut, absent, questions, answers] = row.values[..] else {
            panic!("{row:?}");
        };
        assert_eq!(questions, answers + cut + absent, "{row:?}");
        assert!(!row.faults.is_empty() || byte == 0x77, "{row:?}");
        assert!(row.faults.is_empty() || row.faults[..] == [0], "{row:?}");
    }
    let bad = account
        .rows
        .iter()
        .filter(|row| !row.faults.is_empty())
        .count() as u64;
    let last = account.rows.last().expect("rows");
    assert_eq!(last.values[1] + last.values[2], bad);
}
