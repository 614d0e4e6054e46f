// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of IIO: ADCs, DACs, sensors. `iio:NAME/in_voltage0` is a channel, `iio:NAME/out_voltage0` an output, and `iio:NAME`
//! an event: each scan of the device's buffer is a trigger, and the channels of the device are then those of the scan.
//!
//! IIO drops scans without a word when its buffer is full. Where scans have time stamps and their period is known, what
//! was dropped is found by time, and missed; else nobody knows.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use std::io;

use super::file;
use super::provider::{ChannelOpener, EventOpener, OutputOpener, Provider, ReadChannel, Row};
use super::settings::Settings;
use super::sysfs::NumberOutput;
use super::sysfs::device::{Group, devices};
use super::trigger::Cadence;
use crate::catalogue::{Catalogue, Event as Listed};
use crate::channel::{Channel, Class, Type};
use crate::error::Error;
use crate::event::{Event, EventSpec};

mod buffer;
mod format;
mod value;

use buffer::{Buffer, Source};
use format::Format;
use value::Value;

const DEVICES: Group = Group::new("iio", "bus/iio/devices", Some("name"));
/// Channels of a scan, at most.
const SLOTS: usize = 64;

/// The values of the last scan. Written by the source of triggers, read by the channels, all in the thread of the run.
type Latest = [AtomicU64; SLOTS];

/// Provides them, to one run.
pub struct Iio {
    root: PathBuf,
    dev: PathBuf,
    /// The scan that triggers this run, if one does.
    scan: Mutex<Option<Scan>>,
}

/// A scan that is being put together.
struct Scan {
    device: PathBuf,
    /// Their names, in the order of their slots.
    elements: Vec<String>,
    latest: Arc<Latest>,
}

impl Default for Iio {
    fn default() -> Self {
        Iio::at("/sys".into(), "/dev".into())
    }
}

impl Iio {
    fn at(root: PathBuf, dev: PathBuf) -> Self {
        Iio {
            root,
            dev,
            scan: Mutex::new(None),
        }
    }

    /// Device and part of a name, which may have no part; `None` if the name is not of IIO.
    fn split<'a>(&self, name: &'a str) -> Option<Result<(PathBuf, Option<&'a str>), String>> {
        let rest = name.strip_prefix("iio:")?;
        let (device, part) = match rest.split_once('/') {
            Some((device, part)) => (device, Some(part)),
            None => (rest, None),
        };
        Some(DEVICES.find(&self.root, device).map(|path| (path, part)))
    }

    /// A channel of the scan that triggers this run; `None` if it is of another device.
    fn of_scan(
        &self,
        name: &str,
        device: &Path,
        part: &str,
    ) -> Option<Result<ChannelOpener<'_>, String>> {
        let mut scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        let scan = scan.as_mut().filter(|scan| scan.device == device)?;
        let format = match Format::of(device, part) {
            Ok(format) => format,
            Err(why) => return Some(Err(why)),
        };
        let value = Value::of(device, part);
        let known = scan.elements.iter().position(|element| element == part);
        let slot = known.unwrap_or(scan.elements.len());
        if slot >= SLOTS {
            return Some(Err(format!("a scan has at most {SLOTS} channels")));
        }
        if known.is_none() {
            scan.elements.push(part.to_owned());
        }
        let about = Channel {
            kind: if format.signed { Type::S64 } else { Type::U64 },
            class: Class::Hard,
            bits: format.bits,
            cost_ns: 10,
            ..about(name, part, &value)
        };
        let latest = Arc::clone(&scan.latest);
        Some(Ok(ChannelOpener::ready(
            about,
            Box::new(Slot { latest, slot }),
        )))
    }
}

/// A channel of the last scan.
struct Slot {
    latest: Arc<Latest>,
    slot: usize,
}

impl ReadChannel for Slot {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(self
            .latest
            .get(self.slot)
            .map_or(0, |word| word.load(Ordering::Relaxed)))
    }
}

fn about(name: &str, part: &str, value: &Value) -> Channel {
    Channel {
        name: name.to_owned(),
        description: format!("{part} of an IIO device"),
        unit: value.unit.to_owned(),
        kind: Type::S64,
        class: Class::Sleep,
        scale: value.scale,
        offset: value.offset,
        bits: 64,
        cost_ns: 5000,
        in_use: false,
    }
}

/// The values that a device has by files, without `_raw` and `_input`; sorted.
fn parts(device: &Path, direction: &str) -> Vec<String> {
    let entries = fs::read_dir(device).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut parts: Vec<String> = names
        .filter(|name| name.starts_with(direction))
        .filter_map(|name| {
            let part = name
                .strip_suffix("_raw")
                .or_else(|| name.strip_suffix("_input"));
            part.map(str::to_owned)
        })
        .collect();
    parts.sort();
    parts.dedup();
    parts
}

/// The file of a value; `None` if there is none.
fn file_of(device: &Path, part: &str) -> Option<PathBuf> {
    let is_name = part
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let mut files = ["_input", "_raw"]
        .map(|end| device.join(format!("{part}{end}")))
        .into_iter();
    files.find(|file| is_name && file.exists())
}

fn no_part(device: &Path, part: Option<&str>, direction: &str) -> String {
    let there = parts(device, direction).join(", ");
    match part {
        Some(part) => format!("it has no {part}; it has {there}"),
        None => format!("name the channel; it has {there}"),
    }
}

fn unusable(what: &'static str, name: &str, why: String) -> Error {
    let name = name.to_owned();
    Error::Unusable { what, name, why }
}

impl Provider for Iio {
    fn list(&self, catalogue: &mut Catalogue) {
        for (name, device) in devices(&DEVICES, &self.root) {
            for direction in ["in_", "out_"] {
                for part in parts(&device, direction) {
                    let name = format!("iio:{name}/{part}");
                    let value = Value::of(&device, &part);
                    catalogue.channels.push(about(&name, &part, &value));
                    if direction == "out_" {
                        catalogue.outputs.push(about_output(&name, &part, &value));
                    }
                }
            }
            if let Some(buffer) = Buffer::of(&device) {
                catalogue.events.push(Listed {
                    name: format!("iio:{name}"),
                    description: "scans of its buffer".to_owned(),
                    periodic: false,
                    accounting: buffer.accounting(),
                    in_use: false,
                });
            }
        }
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let found = self.split(name)?.and_then(|(device, part)| {
            let part = part.ok_or_else(|| no_part(&device, None, "in_"))?;
            match self.of_scan(name, &device, part) {
                Some(found) => found.map(Ok),
                None => {
                    let file = file_of(&device, part)
                        .ok_or_else(|| no_part(&device, Some(part), "in_"))?;
                    let value = Value::of(&device, part);
                    Ok(file::open(
                        about(name, part, &value),
                        &file.to_string_lossy(),
                        1,
                    ))
                }
            }
        });
        Some(found.unwrap_or_else(|why| Err(unusable("channel", name, why))))
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let found = self.split(name)?.and_then(|(device, part)| {
            let there = part.filter(|part| part.starts_with("out_"));
            let file = there.and_then(|part| file_of(&device, part));
            let (part, file) = there
                .zip(file)
                .ok_or_else(|| no_part(&device, part, "out_"))?;
            Ok((about_output(name, part, &Value::of(&device, part)), file))
        });
        Some(match found {
            Ok((about, path)) => {
                let name = name.to_owned();
                Ok(OutputOpener::new(about, move || {
                    let opened = File::options().write(true).open(&path);
                    let refused = |error| {
                        unusable(
                            "output",
                            &name,
                            format!("{}: {error}; be root", path.display()),
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

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Iio(device) = event.event() else {
            return None;
        };
        let name = event.to_string();
        let found = DEVICES.find(&self.root, device).and_then(|device| {
            let buffer = Buffer::of(&device);
            let why = || {
                "it has no buffer, so it cannot trigger; read its channels on another event, such as a timer".to_owned()
            };
            buffer.ok_or_else(why).map(|buffer| (device, buffer))
        });
        let (device, buffer) = match found {
            Ok(found) => found,
            Err(why) => return Some(Err(unusable("event", &name, why))),
        };
        let mut scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        *scan = Some(Scan {
            device,
            elements: Vec::new(),
            latest: Arc::new([const { AtomicU64::new(0) }; SLOTS]),
        });
        let wait = settings.wait;
        let cadence = Cadence {
            accounting: buffer.accounting(),
            ..Cadence::default()
        };
        Some(Ok(EventOpener::new(cadence, move || {
            // All channels of the run are known by now.
            let scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
            let (elements, latest) = match &*scan {
                Some(scan) => (scan.elements.as_slice(), Arc::clone(&scan.latest)),
                None => (&[][..], Arc::new([const { AtomicU64::new(0) }; SLOTS])),
            };
            let source = Source::open(buffer, &self.dev, elements, latest, wait);
            source
                .map(|source| Box::new(source) as _)
                .map_err(|why| unusable("event", &name, why))
        })))
    }
}

/// What is written is the number that the driver takes: an output has no scale.
fn about_output(name: &str, part: &str, value: &Value) -> Channel {
    Channel {
        kind: Type::U64,
        scale: 1.0,
        offset: 0.0,
        unit: String::new(),
        ..about(name, part, value)
    }
}

#[cfg(test)]
mod tests;
