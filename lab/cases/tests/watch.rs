// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of both engines, as `strobe status` and `strobe watch` show them.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use strobe::engine::kernel::Control;
use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::ring::State;
use strobe::run::OwnedRun;
use strobe_cases::engine::plan;

fn until<T>(mut happened: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(result) = happened() {
            return result;
        }
        assert!(
            begun.elapsed() < strobe_cases::machine::patience(60),
            "it does not happen"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The run of this process and engine, in `strobe status --json`. One that is too busy to say is asked again.
fn status(engine: &str, run: u32) -> Value {
    let status: Value = until(|| {
        let output = Command::new("strobe").args(["status", "--json"]).output();
        let output = output.expect("the program runs");
        let status: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        let all_say = status["silent"].as_array().is_none_or(Vec::is_empty);
        assert!(!all_say || output.stderr.is_empty(), "{output:?}");
        all_say.then_some(status)
    });
    let runs = status["runs"].as_array().expect("a list");
    let is_it = |found: &&Value| found["engine"] == engine && found["run"] == run;
    runs.iter().find(is_it).cloned().unwrap_or(Value::Null)
}

/// What `strobe watch` writes to a terminal, until it has written all of this; then it is left.
fn watch(name: &str, what: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("the other side");
    unlockpt(&master).expect("the other side");
    let path = ptsname(&master, Vec::new()).expect("its name");
    let line = open(
        path,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let line = File::from(line.expect("the other side"));
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&line, size).expect("a size");
    let modes = || format!("{:?}", tcgetattr(&line).expect("its modes"));
    let before = modes();
    let text = Arc::new(Mutex::new(String::new()));
    let (mut keys, shown) = (File::from(master), Arc::clone(&text));
    let mut output = keys.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut part) {
            let part = String::from_utf8_lossy(&part[..count]);
            shown.lock().expect("no panic").push_str(&part);
        }
    });
    let end = || Stdio::from(line.try_clone().expect("a descriptor"));
    let mut child = Command::new("strobe")
        .args(["watch", name])
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("the program runs");
    let seen = || text.lock().expect("no panic").clone();
    until(|| what.iter().all(|part| seen().contains(part)).then_some(()));
    keys.write_all(b"q").expect("heard");
    assert!(child.wait().expect("an end").success());
    assert_eq!(modes(), before);
    seen()
}

fn of_both(plan: &Plan) -> [Box<dyn OwnedRun>; 2] {
    let kernel = Control::open().expect("the control device").create(plan);
    let user = User::default().create(plan);
    [
        Box::new(kernel.expect("a run of the kernel engine")),
        Box::new(user.expect("a run of the user engine")),
    ]
}

#[test]
fn runs_of_both_engines_are_shown_alike() {
    let plan = Plan {
        limit: Some(20),
        ring: Some(64),
        ..plan("timer:1kHz", &["sim.counter", "sim.ramp"])
    };
    let shown = of_both(&plan).map(|run| {
        let (engine, number) = (run.info().engine.name(), run.info().run);
        let ready = status(engine, number);
        assert_eq!(ready["state"], "ready", "{ready}");
        assert_eq!(
            (&ready["rows"], &ready["elapsed_ns"]),
            (&0.into(), &0.into())
        );
        let reader = run.reader().expect("a reader");
        run.start().expect("a start");
        until(|| (reader.snapshot().state == State::Done).then_some(()));
        let mut done = status(engine, number);
        let account =
            ["triggers", "rows", "missed"].map(|key| done[key].as_u64().expect("a count"));
        assert_eq!(account[0], account[1] + account[2], "{done}");
        drop((reader, run));
        assert_eq!(status(engine, number), Value::Null, "no ghost");
        let done = done.as_object_mut().expect("an object");
        for key in ["engine", "run", "triggers", "missed", "elapsed_ns"] {
            done.remove(key).expect("the key is there");
        }
        done.clone()
    });
    assert_eq!(shown[0]["state"], "done");
    assert_eq!(shown[0], shown[1]);
}

#[test]
fn runs_of_both_engines_can_be_watched_and_do_not_notice_it() {
    let plan = plan("soft", &["sim.counter"]);
    for run in of_both(&plan) {
        let name = format!("{}:{}", run.info().engine.name(), run.info().run);
        run.start().expect("a start");
        run.trigger(500).expect("triggers");
        let text = watch(&name, &[&name, "running", "sim.counter", "499"]);
        assert!(!text.contains("panic"), "{text}");
        run.trigger(1).expect("it goes on");
        let now = run.reader().expect("a reader").snapshot();
        assert_eq!((now.head, now.missed(), now.errors), (501, 0, 0));
        run.stop().expect("a stop");
        watch(&name, &["stopped", "ended"]);
    }
}
