// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be seen of a run from outside, in sysfs and in the trace, agrees
//! with its ring.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{read_to_end, record, until_rows};
use strobe_cases::machine::{Sim, sysfs, sysfs_number};
use strobe_cases::{Engine, Kernel, Pace, plan};

fn create(event: &str, limit: Option<u64>, channels: &[&str]) -> KernelRun {
    Kernel::open().run(&Plan {
        limit,
        ring: Some(64),
        ..plan(event, channels)
    })
}

#[test]
fn sysfs_shows_a_run_as_its_ring_does() {
    let sim = Sim::well();
    sim.set("sim_every", 10)
        .set("sim_drop", 3)
        .set("sim_fail", 1)
        // It must not be done before it is paused.
        .set("sim_pulse_ns", 50_000_000);
    let run = create("sim.pulse", Some(100), &["sim.noise", "sim.counter"]);
    let dir = format!("run{}", run.info().run);
    let text = |file: &str| sysfs(&format!("{dir}/{file}"));
    let number = |file: &str| sysfs_number(&format!("{dir}/{file}"));
    assert_eq!((text("state").as_str(), number("elapsed_ns")), ("ready", 0));
    assert_eq!(
        (text("event").as_str(), number("channels")),
        ("sim.pulse", 2)
    );
    assert_eq!((number("capacity"), number("limit")), (64, 100));
    assert!(!text("owner").is_empty());

    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until_rows(&reader, 10);
    run.pause().expect("to pause");
    let paused = reader.snapshot();
    assert_eq!(text("state"), "paused");
    assert_eq!(
        (number("head"), number("triggers")),
        (paused.head, paused.triggers)
    );
    assert_eq!(
        (number("missed"), number("errors")),
        (paused.missed(), paused.errors)
    );
    assert!(number("elapsed_ns") > 0);
    sim.set("sim_pulse_ns", 1_000_000);
    run.resume().expect("to resume");
    read_to_end(&mut reader, Pace::FAST);

    let end = reader.snapshot();
    assert_eq!((text("state").as_str(), number("head")), ("done", 100));
    assert!(end.missed() > 0 && end.errors > 0, "{end:?}");
    assert_eq!(
        (number("triggers"), number("missed")),
        (end.triggers, end.missed())
    );
    assert_eq!(
        (number("errors"), number("elapsed_ns")),
        (end.errors, end.end_time - end.start.time)
    );
    drop(run);
    assert!(
        !Path::new("/sys/class/strobe").join(&dir).exists(),
        "a run that is closed is gone"
    );
}

#[test]
fn sysfs_describes_every_device_channel_output_and_event() {
    let _sim = Sim::well();
    let catalogue = Kernel::open().0.catalogue().expect("a catalogue");
    for device in &catalogue.devices {
        assert_eq!(
            sysfs(&format!("{}/description", device.name)),
            device.description
        );
    }
    let described = |kind: &str, name: &str, text: &str| {
        let (device, part) = name.split_once('.').expect("device.part");
        let line = sysfs(&format!("{device}/{kind}/{part}"));
        assert!(line.ends_with(text), "{name}: {line}, {text}");
        line
    };
    for channel in &catalogue.channels {
        let line = described("channels", &channel.name, &channel.description);
        assert!(line.starts_with(channel.kind.name()), "{line}");
        assert!(line.contains(&channel.unit), "{line}");
    }
    for output in &catalogue.outputs {
        described("outputs", &output.name, &output.description);
    }
    for event in catalogue
        .events
        .iter()
        .filter(|event| event.name.contains('.'))
    {
        described("events", &event.name, &event.description);
    }
    assert!(
        catalogue
            .channels
            .iter()
            .any(|channel| channel.name == "sim.ramp")
    );
}

/// A trace buffer of our own, with the tracepoints of strobe.
struct Trace(&'static Path);

impl Trace {
    fn start() -> Trace {
        let dir = Path::new("/sys/kernel/tracing/instances/strobe-cases");
        let _ = fs::remove_dir(dir);
        fs::create_dir(dir).expect("a trace buffer of our own");
        fs::write(dir.join("buffer_size_kb"), "4096").expect("to make room");
        fs::write(dir.join("events/strobe/enable"), "1").expect("the tracepoints of strobe");
        Trace(dir)
    }

    /// The lines of one run: name of the tracepoint, and its fields.
    fn of(&self, run: u32) -> Vec<(String, HashMap<String, String>)> {
        let text = fs::read_to_string(self.0.join("trace")).expect("the trace");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parsed = lines.filter_map(|line| {
            let (_, rest) = line.split_once(": strobe_")?;
            let (name, fields) = rest.split_once(": ")?;
            let fields = fields.split(' ').filter_map(|field| field.split_once('='));
            let fields = fields.map(|(key, value)| (key.to_owned(), value.to_owned()));
            Some((name.to_owned(), fields.collect::<HashMap<_, _>>()))
        });
        parsed
            .filter(|(_, fields)| fields["run"] == run.to_string())
            .collect()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/strobe/enable"), "0");
        let _ = fs::remove_dir(self.0);
    }
}

#[test]
fn the_trace_tells_the_same_story_as_the_ring() {
    let sim = Sim::well();
    sim.set("sim_every", 10)
        .set("sim_drop", 3)
        .set("sim_fail", 1);
    let trace = Trace::start();
    let run = create("sim.pulse", Some(60), &["sim.noise"]);
    let (account, end) = record(&run);
    let story = trace.of(run.info().run);
    let named = |name: &str| -> Vec<&HashMap<String, String>> {
        let these = story.iter().filter(|(its, _)| its == name);
        these.map(|(_, fields)| fields).collect()
    };
    let number = |fields: &HashMap<String, String>, key: &str| -> u64 {
        fields[key]
            .parse()
            .unwrap_or_else(|_| panic!("{key} in {fields:?}"))
    };
    let [created] = named("create")[..] else {
        panic!("{story:?}")
    };
    assert_eq!(
        (created["event"].as_str(), number(created, "limit")),
        ("sim.pulse", 60)
    );
    assert_eq!(
        (number(created, "channels"), number(created, "capacity")),
        (1, 64)
    );
    let [started] = named("start")[..] else {
        panic!("{story:?}")
    };
    assert_eq!(number(started, "time"), end.start.time);

    let rows = named("row");
    assert_eq!(rows.len(), account.rows.len());
    for (traced, row) in rows.iter().zip(&account.rows) {
        let seen = ["row", "trigger", "time"].map(|key| number(traced, key));
        assert_eq!(seen, [row.row, row.trigger, row.time]);
        assert_eq!(traced["status"], format!("{:#x}", row.status.0));
    }
    let missed = named("missed");
    for (cause, name) in ["overrun", "busy", "throttled", "source"]
        .iter()
        .enumerate()
    {
        let of_it = missed.iter().filter(|fields| fields["cause"] == *name);
        let sum: u64 = of_it.map(|fields| number(fields, "count")).sum();
        assert_eq!(sum, end.missed_by[cause], "{name}");
    }
    let throttled = end.missed_by[2];
    assert_eq!(
        named("trigger").len() as u64,
        end.head + throttled,
        "what came, came to a row"
    );

    strobe_cases::account::until("the end in the trace", || {
        trace
            .of(run.info().run)
            .iter()
            .any(|(name, _)| name == "stop")
    });
    let story = trace.of(run.info().run);
    let stops: Vec<_> = story.iter().filter(|(name, _)| name == "stop").collect();
    let [(_, stopped)] = stops[..] else {
        panic!("{stops:?}")
    };
    assert_eq!(
        (stopped["state"].as_str(), stopped["error"].as_str()),
        ("done", "0")
    );
    assert_eq!(
        ["rows", "triggers"].map(|key| number(stopped, key)),
        [end.head, end.triggers]
    );
}
