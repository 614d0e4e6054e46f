// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers: early, late, slow, several, and those that ask for more than the stock ones do.

use crate::panda::client::{Frame, Server, until, within};

fn ends(words: (Vec<u64>, u64, String), rows: u64, reason: &str) {
    assert_eq!(words.0, (0..rows).collect::<Vec<_>>());
    assert_eq!((words.1, words.2.as_str()), (rows, reason));
}

/// Rows without a clock: the soft event.
const SOFT: [&str; 2] = ["EVENT1.SOURCE=soft", "PCAP.TRIG=EVENT1.OUT"];

/// So many triggers, and their rows are in the spool.
async fn make(server: &Server, triggers: u32) {
    let served = server.daemon.runs.list().pop().expect("a run");
    let mut next = served.progress().next;
    // Half a ring at once, so that it loses none.
    let most = u32::try_from(served.info().capacity / 2).expect("a small ring");
    let mut left = triggers;
    while left > 0 {
        let some = left.min(most);
        served.trigger(some).expect("triggers");
        (left, next) = (left - some, next + u64::from(some));
        until(async || served.progress().next >= next).await;
    }
}

/// Waits until the run makes rows.
async fn started(server: &Server) {
    until(async || {
        let served = server.daemon.runs.list().pop();
        served.is_some_and(|served| served.progress().has_started())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn early_and_late_readers_get_the_same_rows_from_the_first_on() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&SOFT).await;
    control.set(&["PCAP.NUM_TRIG=500"]).await;
    let mut early = server.reader("").await;
    let mut two = server.reader("").await;
    assert_eq!(control.ask("*PCAP.ARM=").await, "OK");
    started(&server).await;
    make(&server, 250).await;
    // It comes in mid-run, however slow it is.
    let mut late = server.reader("").await;
    make(&server, 250).await;
    let header = early.header().await;
    assert!(
        header.contains("missed=\"0\"") && !header.contains("arm_time"),
        "{header}"
    );
    assert_eq!(header, two.header().await);
    assert_eq!(header, late.header().await);
    for reader in [&mut early, &mut two, &mut late] {
        ends(reader.words().await, 500, "Ok");
    }
    assert!(early.line().await.starts_with("# account: triggers "));
    control.until("PCAP.ACTIVE?", "0").await;
    assert_eq!(control.ask("*PCAP.COMPLETION?").await, "OK =Ok");
    assert_eq!(control.ask("*PCAP.CAPTURED?").await, "OK =500");
    // The next one: the header is the same, so that it may go into the same file.
    assert_eq!(control.ask("*PCAP.ARM=").await, "OK");
    started(&server).await;
    make(&server, 500).await;
    let again = early.header().await;
    let without_run = |text: &str| text.split_once(" run=").map(|(text, _)| text.to_owned());
    assert_eq!(without_run(&header), without_run(&again));
    ends(early.words().await, 500, "Ok");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_may_ask_for_any_row_for_some_columns_and_for_times() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control
        .set(&[
            "PCAP.NUM_TRIG=100",
            "PCAP.INDEX.CAPTURE=Value",
            "*PCAP.ARM=",
        ])
        .await;
    control.until("PCAP.ACTIVE?", "0").await;
    let mut reader = server.reader("FROM=60 COLS=SIM.COUNTER TIMES").await;
    let header = reader.header().await;
    assert!(
        header.contains("arm_time=\"2") && header.contains("first=\"60\""),
        "{header}"
    );
    assert!(
        header.contains("missed=\"0\"") && header.contains("sample_bytes=\"8\""),
        "{header}"
    );
    let (words, rows, reason) = reader.words().await;
    assert_eq!(
        (words, rows, reason.as_str()),
        ((60..100).collect(), 40, "Ok")
    );
    let mut none = server.data("XML FRAMED COLS=").await;
    assert!(none.line().await.starts_with("ERR "));
    let mut text = server.data("FROM=98 ONE_SHOT").await;
    assert_eq!(text.line().await, "OK");
    // A blank line is the end of the header.
    while !text.line().await.is_empty() {}
    assert_eq!([text.line().await, text.line().await], [" 98 98", " 99 99"]);
    assert_eq!(text.line().await, "END 2 Ok");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_is_that_to_the_row_before_wherever_a_reader_begins() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control
        .set(&["SIM.COUNTER.CAPTURE=Diff", "PCAP.NUM_TRIG=20", "*PCAP.ARM="])
        .await;
    control.until("PCAP.ACTIVE?", "0").await;
    for (from, first) in [("FROM=0", None), ("FROM=5", Some(1.0))] {
        let mut reader = server.reader(from).await;
        reader.header().await;
        let (words, ..) = reader.words().await;
        let values: Vec<f64> = words.into_iter().map(f64::from_bits).collect();
        assert_eq!(
            values.first().copied().filter(|value| !value.is_nan()),
            first
        );
        assert!(values.iter().skip(1).all(|value| *value == 1.0));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_too_slow_is_told_so_and_gets_the_next_run_or_is_cut_off() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&SOFT).await;
    let mut slow = server.reader("").await;
    let mut gaps = server.reader("GAPS").await;
    let mut mute = server.data("XML FRAMED RAW NO_STATUS").await;
    control.set(&["*PCAP.ARM="]).await;
    started(&server).await;
    mute.header().await;
    slow.header().await;
    gaps.header().await;
    // Far more than the spool keeps in memory and two sockets hold.
    let served = server.daemon.runs.list().pop().expect("a run");
    let mut made = 0;
    while served.progress().oldest < 1_000_000 {
        make(&server, 10_000).await;
        made += 10_000;
    }
    control.set(&["*PCAP.DISARM="]).await;
    let (words, rows, reason) = slow.words().await;
    assert_eq!(words, (0..rows).collect::<Vec<_>>());
    assert!(
        rows < made && reason == "Data overrun",
        "{rows} of {made}: {reason}"
    );
    let (mut next, mut lost) = (0, 0);
    let (rows, reason) = loop {
        match gaps.frame().await {
            Frame::Rows(bytes) => {
                for word in bytes.chunks_exact(8) {
                    assert_eq!(u64::from_le_bytes(word.try_into().expect("8 bytes")), next);
                    next += 1;
                }
            }
            Frame::Gap(from, to) => {
                assert_eq!(from, next);
                lost += to - from;
                next = to;
            }
            Frame::End(rows, reason) => break (rows, reason),
            Frame::Closed(error) => panic!("closed: {error:?}"),
        }
    };
    assert!(
        lost > 0 && rows + lost == made,
        "{rows} rows and {lost} lost are {made}"
    );
    assert_eq!(reason, "Disarmed");
    // It has no other way to know.
    assert_eq!(
        mute.close().await,
        Some(std::io::ErrorKind::ConnectionReset)
    );
    control
        .set(&["EVENT1.SOURCE=timer", "PCAP.NUM_TRIG=50", "*PCAP.ARM="])
        .await;
    slow.header().await;
    ends(slow.words().await, 50, "Ok");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_that_a_late_reader_has_missed_are_in_its_header() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&SOFT).await;
    control.set(&["*PCAP.ARM="]).await;
    started(&server).await;
    let served = server.daemon.runs.list().pop().expect("a run");
    while served.progress().oldest == 0 {
        make(&server, 10_000).await;
    }
    let oldest = served.progress().oldest;
    let mut late = server.reader("").await;
    let header = late.header().await;
    assert!(header.contains(&format!("missed=\"{oldest}\"")), "{header}");
    control.set(&["PCAP.ENABLE=ZERO"]).await;
    let (words, rows, reason) = late.words().await;
    assert_eq!((words.first(), reason.as_str()), (Some(&oldest), "Ok"));
    assert_eq!(rows + oldest, served.progress().next);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_daemon_ends_a_reader_is_told_before_its_connection_is_reset() {
    let server = Server::start().await;
    let mut control = server.control().await;
    let mut reader = server.reader("").await;
    let mut idle = server.reader("").await;
    control.set(&["*PCAP.ARM="]).await;
    reader.header().await;
    assert!(matches!(reader.frame().await, Frame::Rows(_)));
    let reading = tokio::spawn(async move {
        let (.., reason) = reader.words().await;
        let account = reader.line().await;
        (reason, account, reader.frame().await)
    });
    idle.header().await;
    server.stop().await;
    let (reason, account, after) = within(reading).await.expect("no panic");
    assert_eq!(reason, "Disarmed");
    assert!(account.starts_with("# account: "), "{account}");
    assert_eq!(
        after,
        Frame::Closed(Some(std::io::ErrorKind::ConnectionReset))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_gives_its_place_back_even_if_there_is_nothing_for_it() {
    let server = Server::with(|config| config.readers = 1).await;
    let mut control = server.control().await;
    control.set(&["*PCAP.ARM="]).await;
    let mut none = server.reader("COLS=SIM.SINE").await;
    assert_eq!(none.line().await, "# SIM.SINE is not captured");
    assert_eq!(none.line().await, "# none of the columns is captured");
    drop(none);
    until(async || server.data("XML FRAMED RAW").await.line().await == "OK").await;
    assert_eq!(control.ask("PCAP.ACTIVE?").await, "OK =1");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_web_page_has_a_browser_send_does_nothing() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&["PCAP.NUM_TRIG=7"]).await;
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
    for first in ["POST / HTTP/1.1\r\n", &long, "\u{16}\u{3}\u{1}\n"] {
        let mut page = server.control().await;
        page.send(&format!(
            "{first}Host: 127.0.0.1:8888\r\n\r\nPCAP.NUM_TRIG=9\n"
        ))
        .await;
        assert!(!page.rest().await.contains("OK"));
        assert_eq!(control.ask("PCAP.NUM_TRIG?").await, "OK =7", "{first}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_limited_and_what_is_rubbish_harms_nobody() {
    let server = Server::with(|config| (config.clients, config.readers) = (2, 2)).await;
    let mut control = server.control().await;
    let mut other = server.control().await;
    assert!(control.ask("*WHO?").await.ends_with('.'));
    assert!(other.ask("*IDN?").await.starts_with("OK =PandA SW: "));
    let mut third = server.control().await;
    assert_eq!(third.answer().await, "ERR Too many connections");
    other.send(&"x".repeat(1 << 20)).await;
    other.send("\n*IDN?\n").await;
    assert!(other.answer().await.starts_with("ERR "));
    assert!(other.answer().await.starts_with("OK ="));
    drop(other);
    let mut next = server.control().await;
    until(async || {
        next = server.control().await;
        next.ask("*IDN?").await.starts_with("OK =")
    })
    .await;
    let _first = server.reader("").await;
    let _second = server.reader("").await;
    assert!(
        server
            .data("XML FRAMED RAW")
            .await
            .line()
            .await
            .starts_with("ERR ")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arm_makes_no_more_runs_than_there_may_be() {
    let server = Server::start().await;
    let mut control = server.control().await;
    let recipe = "event = \"soft\"\nread = [\"sim.counter\"]\nengine = \"user\"\nring = 65536\n";
    let recipe = strobe_files::recipe::Recipe::from_toml("soft", recipe).expect("a recipe");
    let most = server.daemon.config.limits.runs;
    for number in 0..most {
        let made = server.daemon.runs.create(&number.to_string(), &recipe);
        made.expect("a run");
    }
    let answer = control.ask("*PCAP.ARM=").await;
    assert!(
        answer.starts_with("ERR ") && answer.contains("[limits]"),
        "{answer}"
    );
    assert_eq!(server.daemon.runs.list().len(), most);
    let first = server.daemon.runs.list().remove(0);
    server.daemon.runs.remove(first.id()).expect("a run");
    control.set(&["*PCAP.ARM="]).await;
    control.set(&["*PCAP.DISARM="]).await;
    server.stop().await;
}
