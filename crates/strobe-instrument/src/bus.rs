// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I2C and SPI buses: bytes are sent to a chip and received from it in one transfer.

use std::io;
use std::time::Instant;

use i2cdev::core::{I2CDevice, I2CMessage, I2CTransfer};
use i2cdev::linux::{LinuxI2CDevice, LinuxI2CMessage};
use rustix::io::Errno;
use spidev::{SpiModeFlags, Spidev, SpidevOptions, SpidevTransfer};
use strobe_board::instrument::{self, Command, Reply};

use crate::fault::{Fault, Left, Trouble};
use crate::line::Line;
use crate::stream::remedy;
use crate::text::no_room;

/// Most bytes that SMBus can read at once.
const SMBUS_MAX: usize = 32;

/// What an errno of a transfer means. The bus stays; a chip is asked anew each time.
fn trouble(error: &io::Error) -> Trouble {
    let errno = Errno::from_io_error(error);
    let (fault, left) = match errno {
        Some(Errno::TIMEDOUT) => (Fault::Late, Left::All),
        Some(Errno::NODEV | Errno::BADF) => (Fault::Cut, Left::Nothing),
        // The chip does not acknowledge, or has lost the bus.
        _ => (Fault::Refused, Left::All),
    };
    Trouble::new(fault, left, error.to_string())
}

/// The bytes to send, and how many are wanted.
fn wanted(command: &Command, reply: Reply) -> Result<(Vec<u8>, usize), Trouble> {
    match reply {
        Reply::Bytes(size) => Ok((command.bytes_for(0.0).ok_or_else(no_room)?, size)),
        Reply::Text | Reply::Block => Err(no_room()),
    }
}

/// A chip on an I2C bus.
pub(crate) struct I2c {
    device: LinuxI2CDevice,
    /// The bus can do only what SMBus has.
    is_smbus: bool,
}

impl I2c {
    pub(crate) fn open(bus: &str, address: u16) -> Result<I2c, String> {
        let device = LinuxI2CDevice::new(bus, address).map_err(|error| {
            let error = io::Error::from(error);
            match error.kind() {
                io::ErrorKind::ResourceBusy => format!(
                    "{bus}: a kernel driver uses the chip at 0x{address:02x}; read the driver's files in /sys, or \
                     unbind it"
                ),
                _ => format!("{bus}: {error}{}", remedy(&error)),
            }
        })?;
        Ok(I2c {
            device,
            is_smbus: false,
        })
    }

    /// Writes `bytes`, then reads what is wanted, without giving the bus away between them.
    pub(crate) fn transfer(&mut self, bytes: &[u8], answer: &mut [u8]) -> io::Result<()> {
        if !self.is_smbus {
            let done = match (bytes, answer.is_empty()) {
                ([], _) => self.device.transfer(&mut [LinuxI2CMessage::read(answer)]),
                (_, true) => self.device.transfer(&mut [LinuxI2CMessage::write(bytes)]),
                _ => self
                    .device
                    .transfer(&mut [LinuxI2CMessage::write(bytes), LinuxI2CMessage::read(answer)]),
            };
            match done.map_err(io::Error::from) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => {
                    self.is_smbus = true;
                }
                done => return done.map(drop),
            }
        }
        self.smbus(bytes, answer)
    }

    /// The same on the wire, as far as SMBus has it.
    fn smbus(&mut self, bytes: &[u8], answer: &mut [u8]) -> io::Result<()> {
        match (bytes, &mut *answer) {
            ([], [one]) => *one = self.device.smbus_read_byte()?,
            ([register], [one]) => *one = self.device.smbus_read_byte_data(*register)?,
            ([register], [first, second]) => {
                let word = self.device.smbus_read_word_data(*register)?;
                [*first, *second] = word.to_le_bytes();
            }
            ([register], many @ [_, ..]) if many.len() <= SMBUS_MAX => {
                let size = many.len() as u8;
                let read = self.device.smbus_read_i2c_block_data(*register, size)?;
                let read = read.get(..many.len()).ok_or(Errno::PROTO)?;
                many.copy_from_slice(read);
            }
            ([byte], []) => self.device.smbus_write_byte(*byte)?,
            ([register, byte], []) => self.device.smbus_write_byte_data(*register, *byte)?,
            ([register, first, second], []) => {
                let word = u16::from_le_bytes([*first, *second]);
                self.device.smbus_write_word_data(*register, word)?;
            }
            ([register, rest @ ..], []) if rest.len() <= SMBUS_MAX => {
                self.device.smbus_write_i2c_block_data(*register, rest)?;
            }
            _ => return Err(Errno::OPNOTSUPP.into()),
        }
        Ok(())
    }
}

impl Line for I2c {
    fn ask(
        &mut self,
        command: &Command,
        reply: Reply,
        answer: &mut Vec<u8>,
        _: Instant,
    ) -> Result<(), Trouble> {
        let (bytes, size) = wanted(command, reply)?;
        answer.resize(size, 0);
        self.transfer(&bytes, answer)
            .map_err(|error| trouble(&error))
    }

    fn tell(&mut self, command: &Command, value: f64, _: Instant) -> Result<(), Trouble> {
        let bytes = command.bytes_for(value).ok_or_else(no_room)?;
        self.transfer(&bytes, &mut [])
            .map_err(|error| trouble(&error))
    }
}

/// A chip on an SPI bus.
pub(crate) struct Spi(Spidev);

impl Spi {
    pub(crate) fn open(spi: &instrument::Spi) -> Result<Spi, String> {
        let failed = |error: io::Error| format!("{}: {error}{}", spi.device, remedy(&error));
        let mut device = Spidev::open(&spi.device).map_err(failed)?;
        let mode = match spi.mode {
            0 => SpiModeFlags::SPI_MODE_0,
            1 => SpiModeFlags::SPI_MODE_1,
            2 => SpiModeFlags::SPI_MODE_2,
            _ => SpiModeFlags::SPI_MODE_3,
        };
        let mut options = SpidevOptions::new();
        options.bits_per_word(8).max_speed_hz(spi.speed).mode(mode);
        device.configure(&options.build()).map_err(failed)?;
        Ok(Spi(device))
    }

    /// Sends as many bytes as come meanwhile.
    pub(crate) fn exchange(&mut self, bytes: &[u8], answer: &mut [u8]) -> io::Result<()> {
        let mut transfer = SpidevTransfer::read_write(bytes, answer);
        self.0.transfer(&mut transfer).map_err(gone)
    }

    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut transfer = SpidevTransfer::write(bytes);
        self.0.transfer(&mut transfer).map_err(gone)
    }
}

/// ESHUTDOWN is what spidev says of a chip that is gone, and of no other. Everything else says ENODEV.
fn gone(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::SHUTDOWN) => Errno::NODEV.into(),
        _ => error,
    }
}

impl Line for Spi {
    /// What comes while the bytes are sent is the start of the answer; then zeros are sent.
    fn ask(
        &mut self,
        command: &Command,
        reply: Reply,
        answer: &mut Vec<u8>,
        _: Instant,
    ) -> Result<(), Trouble> {
        let (mut bytes, size) = wanted(command, reply)?;
        bytes.resize(bytes.len().max(size), 0);
        answer.resize(bytes.len(), 0);
        self.exchange(&bytes, answer)
            .map_err(|error| trouble(&error))
    }

    fn tell(&mut self, command: &Command, value: f64, _: Instant) -> Result<(), Trouble> {
        let bytes = command.bytes_for(value).ok_or_else(no_room)?;
        self.send(&bytes).map_err(|error| trouble(&error))
    }
}
