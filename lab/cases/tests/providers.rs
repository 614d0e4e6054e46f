// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every engine has to do, in runs that also read a device of Linux: see `conformance`.
// lab: --module iio-trig-hrtimer --module iio_dummy --module strobe_iio --module lab_gpio --module 'strobe_gpio raw=lab'
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48' --module lm75
// kernels: rt

use std::any::Any;
use std::fs;

use strobe_cases::beside::{Beside, Provider};
use strobe_cases::iio::Dummy;
use strobe_cases::{Kernel, User, thermometer};

use crate::conformance::{beside, conformance, events, life, pause, rings};

/// Levels of lines, read in the interrupt.
struct Gpio;

impl Provider for Gpio {
    const CHANNELS: &'static [&'static str] = &["gpio:lab/0", "gpio:lab/2"];
}

/// The last scan, which is in memory.
struct Scan;

impl Provider for Scan {
    const CHANNELS: &'static [&'static str] = &["lab.scan_voltage0", "lab.scan_timestamp"];

    fn set_up() -> Box<dyn Any + Send + Sync> {
        Box::new(Dummy::new(1000))
    }
}

/// A converter that is asked in each row.
struct Converter;

impl Provider for Converter {
    const CHANNELS: &'static [&'static str] = &["iio:lab/in_voltage0", "iio:lab/in_accel_x"];

    fn set_up() -> Box<dyn Any + Send + Sync> {
        Box::new(Dummy::new(1000))
    }
}

/// A thermometer, by its driver.
struct Hwmon;

impl Provider for Hwmon {
    const CHANNELS: &'static [&'static str] = &["hwmon:lm75/temp1"];

    fn set_up() -> Box<dyn Any + Send + Sync> {
        let (bus, _) = thermometer::bus();
        fs::write(bus.join("new_device"), "lm75 0x48").expect("a device");
        Box::new(Unplugged)
    }
}

struct Unplugged;

impl Drop for Unplugged {
    fn drop(&mut self) {
        let (bus, _) = thermometer::bus();
        // A test that has failed may have said why.
        let _ = fs::write(bus.join("delete_device"), "0x48");
    }
}

beside!(kernel_gpio: Beside<Kernel, Gpio>);
beside!(kernel_scan: Beside<Kernel, Scan>);
beside!(user_gpio: Beside<User, Gpio>, one run);
beside!(user_converter: Beside<User, Converter>);
beside!(user_hwmon: Beside<User, Hwmon>);
