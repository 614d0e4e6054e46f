// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chips on I2C and SPI buses: their registers are read and written by transfers of bytes.

use std::fmt;

/// Bytes between number and value, at most.
pub(super) const DUMMY_MAX: u64 = 8;

/// Where a chip is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// On an I2C bus, at an address of 7 bits.
    I2c {
        /// Number of the bus.
        bus: u32,
        /// The chip's address.
        address: u16,
    },
    /// On an SPI bus.
    Spi {
        /// Number of the bus.
        bus: u32,
        /// Number of its chip select.
        select: u32,
    },
}

/// How a chip is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chip {
    /// Bytes of a register's number in a transfer: 0, 1 or 2.
    pub number: u8,
    /// Bits that SPI adds to the number for reading.
    pub read: u16,
    /// Bits that SPI adds to the number for writing.
    pub write: u16,
    /// Bytes of SPI between the number and the value that is read.
    pub dummy: u8,
    /// Highest clock of SPI, Hz.
    pub speed: u32,
    /// Clock polarity and phase of SPI: 0 to 3.
    pub mode: u8,
    /// The register that selects the page of the others.
    pub page: Option<usize>,
}

/// What is sent: at most a number, bytes to wait and a value.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    bytes: [u8; Sent::MAX],
    length: usize,
}

impl Sent {
    /// Most bytes of one.
    pub const MAX: usize = 2 + DUMMY_MAX as usize + 8;

    fn of(parts: [&[u8]; 2]) -> Sent {
        let mut bytes = [0; Sent::MAX];
        let mut length = 0;
        for byte in parts.into_iter().flatten() {
            if let Some(place) = bytes.get_mut(length) {
                *place = *byte;
                length += 1;
            }
        }
        Sent { bytes, length }
    }
}

impl std::ops::Deref for Sent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Chip {
    /// The bytes of a register's number.
    fn head(&self, number: u32, added: u16) -> Sent {
        let bytes = (number as u16 | added).to_be_bytes();
        let skipped = 2 - usize::from(self.number).min(2);
        Sent::of([bytes.get(skipped..).unwrap_or_default(), &[]])
    }

    /// What is sent before the bytes of the register of this number can be read.
    pub fn ask(&self, number: u32) -> Sent {
        let waits = [0; DUMMY_MAX as usize];
        let waits = waits.get(..self.dummy.into()).unwrap_or_default();
        Sent::of([&self.head(number, self.read), waits])
    }

    /// What is sent to write these bytes of a value to the register of this number.
    pub fn store(&self, number: u32, (width, big_endian): (u8, bool), value: u64) -> Sent {
        let mut bytes = value.to_be_bytes();
        let skipped = 8 - usize::from(width).min(8);
        let value = bytes.get_mut(skipped..).unwrap_or_default();
        if !big_endian {
            value.reverse();
        }
        Sent::of([&self.head(number, self.write), value])
    }
}

/// The value that the bytes of a register are.
pub fn value(bytes: &[u8], big_endian: bool) -> u64 {
    let next = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match big_endian {
        true => bytes.iter().fold(0, next),
        false => bytes.iter().rev().fold(0, next),
    }
}

impl Wire {
    /// The file in /dev.
    pub fn device(&self) -> String {
        match self {
            Wire::I2c { bus, .. } => format!("/dev/i2c-{bus}"),
            Wire::Spi { bus, select } => format!("/dev/spidev{bus}.{select}"),
        }
    }
}

/// `1-0048`, `0.0`, as sysfs writes them.
impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wire::I2c { bus, address } => write!(f, "{bus}-{address:04x}"),
            Wire::Spi { bus, select } => write!(f, "{bus}.{select}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Board;

    fn board(rest: &str) -> Board {
        let text = format!("[board]\nname = \"chip\"\n[match]\nspi = \"0.1\"\n{rest}[channel.r]\n");
        Board::from_toml("chip.toml", &text).unwrap_or_else(|faults| panic!("{faults}"))
    }

    fn sent(board: &Board, value: u64) -> (Vec<u8>, Vec<u8>) {
        let (chip, register) = (board.chip.expect("a chip"), &board.registers[0]);
        let form = (register.width, register.big_endian);
        let stored = chip.store(register.offset, form, value).to_vec();
        (chip.ask(register.offset).to_vec(), stored)
    }

    #[test]
    fn what_is_sent_is_the_number_with_its_bits_then_what_the_chip_needs_to_wait_or_the_value() {
        let plain = board("[chip]\nread = 0x80\n[register]\nr = { offset = 0x12, width = 8 }\n");
        assert_eq!(sent(&plain, 0x5a), (vec![0x92], vec![0x12, 0x5a]));
        let wide = board(
            "[chip]\nregister_bits = 16\nread = 0x4100\nwrite = 0x4000\ndummy = 2\n\
             [register]\nr = { offset = 0x12, width = 24, endian = \"big\" }\n",
        );
        let wanted = (vec![0x41, 0x12, 0, 0], vec![0x40, 0x12, 1, 2, 3]);
        assert_eq!(sent(&wide, 0x0001_0203), wanted);
        let little = board(
            "[chip]\nread = 1\n[register]\nr = { offset = 0x12, width = 64, endian = \"little\" }\n",
        );
        let wanted = (vec![0x13], vec![0x12, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(sent(&little, 0x0102_0304_0506_0708), wanted);
        // A converter that only sends.
        let bare = board(
            "[chip]\nregister_bits = 0\n[register]\nr = { offset = 0, width = 16, endian = \"big\" }\n",
        );
        assert_eq!(sent(&bare, 1), (vec![], vec![0, 1]));
    }

    #[test]
    fn the_bytes_that_come_are_the_value_in_the_order_of_the_board_file() {
        assert_eq!(value(&[1, 2, 3], true), 0x01_0203);
        assert_eq!(value(&[1, 2, 3], false), 0x03_0201);
    }
}
