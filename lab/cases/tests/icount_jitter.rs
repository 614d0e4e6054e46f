// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe jitter` of the kernel engine's ways, on a machine that nothing disturbs: the loop of 100 Hz.
// lab: --module strobe_loop

use std::process::{Command, Output};

use serde_json::Value;
use strobe_cases::machine::command;

fn jitter(words: &str) -> Output {
    let output = Command::new("strobe")
        .args(["jitter", "--rate", "100Hz", "--for", "3s", "--json"])
        .args(words.split(' '))
        .output();
    output.expect("strobe")
}

fn all_of(words: &str) -> Value {
    let output = jitter(words);
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    said["ways"][0]["all"].clone()
}

/// The greatest distance of a period from 10 ms, in ns.
fn worst(all: &Value) -> i64 {
    let period = |what: &str| all["period_ns"][what].as_i64().expect("ns");
    (period("max") - 10_000_000).max(10_000_000 - period("min"))
}

#[test]
fn a_timer_and_an_absolute_loop_keep_each_period_within_one_percent() {
    for way in ["kernel:timer", "kernel:loop"] {
        let all = all_of(&format!("--wait {way} --band 1%"));
        assert!(worst(&all) <= 100_000, "{way}: {all}");
        assert!(all["in_range"].as_u64() >= Some(299), "{way}: {all}");
        for none in ["over", "under", "missed"] {
            assert_eq!(all[none], 0, "{way}: {all}");
        }
        assert!(all["late_ns"]["max"].is_number(), "{way}: {all}");
    }
}

#[test]
fn a_workqueue_keeps_the_grid_and_a_relative_loop_does_not() {
    let drift = |way: &str| all_of(&format!("--wait {way}"))["drift_ppm"].as_f64();
    let work = drift("kernel:workqueue").expect("a drift");
    assert!(work.abs() < 100.0, "{work} ppm");
    let relative = drift("kernel:relative").expect("a drift");
    assert!(relative > 1000.0, "{relative} ppm");
}

#[test]
fn without_the_module_its_ways_are_refused_with_the_remedy() {
    assert!(command("rmmod strobe_loop"));
    let output = jitter("--wait kernel:loop");
    assert!(command("modprobe strobe_loop"));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("modprobe strobe_loop"), "{said}");
}
