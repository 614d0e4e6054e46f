// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table [transport]: how an instrument is reached.

use std::time::Duration;

use crate::instrument::{Flow, Language, Parity, Serial, Spi, Transport};
use crate::table::Table;

/// The kinds of transports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tcp,
    Serial,
    UsbTmc,
    I2c,
    Spi,
    ModbusTcp,
    ModbusRtu,
}

impl Kind {
    pub(super) fn language(self) -> Language {
        match self {
            Kind::Tcp | Kind::Serial | Kind::UsbTmc => Language::Text,
            Kind::I2c | Kind::Spi => Language::Bytes,
            Kind::ModbusTcp | Kind::ModbusRtu => Language::Modbus,
        }
    }
}

const KINDS: [(&str, Kind); 7] = [
    ("tcp", Kind::Tcp),
    ("serial", Kind::Serial),
    ("usbtmc", Kind::UsbTmc),
    ("i2c", Kind::I2c),
    ("spi", Kind::Spi),
    ("modbus-tcp", Kind::ModbusTcp),
    ("modbus-rtu", Kind::ModbusRtu),
];

/// What the table says.
pub(super) struct Said {
    pub(super) kind: Option<Kind>,
    pub(super) transport: Option<Transport>,
    pub(super) timeout: Duration,
    pub(super) retry: Duration,
    pub(super) longest: usize,
    pub(super) command_end: Vec<u8>,
    pub(super) answer_end: Vec<u8>,
}

/// Longest answer, unless said: enough for a line.
const LONGEST: u64 = 65536;
/// Longest answer that may be asked for.
const LONGEST_MAX: u64 = 16 << 20;
/// Longest end of a command or answer.
const END_MAX: usize = 4;

pub(super) fn transport(mut table: Table<'_>) -> Said {
    let kind = table.choice("kind", &KINDS);
    table.missing("kind", "kind = \"tcp\", \"serial\", \"usbtmc\", \"i2c\", \"spi\", \"modbus-tcp\" or \"modbus-rtu\"");
    let timeout = seconds(&mut table, "timeout", 1.0);
    let retry = seconds(&mut table, "retry", 1.0);
    let is_text = kind.is_none_or(|kind| kind.language() == Language::Text);
    let (mut longest, mut command_end, mut answer_end) = (LONGEST, b"\n".to_vec(), None);
    if is_text {
        if let Some((bytes, _)) = table.integer("longest", 16..=LONGEST_MAX) {
            longest = bytes;
        }
        if let Some(end) = end(&mut table, "end") {
            command_end = end;
        }
        answer_end = end(&mut table, "answer_end");
    }
    let transport = match kind {
        None => {
            // Whatever the kind will be, these are keys of some.
            for key in [
                "address",
                "device",
                "baud",
                "data_bits",
                "parity",
                "stop_bits",
                "flow",
                "speed",
                "mode",
                "unit",
            ] {
                table.known(key);
            }
            None
        }
        Some(Kind::Tcp) => host(&mut table, "192.168.0.5:5025").map(Transport::Tcp),
        Some(Kind::Serial) => serial(&mut table).map(Transport::Serial),
        Some(Kind::UsbTmc) => device(&mut table, "/dev/usbtmc0").map(Transport::UsbTmc),
        Some(Kind::I2c) => i2c(&mut table),
        Some(Kind::Spi) => spi(&mut table),
        Some(Kind::ModbusTcp) => {
            let unit = unit(&mut table, 0);
            host(&mut table, "192.168.0.5:502").map(|host| Transport::ModbusTcp(host, unit))
        }
        Some(Kind::ModbusRtu) => {
            let unit = unit(&mut table, 1);
            table.missing("unit", "unit = 1, the number of the device on the line");
            serial(&mut table).map(|serial| Transport::ModbusRtu(serial, unit))
        }
    };
    table.finish();
    Said {
        kind,
        transport,
        timeout,
        retry,
        longest: longest as usize,
        answer_end: answer_end.unwrap_or_else(|| command_end.clone()),
        command_end,
    }
}

/// A time, as a number of seconds.
pub(super) fn seconds(table: &mut Table<'_>, key: &'static str, usual: f64) -> Duration {
    let given = table.number(key).and_then(|(seconds, at)| {
        let fits = (0.001..=60.0).contains(&seconds);
        if !fits {
            table.fault_at(
                &at,
                format!("`{key}` is {seconds}; write seconds, from 0.001 to 60"),
            );
        }
        fits.then_some(seconds)
    });
    Duration::from_secs_f64(given.unwrap_or(usual))
}

fn end(table: &mut Table<'_>, key: &'static str) -> Option<Vec<u8>> {
    let (end, at) = table.string(key)?;
    if end.is_empty() || end.len() > END_MAX {
        table.fault_at(
            &at,
            format!(
                "`{key}` has {} bytes; write 1 to {END_MAX}, such as \"\\n\" or \"\\r\\n\"",
                end.len()
            ),
        );
        return None;
    }
    Some(end.as_bytes().to_vec())
}

/// Host and port.
fn host(table: &mut Table<'_>, example: &str) -> Option<String> {
    let Some((address, at)) = table.string("address") else {
        table.missing(
            "address",
            &format!("address = \"{example}\", its host and port"),
        );
        return None;
    };
    let port = address.rsplit_once(':').and_then(|(host, port)| {
        let bare = host.starts_with('[') == host.contains(':');
        let plain =
            !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
        (bare && plain).then(|| port.parse::<u16>().ok()).flatten()
    });
    if port.is_none_or(|port| port == 0) {
        table.fault_at(&at, format!(
            "`address` is \"{}\"; write host and port, such as \"{example}\" or \"[fe80::1]:5025\"", address.escape_debug()));
        return None;
    }
    Some(address.to_owned())
}

/// A file of /dev.
fn device(table: &mut Table<'_>, example: &str) -> Option<String> {
    let Some((device, at)) = table.string("device") else {
        table.missing(
            "device",
            &format!("device = \"{example}\", the file of the device"),
        );
        return None;
    };
    if !device.starts_with('/') || device.chars().any(char::is_control) {
        table.fault_at(
            &at,
            format!(
                "`device` is \"{}\"; write an absolute path, such as \"{example}\"",
                device.escape_debug()
            ),
        );
        return None;
    }
    Some(device.to_owned())
}

fn serial(table: &mut Table<'_>) -> Option<Serial> {
    let baud = table.integer("baud", 50..=4_000_000);
    let data_bits = table.integer("data_bits", 7..=8);
    let parity = table.choice(
        "parity",
        &[
            ("none", Parity::None),
            ("even", Parity::Even),
            ("odd", Parity::Odd),
        ],
    );
    let stop_bits = table.integer("stop_bits", 1..=2);
    let flow = table.choice(
        "flow",
        &[
            ("none", Flow::None),
            ("software", Flow::Software),
            ("hardware", Flow::Hardware),
        ],
    );
    Some(Serial {
        device: device(table, "/dev/ttyUSB0")?,
        baud: baud.map_or(9600, |(baud, _)| baud as u32),
        data_bits: data_bits.map_or(8, |(bits, _)| bits as u8),
        parity: parity.unwrap_or(Parity::None),
        stop_bits: stop_bits.map_or(1, |(bits, _)| bits as u8),
        flow: flow.unwrap_or(Flow::None),
    })
}

fn i2c(table: &mut Table<'_>) -> Option<Transport> {
    let address = table.integer("address", 0x03..=0x77);
    table.missing("address", "address = 0x48, that of the chip");
    let bus = device(table, "/dev/i2c-1")?;
    Some(Transport::I2c(bus, address?.0 as u16))
}

fn spi(table: &mut Table<'_>) -> Option<Transport> {
    let speed = table.integer("speed", 1000..=100_000_000);
    let mode = table.integer("mode", 0..=3);
    Some(Transport::Spi(Spi {
        device: device(table, "/dev/spidev0.0")?,
        speed: speed.map_or(1_000_000, |(speed, _)| speed as u32),
        mode: mode.map_or(0, |(mode, _)| mode as u8),
    }))
}

fn unit(table: &mut Table<'_>, first: u64) -> u8 {
    let unit = table.integer("unit", first..=247);
    unit.map_or(1, |(unit, _)| unit as u8)
}
