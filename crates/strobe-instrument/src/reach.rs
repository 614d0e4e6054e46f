// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an instrument is reached, whatever it is at.

use std::time::Duration;

use rmodbus::ModbusProto;
use strobe_board::instrument::{Instrument, Transport};

use crate::bus::{I2c, Spi};
use crate::line::Line;
use crate::modbus::Modbus;
use crate::stream;
use crate::text::Text;

/// Reaches an instrument; why not, and what may help.
pub(crate) fn reach(instrument: &Instrument) -> Result<Box<dyn Line>, String> {
    let within = instrument.timeout;
    Ok(match &instrument.transport {
        Transport::Tcp(address) => Box::new(Text::new(stream::tcp(address, within)?, instrument)),
        Transport::Serial(serial) => Box::new(Text::new(stream::serial(serial)?, instrument)),
        Transport::UsbTmc(device) => {
            Box::new(Text::new(stream::usbtmc(device, within)?, instrument))
        }
        Transport::ModbusTcp(address, unit) => {
            let stream = stream::tcp(address, within)?;
            Box::new(Modbus::new(
                stream,
                ModbusProto::TcpUdp,
                *unit,
                Duration::ZERO,
            ))
        }
        Transport::ModbusRtu(serial, unit) => {
            // Frames are told apart by the time of 3.5 characters, at most 1.75 ms for fast lines.
            let character = 11.0 / f64::from(serial.baud.max(1));
            let pause = match serial.baud {
                ..=19200 => Duration::from_secs_f64(3.5 * character),
                _ => Duration::from_micros(1750),
            };
            let stream = stream::serial(serial)?;
            Box::new(Modbus::new(stream, ModbusProto::Rtu, *unit, pause))
        }
        Transport::I2c(bus, address) => Box::new(I2c::open(bus, *address)?),
        Transport::Spi(spi) => Box::new(Spi::open(spi)?),
    })
}
