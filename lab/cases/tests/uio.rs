// SPDX-License-Identifier: MIT OR Apache-2.0
//! UIO: every interrupt is accounted for, by the library and by the user engine; a device that goes ends who uses it.
//!
//! A run that spins leaves nothing of its CPU to RCU's threads, unless they are above it.
// lab: --module uio_dummy --module uio_pci_generic --module lab_gpio --append rcutree.kthread_prio=70 --append irqaffinity=0

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use strobe::uio::{Error, Uio};
use strobe_cases::account::until;
use strobe_cases::machine::{command, patience};
use strobe_cases::uio::{DUMMY, Dummy, Edu, open, register};

mod engine;

/// The first card of a guest.
const CARD: &str = "0000:00:01.0";
/// Enough for what comes at once.
fn long() -> Duration {
    patience(30)
}
/// Nobody; may not open anything.
const NOBODY: u32 = 65534;

fn strobe(words: &[&str], uid: u32) -> Output {
    let mut command = Command::new("strobe");
    command.args(words).uid(uid).gid(uid);
    command.output().expect("strobe runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn every_interrupt_is_read_or_missed_as_the_device_itself_counts() {
    const EVENTS: u64 = 3000;
    let dummy = Dummy::silent(100_000);
    let mut device = open(DUMMY);
    let before = dummy.page().events;
    dummy.allow(EVENTS);
    device.enable().expect("to enable");
    let (mut read, mut missed) = (0, 0);
    while read + missed < EVENTS {
        let got = device.wait_timeout(long()).expect("to wait");
        let got = got.expect("an interrupt");
        read += 1;
        missed += u64::from(got.missed);
        assert!(dummy.page().events - before >= read + missed);
        if read % 100 == 0 {
            // Long enough to miss some, if there are more.
            let seen = dummy.page().events;
            let more = (seen + 3).min(before + EVENTS);
            until("events to miss", || dummy.page().events >= more);
        }
    }
    let page = dummy.page();
    assert_eq!(read + missed, EVENTS);
    assert_eq!(page.events, before + EVENTS);
    assert_eq!(page.sequence, 2 * page.events);
    assert!(missed > 0, "{read} read");
    let counts = [
        device.count(),
        device.about().read_events().expect("its count"),
    ];
    assert_eq!(counts, [page.events as u32; 2]);
    let more = device.wait_timeout(Duration::from_millis(10));
    assert_eq!(more.expect("to wait"), None, "the device is at its end");
}

#[test]
fn a_disabled_device_is_silent_and_an_enabled_one_is_not() {
    let dummy = Dummy::silent(100_000);
    dummy.allow_all();
    let mut device = open(DUMMY);
    for _ in 0..10 {
        device.enable().expect("to enable");
        device.enable().expect("to enable it again");
        assert!(device.wait_timeout(long()).expect("to wait").is_some());
        device.disable().expect("to disable");
        device.forget().expect("to forget");
        let (before, begin) = (dummy.page(), Instant::now());
        let timeout = Duration::from_millis(20);
        assert_eq!(device.wait_timeout(timeout).expect("to wait"), None);
        assert!(begin.elapsed() >= timeout);
        assert_eq!(dummy.page(), before);
    }
    assert!(dummy.page().time > 0);
}

#[test]
fn a_driver_without_irqcontrol_is_told_from_a_device_that_has_gone() {
    assert!(command("rmmod uio_dummy"));
    assert!(command("modprobe uio_dummy control=0"));
    let mut device = open(DUMMY);
    for refused in [device.enable(), device.disable()] {
        let message = refused.expect_err("no irqcontrol").to_string();
        assert!(message.contains("it has no irqcontrol"), "{message}");
    }
    assert!(device.wait_timeout(long()).expect("to wait").is_some());
    engine::rows_come_from_a_device_without_irqcontrol();
    drop(device);
    assert!(command("rmmod uio_dummy"));
    let gone = Uio::find(DUMMY).expect_err("unloaded").to_string();
    assert_eq!(
        gone,
        "UIO device uio_dummy: no such device; there are no UIO devices: load the driver of the device"
    );
    assert!(command("modprobe uio_dummy"));
}

#[test]
fn a_device_that_is_about_to_go_is_not_taken_for_one_without_an_interrupt() {
    let dummy = Dummy::silent(1_000_000);
    let device = open(DUMMY);
    thread::scope(|scope| {
        dummy.set("going_ms", 5000);
        let plugged = format!("/sys/module/{DUMMY}/parameters/plugged");
        let going = scope.spawn(|| std::fs::write(plugged, "0").expect("to unplug it"));
        let end = Instant::now() + long();
        // Its files are still there, and its driver does nothing any more.
        let why = loop {
            assert!(Instant::now() < end, "it does not go");
            if let Err(why) = device.enable() {
                break why;
            }
        };
        assert!(why.is_gone(), "{why}");
        let still = !going.is_finished();
        going.join().expect("it has gone");
        assert!(still, "the test was too slow for the moment it is about");
    });
    dummy.set("going_ms", 0);
    dummy.set("plugged", 1);
}

#[test]
fn a_wrong_name_and_a_missing_permission_are_refused_with_the_remedy() {
    let there = Uio::find(DUMMY).expect("uio_dummy");
    let message = Uio::find("foo").expect_err("no such device").to_string();
    assert_eq!(
        message,
        format!("UIO device foo: no such device; there is {there}")
    );
    let refused = |words: &[&str], uid| {
        let done = strobe(words, uid);
        assert_eq!(done.status.code(), Some(1), "{words:?}: {done:?}");
        text(&done.stderr).to_owned()
    };
    let record = [
        "record",
        "--event",
        "uio:uio_dummy",
        "--read",
        "clock.time",
        "--rows",
        "1",
    ];
    for words in [&["uio", "wait", DUMMY][..], &record] {
        let message = refused(words, NOBODY);
        assert!(
            message.contains("UIO device uio_dummy: no permission to open /dev/uio")
                && message.contains("udev rule"),
            "{message}"
        );
    }
    let message = refused(&["uio", "wait", "foo"], 0);
    assert!(
        message.contains("no such device; there is uio_dummy (uio"),
        "{message}"
    );
}

#[test]
fn the_program_lists_devices_and_waits_for_them() {
    let dummy = Dummy::silent(1_000_000);
    dummy.allow_all();
    let listed = strobe(&["uio", "list"], NOBODY);
    let list = text(&listed.stdout);
    assert!(list.contains(": uio_dummy, version 1, "), "{list}");
    assert!(list.contains("  map 0: 0x1000 bytes at 0x"), "{list}");
    let listed = strobe(&["uio", "list", "--json"], NOBODY);
    let json: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let device = &json["devices"][0];
    assert_eq!(device["name"], DUMMY);
    assert_eq!(device["maps"][0]["size"], 4096);
    assert_eq!(device["maps"][0]["name"], "state");

    let words = ["uio", "wait", DUMMY, "--count", "100", "--json"];
    let waited = strobe(&words, 0);
    let json: serde_json::Value = serde_json::from_slice(&waited.stdout).expect("JSON");
    assert_eq!(json["interrupts"], 100);
    assert_eq!(json["end"], "complete");
    let missed = json["missed"].as_u64().expect("a number");
    let status = if missed == 0 { 0 } else { 3 };
    assert_eq!(waited.status.code(), Some(status), "{json}");

    let waited = strobe(&["uio", "wait", DUMMY, "--count", "5"], 0);
    let lines: Vec<&str> = text(&waited.stdout).lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let count = |line: &str| -> u64 {
        let (_, rest) = line.split_once(": ").expect("a line");
        let (count, _) = rest.split_once(',').expect("a line");
        count.parse().expect("a count")
    };
    assert!(lines.windows(2).all(|w| count(w[0]) < count(w[1])));

    dummy.set("limit", 1);
    let waited = strobe(&["uio", "wait", DUMMY, "--timeout", "50ms"], 0);
    assert_eq!(waited.status.code(), Some(3), "{waited:?}");
    assert!(text(&waited.stderr).contains("no interrupt came in 50ms"));
}

#[test]
fn the_driver_in_c_reads_what_the_device_says() {
    let dummy = Dummy::silent(1_000_000);
    dummy.allow_all();
    let done = Command::new("uio_driver").arg("20").output();
    let done = done.expect("uio_driver runs");
    assert!(done.status.success(), "{done:?}");
    let lines: Vec<&str> = text(&done.stdout).lines().collect();
    let (last, lines) = lines.split_last().expect("lines");
    assert_eq!(lines.len(), 20, "{lines:?}");
    let mut before = 0;
    for line in lines {
        let words: Vec<&str> = line.split([' ', ':', ',']).collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let (count, events) = (number(1), number(7));
        assert!(count > before && events >= count, "{line}");
        before = count;
    }
    assert!(last.starts_with("20 interrupts, "), "{last}");
}

#[test]
fn a_card_that_is_taken_from_its_driver_ends_a_wait() {
    let card = Edu::bind(CARD);
    let mut device = open(&card.node());
    assert_eq!(register(&card.bar, 0).read() & 0xff, 0xed);
    device.enable().expect("to enable");
    card.raise(1);
    assert!(device.wait_timeout(long()).expect("to wait").is_some());
    card.ack(1);
    device.enable().expect("to enable");
    let waiting = thread::spawn(move || (device.wait(), device.read()));
    thread::sleep(Duration::from_millis(50));
    card.unbind();
    let (wait, read) = waiting.join().expect("no panic");
    assert!(matches!(wait, Err(Error::Gone(_))), "{wait:?}");
    assert!(matches!(read, Err(Error::Gone(_))), "{read:?}");
}
