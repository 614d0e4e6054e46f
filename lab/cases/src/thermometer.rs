// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sample thermometer on the kernel's simulated I2C bus: a provider of channels that sleep, which comes and goes. Its
//! tests have a line `// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48' --module strobe_sample_i2c`.

use std::fs;
use std::path::PathBuf;

use crate::machine::command;

/// The simulated bus: the adapter's directory in sysfs, and its number.
pub fn bus() -> (PathBuf, String) {
    let adapters = fs::read_dir("/sys/bus/i2c/devices").expect("adapters");
    let stub = adapters.flatten().find(|adapter| {
        let name = fs::read_to_string(adapter.path().join("name"));
        name.is_ok_and(|name| name.starts_with("SMBus stub"))
    });
    let stub = stub.expect("the simulated bus");
    let name = stub.file_name().to_string_lossy().into_owned();
    let number = name.trim_start_matches("i2c-").to_owned();
    (stub.path(), number)
}

/// The thermometer is there until this is dropped.
pub struct Thermometer(PathBuf, String);

impl Thermometer {
    /// Plugs it in.
    #[allow(clippy::new_without_default)] // it does something
    pub fn new() -> Self {
        Thermometer::driven_by("strobe-thermometer")
    }

    /// A chip at its place, for another driver.
    pub fn driven_by(driver: &str) -> Self {
        let (bus, number) = bus();
        fs::write(bus.join("new_device"), format!("{driver} 0x48")).expect("a device");
        Thermometer(bus, number)
    }

    /// So many steps of 1/256 degree.
    pub fn set(&self, steps: i16) {
        let word = (steps as u16).swap_bytes();
        let line = format!("i2cset -f -y {} 0x48 0x00 {word:#06x} w", self.1);
        assert!(command(&line), "{line}");
    }

    /// Unplugs it.
    pub fn unplug(&self) {
        // Gone already is as good.
        let _ = fs::write(self.0.join("delete_device"), "0x48");
    }
}

impl Drop for Thermometer {
    fn drop(&mut self) {
        self.unplug();
    }
}
