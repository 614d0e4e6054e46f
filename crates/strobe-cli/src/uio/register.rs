// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe uio read` and `strobe uio write`: one register of a device, once.

use std::process::ExitCode;
use std::str::FromStr;

use strobe::uio::{Error, Uio};

use crate::term::{answer, fail};

/// The arguments of `read`.
#[derive(clap::Args)]
pub struct Read {
    /// Name of the device, or uioN
    name: String,
    /// The register: map0+0x10, or port0+3 for I/O ports; :8, :16, :32 or :64 gives
    /// its bits (default: 32 in a map, 8 for ports)
    #[arg(value_name = "PLACE")]
    place: Place,
}

/// The arguments of `write`.
#[derive(clap::Args)]
pub struct Write {
    #[command(flatten)]
    read: Read,
    /// What to write, such as 12 or 0x1F
    #[arg(value_parser = number)]
    value: u64,
}

/// Where a register is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    of_ports: bool,
    number: u32,
    offset: u64,
    bits: u8,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let wrong = || "write map0+0x10, map0+0x10:16 or port0+3".to_owned();
        let (place, bits) = match text.split_once(':') {
            Some((place, bits)) => (place, Some(bits)),
            None => (text, None),
        };
        let (block, offset) = place.split_once('+').unwrap_or((place, "0"));
        let (of_ports, digits) = match (block.strip_prefix("map"), block.strip_prefix("port")) {
            (Some(digits), _) => (false, digits),
            (_, Some(digits)) => (true, digits),
            _ => return Err(wrong()),
        };
        let bits = match (bits, of_ports) {
            (None, false) | (Some("32"), _) => 32,
            (None, true) | (Some("8"), _) => 8,
            (Some("16"), _) => 16,
            (Some("64"), false) => 64,
            (Some("64"), true) => return Err("I/O ports have :8, :16 or :32".to_owned()),
            _ => return Err("bits are :8, :16, :32 or :64".to_owned()),
        };
        let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        Ok(Place {
            of_ports,
            number: digits
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(wrong)?,
            offset: number(offset).map_err(|_| wrong())?,
            bits,
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let block = if self.of_ports { "port" } else { "map" };
        write!(f, "{block}{}+{:#x}:{}", self.number, self.offset, self.bits)
    }
}

fn number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        _ => text.parse().ok(),
    };
    number.ok_or_else(|| "write a whole number, such as 12 or 0x1F".to_owned())
}

impl Read {
    pub fn run(&self) -> ExitCode {
        let digits = usize::from(self.place.bits / 4);
        match self.access(None) {
            Ok(value) => answer(&format!("0x{value:0digits$x}\n")),
            Err(why) => fail(why),
        }
    }

    /// One access; what was read, or written.
    fn access(&self, to_write: Option<u64>) -> Result<u64, String> {
        let Place {
            of_ports,
            number,
            offset,
            bits,
        } = self.place;
        if let Some(value) = to_write.filter(|value| bits < 64 && value >> bits != 0) {
            return Err(format!(
                "{}: {value:#x} does not fit into {bits} bits; write a smaller number",
                self.place
            ));
        }
        let words = |error: Error| error.to_string();
        let uio = Uio::find(&self.name).map_err(words)?;
        let none = |size: u64| {
            format!(
                "UIO device {}: no register {}; there are {size:#x} bytes, and a register begins at a multiple of its \
                 size",
                self.name, self.place
            )
        };
        let width = bits / 8;
        if of_ports {
            let ports = uio.ports(number).map_err(words)?;
            let done = match to_write {
                // It fits, as just checked.
                Some(value) => ports.write(offset, width, value as u32).map(|()| value),
                None => ports.read(offset, width).map(u64::from),
            };
            return done.ok_or_else(|| none(ports.size()));
        }
        let memory = uio.map(number, to_write.is_some()).map_err(words)?;
        let register = memory
            .register(offset, width)
            .ok_or_else(|| none(memory.bytes()))?;
        let value = match to_write {
            Some(value) => {
                register.write(value);
                value
            }
            None => register.read(),
        };
        match register.region().is_gone() {
            true => Err(words(Error::Gone(uio.name))),
            false => Ok(value),
        }
    }
}

impl Write {
    pub fn run(&self) -> ExitCode {
        match self.read.access(Some(self.value)) {
            Ok(_) => ExitCode::SUCCESS,
            Err(why) => fail(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_block_an_offset_and_bits() {
        let place = |of_ports, number, offset, bits| Place {
            of_ports,
            number,
            offset,
            bits,
        };
        for (text, expected) in [
            ("map0+0x10", place(false, 0, 16, 32)),
            ("map12+8:64", place(false, 12, 8, 64)),
            ("map1", place(false, 1, 0, 32)),
            ("map0+0xfe:8", place(false, 0, 254, 8)),
            ("port0+3", place(true, 0, 3, 8)),
            ("port1+4:16", place(true, 1, 4, 16)),
        ] {
            let read: Place = text.parse().expect(text);
            assert_eq!(read, expected, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read));
        }
        for text in [
            "",
            "0x10",
            "map",
            "map-1+0",
            "map+1",
            "map0+",
            "map0+x",
            "map0+0x10:7",
            "port0+0:64",
            "map0-4",
            "map0+0x+1",
        ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
