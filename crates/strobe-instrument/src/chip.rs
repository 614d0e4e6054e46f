// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of chips on I2C and SPI buses. Who reads one waits for its transfers.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};
use strobe_board::chip::{self, Sent, Wire};
use strobe_board::{Board, Hardware, Register, Write, WriteValue, instrument};

use crate::bus::{I2c, Spi};

/// Bytes of the longest transfer of SPI.
const SPAN: usize = Sent::MAX + 8;

/// A chip that is open.
pub struct Chip {
    line: Line,
    chip: chip::Chip,
    paging: Option<Paging>,
}

enum Line {
    I2c(I2c),
    Spi(Spi),
}

/// How a page is selected.
struct Paging {
    register: Register,
    /// The page and what is done with it belong together: nobody else of strobe uses the bus meanwhile.
    lock: File,
}

/// A page is selected, and nobody selects another one until this is dropped.
struct Selected<'p>(&'p File);

impl Drop for Selected<'_> {
    fn drop(&mut self) {
        // It is ours, so it can be given away.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

impl Chip {
    /// Opens the chip of a board file, and writes what its `[setup]` has.
    ///
    /// # Errors
    /// Why it cannot be used, and what may help.
    pub fn open(board: &Board) -> Result<Chip, String> {
        let (Hardware::Chip(wire), Some(chip)) = (&board.hardware, board.chip) else {
            return Err("its board is not of a chip; write [match] i2c or spi".to_owned());
        };
        let device = wire.device();
        let line = match wire {
            Wire::I2c { address, .. } => Line::I2c(I2c::open(&device, *address)?),
            Wire::Spi { .. } => Line::Spi(Spi::open(&instrument::Spi {
                device: device.clone(),
                speed: chip.speed,
                mode: chip.mode,
            })?),
        };
        let page = chip.page.and_then(|page| board.registers.get(page));
        let paging = match page {
            Some(register) => Some(Paging {
                register: register.clone(),
                lock: File::open(&device).map_err(|error| format!("{device}: {error}"))?,
            }),
            None => None,
        };
        let mut opened = Chip { line, chip, paging };
        opened.set_up(board, &board.setup)?;
        Ok(opened)
    }

    fn set_up(&mut self, board: &Board, writes: &[Write]) -> Result<(), String> {
        for Write { register, value } in writes {
            let (Some(register), WriteValue::Fixed(value)) =
                (board.registers.get(*register), value)
            else {
                continue;
            };
            self.write(register, *value).map_err(|error| {
                format!(
                    "register {} cannot be written: {error}; check that the chip is there and has power",
                    register.name
                )
            })?;
        }
        Ok(())
    }

    /// Reads a register.
    ///
    /// # Errors
    /// Those of the bus. ENODEV says that the bus has gone.
    pub fn read(&mut self, register: &Register) -> io::Result<u64> {
        let _selected = select(&mut self.line, &self.chip, self.paging.as_ref(), register)?;
        let mut bytes = [0; 8];
        let bytes = bytes.get_mut(..register.width.into()).unwrap_or_default();
        self.line.read(&self.chip.ask(register.offset), bytes)?;
        Ok(chip::value(bytes, register.big_endian))
    }

    /// Writes a register.
    ///
    /// # Errors
    /// As those of reading.
    pub fn write(&mut self, register: &Register, value: u64) -> io::Result<()> {
        let _selected = select(&mut self.line, &self.chip, self.paging.as_ref(), register)?;
        self.line.write(&stored(&self.chip, register, value))
    }
}

/// What is sent to write a register.
fn stored(chip: &chip::Chip, register: &Register, value: u64) -> Sent {
    let form = (register.width, register.big_endian);
    chip.store(register.offset, form, value)
}

/// Selects the page of a register, unless it is in all of them. The chip is asked each time: others may use it, too.
fn select<'p>(
    line: &mut Line,
    chip: &chip::Chip,
    paging: Option<&'p Paging>,
    register: &Register,
) -> io::Result<Option<Selected<'p>>> {
    let (Some(paging), strobe_board::Block::Chip(Some(page))) = (paging, &register.block) else {
        return Ok(None);
    };
    flock(&paging.lock, FlockOperation::LockExclusive)?;
    let selected = Selected(&paging.lock);
    line.write(&stored(chip, &paging.register, u64::from(*page)))?;
    Ok(Some(selected))
}

impl Line {
    fn read(&mut self, sent: &[u8], answer: &mut [u8]) -> io::Result<()> {
        match self {
            Line::I2c(i2c) => i2c.transfer(sent, answer),
            Line::Spi(spi) => {
                // Zeros are sent while the answer comes, and it begins after what was sent.
                let (mut out, mut back) = ([0; SPAN], [0; SPAN]);
                let all = sent.len() + answer.len();
                let (Some((head, _)), Some(back)) =
                    (out.split_at_mut_checked(sent.len()), back.get_mut(..all))
                else {
                    return Err(io::ErrorKind::InvalidInput.into());
                };
                head.copy_from_slice(sent);
                let out = out.get(..all).unwrap_or_default();
                spi.exchange(out, back)?;
                let came = back.get(sent.len()..).unwrap_or_default();
                answer.copy_from_slice(came);
                Ok(())
            }
        }
    }

    fn write(&mut self, sent: &[u8]) -> io::Result<()> {
        match self {
            Line::I2c(i2c) => i2c.transfer(sent, &mut []),
            Line::Spi(spi) => spi.send(sent),
        }
    }
}
