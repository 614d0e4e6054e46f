// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chip on an I2C bus as an instrument, by /dev/i2c-N: the kernel's simulated bus, which has only what SMBus has.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x50' --module spidev --module 'lab_spi mode=3 dummy=1'
// lab: --module dummy_hcd --module usb_f_fs --module usbtmc

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe_board::Board;
use strobe_cases::account::record;
use strobe_cases::chip::{read, write};
use strobe_cases::machine::command;
use strobe_cases::plan;
use strobe_cases::thermometer::bus;
use strobe_ring::State;

fn board(address: u8, channels: &str) -> Board {
    let (_, bus) = bus();
    let text = format!(
        "[board]\nname = \"chip\"\n[transport]\nkind = \"i2c\"\ndevice = \"/dev/i2c-{bus}\"\naddress = {address}\n\
         timeout = 0.2\nretry = 0.01\n{channels}"
    );
    Board::from_toml("chip.toml", &text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn i2cset(address: u8, register: u8, value: u16, size: &str) {
    let (_, bus) = bus();
    let line = format!("i2cset -y {bus} {address:#04x} {register:#04x} {value:#06x} {size}");
    assert!(command(&line), "{line}");
}

const CHANNELS: &str = r#"
[channel.byte]
query = "00"
binary = "u8"
[channel.word]
query = "10"
binary = "i16"
endian = "little"
[channel.first]
query = "20"
binary = "u8"
[channel.third]
query = "20"
binary = "u8"
at = 3
[channel.float]
query = "20"
binary = "f32"
endian = "big"
at = 4
[output.byte]
send = "00 {}"
binary = "u8"
[output.word]
send = "10 {}"
binary = "i16"
endian = "little"
"#;

#[test]
fn registers_of_a_chip_are_read_and_written_in_one_row() {
    for (register, byte) in [(0x20, 7), (0x23, 9), (0x24, 0x3f), (0x25, 0xc0)] {
        i2cset(0x50, register, byte, "b");
    }
    let user = User::default().with_board(board(0x50, CHANNELS));
    let plan = Plan {
        limit: Some(100),
        steps: vec![
            write("byte", 0x5a),
            write("word", -2_i64 as u64),
            read("byte"),
            read("word"),
            read("first"),
            read("third"),
            read("float"),
            read("questions"),
            read("answers"),
            read("reconnects"),
        ],
        ..plan("timer:10ms", &[])
    };
    let run = user.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let (account, end) = record(&run);
    assert_eq!((end.state, account.rows.len()), (State::Done, 100));
    for (number, row) in (1..).zip(&account.rows) {
        assert!(row.faults.is_empty(), "{row:?}");
        let float = 1.5_f64.to_bits();
        let asked = 5 * number;
        let all = [0x5a, -2_i64 as u64, 7, 9, float, asked, asked, 0];
        assert_eq!(row.values, all);
    }
}

#[test]
fn a_chip_that_is_not_there_is_a_named_fault_of_each_row() {
    let channel = "[channel.byte]\nquery = \"00\"\nbinary = \"u8\"\n";
    // The simulated bus has no such chip, and says so by ENODEV, as an adapter does that was unplugged.
    let user = User::default().with_board(board(0x29, channel));
    let names = [
        "chip.byte",
        "chip.cut",
        "chip.absent",
        "chip.late",
        "chip.questions",
    ];
    let plan = Plan {
        limit: Some(20),
        ..plan("timer:10ms", &names)
    };
    let run = user.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let (account, end) = record(&run);
    assert_eq!((end.state, account.rows.len()), (State::Done, 20));
    for (number, row) in (1..).zip(&account.rows) {
        assert_eq!(row.faults, [0], "{row:?}");
        let [_, cut, absent, late, questions] = row.values[..] else {
            panic!("{row:?}");
        };
        assert_eq!((cut + absent + late, questions), (number, number));
    }
}
