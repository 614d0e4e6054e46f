// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thousands of scans of an IIO device at 1 kHz, each a row with a card's register, a GPIO line's level and a clock, on a machine
//! whose time is made of instructions.
// lab: --module iio-trig-hrtimer --module iio_dummy --module strobe_iio --module lab_gpio --module 'strobe_gpio raw=lab'
// kernels: amd64 rt

use strobe::accounting::Accounting;
use strobe::plan::{Plan, Step};
use strobe::run::Run;
use strobe_cases::account::record_for;
use strobe_cases::cost::of_step;
use strobe_cases::iio::{ACCEL, Dummy, VOLTAGE};
use strobe_cases::machine::undisturbed;
use strobe_cases::rounds::rounds;
use strobe_cases::wave::Wave;
use strobe_cases::{Engine, pci, plan};

#[test]
fn each_of_thousands_of_scans_is_a_row_across_subsystems() {
    undisturbed();
    let scans = 500 * rounds(40, 200);
    let _dummy = Dummy::new(1000);
    let _wave = Wave::new(1_000_000);
    let lab = pci::kernel(&["edu"]);
    let channels = [
        "edu.id",
        "lab.scan_voltage0",
        "lab.scan_accel_x",
        "gpio:lab/wave",
        "lab.scan_timestamp",
        "lab.scan_count",
        "clock.time",
    ];
    let run = lab.engine.run(&Plan {
        limit: Some(scans),
        ..plan("lab.scan", &channels)
    });
    assert_eq!(run.info().accounting, Accounting::ByTime);
    let (account, end) = record_for(200, &run);
    let (first, last) = (&account.rows[0], account.rows.last().expect("rows"));
    let span = last.values[4] - first.values[4];
    println!(
        "{} rows + {} missed; {} scans came in {span} ns",
        end.head,
        end.missed(),
        last.values[5]
    );
    assert_eq!((end.head, end.errors, account.lost), (scans, 0, 0));
    let came = (span + 500_000) / 1_000_000 + 1;
    assert_eq!(end.head + end.missed(), came, "{end:?}");
    for row in &account.rows {
        assert_eq!(row.values[..4], [0x0100_00ed, VOLTAGE, ACCEL, 0], "{row:?}");
        assert!(row.values[6] >= row.time, "{row:?}");
    }
}

#[test]
fn what_a_sample_and_a_value_cost() {
    undisturbed();
    let _dummy = Dummy::new(1000);
    let read = |event: &str, name: &str| of_step(event, &Step::Read(name.into()));
    let sample = read("lab.scan", "lab.scan_voltage0");
    let value = read("timer:1kHz", "lab.in_voltage0");
    let set = of_step(
        "timer:1kHz",
        &Step::Write {
            output: "lab.out_voltage0".into(),
            value: 1,
        },
    );
    println!("instructions: a sample of a scan {sample}, a value {value}, an output {set}");
    assert!(sample < value && sample < 100 && value < 5000);
}
