// SPDX-License-Identifier: MIT OR Apache-2.0
//! A channel on a slow bus: the sample thermometer, on the kernel's simulated I2C bus.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48' --module strobe_sample_i2c

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::channel::Class;
use strobe::engine::Source;
use strobe::plan::Plan;
use strobe_cases::account::{read_to_end, record, until_rows};
use strobe_cases::machine::command;
use strobe_cases::{plan, Engine, Kernel, Pace};
use strobe_ring::State;

const CHANNELS: [&str; 2] = ["thermometer.temperature", "clock.waited"];

/// The simulated bus: the adapter's directory in sysfs, and its number.
fn bus() -> (PathBuf, String) {
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
struct Thermometer(PathBuf, String);

impl Thermometer {
    fn new() -> Self {
        let (bus, number) = bus();
        fs::write(bus.join("new_device"), "strobe-thermometer 0x48").expect("a device");
        Thermometer(bus, number)
    }

    /// So many steps of 1/256 degree.
    fn set(&self, steps: i16) {
        let word = (steps as u16).swap_bytes();
        let line = format!("i2cset -f -y {} 0x48 0x00 {word:#06x} w", self.1);
        assert!(command(&line), "{line}");
    }

    fn unplug(&self) {
        // Gone already is as good.
        let _ = fs::write(self.0.join("delete_device"), "0x48");
    }
}

impl Drop for Thermometer {
    fn drop(&mut self) {
        self.unplug();
    }
}

#[test]
fn a_value_is_read_over_the_bus_by_the_runs_thread() {
    let thermometer = Thermometer::new();
    let kernel = Kernel::open();
    let catalogue = kernel.0.catalogue().expect("a catalogue");
    let channel = catalogue.channels.iter().find(|c| c.name == CHANNELS[0]);
    assert_eq!(channel.map(|c| c.class), Some(Class::Sleep));
    for steps in [0, 5376, -1, i16::MIN] {
        thermometer.set(steps);
        let plan = Plan {
            limit: Some(20),
            ..plan("timer:5ms", &CHANNELS)
        };
        let (account, end) = record(&kernel.run(&plan));
        assert_eq!(end.state, State::Done);
        assert!(account
            .column(0)
            .all(|word| word as i64 == i64::from(steps)));
        assert!(account.column(1).all(|waited| waited > 0));
    }
}

#[test]
fn a_thermometer_that_goes_ends_its_run_and_nobody_reads_it_any_more() {
    for round in 0..20 {
        let thermometer = Thermometer::new();
        let run = Kernel::open().run(&plan("timer:1ms", &CHANNELS));
        let mut reader = run.reader().expect("a reader");
        run.start().expect("to start");
        until_rows(&reader, 5);
        thread::sleep(Duration::from_micros(53 * round));
        thermometer.unplug();
        read_to_end(&mut reader, Pace::FAST);
        let end = reader.snapshot();
        let gone = -Errno::NODEV.raw_os_error();
        assert_eq!((end.state, end.error), (State::Failed, gone));
    }
}
