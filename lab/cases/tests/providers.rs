// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every engine has to do, in runs that also read a device of Linux: see `conformance`.
// lab: --module iio-trig-hrtimer --module iio_dummy --module strobe_iio --module lab_gpio --module 'strobe_gpio raw=lab'
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48' --module lm75
// kernels: rt

use std::any::Any;

use strobe_cases::beside::{Beside, Provider};
use strobe_cases::iio::Dummy;
use strobe_cases::thermometer::Thermometer;
use strobe_cases::{Kernel, User};

use crate::conformance::{conformance, events, everywhere, life, pause, rings};

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
        Box::new(Thermometer::driven_by("lm75"))
    }
}

everywhere!(kernel_gpio: Beside<Kernel, Gpio>; life: many_runs_start_and_stop_under_load,;);
everywhere!(kernel_scan: Beside<Kernel, Scan>; life: many_runs_start_and_stop_under_load,;);
// A line is one run's at a time.
everywhere!(user_gpio: Beside<User, Gpio>;);
everywhere!(user_converter: Beside<User, Converter>; life: many_runs_start_and_stop_under_load,;);
everywhere!(user_hwmon: Beside<User, Hwmon>; life: many_runs_start_and_stop_under_load,;);
