// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequencer and the run it makes: which rises count, and whose the run is.

use crate::panda::client::{Control, Frame, Server, until, within};
use crate::panda::gates::line;

/// A table of two lines, so that it is no timer: five rises of OUTA. OUTB rises with the first one, and stays.
fn five() -> String {
    let lines = line(1, 0, [3, 2], [20, 20]) + &line(4, 0, [3, 2], [20, 20]);
    format!("SEQ1.TABLE<\n{lines}")
}

/// Rows at the rises of OUTA.
async fn triggered(server: &Server, table: &str) -> Control {
    let mut control = server.control().await;
    control.set(&["PCAP.TRIG=SEQ1.OUTA", table]).await;
    control
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rise_of_a_table_that_waits_for_nothing_makes_a_row() {
    for gates in [
        ["PCAP.ENABLE=SEQ1.ACTIVE", "PCAP.NUM_TRIG=0"],
        ["PCAP.ENABLE=ONE", "PCAP.NUM_TRIG=5"],
        ["PCAP.ENABLE=SEQ1.ACTIVE", "PCAP.GATE=SEQ1.OUTB"],
    ] {
        let server = Server::start().await;
        let mut control = triggered(&server, &five()).await;
        control.set(&gates).await;
        let mut reader = server.reader("").await;
        control.set(&["*PCAP.ARM=", "SEQ1.ENABLE=ONE"]).await;
        reader.header().await;
        let (words, _, reason) = reader.words().await;
        assert_eq!(
            (words, reason.as_str()),
            ((0..5).collect(), "Ok"),
            "{gates:?}"
        );
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_is_given_up_while_its_run_is_made_leaves_none_behind() {
    let server = Server::start().await;
    let mut control = triggered(&server, &five()).await;
    control
        .set(&["SEQ1.REPEATS=0", "PCAP.ENABLE=ZERO", "*PCAP.ARM="])
        .await;
    for _ in 0..50 {
        control.set(&["SEQ1.ENABLE=ONE", "SEQ1.ENABLE=ZERO"]).await;
    }
    control.set(&["*PCAP.DISARM="]).await;
    control.until("SEQ1.ACTIVE?", "0").await;
    // What was begun before is made when this one is, as a rule.
    control.set(&["*PCAP.ARM=", "SEQ1.ENABLE=ONE"]).await;
    control.until("SEQ1.ACTIVE?", "1").await;
    control.set(&["*PCAP.DISARM="]).await;
    // One of each acquisition at most.
    until(async || {
        let runs = server.daemon.runs.list();
        runs.len() <= 2 && runs.iter().all(|run| run.progress().is_over())
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_disarmed_while_its_run_is_made_has_none() {
    let server = Server::start().await;
    let mut control = triggered(&server, &five()).await;
    control.set(&["SEQ1.REPEATS=0", "PCAP.ENABLE=ZERO"]).await;
    for number in 0..40 {
        control.set(&["*PCAP.ARM=", "SEQ1.ENABLE=ONE"]).await;
        // Sooner and later: it is not known how long a run takes to be made.
        for _ in 0..number {
            control.ask("*IDN?").await;
        }
        control.set(&["*PCAP.DISARM="]).await;
        // Whatever was made is there now.
        control.until("SEQ1.ACTIVE?", "1").await;
        let mut reader = server.reader("FROM=0 ONE_SHOT").await;
        reader.header().await;
        assert_eq!(reader.frame().await, Frame::End(0, "Disarmed".to_owned()));
        control.set(&["SEQ1.ENABLE=ZERO"]).await;
        control.until("SEQ1.ACTIVE?", "0").await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequencer_that_is_enabled_again_goes_on_with_the_same_run() {
    let server = Server::start().await;
    let mut control = triggered(&server, &five()).await;
    control
        .set(&["PCAP.NUM_TRIG=10", "*PCAP.ARM=", "SEQ1.ENABLE=ONE"])
        .await;
    let mut reader = server.reader("").await;
    control.until("*PCAP.CAPTURED?", "5").await;
    control.set(&["SEQ1.ENABLE=ZERO", "SEQ1.ENABLE=ONE"]).await;
    reader.header().await;
    let (words, rows, reason) = reader.words().await;
    assert_eq!(
        (words, rows, reason.as_str()),
        ((0..10).collect(), 10, "Ok")
    );
    assert_eq!(server.daemon.runs.list().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_was_a_sequence_ends_with_it() {
    let server = Server::start().await;
    let table = format!("SEQ1.TABLE<\n{}", line(100, 0, [1, 0], [500, 500]));
    let mut control = triggered(&server, &table).await;
    control
        .set(&["SEQ1.REPEATS=0", "*PCAP.ARM=", "SEQ1.ENABLE=ONE"])
        .await;
    let mut reader = server.reader("").await;
    reader.header().await;
    assert!(matches!(reader.frame().await, Frame::Rows(_)));
    control.set(&["SEQ1.ENABLE=ZERO"]).await;
    assert_eq!(within(reader.words()).await.2, "Ok");
    assert_eq!(control.ask("PCAP.ACTIVE?").await, "OK =0");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequencer_that_waits_for_active_finds_the_acquisition_and_who_is_told_of_its_end_may_arm()
 {
    let server = Server::start().await;
    let table = format!("SEQ1.TABLE<\n{}", line(3, 0, [1, 0], [50, 50]));
    let mut control = triggered(&server, &table).await;
    control
        .set(&["PCAP.ENABLE=SEQ1.ACTIVE", "SEQ1.ENABLE=PCAP.ACTIVE"])
        .await;
    let mut reader = server.reader("").await;
    for _ in 0..50 {
        control.set(&["*PCAP.ARM="]).await;
        reader.header().await;
        assert_eq!(reader.words().await, (vec![0, 1, 2], 3, "Ok".to_owned()));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fall_of_enable_ends_a_sequence_however_short_it_is() {
    let server = Server::start().await;
    // One rise, and then it waits for a bit that never comes.
    let lines = line(1, 0, [1, 0], [20, 20]) + &line(1, 2, [0, 0], [0, 0]);
    let mut control = triggered(&server, &format!("SEQ1.TABLE<\n{lines}")).await;
    control.set(&["*PCAP.ARM=", "SEQ1.ENABLE=ONE"]).await;
    for rows in 1..=20 {
        control
            .until("*PCAP.CAPTURED?", rows.to_string().as_str())
            .await;
        // In one packet: nobody looks in between.
        control.send("SEQ1.ENABLE=ZERO\nSEQ1.ENABLE=ONE\n").await;
        assert_eq!(control.answer().await, "OK");
        assert_eq!(control.answer().await, "OK");
    }
    control.set(&["SEQ1.ENABLE=ZERO"]).await;
    control.until("SEQ1.ACTIVE?", "0").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_made_has_failed_and_it_is_said_why() {
    let server = Server::start().await;
    let table = format!("SEQ1.TABLE<\n{}", line(10, 0, [1, 0], [250, 250]));
    let mut control = triggered(&server, &table).await;
    let mut reader = server.reader("").await;
    // A timer of 500 ns: no engine has one.
    control
        .set(&["SEQ1.PRESCALE=1e-9", "*PCAP.ARM=", "SEQ1.ENABLE=ONE"])
        .await;
    let mut comments = Vec::new();
    loop {
        match reader.line().await.as_str() {
            "</header>" => break,
            line if line.starts_with("# ") => comments.push(line.to_owned()),
            _ => {}
        }
    }
    assert_eq!(reader.line().await, "");
    let end = Frame::End(0, "DMA data error".to_owned());
    assert_eq!(reader.frame().await, end);
    assert!(
        comments.iter().any(|line| line.contains("timer:500ns")),
        "{comments:?}"
    );
    assert_eq!(control.ask("PCAP.HEALTH?").await, "OK =The run failed");
    server.stop().await;
}
