// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe latency`: each step of the way of a row, and a machine whose tracing is as it was, however the program ends.
//!
//! A thread that spins leaves nothing of its CPU to RCU's threads, unless they are above it.
//! The sanitizers' kernels are small: events of system calls are not in them.
// kernels: amd64 rt
// lab: --module uio_dummy --module uio_pci_generic --module 'lab_gpio wire=1'
// lab: --append rcutree.kthread_prio=70 --append irqaffinity=0

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;
use strobe_cases::machine::{command, patience, slowness};
use strobe_cases::uio::{Dummy, Edu, IRQ_STATUS, register};
use strobe_cases::wave::Wave;

/// The first card of a guest.
const CARD: &str = "0000:00:01.0";
/// Nobody; may not open anything.
const NOBODY: u32 = 65534;
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// The kernel's text of its events has whole microseconds.
const RESOLUTION_NS: i64 = 1000;

fn latency(words: &str) -> Output {
    let mut program = Command::new("strobe");
    let output = program.arg("latency").args(words.split(' ')).output();
    output.expect("strobe runs")
}

fn json(words: &str) -> Value {
    let output = latency(words);
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// The differences of a row, by its number; those between known ends.
fn list(report: &Value) -> Vec<Vec<Option<i64>>> {
    let rows = report["list"].as_array().expect("a list").iter();
    let steps = |row: &Value| {
        row[1]
            .as_array()
            .expect("steps")
            .iter()
            .map(Value::as_i64)
            .collect()
    };
    rows.map(steps).collect()
}

fn until(what: &str, happened: impl Fn() -> bool) {
    let end = Instant::now() + patience(120);
    while !happened() {
        assert!(Instant::now() < end, "{what}: it does not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What goes on until this is dropped, also by a panic.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a process has a child, of whichever of its threads.
fn has_child(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let children = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    children.into_iter().any(|list| !list.trim().is_empty())
}

fn tracefs() {
    if !Path::new(INSTANCES).exists() {
        assert!(command("mount -t tracefs tracefs /sys/kernel/tracing"));
    }
}

/// Those of strobe.
fn instances() -> Vec<String> {
    let entries = fs::read_dir(INSTANCES).expect("tracefs").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("strobe")).collect()
}

fn dummy(period_ns: u64) -> Dummy {
    let dummy = Dummy::silent(period_ns * slowness());
    dummy.allow_all();
    dummy
}

#[test]
fn each_row_of_a_uio_device_has_all_steps_in_order_and_they_add_up_to_its_own_stamps() {
    tracefs();
    // So far apart that a thread sleeps again before the next one, also if it was held up.
    let _dummy = dummy(20_000_000);
    let said = json("uio uio_dummy --rows 100 --list --json");
    let traced = &said["traced"]["traced"];
    assert_eq!(
        traced["missing"].as_array().map(Vec::len),
        Some(0),
        "{traced}"
    );
    let rows = number(&said["traced"]["rows"]);
    assert_eq!(rows, 100);
    // One that was late finds the next event there without having slept for it.
    let whole = number(&traced["rows"]);
    assert!(whole >= rows * 9 / 10, "{whole} of {rows} rows");
    assert_eq!(number(&traced["disagree"]), 0, "{traced}");
    let names: Vec<&Value> = traced["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| &step["from"])
        .collect();
    assert_eq!(
        names,
        [
            "interrupt",
            "handler",
            "woken",
            "running",
            "wait returns",
            "stamp",
            "interrupt"
        ]
    );
    let paper = &traced["paper"]["steps"][0];
    assert_eq!(
        (&paper["from"], &paper["to"]),
        (&"woken".into(), &"wait returns".into())
    );
    let own = list(&said["traced"]["own"]);
    let mut compared = 0;
    for (steps, own) in list(traced).iter().zip(&own) {
        let [
            _,
            Some(handled),
            Some(woken),
            Some(running),
            Some(returned),
            _,
        ] = steps[..]
        else {
            continue;
        };
        for (step, name) in steps.iter().zip(&names) {
            assert!(step.unwrap_or(0) >= -RESOLUTION_NS, "{name}: {steps:?}");
        }
        // The device has stamped its event between the timer's handler and the waking.
        let Some(raised) = own[0] else { continue };
        let (from_handler, from_woken) = (
            handled + woken + running + returned,
            woken + running + returned,
        );
        assert!(
            raised <= from_handler + RESOLUTION_NS,
            "{steps:?}: {raised}"
        );
        assert!(raised >= from_woken - RESOLUTION_NS, "{steps:?}: {raised}");
        compared += 1;
    }
    assert!(compared >= rows * 8 / 10, "{compared} of {rows} rows");
    for side in ["traced", "untraced"] {
        let raised = &said[side]["own"]["steps"][0];
        assert_eq!(
            (&raised["from"], &raised["to"]),
            (&"raised".into(), &"stamp".into())
        );
        assert!(number(&raised["ns"]["min"]) > 0, "{raised}");
    }
    assert_eq!(instances(), [""; 0]);
}

#[test]
fn a_card_with_an_interrupt_is_followed_from_its_hard_interrupt_on() {
    tracefs();
    let card = Edu::bind(CARD);
    let board = "/root/edu-uio.toml";
    let text = fs::read_to_string("/boards/edu.toml").expect("its board");
    fs::write(board, text).expect("to write");
    let stop = AtomicBool::new(false);
    let said = thread::scope(|scope| {
        scope.spawn(|| {
            // The run answers each by itself, as the board says.
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(20 * slowness()));
                if register(&card.bar, IRQ_STATUS).read() == 0 {
                    card.raise(1);
                }
            }
        });
        let _until = Until(&stop);
        let words = format!(
            "uio {} --board {board} --event edu.irq --rows 100 --json",
            card.node()
        );
        json(&words)
    });
    card.ack(u64::from(u32::MAX));
    let traced = &said["traced"]["traced"];
    assert_eq!(number(&said["traced"]["rows"]), 100, "{said}");
    assert!(number(&traced["rows"]) >= 90, "{traced}");
    assert_eq!(number(&traced["disagree"]), 0, "{traced}");
    let first = &traced["steps"][0];
    assert_eq!(
        (&first["from"], &first["to"]),
        (&"interrupt".into(), &"woken".into())
    );
    assert!(number(&first["ns"]["p50"]) > 0, "{first}");
    assert_eq!(instances(), [""; 0]);
}

#[test]
fn tracing_is_as_it_was_after_ctrl_c_and_after_the_program_was_killed() {
    tracefs();
    let dummy = Dummy::silent(1_000_000);
    let before = fs::read_to_string("/sys/kernel/tracing/set_event").expect("events");
    for signal in ["-INT", "-TERM", "-KILL"] {
        let mut program = Command::new("strobe");
        program.args("latency uio uio_dummy --rows 5 --for 10min".split(' '));
        let child = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("strobe runs");
        // The first one is made to see whether it can be had, the second one is used.
        let used = format!("strobe-{}-1", child.id());
        // The untraced run comes first. When it has its rows no more events come, and the traced one goes on.
        until("tracing", || {
            dummy.allow(1);
            instances().contains(&used)
        });
        until("who looks after it", || has_child(child.id()));
        assert!(command(&format!("kill {signal} {}", child.id())));
        let status = child.wait().expect("an end");
        let expected = (signal != "-KILL").then_some(130);
        assert_eq!(status.code(), expected, "{signal}: {status}");
        until("the end of tracing", || instances().is_empty());
        let after = fs::read_to_string("/sys/kernel/tracing/set_event").expect("events");
        assert_eq!(after, before, "{signal}");
    }
    // What was left behind all the same, by a process that is no more, the next one removes.
    let left = Path::new(INSTANCES).join("strobe-4194305-0");
    fs::create_dir(&left).expect("an instance");
    dummy.allow_all();
    latency("uio uio_dummy --rows 5");
    assert_eq!(instances(), [""; 0]);
}

#[test]
fn what_cannot_be_traced_is_refused_with_the_remedy() {
    tracefs();
    let _dummy = dummy(1_000_000);
    let refused = |words: &str, part: &str| {
        let output = latency(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains(part), "{words}: {said}");
    };
    refused("uio no_such", "no such device; there is uio_dummy (uio");
    refused("uio uio_dummy --rows 0", "'0'");
    refused("uio uio_dummy --cpu 999", "--cpu: CPU 999: no such CPU");
    refused("kernel timer:1kHz --read no.such", "no such channel");
    refused("gpio lab/weave", "no line weave");
    refused("gpio lab/wave --rows 5 --for 100ms", "no edge came");
    // Where this user may not trace, all else can still be had.
    let nobody = |words: &str, part: &str| {
        let mut program = Command::new("strobe");
        let program = program.arg("latency").args(words.split(' '));
        let output = program
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .expect("strobe runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains(part), "{words}: {said}");
        (output.status.code(), said)
    };
    let (status, said) = nobody("uio uio_dummy --rows 10", "only root may trace");
    assert!(
        status == Some(1) && said.contains("(option: --no-trace)"),
        "{said}"
    );
    assert!(command("umount /sys/kernel/tracing"));
    let (status, said) = nobody("uio uio_dummy --rows 10", "mount -t tracefs");
    assert!(
        status == Some(1) && said.contains("(option: --no-trace)"),
        "{said}"
    );
    tracefs();
    let words = "uio uio_dummy --rows 10 --no-trace";
    assert_eq!(nobody(words, "no permission to open /dev/uio").0, Some(1));
    // All memory of the program may be locked, so that this is not refused, too.
    let limit = Rlimit {
        current: None,
        maximum: None,
    };
    setrlimit(Resource::Memlock, limit).expect("no limit");
    let words = "wake futex --place same --count 10";
    assert_eq!(
        nobody(words, "without policy: other; fifo:60 was refused").0,
        Some(0)
    );
}

#[test]
fn a_timer_of_the_kernel_engine_is_followed_from_due_to_the_reader() {
    let event = strobe_cases::machine::timer(1_000_000);
    let said = json(&format!("kernel {event} --rows 200 --list --json"));
    assert_eq!(number(&said["rows"]), 200);
    let steps = said["steps"].as_array().expect("steps");
    let names: Vec<&Value> = steps.iter().map(|step| &step["from"]).collect();
    assert_eq!(names, ["raised", "interrupt", "stored", "raised"]);
    for row in list(&said) {
        assert!(
            row.iter().all(|step| step.is_some_and(|ns| ns >= 0)),
            "{row:?}"
        );
    }
}

/// What the program says, which waits for the edges of a wave. They begin when it has the line. If it is to answer them,
/// each one but the first waits for the answer to the one before.
fn while_edges_come(words: &str, are_answered: bool) -> Value {
    let wave = Wave::new(5_000_000 * slowness());
    let is_taken = || {
        let lines = fs::read_to_string("/sys/kernel/debug/gpio").expect("debugfs");
        let mut lines = lines.lines();
        lines.any(|line| line.contains("wave") && line.contains("strobe"))
    };
    assert!(!is_taken());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            until("the program", is_taken);
            // Until it has what it wants, so that none that it does not see keeps it waiting.
            while !stop.load(Ordering::Relaxed) {
                let before = wave.figure("answered");
                wave.made(1);
                // Who does not wait yet answers none.
                let end = Instant::now() + patience(2);
                let is_open = || wave.figure("answered") == before && Instant::now() < end;
                while are_answered && is_open() && !stop.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let _until = Until(&stop);
        json(words)
    })
}

#[test]
fn an_inverter_answers_each_edge_and_the_chip_has_observed_it() {
    let said = while_edges_come("gpio lab/wave --answer lab/answer --rows 100 --json", true);
    assert_eq!(number(&said["rows"]), 100, "{said}");
    let (whole, observed) = (&said["steps"][2], &said["observer"]);
    assert_eq!(
        (&whole["from"], &whole["to"]),
        (&"edge".into(), &"answered".into())
    );
    assert!(number(&observed["answered"]) >= 90, "{said}");
    // It sees the edge before the kernel stamps it, and the answer before the program is back.
    let least = number(&observed["best_ns"]);
    assert!(least > number(&said["steps"][0]["ns"]["min"]), "{said}");
}

#[test]
fn edges_from_outside_are_followed_from_the_kernels_stamp_on() {
    let said = while_edges_come("gpio lab/wave --rows 50 --json", false);
    assert_eq!(number(&said["rows"]), 50);
    let step = &said["steps"][0];
    assert_eq!(
        (&step["from"], &step["to"]),
        (&"edge".into(), &"stamp".into())
    );
    assert!(number(&step["ns"]["min"]) > 0, "{step}");
}

#[test]
fn over_a_wire_each_edge_is_followed_from_who_drives_it_to_who_reads_its_row() {
    let rate = 200 / slowness().min(100);
    let said = json(&format!(
        "gpio lab/spare1 --drive lab/spare0 --rate {rate}Hz --rows 50 --list --json"
    ));
    assert_eq!(number(&said["rows"]), 50);
    let steps = said["steps"].as_array().expect("steps").iter();
    let names: Vec<&Value> = steps.map(|step| &step["from"]).collect();
    assert_eq!(names, ["driven", "edge", "stamp", "driven"]);
    for row in list(&said) {
        assert!(
            row.iter().all(|step| step.is_some_and(|ns| ns >= 0)),
            "{row:?}"
        );
    }
}
