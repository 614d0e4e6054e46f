// SPDX-License-Identifier: MIT OR Apache-2.0
//! What drivers give away as numbers in /sys, by the names of their devices and with their units: `hwmon:NAME/temp1`,
//! `power:BAT0/voltage_now`, `thermal:ZONE`, `led:NAME`, `pwm:CHIP/N`, `counter:NAME/count0`.
//!
//! The units are those that the kernel's documentation gives to all drivers of a class, scaled to V, A, W and the like.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::file;
use super::provider::{ChannelOpener, OutputOpener, Provider, WriteOutput};
use crate::catalogue::Catalogue;
use crate::channel::{Channel, Class, Type};
use crate::error::Error;

pub(super) mod device;
mod unit;

use device::{Group, devices};
use unit::Unit;

/// The classes, each with its prefix, its directory below /sys, and the file in which a device has its name.
const CLASSES: [Group; 6] = [
    Group::new("hwmon", "class/hwmon", Some("name")),
    Group::new("power", "class/power_supply", None),
    Group::new("thermal", "class/thermal", Some("type")),
    Group::new("led", "class/leds", None),
    Group::new("pwm", "class/pwm", None),
    Group::new("counter", "bus/counter/devices", Some("name")),
];

/// Provides these channels and outputs.
pub struct Sysfs(PathBuf);

impl Default for Sysfs {
    fn default() -> Self {
        Sysfs("/sys".into())
    }
}

/// A file of a device, and what its number is.
struct Place {
    path: PathBuf,
    unit: Unit,
    /// Bits that may be written; `None`: it cannot be.
    bits: Option<u32>,
}

impl Sysfs {
    #[cfg(test)]
    fn at(root: &Path) -> Self {
        Sysfs(root.to_owned())
    }

    /// The place of this name; `None` if the name is not of one of the classes.
    fn place(&self, name: &str) -> Option<Result<Place, String>> {
        let (prefix, rest) = name.split_once(':')?;
        let class = CLASSES.iter().find(|class| class.prefix == prefix)?;
        let (device, part) = match rest.split_once('/') {
            Some((device, part)) => (device, Some(part)),
            None => (rest, None),
        };
        Some(
            class
                .find(&self.0, device)
                .and_then(|path| place(class.prefix, &path, part)),
        )
    }

    /// All places that can be found without being named, by their names.
    fn all(&self) -> Vec<(String, Place)> {
        let mut found = Vec::new();
        for class in &CLASSES {
            for (name, path) in devices(class, &self.0) {
                let name = format!("{}:{name}", class.prefix);
                if matches!(class.prefix, "thermal" | "led") {
                    found.extend(place(class.prefix, &path, None).map(|place| (name, place)));
                    continue;
                }
                for part in parts(class.prefix, &path) {
                    let place = place(class.prefix, &path, Some(&part));
                    found.extend(place.map(|place| (format!("{name}/{part}"), place)));
                }
            }
        }
        found
    }
}

/// Parts of a device that are measured, by their names in channels; sorted.
fn parts(class: &str, path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut parts: Vec<String> = names
        .filter_map(|name| match class {
            "hwmon" => match name.strip_suffix("_input") {
                Some(part) => Some(part.to_owned()),
                None => name
                    .strip_prefix("pwm")
                    .is_some_and(is_number)
                    .then_some(name),
            },
            "power" => unit::of_supply(&name).is_some().then_some(name),
            "counter" => name
                .strip_prefix("count")
                .is_some_and(is_number)
                .then_some(name),
            "pwm" => name
                .strip_prefix("pwm")
                .filter(|digits| is_number(digits))
                .map(str::to_owned),
            _ => None,
        })
        .collect();
    parts.sort();
    parts
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A part of a device.
fn place(class: &str, path: &Path, part: Option<&str>) -> Result<Place, String> {
    let there = || parts(class, path).join(", ");
    let read = |unit, path| Place {
        path,
        unit,
        bits: None,
    };
    let write = |unit, path, bits| Place {
        path,
        unit,
        bits: Some(bits),
    };
    let no_part = || format!("name the part, as in {class}:NAME/PART; it has {}", there());
    let wanted = match (class, part) {
        ("thermal", None) => return Ok(read(Unit::new("degC", 1e-3), path.join("temp"))),
        ("led", None) => {
            let most = fs::read_to_string(path.join("max_brightness")).unwrap_or_default();
            let most = most.trim().parse::<u64>().unwrap_or(255);
            let bits = u64::BITS - most.leading_zeros();
            return Ok(write(Unit::default(), path.join("brightness"), bits));
        }
        ("thermal" | "led", Some(part)) => {
            return Err(format!("it has one value only; leave /{part} out"));
        }
        (_, None) => return Err(no_part()),
        (_, Some(part)) => part,
    };
    if wanted.contains("..") || wanted.starts_with('/') {
        return Err(no_part());
    }
    let found = match class {
        "hwmon" if wanted.strip_prefix("pwm").is_some_and(is_number) => {
            write(Unit::default(), path.join(wanted), 8)
        }
        "hwmon" => {
            let input = path.join(format!("{wanted}_input"));
            let file = if input.exists() {
                input
            } else {
                path.join(wanted)
            };
            read(unit::of_sensor(wanted), file)
        }
        "counter" => write(Unit::default(), path.join(wanted).join("count"), 63),
        "power" => read(
            unit::of_supply(wanted).unwrap_or_default(),
            path.join(wanted),
        ),
        _ => {
            let (number, file) = wanted.split_once('/').unwrap_or((wanted, "duty_cycle"));
            let exported = path.join(format!("pwm{number}"));
            if !exported.exists() {
                return Err(format!(
                    "its channel {number} does not exist or is not exported; as root: echo {number} > {}",
                    path.join("export").display()
                ));
            }
            match file {
                "duty_cycle" | "period" => write(Unit::new("ns", 1.0), exported.join(file), 63),
                "enable" => write(Unit::default(), exported.join(file), 1),
                _ => {
                    return Err(format!(
                        "a PWM has no {file}; it has duty_cycle, period, enable"
                    ));
                }
            }
        }
    };
    match found.path.exists() {
        true => Ok(found),
        false => Err(format!("it has no {wanted}; it has {}", there())),
    }
}

fn about(name: &str, place: &Place) -> Channel {
    Channel {
        name: name.to_owned(),
        description: format!("{}", place.path.display())
            .chars()
            .take(79)
            .collect(),
        unit: place.unit.name.to_owned(),
        kind: Type::S64,
        class: Class::Sleep,
        scale: place.unit.scale,
        offset: 0.0,
        bits: 64,
        cost_ns: 2000,
        in_use: false,
    }
}

/// What is written is the number in the file: an output has no scale.
fn about_output(name: &str, place: &Place, bits: u32) -> Channel {
    Channel {
        kind: Type::U64,
        bits,
        ..about(name, place)
    }
}

fn unusable(what: &'static str, name: &str, why: String) -> Error {
    let name = name.to_owned();
    Error::Unusable { what, name, why }
}

impl Provider for Sysfs {
    fn list(&self, catalogue: &mut Catalogue) {
        for (name, place) in self.all() {
            catalogue.channels.push(about(&name, &place));
            if let Some(bits) = place.bits {
                catalogue.outputs.push(about_output(&name, &place, bits));
            }
        }
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        Some(match self.place(name)? {
            Ok(place) => file::open(about(name, &place), &place.path.to_string_lossy(), 1),
            Err(why) => Err(unusable("channel", name, why)),
        })
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let found = self.place(name)?.and_then(|place| match place.bits {
            Some(bits) => Ok((bits, place)),
            None => Err("it is a measured value and cannot be set; read it instead".to_owned()),
        });
        Some(match found {
            Ok((bits, place)) => {
                let about = about_output(name, &place, bits);
                let name = name.to_owned();
                Ok(OutputOpener::new(about, move || {
                    let opened = File::options().write(true).open(&place.path);
                    let refused = |error| {
                        let path = place.path.display();
                        unusable(
                            "output",
                            &name,
                            format!(
                                "{path}: {error}; be root, or add a udev rule that gives you access"
                            ),
                        )
                    };
                    opened
                        .map_err(refused)
                        .map(|file| Box::new(NumberOutput(file)) as _)
                }))
            }
            Err(why) => Err(unusable("output", name, why)),
        })
    }
}

/// A number that is written into a file that stays open.
pub(super) struct NumberOutput(pub(super) File);

impl WriteOutput for NumberOutput {
    fn write(&mut self, word: u64) -> io::Result<()> {
        let mut text = [0; 24];
        let mut rest = &mut text[..];
        writeln!(rest, "{word}")?;
        let left = rest.len();
        let length = text.len() - left;
        rustix::io::pwrite(self.0.as_fd(), text.get(..length).unwrap_or_default(), 0)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
