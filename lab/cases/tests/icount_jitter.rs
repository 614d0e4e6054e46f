// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe jitter` of the kernel engine's ways, on a machine that nothing disturbs: the loop of 100 Hz.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use strobe_cases::machine::{command, patience, slowness};

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
fn a_counter_in_hardware_judges_the_rows_as_strobe_does() {
    assert!(command("strobe board install /boards/lab-counter.toml"));
    for way in ["kernel:timer", "kernel:loop"] {
        let words = format!("--wait {way} --band 1% --judge counter --read counter.count");
        let output = jitter(&words);
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let (all, round) = (&said["ways"][0]["all"], &said["ways"][0]["rounds"][0]);
        let judged = &round["judged"];
        assert_eq!(judged["edges"], round["rows"], "{way}: {judged}");
        for count in ["in_range", "over", "under"] {
            assert_eq!(judged[count], all[count], "{way}: {judged}");
        }
        let longest = judged["longest_ns"].as_i64().expect("ns");
        // Where sanitizers look at each access, reading the counter takes its part of a period.
        let most = 100_000 * slowness() as i64;
        assert!((longest - 10_000_000).abs() <= most, "{way}: {judged}");
    }
    assert!(command("strobe board remove counter"));
}

#[test]
fn a_workqueue_keeps_the_grid_and_a_relative_loop_does_not() {
    let drift = |way: &str| all_of(&format!("--wait {way}"))["drift_ppm"].as_f64();
    let work = drift("kernel:workqueue").expect("a drift");
    // How late its first and its last row are counts too: a slow kernel is late by more.
    assert!(work.abs() < 100.0 * slowness() as f64, "{work} ppm");
    let relative = drift("kernel:relative").expect("a drift");
    // Its thread may be woken with what else is due within its slack; a kernel with sanitizers always has something.
    assert!(relative > 1000.0 || slowness() > 1, "{relative} ppm");
}

#[test]
fn the_thread_of_a_loop_has_the_priority_and_the_slack_that_were_asked_for() {
    // What ps would say: fields 18 and 40 of stat, the priority as the kernel has it and as it was set.
    let priority = || {
        let threads = std::fs::read_dir("/proc").expect("/proc").flatten();
        let stat =
            |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        let found = threads
            .filter_map(stat)
            .find(|stat| stat.contains("(strobe_loop)"));
        let stat = found?;
        let after = stat.rsplit(") ").next()?;
        after.split(' ').nth(37)?.parse::<u32>().ok()
    };
    for (way, expected) in [
        ("kernel:loop", 50),
        ("kernel:loop/fifo:80", 80),
        ("kernel:relative/fifo:7", 7),
    ] {
        let words = ["jitter", "--rate", "100Hz", "--for", "1s", "--wait", way];
        let mut measuring = Command::new("strobe").args(words).spawn().expect("strobe");
        let end = Instant::now() + patience(30);
        while priority().is_none() && Instant::now() < end {
            sleep(Duration::from_millis(10));
        }
        assert_eq!(priority(), Some(expected), "{way}");
        assert!(measuring.wait().expect("its end").success());
    }
    // On an idle machine nothing else wakes it before: it wakes at the end of its slack. A debug kernel is not so idle.
    let least = if slowness() > 1 { 300_000 } else { 450_000 };
    let late = |words: &str| {
        let all = all_of(words);
        let ns = |what: &str| all["late_ns"][what].as_u64().expect("ns");
        (ns("min"), ns("p50"), ns("max"))
    };
    let (_, _, plain) = late("--wait kernel:loop");
    assert!(plain < 50_000 * slowness(), "{plain}");
    let (_, usual, most) = late("--wait kernel:loop --slack 500us");
    assert!(
        (least..500_000 + 100_000 * slowness()).contains(&usual)
            && most < 500_000 + 100_000 * slowness(),
        "{usual} {most}"
    );
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
