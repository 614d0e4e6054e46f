// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments: devices that are spoken to over a wire. What their board file says: how they are reached, what they are
//! asked, what of an answer is a channel, and what they are told.

use std::fmt;
use std::time::Duration;

mod binary;
mod command;
mod pattern;

pub use binary::{Binary, Number, Order};
pub use command::{Area, Command};
pub use pattern::{Answered, Pattern};

use crate::kind::Kind;

/// An instrument, as its board file describes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Instrument {
    /// How it is reached.
    pub transport: Transport,
    /// How long an answer may take, and a connection.
    pub timeout: Duration,
    /// How long to wait before it is tried again to reach it.
    pub retry: Duration,
    /// Bytes of the longest answer.
    pub longest: usize,
    /// What ends a command.
    pub command_end: Vec<u8>,
    /// What ends an answer.
    pub answer_end: Vec<u8>,
    /// How it is seen that it is the right one.
    pub identity: Option<Identity>,
    /// How it is asked for the errors that it has noted.
    pub errors: Option<Command>,
    /// What it is told each time it was reached.
    pub open: Vec<Command>,
    /// What it can be asked. Channels of one answer have one question.
    pub questions: Vec<Question>,
    /// What a row may read.
    pub channels: Vec<Channel>,
    /// What a row may write.
    pub outputs: Vec<Output>,
}

/// How an instrument is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Texts over TCP: host and port.
    Tcp(String),
    /// Texts over a serial line.
    Serial(Serial),
    /// Messages to a USB device of the test and measurement class: a file such as /dev/usbtmc0.
    UsbTmc(String),
    /// A chip on an I2C bus: the bus, a file such as /dev/i2c-1, and its address.
    I2c(String, u16),
    /// A chip on an SPI bus.
    Spi(Spi),
    /// Modbus over TCP: host and port, and the unit behind it.
    ModbusTcp(String, u8),
    /// Modbus over a serial line, and the unit at it.
    ModbusRtu(Serial, u8),
}

/// A serial line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serial {
    /// Its file, such as /dev/ttyUSB0.
    pub device: String,
    /// Bits in a second.
    pub baud: u32,
    /// Bits of a character: 7 or 8.
    pub data_bits: u8,
    /// Its check bit.
    pub parity: Parity,
    /// 1 or 2.
    pub stop_bits: u8,
    /// How the sides stop each other.
    pub flow: Flow,
}

/// The check bit of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// There is none.
    None,
    /// An even number of ones.
    Even,
    /// An odd number of ones.
    Odd,
}

/// How the sides of a serial line stop each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// They do not.
    None,
    /// By the characters XON and XOFF.
    Software,
    /// By the wires RTS and CTS.
    Hardware,
}

/// A chip on an SPI bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spi {
    /// Its file, such as /dev/spidev0.0.
    pub device: String,
    /// Highest clock, Hz.
    pub speed: u32,
    /// Clock polarity and phase: 0 to 3.
    pub mode: u8,
}

/// What kinds of commands a transport carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Texts that end with something, as those of SCPI.
    Text,
    /// Bytes in one transfer of a bus.
    Bytes,
    /// Registers and bits of Modbus.
    Modbus,
}

/// How it is seen that an instrument is the right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The question.
    pub query: Command,
    /// What it answers.
    pub expect: Pattern,
}

/// What an instrument can be asked, with one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question.
    pub command: Command,
    /// What is an answer.
    pub reply: Reply,
    /// How long it may take.
    pub timeout: Duration,
    /// When it is asked.
    pub mode: Mode,
    /// The channels that are cut from the answer.
    pub channels: Vec<usize>,
}

/// What is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A text up to its end.
    Text,
    /// A block of bytes whose length is said before it (IEEE 488.2).
    Block,
    /// So many bytes, or bits of Modbus.
    Bytes(usize),
}

/// When an instrument is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By each row, which waits for the answer.
    Wait,
    /// By itself, so often; a row has the latest answer.
    Latest(Duration),
}

/// What of an answer a row may read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Channel {
    /// Name, without the device.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Unit of `value * scale + offset`; empty if it has none.
    pub unit: String,
    /// Factor to that unit.
    pub scale: f64,
    /// What is added after it.
    pub offset: f64,
    /// Index of its question.
    pub question: usize,
    /// Where in the answer it is.
    pub cut: Cut,
}

/// Where in an answer a channel is.
#[derive(Clone, Debug, PartialEq)]
pub enum Cut {
    /// The number of a text.
    Text(Pattern),
    /// Some of its bytes.
    Binary(Binary),
}

/// What a row may tell an instrument.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Name, without the device.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Unit of `value * scale + offset`; empty if it has none.
    pub unit: String,
    /// Factor to that unit.
    pub scale: f64,
    /// What is added after it.
    pub offset: f64,
    /// What is sent, with a place for the value.
    pub send: Command,
    /// How long it may take.
    pub timeout: Duration,
}

/// What each instrument counts, and has as channels: name and description. Each question of a row is counted, and has one
/// of the ends from `answers` to `absent`.
pub const COUNTERS: [(&str, &str); 10] = [
    ("questions", "questions and commands for outputs"),
    ("answers", "answered as the board file says"),
    ("late", "no answer in time"),
    ("wrong", "answers that do not match the board file"),
    ("cut", "answers that broke off"),
    ("long", "answers longer than the board file allows"),
    ("extra", "answers that came unasked or twice"),
    ("refused", "errors that the instrument reported"),
    ("absent", "not asked, because there was no connection"),
    ("reconnects", "connections after the first one"),
];

/// What follows the name of a channel that is `latest`, for its age.
pub const AGE: &str = ".age";

impl Transport {
    /// What kinds of commands it carries.
    pub fn language(&self) -> Language {
        match self {
            Transport::Tcp(_) | Transport::Serial(_) | Transport::UsbTmc(_) => Language::Text,
            Transport::I2c(..) | Transport::Spi(_) => Language::Bytes,
            Transport::ModbusTcp(..) | Transport::ModbusRtu(..) => Language::Modbus,
        }
    }
}

/// `tcp 192.168.0.5:5025`, `i2c /dev/i2c-1, address 0x48`.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Tcp(address) => write!(f, "tcp {address}"),
            Transport::Serial(serial) => write!(f, "serial {}", serial.device),
            Transport::UsbTmc(device) => write!(f, "usbtmc {device}"),
            Transport::I2c(bus, address) => write!(f, "i2c {bus}, address 0x{address:02x}"),
            Transport::Spi(spi) => write!(f, "spi {}", spi.device),
            Transport::ModbusTcp(address, unit) => write!(f, "modbus-tcp {address}, unit {unit}"),
            Transport::ModbusRtu(serial, unit) => {
                write!(f, "modbus-rtu {}, unit {unit}", serial.device)
            }
        }
    }
}

impl Channel {
    /// How its word is to be understood.
    pub fn kind(&self) -> Kind {
        match &self.cut {
            Cut::Text(pattern) => pattern.kind(),
            Cut::Binary(binary) => binary.kind(),
        }
    }

    /// Bits of its word.
    pub fn bits(&self) -> u8 {
        match &self.cut {
            Cut::Text(_) => 64,
            Cut::Binary(binary) => binary.bits(),
        }
    }
}

impl Cut {
    /// The word of an answer; `None` if it is not as the board file says.
    pub fn word(&self, answer: &[u8]) -> Option<u64> {
        match self {
            Cut::Text(pattern) => match pattern.read(answer)? {
                Answered::Number(word) => Some(word),
                Answered::Matches => None,
            },
            Cut::Binary(binary) => binary.read(answer),
        }
    }
}

impl Output {
    /// The number that a word means: two's complement, scaled. `None` if it would be another one when it is sent: a text
    /// has 15 digits, a binary fraction 53 bits.
    pub fn value(&self, word: u64) -> Option<f64> {
        let word = word as i64;
        let sent = match self.send {
            Command::Text { .. } => command::rounded(word as f64),
            _ => word as f64,
        };
        let value = sent * self.scale + self.offset;
        (sent as i128 == i128::from(word) && value.is_finite()).then_some(value)
    }
}

impl Instrument {
    /// Whether the latest answer of this channel is had, without a wait.
    pub fn is_latest(&self, channel: &Channel) -> bool {
        let question = self.questions.get(channel.question);
        question.is_some_and(|question| matches!(question.mode, Mode::Latest(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(send: &str, language: Language, scale: f64) -> Output {
        Output {
            name: "o".to_owned(),
            description: String::new(),
            unit: String::new(),
            scale,
            offset: 0.0,
            send: Command::new(
                send,
                language,
                Some(Binary::new(Number::Signed(8), Order::Big, 0)),
            )
            .expect("a command"),
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_whole_number_is_sent_as_it_is_or_refused() {
        let text = output("VOLT {}", Language::Text, 1.0);
        let scaled = output("VOLT {}", Language::Text, 0.001);
        let bytes = output("01 {}", Language::Bytes, 1.0);
        let negative = |word: i64| word as u64;
        assert_eq!(scaled.value(1500), Some(1.5));
        assert_eq!(
            text.value(negative(-999_999_999_999_999)),
            Some(-999_999_999_999_999.0)
        );
        // Digits that are zeros are none that would be lost.
        assert_eq!(text.value(1_000_000_000_000_000_000), Some(1e18));
        assert_eq!(
            bytes.value(9_007_199_254_740_991),
            Some(9_007_199_254_740_991.0)
        );
        assert_eq!(
            bytes.value(negative(i64::MIN)),
            Some(-9_223_372_036_854_775_808.0)
        );
        for word in [1_234_567_890_123_456, negative(-9_007_199_254_740_991)] {
            assert_eq!(
                (text.value(word), scaled.value(word)),
                (None, None),
                "{word}"
            );
        }
        for word in [
            9_007_199_254_740_993,
            i64::MAX as u64,
            negative(i64::MIN + 1),
        ] {
            assert_eq!(bytes.value(word), None, "{word}");
        }
        assert_eq!(output("01 {}", Language::Bytes, 1e308).value(1000), None);
    }
}
