// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe get` and `strobe set`: once, now, by the user engine.

use std::process::Output;

fn strobe(arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a folder");
    crate::common::strobe(dir.path(), arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn channels_are_read_once_in_their_order() {
    let got = strobe(&["get", "sim.counter,sim.counter", "--engine", "user"]);
    assert_eq!(got.status.code(), Some(0), "{}", text(&got.stderr));
    assert_eq!(text(&got.stdout), "sim.counter  0\nsim.counter  1\n");
    let json = strobe(&["get", "sim.counter", "--engine", "user", "--json"]);
    let json = text(&json.stdout);
    assert!(json.starts_with("{\"time_ns\":"), "{json}");
    assert!(
        json.ends_with("\"channels\":[{\"channel\":\"sim.counter\",\"value\":0,\"unit\":\"\"}]}\n"),
        "{json}"
    );
}

#[test]
fn a_channel_that_fails_is_named_and_has_no_value() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "none\n").expect("text");
    let channel = format!("file:{}", file.path().display());
    let got = strobe(&[
        "get",
        &format!("sim.counter,{channel}"),
        "--engine",
        "user",
        "--json",
    ]);
    let said = text(&got.stderr);
    assert!(said.contains(&format!("channel {channel}: ")), "{said}");
    match got.status.code() {
        Some(3) => assert!(
            text(&got.stdout).contains("\"value\":null"),
            "{}",
            text(&got.stdout)
        ),
        status => assert_eq!((status, text(&got.stdout)), (Some(1), String::new())),
    }
}

#[test]
fn outputs_are_written_once() {
    let set = strobe(&["set", "sim.latch=1", "--engine", "user"]);
    assert_eq!(
        (set.status.code(), text(&set.stdout)),
        (Some(0), String::new()),
        "{}",
        text(&set.stderr)
    );
    let json = strobe(&["set", "sim.latch=0x1", "--engine", "user", "--json"]);
    let json = text(&json.stdout);
    assert!(
        json.ends_with("\"outputs\":[{\"output\":\"sim.latch\",\"value\":1,\"written\":true}]}\n"),
        "{json}"
    );
}

#[test]
fn what_cannot_be_read_or_written_is_refused_with_the_remedy() {
    for (arguments, part) in [
        (vec!["get", "no.such"], "channel no.such: no such channel"),
        (
            vec!["get", "sim.countre"],
            "channel sim.countre: no such channel",
        ),
        (vec!["get"], "<CH>"),
        (vec!["set"], "<OUT=V>"),
        (vec!["set", "sim.latch"], "write OUTPUT=VALUE"),
        (vec!["set", "sim.latch=x"], "not a whole number"),
        (
            vec!["set", "sim.nothing=1"],
            "output sim.nothing: no such output",
        ),
        (vec!["get", "clock.late"], "clock.late"),
    ] {
        let engine: &[&str] = if arguments.len() > 1 {
            &["--engine", "user"]
        } else {
            &[]
        };
        let refusal = strobe(&[&arguments, engine].concat());
        let said = text(&refusal.stderr);
        assert_eq!(refusal.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(refusal.stdout.is_empty(), "{arguments:?}");
    }
    if !std::path::Path::new("/dev/strobe").exists() {
        let refusal = strobe(&["get", "sim.counter", "--engine", "kernel"]);
        assert!(text(&refusal.stderr).contains("modprobe strobe"));
    }
}
