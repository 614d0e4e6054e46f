// SPDX-License-Identifier: MIT OR Apache-2.0
//! A channel on a slow bus: the sample thermometer, on the kernel's simulated I2C bus.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48,0x51 bank_reg=0,0x4e bank_mask=0,7 bank_start=0,0x50 bank_end=0,0x5f'
// lab: --module strobe_sample --module strobe_sample_i2c

use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::channel::Class;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{read_to_end, record, until_rows};
use strobe_cases::thermometer::Thermometer;
use strobe_cases::{Engine, Kernel, Pace, plan};
use strobe_ring::State;

const CHANNELS: [&str; 2] = ["thermometer.temperature", "clock.waited"];

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
        assert!(
            account
                .column(0)
                .all(|word| word as i64 == i64::from(steps))
        );
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
