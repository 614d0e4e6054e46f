// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is sent to an instrument: a text, bytes, or a register of Modbus, with or without a place for a value.

use std::fmt;

use super::{Binary, Language, Number, Order};

/// Most bytes of a command.
const LONGEST: usize = 256;

/// What is sent to an instrument.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A text; `after` is what follows the value, if it has a place for one.
    Text {
        /// What comes first.
        before: String,
        /// What follows the value.
        after: Option<String>,
    },
    /// Bytes.
    Bytes {
        /// What comes first.
        before: Vec<u8>,
        /// How the value is written.
        value: Option<Binary>,
        /// What follows it.
        after: Vec<u8>,
    },
    /// A register or bit of Modbus.
    Modbus {
        /// Of which kind.
        area: Area,
        /// Which, from 0.
        address: u16,
        /// What is written: how, and the value if it is always the same.
        write: Option<(Binary, Option<u16>)>,
    },
}

/// The four kinds of registers and bits that Modbus has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Bits that can be written.
    Coil,
    /// Bits that can be read only.
    Discrete,
    /// Registers that can be written.
    Holding,
    /// Registers that can be read only.
    Input,
}

impl Area {
    const NAMES: [(&'static str, Area); 4] = [
        ("coil", Area::Coil),
        ("discrete", Area::Discrete),
        ("holding", Area::Holding),
        ("input", Area::Input),
    ];

    /// Whether it is of bits, not of registers.
    pub fn is_of_bits(self) -> bool {
        matches!(self, Area::Coil | Area::Discrete)
    }

    /// Whether it can be written.
    pub fn is_writable(self) -> bool {
        matches!(self, Area::Coil | Area::Holding)
    }
}

/// A number of one register, or of one bit.
fn one(area: Area) -> Binary {
    Binary {
        number: match area.is_of_bits() {
            true => Number::Unsigned(1),
            false => Number::Unsigned(2),
        },
        order: Order::Big,
        at: 0,
        field: None,
    }
}

impl Command {
    /// The command of a text; `value` is how a value is written in bytes.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub fn new(text: &str, language: Language, value: Option<Binary>) -> Result<Command, String> {
        if text.trim_ascii().is_empty() {
            return Err("it is empty; write what to send".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!(
                "it has {} bytes, and at most {LONGEST} are possible; shorten it",
                text.len()
            ));
        }
        match language {
            Language::Text => Command::text(text),
            Language::Bytes => Command::bytes(text, value),
            Language::Modbus => Command::modbus(text, value),
        }
    }

    fn text(text: &str) -> Result<Command, String> {
        if text.chars().any(char::is_control) {
            return Err(
                "it has a control character; leave out the end, which `end` in [transport] adds"
                    .to_owned(),
            );
        }
        let mut parts = text.splitn(3, "{}").map(str::to_owned);
        let (before, after, more) = (parts.next(), parts.next(), parts.next());
        if more.is_some() {
            return Err("it has {} twice; keep one of them".to_owned());
        }
        Ok(Command::Text {
            before: before.unwrap_or_default(),
            after,
        })
    }

    fn bytes(text: &str, binary: Option<Binary>) -> Result<Command, String> {
        let (mut before, mut after, mut value) = (Vec::new(), Vec::new(), None);
        for word in text.split_ascii_whitespace() {
            if word == "{}" {
                if value.is_some() {
                    return Err("it has {} twice; keep one of them".to_owned());
                }
                let binary = binary.ok_or("{} needs a form; add binary = \"u8\" or another")?;
                value = Some(binary);
                continue;
            }
            let digits = word.strip_prefix("0x").unwrap_or(word);
            let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            match u8::from_str_radix(digits, 16) {
                Ok(byte) if digits.len() == 2 && hex => match value {
                    None => before.push(byte),
                    Some(_) => after.push(byte),
                },
                _ => {
                    return Err(format!(
                        "`{word}` is not a byte; write bytes of two hexadecimal digits, such as \"0f a0\""
                    ));
                }
            }
        }
        Ok(Command::Bytes {
            before,
            value,
            after,
        })
    }

    fn modbus(text: &str, binary: Option<Binary>) -> Result<Command, String> {
        let (place, written) = match text.split_once('=') {
            Some((place, written)) => (place, Some(written.trim())),
            None => (text, None),
        };
        let wrong = || {
            format!(
                "`{}` is not a place of Modbus; write coil, discrete, holding or input, and a number from 0 to 65535, \
                 such \
                 as \"holding 100\"",
                place.trim()
            )
        };
        let mut words = place.split_ascii_whitespace();
        let (Some(area), Some(address), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong());
        };
        let area = Area::NAMES.iter().find(|(name, _)| *name == area);
        let (_, area) = *area.ok_or_else(wrong)?;
        let address = whole(address).ok_or_else(wrong)?;
        let write = match written {
            None => None,
            Some(_) if !area.is_writable() => {
                return Err("it can be read only; write to a coil or a holding register".to_owned());
            }
            Some("{}") => Some((binary.unwrap_or_else(|| one(area)), None)),
            Some(value) => {
                let number = whole(value).filter(|value| *value < 2 || !area.is_of_bits());
                let number = number.ok_or_else(|| {
                    format!("`{value}` cannot be written; write {{}}, or a number that fits")
                })?;
                Some((one(area), Some(number)))
            }
        };
        Ok(Command::Modbus {
            area,
            address,
            write,
        })
    }

    /// Whether it has a place for a value.
    pub fn has_place(&self) -> bool {
        match self {
            Command::Text { after, .. } => after.is_some(),
            Command::Bytes { value, .. } => value.is_some(),
            Command::Modbus { write, .. } => matches!(write, Some((_, None))),
        }
    }

    /// Whether it is an answer that is wanted: it writes nothing.
    pub fn is_question(&self) -> bool {
        !self.has_place() && !matches!(self, Command::Modbus { write: Some(_), .. })
    }

    /// The bytes to send; of Modbus, those of what is written. `None` if the value has no room.
    pub fn bytes_for(&self, value: f64) -> Option<Vec<u8>> {
        match self {
            Command::Text {
                before,
                after: None,
            } => Some(before.clone().into_bytes()),
            Command::Text {
                before,
                after: Some(after),
            } => Some(format!("{before}{}{after}", decimal(value)).into_bytes()),
            Command::Bytes {
                before,
                value: binary,
                after,
            } => {
                let mut bytes = before.clone();
                if let Some(binary) = binary {
                    binary.write(value, &mut bytes)?;
                }
                bytes.extend_from_slice(after);
                Some(bytes)
            }
            Command::Modbus { write: None, .. } => Some(Vec::new()),
            Command::Modbus {
                write: Some((binary, fixed)),
                ..
            } => {
                let mut bytes = Vec::new();
                binary.write(fixed.map_or(value, f64::from), &mut bytes)?;
                Some(bytes)
            }
        }
    }
}

/// As it was written.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Command::Text { before, after } => {
                f.write_str(before)?;
                after.iter().try_for_each(|after| write!(f, "{{}}{after}"))
            }
            Command::Bytes {
                before,
                value,
                after,
            } => {
                let mut words: Vec<String> = hex(before);
                words.extend(value.map(|_| "{}".to_owned()));
                let after: Vec<String> = hex(after);
                words.extend(after);
                f.write_str(&words.join(" "))
            }
            Command::Modbus {
                area,
                address,
                write,
            } => {
                let name = Area::NAMES.iter().find(|(_, known)| known == area);
                write!(f, "{} {address}", name.map_or("", |(name, _)| name))?;
                match write {
                    None => Ok(()),
                    Some((_, None)) => f.write_str(" = {}"),
                    Some((_, Some(value))) => write!(f, " = {value}"),
                }
            }
        }
    }
}

fn whole(text: &str) -> Option<u16> {
    match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten(),
    }
}

/// The nearest number of 15 digits.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

/// A number as people write it: 1500 * 0.001 is 1.5, not 1.5000000000000002.
fn decimal(value: f64) -> String {
    match rounded(value) {
        0.0 => "0".to_owned(),
        large if f64::abs(large) >= 1e15 => format!("{large:E}"),
        small if f64::abs(small) < 1e-5 => format!("{small:E}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str, language: Language, value: f64) -> Option<Vec<u8>> {
        let command = Command::new(text, language, Some(one(Area::Holding))).expect(text);
        assert_eq!(command.to_string(), text);
        command.bytes_for(value)
    }

    #[test]
    fn a_value_takes_its_place() {
        for (value, text) in [
            (1500.0 * 0.001, "VOLT 1.5,(@1)"),
            (3.0 * 0.1, "VOLT 0.3,(@1)"),
            (-2.0, "VOLT -2,(@1)"),
            (0.0, "VOLT 0,(@1)"),
            (-0.0, "VOLT 0,(@1)"),
            (1e-9, "VOLT 1E-9,(@1)"),
            (1e18, "VOLT 1E18,(@1)"),
        ] {
            let sent = sent("VOLT {},(@1)", Language::Text, value);
            assert_eq!(sent, Some(text.as_bytes().to_vec()));
        }
        assert_eq!(
            sent("01 {} ff", Language::Bytes, 258.0),
            Some(vec![1, 1, 2, 0xff])
        );
        assert_eq!(sent("01 {} ff", Language::Bytes, 65536.0), None);
        assert_eq!(
            sent("holding 7 = {}", Language::Modbus, 258.0),
            Some(vec![1, 2])
        );
        assert_eq!(sent("coil 7 = 1", Language::Modbus, 0.0), Some(vec![1]));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_the_remedy() {
        for (text, language, part) in [
            ("", Language::Text, "it is empty"),
            ("VOLT\n", Language::Text, "control character"),
            ("{} {}", Language::Text, "it has {} twice"),
            ("1", Language::Bytes, "`1` is not a byte"),
            ("+1", Language::Bytes, "`+1` is not a byte"),
            ("0xfff", Language::Bytes, "is not a byte"),
            ("{}", Language::Bytes, "needs a form"),
            ("holding", Language::Modbus, "is not a place of Modbus"),
            ("register 1", Language::Modbus, "is not a place of Modbus"),
            (
                "holding 65536",
                Language::Modbus,
                "is not a place of Modbus",
            ),
            ("holding +1", Language::Modbus, "is not a place of Modbus"),
            ("input 1 = {}", Language::Modbus, "read only"),
            ("coil 1 = 2", Language::Modbus, "`2` cannot be written"),
        ] {
            let error = Command::new(text, language, None).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
        let long = "V".repeat(LONGEST + 1);
        assert!(Command::new(&long, Language::Text, None).is_err());
    }
}
