// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe doctor` in a guest, of which it is known how it is; and in a container in that.
//! The sanitizers' kernels are small: what a container is made of is not in them.
// kernels: amd64 rt
// lab: --module uio_dummy

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use strobe_cases::machine::{command, is_rt};
use strobe_files::journal::Journal;

fn doctor(words: &str) -> Output {
    let words = words.split_whitespace();
    let output = Command::new("strobe").arg("doctor").args(words).output();
    output.expect("the program runs")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// State of each check, and all that is said of it.
fn lines(said: &Value) -> BTreeMap<&str, (&str, String)> {
    let lines = said["checks"].as_array().expect("checks");
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let pairs = lines.iter().map(|line| {
        let words = format!("{} {}", text(line, "evidence"), text(line, "remedy"));
        let key = line["check"].as_str().expect("a name");
        (key, (line["state"].as_str().expect("a state"), words))
    });
    pairs.collect()
}

#[test]
fn a_guest_is_found_to_be_what_it_is() {
    let output = doctor("--json");
    assert_eq!(output.status.code(), Some(3));
    let said = json(&output);
    println!("{}", String::from_utf8_lossy(&doctor("").stdout));
    let lines = lines(&said);
    for (check, state, words) in [
        ("fifo", "ok", "fifo:60: tried, and read back"),
        ("memory-lock", "ok", "can be locked (tried)"),
        ("module", "ok", "strobe is loaded"),
        ("device", "ok", "/dev/strobe was opened"),
        ("group", "ok", "root needs no group"),
        ("signature", "ok", "sig_enforce is N"),
        ("headers", "advice", "apt install linux-headers-"),
        // A guest has no /var/lib.
        ("dkms", "unknown", "/var/lib is not there"),
        ("ring-memory", "ok", "all rings together"),
        ("boards", "ok", "none is installed"),
        ("uio", "ok", "uio_dummy"),
        ("swap", "ok", "no swap"),
        ("isolation", "advice", "isolcpus=managed_irq,domain,1"),
        ("rt-tasks", "ok", "on CPU 0-1 has priority 60 or more"),
        ("irqbalance", "ok", "not running"),
        ("virtual-machine", "advice", "hypervisor"),
    ] {
        let (found, said) = &lines[check];
        assert!(
            *found == state && said.contains(words),
            "{check}: {found}: {said}"
        );
    }
    let (preemption, words) = &lines["preemption"];
    match std::env::var("LAB_KERNEL").as_deref() {
        Ok("rt") => assert_eq!(*preemption, "ok", "{words}"),
        Ok("amd64") => assert!(words.contains("linux-image-rt-amd64"), "{words}"),
        _ => {}
    }
}

#[test]
fn who_spins_above_the_interrupt_threads_of_a_real_time_kernel_is_warned() {
    let output = doctor("irq-threads spinning --wait spin --cpu 1 --json");
    let said = json(&output);
    let lines = lines(&said);
    let (spinning, words) = &lines["spinning"];
    assert_eq!(*spinning, "advice", "{words}");
    let (threads, words) = &lines["irq-threads"];
    if is_rt() {
        assert!(
            *threads == "advice" && words.contains("it never comes"),
            "{words}"
        );
    }
    // Above who spins they are as they should be.
    let said = json(&doctor(
        "irq-threads --wait spin --cpu 1 --priority 30 --json",
    ));
    assert_eq!(said["checks"][0]["state"], "ok", "{said}");
}

#[test]
fn a_module_that_is_not_loaded_is_advised_and_the_advice_mends_it() {
    assert!(command("modprobe -r strobe_board"), "to unload the driver");
    assert!(command("modprobe -r strobe"), "to unload the module");
    let output = doctor("module device ring-memory --json");
    assert!(command("modprobe strobe"), "to load the module");
    assert!(command("modprobe strobe_board"), "to load the driver");
    assert_eq!(output.status.code(), Some(3));
    let said = json(&output);
    let lines = lines(&said);
    for check in ["module", "device"] {
        let (state, words) = &lines[check];
        assert!(
            *state == "advice" && words.contains("modprobe strobe"),
            "{check}: {words}"
        );
    }
    assert_eq!(lines["ring-memory"].0, "unknown");
    assert_eq!(doctor("module device ring-memory").status.code(), Some(0));
}

/// Less is to be seen, nothing may be written, and no capability is left.
const CONTAINER: &str = "mount -t proc proc /proc && mount -o bind /sys /sys && mount -o remount,bind,ro /sys && \
                         mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && \
                         exec su user -c 'strobe doctor --json'";

#[test]
fn in_a_container_nothing_is_ok_that_is_not_ok_outside() {
    let inside = Command::new("unshare")
        .args(["-m", "-p", "-f", "sh", "-c", CONTAINER])
        .output();
    let inside = inside.expect("unshare, of busybox");
    assert_eq!(inside.status.code(), Some(3), "{inside:?}");
    let (inside, outside) = (json(&inside), json(&doctor("--json")));
    let (inside, outside) = (lines(&inside), lines(&outside));
    for (check, (state, words)) in &inside {
        let may_change = ["load", "interrupts"].contains(check);
        assert!(
            *state != "ok" || outside[check].0 == "ok" || may_change,
            "{check}: {words}"
        );
    }
    for (check, state) in [
        ("fifo", "advice"),
        ("device", "advice"),
        ("group", "advice"),
        ("uio", "unknown"),
        ("rt-tasks", "unknown"),
        ("irq-threads", "unknown"),
        ("irqbalance", "unknown"),
    ] {
        assert_eq!(inside[check].0, state, "{check}: {}", inside[check].1);
    }
}

#[test]
fn recordings_of_both_engines_say_how_the_machine_was() {
    for engine in ["kernel", "user"] {
        let path = format!("/tmp/{engine}.arrows");
        let words = format!(
            "record --engine {engine} --event timer:100Hz --read sim.counter --rows 5 --allow-loss -o {path}"
        );
        assert!(command(&format!("strobe {words}")), "{words}");
        let journal = Journal::open(Path::new(&path)).expect("a recording");
        let doctor = &journal.info().doctor;
        let module = doctor.iter().find(|noted| noted.check == "module");
        let module = module.expect("the module is looked at");
        assert_eq!(module.state.word(), "ok", "{module:?}");
        assert!(
            doctor.iter().all(|noted| noted.check != "load"),
            "it would take a second"
        );
    }
}

#[test]
fn an_advice_is_measured_with_it_and_without() {
    let output = doctor("timers --prove --rounds 4 --for 200ms --json");
    let said = json(&output);
    println!("{said}");
    let proofs = said["proofs"].as_array().expect("proofs");
    assert_eq!(proofs.len(), 4);
    for proof in proofs {
        let is_judged = proof["p50"]["verdict"].is_string();
        assert_ne!(is_judged, proof["refused"].is_string(), "{proof}");
        assert!(proof["p50"]["with_ns"]["least"].is_i64(), "{proof}");
    }
}
