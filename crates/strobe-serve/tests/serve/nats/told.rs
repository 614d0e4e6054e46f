// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs say.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::nats::common::{Running, free_port};

/// What it says, up to a line with this.
fn said(command: &mut Command, last: &str) -> String {
    let mut running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut words = BufReader::new(running.0.stderr.take().expect("its words"));
    let mut text = String::new();
    while !text.contains(last) {
        assert_ne!(words.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    text
}

#[test]
fn passwords_are_not_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = format!("127.0.0.1:{}", free_port());
    let url = format!("nats://somebody:pass-word@{place}");
    let shown = format!("nats://{place}");
    let config = format!(
        "data = \"data\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n[publish.nats]\nurl = \"{url}\"\n"
    );
    let path = folder.path().join("serve.toml");
    std::fs::write(&path, config).expect("a configuration");
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    let text = said(daemon.arg(path), "http://");
    assert!(
        text.contains(&shown) && !text.contains("pass-word"),
        "{text}"
    );
    let mut subscriber = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    subscriber.args(["subscribe", &url, "-o"]);
    let text = said(
        subscriber.arg(folder.path().join("a.csv")),
        "waiting for it",
    );
    assert!(
        text.contains(&shown) && !text.contains("pass-word"),
        "{text}"
    );
}
