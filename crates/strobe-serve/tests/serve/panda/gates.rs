// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arming, gates, ends, and the sequencer.

use crate::panda::client::{Frame, Server};

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_made_before_the_gate_opens_and_its_fall_is_the_end() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&["PCAP.ENABLE=BITS.OUTA", "*PCAP.ARM="]).await;
    assert_eq!(control.ask("PCAP.ACTIVE?").await, "OK =1");
    assert!(control.ask("*PCAP.ARM=").await.starts_with("ERR "));
    let mut reader = server.reader("").await;
    let served = server.daemon.runs.list().pop().expect("a run");
    assert!(!served.progress().has_started());
    control.set(&["BITS.A=1"]).await;
    reader.header().await;
    assert!(matches!(reader.frame().await, Frame::Rows(_)));
    control.set(&["BITS.A=0"]).await;
    let (.., rows, reason) = reader.words().await;
    assert_eq!((rows, reason.as_str()), (served.progress().next, "Ok"));
    control.until("PCAP.ACTIVE?", "0").await;
    let totals = served.progress().totals.expect("an account");
    assert_eq!(
        totals.triggers,
        totals.rows + totals.missed() + totals.skipped
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_enabled_ends_without_rows() {
    let server = Server::start().await;
    let mut control = server.control().await;
    let mut reader = server.reader("").await;
    for trigger in ["EVENT1.OUT", "SEQ1.OUTA"] {
        control
            .set(&[
                "PCAP.ENABLE=ZERO",
                &format!("PCAP.TRIG={trigger}"),
                "*PCAP.ARM=",
                "*PCAP.DISARM=",
            ])
            .await;
        reader.header().await;
        assert_eq!(reader.frame().await, Frame::End(0, "Disarmed".to_owned()));
        assert_eq!(control.ask("PCAP.ACTIVE?").await, "OK =0");
    }
    assert_eq!(control.ask("*PCAP.DISARM=").await, "OK");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_armed_is_refused_with_the_reason() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&["*CAPTURE="]).await;
    assert!(
        control
            .ask("*PCAP.ARM=")
            .await
            .starts_with("ERR Nothing is captured")
    );
    control
        .set(&["CPU.ID.CAPTURE=Value", "EVENT1.PERIOD=0"])
        .await;
    assert!(
        control
            .ask("*PCAP.ARM=")
            .await
            .starts_with("ERR EVENT1.PERIOD")
    );
    control
        .set(&[
            "EVENT1.PERIOD=1",
            "EVENT1.SOURCE=soft",
            "CLOCK.LATE.CAPTURE=Value",
        ])
        .await;
    assert!(
        control.ask("*PCAP.ARM=").await.contains("clock.late"),
        "the engine says why"
    );
    assert_eq!(control.ask("PCAP.ACTIVE?").await, "OK =0");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_shorter_than_a_question_is_still_seen() {
    let server = Server::start().await;
    let (mut control, mut ioc) = (server.control().await, server.control().await);
    ioc.ask("*CHANGES?").await;
    control.set(&["PCAP.NUM_TRIG=1", "*PCAP.ARM="]).await;
    control.until("PCAP.ACTIVE?", "0").await;
    let first = ioc.ask("*CHANGES?").await;
    assert!(first.contains("!PCAP.ACTIVE=1\n"), "{first}");
    let second = ioc.ask("*CHANGES?").await;
    assert!(second.contains("!PCAP.ACTIVE=0\n"), "{second}");
    assert_eq!(ioc.ask("*CHANGES.BITS?").await, ".");
    // Nobody has read it: who comes a moment too late gets it all the same.
    let mut late = server.reader("").await;
    control.set(&["*PCAP.ARM="]).await;
    late.header().await;
    assert_eq!(late.words().await.1, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_gate_pauses_the_run() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control
        .set(&["PCAP.GATE=BITS.OUTB", "BITS.B=1", "*PCAP.ARM="])
        .await;
    let mut reader = server.reader("").await;
    reader.header().await;
    assert!(matches!(reader.frame().await, Frame::Rows(_)));
    let served = server.daemon.runs.list().pop().expect("a run");
    control.set(&["BITS.B=0"]).await;
    crate::panda::client::until(async || served.state() == strobe::ring::State::Paused).await;
    control.set(&["BITS.B=1"]).await;
    crate::panda::client::until(async || served.state() == strobe::ring::State::Running).await;
    control.set(&["*PCAP.DISARM="]).await;
    let (.., rows, reason) = reader.words().await;
    assert_eq!(
        (rows, reason.as_str()),
        (served.progress().next, "Disarmed")
    );
    server.stop().await;
}

/// A line of the table: repeats, trigger, outputs of both phases, and their times.
pub fn line(repeats: u32, trigger: u32, outputs: [u32; 2], times: [u32; 2]) -> String {
    let first = repeats | trigger << 16 | outputs[0] << 20 | outputs[1] << 26;
    format!("{first}\n0\n{}\n{}\n", times[0], times[1])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_sequence_makes_exactly_its_rows() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control
        .set(&[
            "PCAP.TRIG=SEQ1.OUTA",
            "PCAP.ENABLE=SEQ1.ACTIVE",
            "*PCAP.ARM=",
        ])
        .await;
    let mut reader = server.reader("").await;
    // The table may come after ARM.
    let table = line(100, 0, [1, 0], [500, 500]);
    control
        .set(&[
            "SEQ1.REPEATS=3",
            &format!("SEQ1.TABLE<\n{table}"),
            "SEQ1.ENABLE=ONE",
        ])
        .await;
    reader.header().await;
    let (words, rows, reason) = reader.words().await;
    assert_eq!(
        (words, rows, reason.as_str()),
        ((0..300).collect(), 300, "Ok")
    );
    control.until("SEQ1.ACTIVE?", "0").await;
    let served = server.daemon.runs.list().pop().expect("a run");
    assert_eq!(served.info().period_ns, Some(1_000_000));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_waits_for_bits_makes_a_row_at_each_rise_of_its_output() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control
        .set(&[
            "PCAP.TRIG=SEQ2.OUTB",
            "PCAP.ENABLE=SEQ2.ACTIVE",
            "SEQ2.BITA=BITS.OUTC",
            "SEQ2.ENABLE=ZERO",
            "*PCAP.ARM=",
        ])
        .await;
    let mut reader = server.reader("").await;
    let table =
        line(1, 1, [0, 0], [0, 0]) + &line(1, 2, [0, 0], [0, 0]) + &line(7, 0, [2, 0], [100, 50]);
    control
        .set(&[&format!("SEQ2.TABLE<\n{table}"), "SEQ2.ENABLE=ONE"])
        .await;
    control.until("SEQ2.ACTIVE?", "1").await;
    reader.header().await;
    control.set(&["BITS.C=1"]).await;
    let (words, rows, reason) = reader.words().await;
    assert_eq!((words, rows, reason.as_str()), ((0..7).collect(), 7, "Ok"));
    control.until("SEQ2.ACTIVE?", "0").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bits_of_pcap_tell_of_triggers_that_were_missed_and_of_rows_that_were_lost() {
    let server = Server::start().await;
    let mut control = server.control().await;
    assert_eq!(control.ask("PCAP.MISSED?").await, "OK =0");
    // Faster than any thread wakes.
    control.set(&["EVENT1.PERIOD=1e-6", "*PCAP.ARM="]).await;
    control.until("PCAP.MISSED?", "1").await;
    control.set(&["*PCAP.DISARM="]).await;
    let served = server.daemon.runs.list().pop().expect("a run");
    let has_lost = u8::from(served.progress().lost > 0);
    assert_eq!(control.ask("PCAP.LOST?").await, format!("OK ={has_lost}"));
    control.set(&["EVENT1.PERIOD=1", "*PCAP.ARM="]).await;
    for bit in ["PCAP.MISSED?", "PCAP.LOST?"] {
        assert_eq!(control.ask(bit).await, "OK =0", "of the new run");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_is_none_in_another_unit_is_refused() {
    let server = Server::start().await;
    let mut control = server.control().await;
    for time in ["1e308", "1e16", "-1", "inf", "nan"] {
        let answer = control.ask(&format!("SEQ1.PRESCALE={time}")).await;
        assert_eq!(answer, "ERR Time missing or out of range", "{time}");
    }
    control
        .set(&["SEQ1.PRESCALE=1e15", "SEQ1.PRESCALE.UNITS=us"])
        .await;
    assert_eq!(control.ask("SEQ1.PRESCALE?").await, "OK =1e21");
    server.stop().await;
}
