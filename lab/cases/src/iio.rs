// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for IIO's own device without hardware, which a trigger with a timer scans.

use std::fs;
use std::path::{Path, PathBuf};

use crate::account::until;

const DEVICE: &str = "/sys/kernel/config/iio/devices/dummy/lab";
const TRIGGER: &str = "/sys/kernel/config/iio/triggers/hrtimer/lab";
const BUS: &str = "/sys/bus/iio/devices";

/// What the drivers' table has for these: see `iio_simple_dummy_buffer.c`.
pub const VOLTAGE: u64 = 7;
/// The same, of the axis.
pub const ACCEL: u64 = 344;

/// The device, which strobe calls `lab`; unplugged when this is dropped.
pub struct Dummy {
    path: PathBuf,
}

impl Dummy {
    /// It scans so often, once somebody wants that.
    pub fn new(hertz: u64) -> Dummy {
        make(TRIGGER);
        make(DEVICE);
        let trigger = named("trigger", "lab");
        write(&trigger.join("sampling_frequency"), &hertz.to_string());
        let dummy = Dummy {
            path: named("iio:device", "lab"),
        };
        dummy.write("trigger/current_trigger", "lab");
        dummy
    }

    /// A file of the device, in sysfs.
    pub fn write(&self, name: &str, text: &str) {
        write(&self.path.join(name), text);
    }

    /// The text of one.
    pub fn read(&self, name: &str) -> String {
        let path = self.path.join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
        text.trim().to_owned()
    }

    /// Unplugs the device, whoever uses it.
    pub fn unplug(&self) {
        fs::remove_dir(DEVICE).expect("to unplug the device");
    }
}

impl Drop for Dummy {
    fn drop(&mut self) {
        // It may be unplugged.
        let _ = fs::remove_dir(DEVICE);
    }
}

fn make(path: &str) {
    if !Path::new(path).exists() {
        fs::create_dir(path).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|why| panic!("{path:?}: {why}"));
}

/// A thing of IIO's bus with this kind and name.
fn named(kind: &str, name: &str) -> PathBuf {
    let mut found = None;
    until("the thing of IIO", || {
        let entries = fs::read_dir(BUS).into_iter().flatten().flatten();
        let mut paths = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(kind))
            .map(|entry| entry.path());
        found = paths.find(|path| {
            let text = fs::read_to_string(path.join("name"));
            text.is_ok_and(|text| text.trim() == name)
        });
        found.is_some()
    });
    found.expect("it was found")
}
