// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of the Industrial I/O subsystem, and one row across subsystems.
//!
//! `$STROBE_ROUNDS` says how often the device is unplugged.
// lab: --module iio-trig-hrtimer --module iio_dummy --module strobe_iio --module lab_gpio --module 'strobe_gpio raw=lab'
// kernels: amd64 rt debug kcsan

use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::accounting::Accounting;
use strobe::channel::{Class, Type};
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until_rows};
use strobe_cases::iio::{ACCEL, Dummy, VOLTAGE};
use strobe_cases::raw::{OtherUser, WRITE, create, limit, request, step};
use strobe_cases::rounds::{held, rounds};
use strobe_cases::wave::Wave;
use strobe_cases::{Engine, Kernel, Pace, errno, pci, plan};
use strobe_ring::State;

const SCAN: [&str; 4] = [
    "lab.scan_voltage0",
    "lab.scan_accel_x",
    "lab.scan_timestamp",
    "lab.scan_count",
];

#[test]
fn a_device_has_its_channels_with_the_drivers_scale_and_unit() {
    let dummy = Dummy::new(1000);
    let kernel = Kernel::open();
    let catalogue = kernel.0.catalogue().expect("a catalogue");
    let channel = |name: &str| {
        let mut channels = catalogue.channels.iter();
        channels.find(|channel| channel.name == name).expect(name)
    };
    let voltage = channel("lab.in_voltage0");
    assert_eq!((voltage.class, voltage.kind), (Class::Sleep, Type::S64));
    assert_eq!(voltage.unit, "mV");
    // (raw + 7) * 0.001333, as the driver says.
    let scale: f64 = dummy.read("in_voltage0_scale").parse().expect("a number");
    let offset: f64 = dummy.read("in_voltage0_offset").parse().expect("a number");
    assert!((voltage.scale - scale).abs() < 1e-15, "{voltage:?}");
    assert!(
        (voltage.offset - offset * scale).abs() < 1e-15,
        "{voltage:?}"
    );
    let sample = channel("lab.scan_voltage0");
    assert_eq!((sample.class, sample.bits), (Class::Hard, 13));
    assert_eq!(
        (sample.scale, sample.offset),
        (voltage.scale, voltage.offset)
    );
    let output = catalogue
        .outputs
        .iter()
        .find(|o| o.name == "lab.out_voltage0");
    assert_eq!(output.map(|output| output.class), Some(Class::Sleep));
}

#[test]
fn one_row_has_a_register_an_iio_channel_a_gpio_level_and_a_clock() {
    let _wave = Wave::new(500_000);
    let dummy = Dummy::new(1000);
    let lab = pci::kernel(&["edu"]);
    let channels = [
        "edu.id",
        "lab.in_voltage0",
        "gpio:lab/wave",
        "lab.out_voltage0",
        "clock.time",
    ];
    let mut plan = Plan {
        limit: Some(50),
        ..plan("timer:100Hz", &channels)
    };
    plan.steps.insert(
        0,
        Step::Write {
            output: "lab.out_voltage0".into(),
            value: 42,
        },
    );
    let (account, end) = record(&lab.engine.run(&plan));
    assert_eq!((end.state, end.errors), (State::Done, 0), "{end:?}");
    let raw: u64 = dummy.read("in_voltage0_raw").parse().expect("a number");
    let mut last = 0;
    for row in &account.rows {
        assert_eq!(row.values[..4], [0x0100_00ed, raw, 0, 42], "{row:?}");
        assert!(row.values[4] > row.time.max(last), "{row:?}");
        last = row.values[4];
    }
    assert_eq!(dummy.read("out_voltage0_raw"), "42");
}

#[test]
fn each_scan_is_a_row_or_missed() {
    // So slow that a guest which shares its CPUs stamps no scan later than the next is due; icount_iio has 1 kHz.
    const PERIOD_NS: u64 = 10_000_000;
    let dummy = Dummy::new(100);
    let channels = [
        "clock.late",
        SCAN[0],
        SCAN[1],
        SCAN[2],
        SCAN[3],
        "clock.time",
    ];
    let run = Kernel::open().run(&plan("lab.scan", &channels));
    assert_eq!(run.info().accounting, Accounting::ByTime);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    until_rows(&reader, 300);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(end.errors, 0, "{end:?}");
    let mut unmade_before = 0;
    for row in &account.rows {
        assert_eq!(row.values[1..3], [VOLTAGE, ACCEL], "{row:?}");
        // Of this very scan: it was due when it was stamped.
        assert_eq!(row.time - row.values[0], row.values[3], "{row:?}");
        // Scans that came before it, and its own; of some the row was missed.
        let unmade = row.values[4] - row.row - 1;
        assert!(
            unmade <= throttled(&end).min(row.trigger - row.row),
            "{row:?}"
        );
        assert!(unmade >= unmade_before, "{row:?}");
        unmade_before = unmade;
    }
    // Scans that came and those that IIO dropped are what the time has room for.
    let (first, last) = (&account.rows[0], account.rows.last().expect("a row"));
    let span = last.values[3] - first.values[3];
    let counted = last.trigger - first.trigger;
    println!("{} rows + {} missed in {span} ns", end.head, end.missed());
    assert!(
        span.abs_diff(counted * PERIOD_NS) < 2 * PERIOD_NS,
        "{counted} in {span} ns"
    );
    // Without a period nobody knows.
    dummy.write("current_timestamp_clock", "monotonic_coarse");
    let run = Kernel::open().run(&plan("lab.scan", &SCAN));
    assert_eq!(run.info().accounting, Accounting::None);
}

/// Scans that came, but made no row.
fn throttled(end: &strobe_ring::Snapshot) -> u64 {
    end.missed() - end.missed_by[strobe_ring::Missed::Source as usize]
}

#[test]
fn a_device_without_a_trigger_refuses_to_start_and_samples_are_faults_without_a_scan() {
    let dummy = Dummy::new(1000);
    let plan = Plan {
        limit: Some(3),
        ..plan("timer:1kHz", &SCAN)
    };
    let (account, end) = record(&Kernel::open().run(&plan));
    assert_eq!(end.errors, 3);
    assert!(account.rows.iter().all(|row| row.faults == [0, 1, 2, 3]));
    dummy.write("trigger/current_trigger", "\n");
    let run = Kernel::open().run(&strobe_cases::plan("lab.scan", &SCAN));
    assert_eq!(run.info().accounting, Accounting::None);
    assert!(run.start().is_err());
}

#[test]
fn a_device_that_was_set_up_anew_since_a_run_was_created_does_not_start_it() {
    let dummy = Dummy::new(1000);
    let run = Kernel::open().run(&plan("lab.scan", &SCAN));
    assert_eq!(run.info().accounting, Accounting::ByTime);
    dummy.write("current_timestamp_clock", "monotonic_coarse");
    assert_eq!(errno(run.start()), Some(Errno::STALE));
    dummy.write("current_timestamp_clock", "monotonic");
    run.start().expect("to start, as it was");
}

#[test]
fn outputs_that_a_thread_sets_cost_that_thread_and_no_time_of_interrupts() {
    let _dummy = Dummy::new(1000);
    let mut user = OtherUser::new(1001, |control, talk| {
        // 1.2 ms, and no right to more than 1 ms with interrupts off.
        let steps: Vec<_> = (0..12)
            .map(|value| step(WRITE, "lab.out_voltage0", value))
            .collect();
        let run = || create(control, &request("soft", 0, 2, &steps)).ok();
        talk.say(run().is_some().into());
        limit(libc::RLIMIT_NPROC as usize, 20);
        let runs: Vec<_> = (0..100).map_while(|_| run()).collect();
        talk.say(runs.len() as u64);
    });
    assert_eq!(user.talk().hear(), Some(1), "a run");
    let made = user.talk().hear().expect("a number");
    assert!((10..20).contains(&made), "{made} threads");
}

#[test]
fn a_device_that_goes_ends_its_runs_whatever_they_do() {
    let gone = -Errno::NODEV.raw_os_error();
    let before = held();
    for round in 0..rounds(50, 20) {
        let dummy = Dummy::new(2000);
        let kernel = Kernel::open();
        let scans = kernel.run(&plan("lab.scan", &SCAN));
        let values = kernel.run(&plan("timer:1kHz", &["lab.in_steps", SCAN[0]]));
        let idle = kernel.run(&plan("soft", &["lab.in_voltage0"]));
        let mut readers = [&scans, &values].map(|run| run.reader().expect("a reader"));
        scans.start().expect("to start");
        values.start().expect("to start");
        readers.iter().for_each(|reader| until_rows(reader, 1));
        // Any moment of its first milliseconds, in few rounds too.
        thread::sleep(Duration::from_micros(37 * (7 * round % 100)));
        dummy.unplug();
        for reader in &mut readers {
            read_to_end(reader, Pace::FAST);
            let end = reader.snapshot();
            assert_eq!((end.state, end.error), (State::Failed, gone), "{round}");
        }
        assert_eq!(idle.snapshot().expect("its state").state, State::Failed);
        let catalogue = kernel.0.catalogue().expect("a catalogue");
        assert!(!catalogue.devices.iter().any(|d| d.name == "lab"));
    }
    assert_eq!(held(), before, "what is left of the rounds");
}
