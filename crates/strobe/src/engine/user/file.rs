// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers in files: /sys, /proc, or any other. The file stays open, and each row is one pread.
//!
//! `file:/sys/class/thermal/thermal_zone0/temp` is the first number of that file, `file:/proc/loadavg#3` the
//! third word of it. Board files name such channels, and give them a unit and a scale.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use strobe_board::{Board, FileChannel};

use super::provider::{ChannelOpener, Provider, ReadChannel, Row};
use crate::catalogue::{Catalogue, Device};
use crate::channel::{Channel, Class, Type};
use crate::error::Error;

/// What begins the name of such a channel.
const PREFIX: &str = "file:";
/// Bytes that are read; the number has to be in them.
const SPAN: usize = 4096;

/// Provides `file:PATH` and `file:PATH#WORD`.
pub struct Files;

impl Provider for Files {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let place = name.strip_prefix(PREFIX)?;
        let (path, word) = match place.rsplit_once('#') {
            Some((path, word)) => match word.parse() {
                Ok(word @ 1..) => (path, word),
                _ => {
                    return Some(Err(unusable(
                        name,
                        "after #, write the number of a word, from 1".to_owned(),
                    )));
                }
            },
            None => (place, 1),
        };
        let about = Channel {
            name: name.to_owned(),
            description: "number in a file".to_owned(),
            unit: String::new(),
            scale: 1.0,
            offset: 0.0,
            ..plain()
        };
        Some(open(about, path, word))
    }
}

/// Provides the file channels of a board.
pub struct BoardFiles(pub Board);

impl BoardFiles {
    fn about(&self, channel: &FileChannel) -> Channel {
        Channel {
            name: format!("{}.{}", self.0.name, channel.name),
            description: channel.description.clone(),
            unit: channel.unit.clone(),
            scale: channel.scale,
            offset: channel.offset,
            ..plain()
        }
    }
}

impl Provider for BoardFiles {
    fn list(&self, catalogue: &mut Catalogue) {
        let known = catalogue
            .devices
            .iter()
            .any(|device| device.name == self.0.name);
        if !known && !self.0.files.is_empty() {
            catalogue.devices.push(Device {
                name: self.0.name.clone(),
                description: self.0.description.clone(),
                in_use: false,
            });
        }
        let channels = self.0.files.iter().map(|channel| self.about(channel));
        catalogue.channels.extend(channels);
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let part = name.strip_prefix(self.0.name.as_str())?.strip_prefix('.')?;
        let channel = self.0.files.iter().find(|channel| channel.name == part)?;
        Some(open(self.about(channel), &channel.path, channel.word))
    }
}

fn plain() -> Channel {
    Channel {
        name: String::new(),
        description: String::new(),
        unit: String::new(),
        kind: Type::S64,
        class: Class::Sleep,
        scale: 1.0,
        offset: 0.0,
        bits: 64,
        cost_ns: 2000,
        in_use: false,
    }
}

fn unusable(name: &str, why: String) -> Error {
    Error::Unusable {
        what: "channel",
        name: name.to_owned(),
        why,
    }
}

/// Opens the file, and sees what kind of number it holds.
pub(super) fn open(
    mut about: Channel,
    path: &str,
    word: usize,
) -> Result<ChannelOpener<'static>, Error> {
    let refused = |error: io::Error| {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => "; become a member of its group, or be root",
            io::ErrorKind::NotFound => "; check the spelling, and that the device is there",
            _ => "",
        };
        unusable(&about.name, format!("{path}: {error}{remedy}"))
    };
    let file = File::open(path).map_err(refused)?;
    let mut reader = NumberFile {
        file,
        word,
        kind: Type::S64,
    };
    let mut buffer = [0; SPAN];
    let text = reader.text(&mut buffer).map_err(refused)?;
    let Some(kind) = text.and_then(kind_of) else {
        let seen = text.map_or("not there".to_owned(), |text| format!("`{text:.40}`"));
        return Err(unusable(
            &about.name,
            format!("word {word} of {path} is {seen}, not a number; choose another with PATH#WORD"),
        ));
    };
    reader.kind = kind;
    about.kind = kind;
    Ok(ChannelOpener::ready(about, Box::new(reader)))
}

/// A number in a file that stays open.
struct NumberFile {
    file: File,
    word: usize,
    kind: Type,
}

impl NumberFile {
    /// The word in question, if there is one.
    fn text<'a>(&self, buffer: &'a mut [u8; SPAN]) -> io::Result<Option<&'a str>> {
        let length = rustix::io::pread(self.file.as_fd(), &mut buffer[..], 0)?;
        let bytes = buffer.get(..length).unwrap_or(&[]);
        let mut words = bytes
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let word = words.nth(self.word.saturating_sub(1));
        Ok(word.and_then(|word| std::str::from_utf8(word).ok()))
    }
}

impl ReadChannel for NumberFile {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let mut buffer = [0; SPAN];
        let text = self.text(&mut buffer)?;
        let word = text.and_then(|text| word_of(self.kind, text));
        word.ok_or_else(|| Errno::INVAL.into())
    }
}

/// What kind of number a text is.
fn kind_of(text: &str) -> Option<Type> {
    let kinds = [Type::S64, Type::U64, Type::F64];
    kinds
        .into_iter()
        .find(|kind| word_of(*kind, text).is_some())
}

/// The 64-bit word of a number of this kind.
fn word_of(kind: Type, text: &str) -> Option<u64> {
    match kind {
        Type::S64 => text.parse::<i64>().ok().map(|value| value as u64),
        Type::U64 => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        Type::F64 => text
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite())
            .map(f64::to_bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::user::trigger::Trigger;

    const ROW: Row = Row {
        time: 0,
        start: 0,
        trigger: Trigger::PLAIN,
    };

    fn channel(name: &str) -> Result<ChannelOpener<'_>, String> {
        let found = Files.channel(name).expect("a file channel");
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_is_read_anew_for_each_row() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().display();
        for (text, place, kind, word) in [
            ("  42\n", "", Type::S64, 42),
            ("-7", "", Type::S64, -7_i64 as u64),
            ("18446744073709551615\n", "", Type::U64, u64::MAX),
            ("0x10", "", Type::U64, 16),
            ("0.25 0.5 1/300", "#2", Type::F64, 0.5_f64.to_bits()),
            ("MemFree:  77 kB", "#2", Type::S64, 77),
        ] {
            std::fs::write(file.path(), text).expect("to write");
            let name = format!("file:{path}{place}");
            let found = channel(&name).expect(text);
            assert_eq!(found.about.kind, kind, "{text}");
            let mut reader = found.open().expect(text);
            assert_eq!(reader.read(&ROW).ok(), Some(word), "{text}");
        }
        std::fs::write(file.path(), "1").expect("to write");
        let name = format!("file:{path}");
        let mut reader = channel(&name).and_then(|found| found.open().map_err(|e| e.to_string()));
        let reader = reader.as_mut().expect("a number");
        for (text, word) in [
            ("2", Some(2)),
            ("oops", None),
            ("", None),
            ("3.5", None),
            ("3", Some(3)),
        ] {
            std::fs::write(file.path(), text).expect("to write");
            assert_eq!(reader.read(&ROW).ok(), word, "`{text}`");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_with_the_remedy() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "eth0: 5").expect("to write");
        let path = file.path().display().to_string();
        for (name, part) in [
            (format!("file:{path}"), "is `eth0:`, not a number"),
            (format!("file:{path}#9"), "is not there, not a number"),
            (format!("file:{path}#0"), "from 1"),
            ("file:/nonexistent".to_owned(), "check the spelling"),
            ("file:/proc".to_owned(), "Is a directory"),
        ] {
            let error = channel(&name).err().expect(&name);
            assert!(
                error.starts_with(&format!("channel {name}: ")) && error.contains(part),
                "{error}"
            );
        }
        assert!(Files.channel("sim.counter").is_none());
    }
}
