// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe list` of the user engine: the events that are here, under names that a run takes.
// lab: --module uio_dummy --module uio_pci_generic --module lab_gpio --append rcutree.kthread_prio=70 --append irqaffinity=0

use std::process::Command;

use strobe::engine::user::User;
use strobe_cases::machine::command;
use strobe_cases::plan;

/// What `strobe list` shows, and for each event of the user engine its name and whether it wants a period.
fn listed() -> (String, Vec<(String, bool)>) {
    let show = |more: &[&str]| {
        let done = Command::new("strobe").arg("list").args(more).output();
        let done = done.expect("strobe runs");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    };
    let json: serde_json::Value = serde_json::from_str(&show(&["--json"])).expect("JSON");
    let engines = json["engines"].as_array().expect("engines");
    let user = engines.iter().find(|engine| engine["name"] == "user");
    let events = user.expect("the user engine")["catalogue"]["events"].as_array();
    let event = |event: &serde_json::Value| {
        assert!(event["description"].as_str().is_some_and(|d| !d.is_empty()));
        let name = event["name"].as_str().expect("a name");
        (name.to_owned(), event["periodic"] == true)
    };
    let events = events.expect("events").iter().map(event).collect();
    (show(&[]), events)
}

#[test]
fn each_kind_of_event_is_listed_by_a_name_that_a_run_takes() {
    let (text, events) = listed();
    for (kind, periodic) in [
        ("timer", true),
        ("soft", false),
        ("hpet", true),
        ("uio:uio_dummy", false),
        ("gpio:", false),
    ] {
        let found = events.iter().find(|(name, _)| name.starts_with(kind));
        let (name, is_periodic) = found.unwrap_or_else(|| panic!("{kind}: {events:?}"));
        assert_eq!(*is_periodic, periodic, "{name}");
        let shown = match periodic {
            true => format!("{name}:PERIOD"),
            false => name.clone(),
        };
        assert!(text.contains(&format!("  {shown} ")), "{shown}:\n{text}");
        // What stands for something is filled in.
        let event = shown.replace("PERIOD", "64Hz").replace("LINE", "0");
        if let Err(error) = User::default().dry_run(&plan(&event, &["clock.time"])) {
            panic!("{event}: {error}");
        }
    }
}

#[test]
fn what_has_gone_is_not_listed() {
    let is_listed = |name: &str| listed().1.iter().any(|(listed, _)| listed == name);
    let name = "uio:uio_dummy";
    assert!(is_listed(name));
    assert!(command("rmmod uio_dummy"));
    assert!(!is_listed(name));
    assert!(is_listed("soft"));
    assert!(command("modprobe uio_dummy"));
    assert!(is_listed(name));
}
