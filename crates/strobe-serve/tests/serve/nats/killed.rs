// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus that is killed again and again: each row arrives, and none twice. A subscriber that is killed: none is missing.
//!
//! `STROBE_NATS_ROWS` and `STROBE_NATS_KILLS` say how many rows each of two publishers has, and how often the server is
//! killed; `make soak` has more of both.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::nats::common::{
    Lab, PATIENCE, Running, bus, free_port, numbers, subscriber as known, until, until_over,
};

const RATE: u64 = 5000;

fn number(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

fn publisher(folder: &Path, name: &str, rows: u64, port: u16) -> Running {
    let place = folder.join(name);
    std::fs::create_dir(&place).expect("a folder");
    // A busy machine may take the rows from the ring late; none is to be lost there.
    let recipe = format!(
        "event = \"timer:{RATE}Hz\"\nread = [\"sim.counter\"]\nengine = \"user\"\nrows = {rows}\nring = 65536\n"
    );
    std::fs::write(place.join(format!("{name}.toml")), recipe).expect("a recipe");
    let config = format!(
        "data = \"data\"\nrecipes = \".\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n\
         [[run]]\nrecipe = \"{name}.toml\"\nstart = true\n\
         [publish.nats]\nurl = \"nats://127.0.0.1:{port}\"\nmachine = \"{name}\"\n"
    );
    let path = place.join("serve.toml");
    std::fs::write(&path, config).expect("a configuration");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    Running::start(command.arg(path).stderr(Stdio::null()))
}

fn subscriber(folder: &Path, name: &str, port: u16) -> (Running, PathBuf) {
    let sink = folder.join(format!("{name}.csv"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    command.args(["subscribe", &format!("nats://127.0.0.1:{port}"), "-o"]);
    command.arg(&sink).args(["--run", name, "--name", name]);
    // The machine may be too busy for each trigger.
    command.arg("--allow-loss").stderr(Stdio::null());
    (Running::start(&mut command), sink)
}

#[test]
fn two_publishers_rows_arrive_once_each_though_the_bus_is_killed_again_and_again() {
    let rows = number("STROBE_NATS_ROWS", 25_000);
    let kills = number("STROBE_NATS_KILLS", 5);
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_port();
    // Publishers and subscribers wait for it.
    let names = ["alpha", "beta"];
    let publishers = names.map(|name| publisher(folder.path(), name, rows, port));
    let subscribers = names.map(|name| subscriber(folder.path(), name, port));
    let store = folder.path().join("store");
    let mut server = bus(&store, port);
    let pause = Duration::from_secs(rows / RATE) / (kills as u32 + 1);
    for kill in 0..kills {
        std::thread::sleep(pause.max(Duration::from_millis(500)));
        drop(server);
        // Sometimes it is away for longer than a message waits to be sent.
        std::thread::sleep(Duration::from_millis(100 * (kill % 5)));
        server = bus(&store, port);
    }
    for (subscriber, sink) in subscribers {
        let patience = PATIENCE + Duration::from_secs(3 * rows / RATE);
        assert!(subscriber.wait(patience).success());
        let text = std::fs::read_to_string(&sink).expect("rows");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let mut counted = 0;
        for line in lines {
            let row = line.split(',').next().and_then(|row| row.parse().ok());
            assert_eq!(row, Some(counted), "{}", sink.display());
            counted += 1;
        }
        assert_eq!(counted, rows, "{}", sink.display());
    }
    drop((publishers, server));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_is_killed_and_started_again_leaves_no_row_out() {
    const PORTION: u32 = 500;
    let lab = Lab::new("", "").await;
    let run = lab.run("scan", "event = \"soft\"\n");
    lab.publish();
    let trigger = async |portions: u64| {
        for _ in 0..portions {
            let next = run.progress().next + u64::from(PORTION);
            run.trigger(PORTION).expect("triggers");
            until("rows", async || run.progress().next >= next).await;
        }
    };
    let stream = lab.stream().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
    command.args(["subscribe", &lab.url, "-o", "-", "--run", "scan"]);
    command.args(["--name", "test"]);
    let mut killed = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut sink = BufReader::new(killed.0.stdout.take().expect("its rows"));
    trigger(4).await;
    // Who reads its rows goes on for a while, and then is stuck: many messages are in no file.
    let mut text = String::new();
    let lines = tokio::task::spawn_blocking(move || {
        while !text.contains("\n1999,") {
            assert_ne!(sink.read_line(&mut text).expect("a row"), 0, "no rows");
        }
        (text, sink)
    });
    let (mut text, mut sink) = lines.await.expect("rows");
    let acknowledged = async || {
        let known = known(&stream).await;
        known.is_some_and(|known| known.ack_floor.consumer_sequence > 0)
    };
    until("what was written is acknowledged", acknowledged).await;
    trigger(40).await;
    run.stop().expect("an end");
    until_over(&run).await;
    let total = run.progress().next;
    let subject = known(&stream).await.expect("a subscriber");
    let subject = subject.config.filter_subject;
    let is_published = async || {
        let last = stream.get_last_raw_message_by_subject(&subject).await;
        let end = last
            .ok()
            .and_then(|last| last.headers.get("strobe-end").cloned());
        end.is_some_and(|end| end.as_str() == "1")
    };
    until("all is published", is_published).await;
    let is_stuck = async || {
        known(&stream)
            .await
            .is_some_and(|known| known.num_pending == 0)
    };
    until("all is delivered", is_stuck).await;
    drop(killed);
    sink.read_to_string(&mut text).expect("the rest");
    let first = numbers(&text);
    let end = first.len() as u64;
    assert_eq!(first, (0..end).collect::<Vec<_>>());
    assert!(end < total, "it was stuck");
    let summary = lab.take("scan", "second.csv").await;
    let second = lab.rows("second.csv");
    let begin = *second.first().expect("rows");
    assert!(0 < begin && begin <= end, "{begin}, {end}");
    assert_eq!(second, (begin..total).collect::<Vec<_>>());
    assert_eq!((summary.rows, summary.lost), (total, 0));
}
