// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffer of an IIO device, and its scans as triggers.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::format::{Format, names};
use super::{Latest, SLOTS};
use crate::accounting::Accounting;
use crate::clock::RunClock;
use crate::engine::user::settings::WaitMode;
use crate::engine::user::trigger::{EventSource, Trigger, WaitOutcome};

/// The channel that says when a scan was made.
const TIMESTAMP: &str = "in_timestamp";
/// Scans that the kernel is to keep for us.
const LENGTH: u32 = 4096;
/// Bytes of a scan, at most.
const SCAN: usize = 8 * (SLOTS + 1);

/// A device that has a buffer.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    device: PathBuf,
}

impl Buffer {
    /// That of a device; `None` if it has none.
    pub(super) fn of(device: &Path) -> Option<Buffer> {
        let has = device.join("buffer/enable").exists();
        has.then(|| Buffer {
            device: device.to_owned(),
        })
    }

    fn text(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.device.join(file)).ok()?;
        Some(text.trim().to_owned())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.device.join(file);
        fs::write(&path, text).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "be root, or add a udev rule that gives you access"
                }
                _ => "see the kernel's log (dmesg)",
            };
            format!(
                "{text} cannot be written to {}: {error}; {remedy}",
                path.display()
            )
        })
    }

    /// Directory of the trigger that makes its scans.
    fn trigger(&self) -> Option<PathBuf> {
        let name = self
            .text("trigger/current_trigger")
            .filter(|name| !name.is_empty())?;
        let all = fs::read_dir(self.device.parent()?)
            .ok()?
            .flatten()
            .map(|entry| entry.path());
        let mut triggers = all.filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("trigger"))
        });
        triggers.find(|path| {
            fs::read_to_string(path.join("name")).is_ok_and(|text| text.trim() == name)
        })
    }

    /// From scan to scan, if its trigger is periodic and scans have time stamps.
    pub(super) fn period_ns(&self) -> Option<f64> {
        Format::of(&self.device, TIMESTAMP).ok()?;
        let hertz = fs::read_to_string(self.trigger()?.join("sampling_frequency")).ok()?;
        let hertz: f64 = hertz.trim().parse().ok()?;
        (hertz > 0.0).then(|| 1e9 / hertz)
    }

    /// How it accounts for what it drops.
    pub(super) fn accounting(&self) -> Accounting {
        match self.period_ns() {
            Some(_) => Accounting::ByTime,
            None => Accounting::None,
        }
    }

    fn enable(&self, on: bool) -> Result<(), String> {
        self.write("buffer/enable", if on { "1" } else { "0" })
    }
}

/// A value of a scan: where it stands, its form, and where it is left.
struct Element {
    offset: usize,
    format: Format,
    slot: Option<usize>,
}

/// Scans of a buffer.
pub(super) struct Source {
    buffer: Buffer,
    file: File,
    elements: Vec<Element>,
    /// Bytes of a scan.
    bytes: usize,
    /// Time stamp: its offset, if it is on the monotonic clock.
    stamp: Option<usize>,
    period_ns: Option<f64>,
    latest: Arc<Latest>,
    spin: bool,
    /// Time stamp of the last scan; 0 before the first.
    last: u64,
    count: u64,
    /// What was written there before.
    before: Vec<(String, String)>,
}

impl Source {
    /// Scans with these channels, which leave their values in slots of that order.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub(super) fn open(
        buffer: Buffer,
        dev: &Path,
        wanted: &[String],
        latest: Arc<Latest>,
        wait: WaitMode,
    ) -> Result<Source, String> {
        let current = buffer.text("trigger/current_trigger");
        if current.as_deref() == Some("") {
            let file = buffer.device.join("trigger/current_trigger");
            return Err(format!(
                "no trigger is set; as root: echo TRIGGER > {}",
                file.display()
            ));
        }
        if buffer.text("buffer/enable").as_deref() == Some("1") {
            return Err("another program uses its buffer; end that program".to_owned());
        }
        let node = buffer
            .device
            .file_name()
            .map(|name| dev.join(name))
            .unwrap_or_default();
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(&node);
        let file = file.map_err(|error| {
            let remedy = match Errno::from_io_error(&error) {
                Some(Errno::BUSY) => "another program has it open; end that program",
                _ => "be root, or add a udev rule that gives you access",
            };
            format!("{}: {error}; {remedy}", node.display())
        })?;
        let mut source = Source {
            period_ns: buffer.period_ns(),
            buffer,
            file,
            elements: Vec::new(),
            bytes: 0,
            stamp: None,
            latest,
            spin: wait == WaitMode::Spin,
            last: 0,
            count: 0,
            before: Vec::new(),
        };
        source.set_up(wanted)?;
        Ok(source)
    }

    fn set_up(&mut self, wanted: &[String]) -> Result<(), String> {
        let all = names(&self.buffer.device);
        let has_stamp = all.iter().any(|name| name == TIMESTAMP);
        if has_stamp && self.buffer.text("current_timestamp_clock").is_some() {
            self.set("current_timestamp_clock", "monotonic")?;
        }
        // Some devices scan one channel at a time: first off, then on.
        let is_wanted = |name: &&String| wanted.contains(name) || *name == TIMESTAMP;
        for name in all.iter().filter(|name| !is_wanted(name)) {
            self.set(&format!("scan_elements/{name}_en"), "0")?;
        }
        for name in all.iter().filter(is_wanted) {
            self.set(&format!("scan_elements/{name}_en"), "1")?;
        }
        // The driver may have it longer or shorter.
        let _ = self.set("buffer/length", &LENGTH.to_string());
        let _ = self.set("buffer/watermark", "1");
        // Some drivers scan more than they are asked for.
        let is_on = |name: &&String| {
            let file = format!("scan_elements/{name}_en");
            self.buffer.text(&file).as_deref() == Some("1")
        };
        let mut on = Vec::new();
        for name in all.iter().filter(is_on) {
            let format = Format::of(&self.buffer.device, name)?;
            on.push((format.index, format, name));
        }
        on.sort_by_key(|(index, ..)| *index);
        let (mut end, mut widest) = (0_usize, 1);
        for (_, format, name) in on {
            // Each begins at a multiple of its own size.
            let bytes = format.bytes();
            let offset = end.next_multiple_of(bytes);
            end = offset + bytes;
            widest = widest.max(bytes);
            if name == TIMESTAMP {
                self.stamp = Some(offset);
            }
            self.elements.push(Element {
                offset,
                format,
                slot: wanted.iter().position(|wanted| wanted == name),
            });
        }
        self.bytes = end.next_multiple_of(widest);
        if self.elements.is_empty() {
            return Err(
                "the run reads no channel of its scans, and they have no time stamp; read one"
                    .to_owned(),
            );
        }
        if self.bytes > SCAN {
            return Err(format!(
                "its scans have {} bytes, more than {SCAN}; read fewer channels",
                self.bytes
            ));
        }
        let clock = self.buffer.text("current_timestamp_clock");
        if clock.is_none_or(|clock| clock != "monotonic") {
            self.stamp = None;
        }
        Ok(())
    }

    /// Writes an attribute, which is as it was when this is dropped.
    fn set(&mut self, file: &str, text: &str) -> Result<(), String> {
        let before = self.buffer.text(file).unwrap_or_default();
        if before == text {
            return Ok(());
        }
        self.buffer.write(file, text)?;
        self.before.push((file.to_owned(), before));
        Ok(())
    }

    /// The oldest scan in the buffer.
    fn take(&mut self) -> io::Result<Option<Trigger>> {
        let mut bytes = [0; SCAN];
        let Some(scan) = bytes.get_mut(..self.bytes) else {
            return Ok(None);
        };
        match rustix::io::read(&self.file, &mut *scan) {
            Ok(count) if count == scan.len() => {}
            Ok(0) | Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Ok(_) => return Err(Errno::IO.into()),
            Err(errno) => return Err(errno.into()),
        }
        let part =
            |offset: usize, bytes: usize| scan.get(offset..offset + bytes).unwrap_or_default();
        for element in &self.elements {
            let word = element
                .format
                .value(part(element.offset, element.format.bytes()));
            if let Some(slot) = element.slot.and_then(|slot| self.latest.get(slot)) {
                slot.store(word, Ordering::Relaxed);
            }
        }
        let time = self
            .stamp
            .and_then(|offset| part(offset, 8).try_into().ok());
        let time = time.map_or(0, u64::from_ne_bytes);
        let missed = self.missed(time);
        self.last = time;
        self.count += missed + 1;
        Ok(Some(Trigger {
            missed,
            cause: Missed::Source,
            time,
            count: self.count,
            ..Trigger::PLAIN
        }))
    }

    /// Scans between the last one and this that the buffer had no room for, by time.
    fn missed(&self, time: u64) -> u64 {
        let Some(period) = self.period_ns.filter(|_| self.last > 0 && time > self.last) else {
            return 0;
        };
        let periods = ((time - self.last) as f64 / period).round() as u64;
        periods.saturating_sub(1)
    }
}

impl EventSource for Source {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        // What a pause has left.
        while self.take()?.is_some() {}
        (self.last, self.count) = (0, 0);
        self.buffer.enable(true).map_err(io::Error::other)?;
        Ok(None)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        while !wakeup.is_pending() {
            if let Some(trigger) = self.take()? {
                let time = if trigger.time == 0 {
                    0
                } else {
                    clock.of_monotonic(trigger.time)
                };
                return Ok(WaitOutcome::Trigger(Trigger { time, ..trigger }));
            }
            match self.spin {
                true => std::hint::spin_loop(),
                false => {
                    wakeup.sleep_for_device(self.file.as_fd(), PollFlags::IN)?;
                }
            }
        }
        Ok(WaitOutcome::Wakeup)
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let mut missed = 0;
        // More than the kernel keeps are not there, unless new ones come all the time.
        for _ in 0..LENGTH {
            // What cannot be read is not known.
            let Ok(Some(trigger)) = self.take() else {
                break;
            };
            missed += trigger.missed + 1;
        }
        (Missed::Source, missed)
    }

    fn end(&mut self) {
        // It can only be that the device has gone.
        let _ = self.buffer.enable(false);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = self.buffer.enable(false);
        for (file, text) in self.before.iter().rev() {
            // A device that has gone needs it no more.
            let _ = self.buffer.write(file, text);
        }
    }
}
