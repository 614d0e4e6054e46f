// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::Write;

use super::*;
use crate::accounting::Accounting;
use crate::clock::RunClock;
use crate::engine::user::settings::WaitMode;
use crate::engine::user::trigger::{Trigger, WaitOutcome};
use crate::info::Clock;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use strobe_hw::wakeup::wakeup;
use strobe_ring::Missed;

const ROW: Row = Row {
    time: 0,
    start: 0,
    trigger: Trigger::PLAIN,
};
const FILES: [(&str, &str); 25] = [
    ("iio:device0/name", "adc"),
    ("iio:device0/in_voltage0_raw", "-7"),
    ("iio:device0/in_voltage1_raw", "9"),
    ("iio:device0/in_voltage_scale", "2.0"),
    ("iio:device0/in_voltage1_offset", "1"),
    ("iio:device0/out_voltage0_raw", "0"),
    ("iio:device0/current_timestamp_clock", "realtime"),
    ("iio:device0/buffer/enable", "0"),
    ("iio:device0/buffer/length", "2"),
    ("iio:device0/buffer/watermark", "1"),
    ("iio:device0/trigger/current_trigger", "tick"),
    ("iio:device0/scan_elements/in_voltage0_en", "0"),
    ("iio:device0/scan_elements/in_voltage0_type", "le:s12/16>>4"),
    ("iio:device0/scan_elements/in_voltage0_index", "0"),
    ("iio:device0/scan_elements/in_voltage1_en", "1"),
    ("iio:device0/scan_elements/in_voltage1_type", "be:u24/32>>8"),
    ("iio:device0/scan_elements/in_voltage1_index", "1"),
    ("iio:device0/scan_elements/in_timestamp_en", "0"),
    (
        "iio:device0/scan_elements/in_timestamp_type",
        "le:s64/64>>0",
    ),
    ("iio:device0/scan_elements/in_timestamp_index", "2"),
    ("trigger0/name", "tick"),
    ("trigger0/sampling_frequency", "1000.000"),
    ("iio:device1/name", "thermo"),
    ("iio:device1/in_temp_input", "21500"),
    ("iio:device1/in_temp_raw", "1"),
];

/// A tree as /sys and /dev are; the device file is a fifo, to which scans are written.
struct Fake {
    root: tempfile::TempDir,
    node: File,
}

impl Fake {
    fn new() -> Fake {
        let root = tempfile::tempdir().expect("a directory");
        for (file, text) in FILES {
            let path = root.path().join("bus/iio/devices").join(file);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
            fs::write(path, format!("{text}\n")).expect("a file");
        }
        let node = root.path().join("iio:device0");
        mknodat(CWD, &node, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a fifo");
        let node = File::options()
            .read(true)
            .write(true)
            .open(node)
            .expect("a fifo");
        Fake { root, node }
    }

    fn iio(&self) -> Iio {
        Iio::at(self.root.path().to_owned(), self.root.path().to_owned())
    }

    fn text(&self, file: &str) -> String {
        let path = self.root.path().join("bus/iio/devices").join(file);
        fs::read_to_string(path).expect(file).trim().to_owned()
    }

    /// A scan of voltage0, voltage1 and the time stamp.
    fn scan(&mut self, voltage0: i16, voltage1: u32, time: u64) {
        let mut bytes = vec![];
        bytes.extend((voltage0 << 4).to_le_bytes());
        bytes.extend([0xee; 2]);
        bytes.extend((voltage1 << 8).to_be_bytes());
        bytes.extend(time.to_ne_bytes());
        self.node.write_all(&bytes).expect("to write");
    }
}

#[test]
fn a_value_is_read_by_its_file_with_scale_offset_and_unit() {
    let fake = Fake::new();
    let iio = fake.iio();
    for (name, value, unit) in [
        ("iio:adc/in_voltage0", -0.014, "V"),
        ("iio:device0/in_voltage1", 0.02, "V"),
        ("iio:thermo/in_temp", 21.5, "degC"),
    ] {
        let found = iio.channel(name).expect(name).expect(name);
        let about = found.about.clone();
        let word = found.open().expect(name).read(&ROW).expect(name);
        assert!(
            (about.value(word) - value).abs() < 1e-9,
            "{name}: {}",
            about.value(word)
        );
        assert_eq!(about.unit, unit);
    }
    let output = iio
        .output("iio:adc/out_voltage0")
        .expect("of this")
        .expect("an output");
    output
        .open()
        .expect("to open it")
        .write(1234)
        .expect("to write");
    assert_eq!(fake.text("iio:device0/out_voltage0_raw"), "1234");
}

#[test]
fn each_scan_is_a_trigger_with_its_values_and_what_was_dropped_is_found_by_time() {
    let mut fake = Fake::new();
    let iio = fake.iio();
    let settings = Settings {
        wait: WaitMode::Block,
        ..Settings::default()
    };
    let event: EventSpec = "iio:adc".parse().expect("an event");
    let found = iio
        .event(&event, &settings)
        .expect("of this")
        .expect("an event");
    let channels = [
        "iio:adc/in_voltage1",
        "iio:adc/in_voltage0",
        "iio:adc/in_timestamp",
    ];
    let channels = channels.map(|name| iio.channel(name).expect(name).expect(name));
    let (waker, mut wakeup) = wakeup().expect("a wake-up");
    let clock = RunClock::new(Clock::Monotonic);
    let mut source = found.open().expect("a source");
    let mut readers = channels.map(|channel| channel.open().expect("a reader"));
    for (file, text) in [
        ("scan_elements/in_voltage0_en", "1"),
        ("scan_elements/in_timestamp_en", "1"),
        ("current_timestamp_clock", "monotonic"),
        ("buffer/length", "4096"),
    ] {
        assert_eq!(fake.text(&format!("iio:device0/{file}")), text, "{file}");
    }
    source.begin(&clock, 0).expect("to begin");
    assert_eq!(fake.text("iio:device0/buffer/enable"), "1");
    for (voltage0, voltage1, time, missed, count) in [
        (-5, 3, 1_000_000, 0, 1),
        (2047, 0xff_ffff, 2_010_000, 0, 2),
        (-2048, 0, 5_990_000, 3, 6),
    ] {
        fake.scan(voltage0, voltage1, time);
        let Ok(WaitOutcome::Trigger(trigger)) = source.wait(&clock, &mut wakeup) else {
            panic!("no trigger");
        };
        assert_eq!(
            (trigger.time, trigger.missed, trigger.count),
            (time, missed, count)
        );
        let words = readers
            .each_mut()
            .map(|reader| reader.read(&ROW).expect("a word") as i64);
        assert_eq!(
            words,
            [i64::from(voltage1), i64::from(voltage0), time as i64]
        );
    }
    waker.wake();
    assert_eq!(
        source.wait(&clock, &mut wakeup).ok(),
        Some(WaitOutcome::Wakeup)
    );
    fake.scan(1, 1, 7_000_000);
    fake.scan(1, 1, 8_000_000);
    assert_eq!(source.unserved(), (Missed::Source, 2));
    source.end();
    drop(source);
    for (file, text) in [
        ("buffer/enable", "0"),
        ("buffer/length", "2"),
        ("scan_elements/in_voltage0_en", "0"),
        ("scan_elements/in_voltage1_en", "1"),
        ("current_timestamp_clock", "realtime"),
    ] {
        assert_eq!(
            fake.text(&format!("iio:device0/{file}")),
            text,
            "{file} is as it was"
        );
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let fake = Fake::new();
    let iio = fake.iio();
    let said = |name: &str| {
        iio.channel(name)
            .expect(name)
            .err()
            .expect(name)
            .to_string()
    };
    for (name, part) in [
        (
            "iio:dac/in_voltage0",
            "there is no dac; this machine has adc, thermo",
        ),
        (
            "iio:adc/in_voltage7",
            "it has no in_voltage7; it has in_voltage0, in_voltage1",
        ),
        ("iio:adc", "name the channel; it has in_voltage0"),
        ("iio:adc/../x", "it has no ../x"),
    ] {
        assert!(said(name).contains(part), "{}", said(name));
    }
    let event = |text: &str| {
        let event: EventSpec = text.parse().expect("an event");
        let found = iio.event(&event, &Settings::default()).expect("of this");
        found
            .and_then(|found| found.open().map(drop))
            .expect_err("refused")
            .to_string()
    };
    assert!(
        event("iio:thermo").contains("it has no buffer, so it cannot trigger; read its channels")
    );
    let set = |file: &str, text: &str| {
        fs::write(
            fake.root
                .path()
                .join("bus/iio/devices/iio:device0")
                .join(file),
            text,
        )
        .expect("to write");
    };
    set("buffer/enable", "1");
    assert!(event("iio:adc").contains("another program uses its buffer"));
    set("trigger/current_trigger", "\n");
    assert!(event("iio:adc").contains("no trigger is set; as root: echo"));
    let found = iio
        .channel("iio:adc/in_voltage7")
        .expect("of this")
        .err()
        .expect("none in scans");
    assert!(
        found
            .to_string()
            .contains("its scans have no in_voltage7; they have in_timestamp, in_voltage0"),
        "{found}"
    );
}

#[test]
fn devices_are_listed_with_their_events_and_whether_loss_is_known() {
    let fake = Fake::new();
    let mut catalogue = Catalogue::default();
    fake.iio().list(&mut catalogue);
    let names: Vec<_> = catalogue.channels.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "iio:adc/in_voltage0",
            "iio:adc/in_voltage1",
            "iio:adc/out_voltage0",
            "iio:thermo/in_temp"
        ]
    );
    let events: Vec<_> = catalogue
        .events
        .iter()
        .map(|e| (e.name.as_str(), e.accounting))
        .collect();
    assert_eq!(events, [("iio:adc", Accounting::ByTime)]);
}
