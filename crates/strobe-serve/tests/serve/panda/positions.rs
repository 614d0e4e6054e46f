// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables that wait for positions and bits, as programs of the run that they trigger.

use crate::panda::client::{Control, Server, until};
use crate::panda::samples::read;

/// A line of the table: repeats, trigger, position, outputs of both phases, and their times.
fn line(repeats: u32, wait: (u32, i32), outputs: [u32; 2], times: [u32; 2]) -> String {
    let first = repeats | wait.0 << 16 | outputs[0] << 20 | outputs[1] << 26;
    format!("{first}\n{}\n{}\n{}\n", wait.1 as u32, times[0], times[1])
}

/// How often a sequence is done before a machine is too busy for it, and after how many times it gets twice the time.
const ATTEMPTS: usize = 15;
const ATTEMPTS_OF_A_PERIOD: usize = 3;

const IMMEDIATE: (u32, i32) = (0, 0);
const BITA_0: (u32, i32) = (1, 0);
const BITA_1: (u32, i32) = (2, 0);

fn at_least(position: i32) -> (u32, i32) {
    (7, position)
}

fn at_most(position: i32) -> (u32, i32) {
    (8, position)
}

/// A daemon, and a sequence of these lines on samples of 1 kHz, armed. Its times are in us.
async fn armed(lines: &[String], more: &[&str]) -> (Server, Control) {
    let server = Server::start().await;
    let mut control = server.control().await;
    control
        .set(&[
            "*CAPTURE=",
            "SIM.RAMP.SCALE=1",
            "SIM.RAMP.CAPTURE=Value",
            "EVENT2.PERIOD=0.001",
            "PCAP.SAMPLE=EVENT2.OUT",
            "PCAP.TRIG=SEQ1.OUTA",
            "PCAP.ENABLE=SEQ1.ACTIVE",
            "SEQ1.POSA=SIM.RAMP",
            "SEQ1.BITA=BITS.OUTA",
            &format!("SEQ1.TABLE<\n{}", lines.concat()),
        ])
        .await;
    control.set(more).await;
    control.set(&["*PCAP.ARM="]).await;
    (server, control)
}

/// The same, enabled.
async fn enabled(lines: &[String], more: &[&str]) -> (Server, Control) {
    let (server, mut control) = armed(lines, more).await;
    control.set(&["SEQ1.ENABLE=ONE"]).await;
    (server, control)
}

/// The ramp in all rows of such a sequence. It counts samples, and the sequence waits for times: on a machine that is so busy
/// that samples are missed they have nothing to do with each other, and it is done again, in the end with 16 ms for each ms.
async fn rows(lines: &[String], more: &[&str]) -> Vec<f64> {
    for attempt in 0..ATTEMPTS {
        let slower = 1 << (attempt / ATTEMPTS_OF_A_PERIOD);
        let period = format!("EVENT2.PERIOD={}", f64::from(slower) / 1e3);
        let prescale = format!("SEQ1.PRESCALE={slower}");
        let times = [&period, "SEQ1.PRESCALE.UNITS=us", &prescale];
        let (server, mut control) = enabled(lines, &[&times, more].concat()).await;
        control.until("PCAP.ACTIVE?", "0").await;
        let rows = read(&server, "SIM.RAMP").await.concat();
        let run = server.daemon.runs.list().pop().expect("a run").progress();
        server.stop().await;
        if run.run.expect("its account").missed() == 0 {
            return rows;
        }
    }
    panic!("each of {ATTEMPTS} runs has missed samples");
}

/// Each row is at its position, or soon after: a sample may come a little too early for a time that is over.
fn near(rows: &[f64], wanted: &[f64]) {
    assert_eq!(rows.len(), wanted.len(), "{rows:?}");
    for (row, wanted) in rows.iter().zip(wanted) {
        assert!((*wanted..=wanted + 5.0).contains(row), "{rows:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_waits_for_a_position_goes_on_at_the_sample_that_has_reached_it() {
    let lines = [
        line(1, at_least(100), [0, 0], [0, 0]),
        line(3, IMMEDIATE, [1, 0], [5000, 5000]),
    ];
    let of_one = rows(&lines, &[]).await;
    assert_eq!(of_one[0], 100.0);
    near(&of_one, &[100.0, 110.0, 120.0]);
    // The sine has 64 samples a period; the ramp still says which sample it is.
    let lines = [
        line(1, at_least(32000), [1, 0], [1000, 1000]),
        line(1, at_most(-32000), [1, 0], [1000, 1000]),
    ];
    near(&rows(&lines, &["SEQ1.POSA=SIM.SINE"]).await, &[14.0, 46.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_repetition_of_a_line_and_of_the_table_waits_again() {
    let lines = [
        line(2, at_least(20), [1, 0], [3000, 7000]),
        line(1, at_least(60), [1, 0], [500, 0]),
    ];
    near(
        &rows(&lines, &["SEQ1.REPEATS=2"]).await,
        &[20.0, 30.0, 60.0, 61.0, 71.0, 81.0],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_a_rise_wherever_the_output_rises() {
    for (lines, wanted) in [
        // In the second time, after none and after some.
        (
            vec![line(3, IMMEDIATE, [0, 1], [4000, 6000])],
            vec![4.0, 14.0, 24.0],
        ),
        (
            // High all the time: one rise, and the next repetition is none.
            vec![
                line(1, at_least(9), [0, 1], [0, 6000]),
                line(1, IMMEDIATE, [0, 0], [0, 1000]),
                line(1, at_least(30), [0, 1], [0, 6000]),
            ],
            vec![9.0, 30.0],
        ),
        (
            vec![
                line(1, at_least(9), [0, 1], [0, 0]),
                line(1, at_least(20), [0, 0], [0, 0]),
            ],
            vec![9.0],
        ),
        // A first time of 0 is passed over, whatever its outputs.
        (
            vec![
                line(1, at_least(9), [1, 0], [0, 1000]),
                line(1, IMMEDIATE, [0, 0], [0, 0]),
                line(1, at_least(20), [0, 1], [0, 0]),
                line(1, IMMEDIATE, [1, 0], [1000, 1000]),
                line(1, IMMEDIATE, [1, 0], [1000, 1000]),
            ],
            vec![20.0, 22.0],
        ),
        // What is high already does not rise.
        (
            vec![
                line(1, at_least(5), [1, 1], [1000, 1000]),
                line(1, at_least(20), [1, 0], [1000, 1000]),
                line(1, at_least(30), [1, 0], [1000, 0]),
            ],
            vec![5.0, 30.0],
        ),
        // The first line waits for nothing.
        (
            vec![
                line(1, IMMEDIATE, [1, 0], [1000, 1000]),
                line(2, at_least(9), [1, 0], [2000, 2000]),
            ],
            vec![0.0, 9.0, 13.0],
        ),
    ] {
        near(&rows(&lines, &[]).await, &wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_told_of_bits_while_it_runs() {
    let lines = [
        line(1, BITA_0, [1, 0], [1000, 1000]),
        line(1, BITA_1, [0, 0], [0, 0]),
        line(2, IMMEDIATE, [1, 0], [1000, 1000]),
    ];
    let (server, mut control) = enabled(&lines, &["BITS.A=1"]).await;
    control.until("SEQ1.ACTIVE?", "1").await;
    let run = server.daemon.runs.list().pop().expect("a run");
    let seen = async |more: u64| {
        let most = run.progress().run.map_or(0, |run| run.triggers) + more;
        until(async || run.progress().run.is_some_and(|run| run.triggers > most)).await;
    };
    // It begins with 1, and waits for 0 first.
    seen(50).await;
    assert_eq!(run.progress().next, 0);
    control.set(&["BITS.A=0"]).await;
    // Else 1 could be back before the program is told of 0.
    until(async || run.progress().next > 0).await;
    seen(50).await;
    assert_eq!(run.progress().next, 1);
    control.set(&["BITS.A=1"]).await;
    control.until("SEQ1.ACTIVE?", "0").await;
    assert_eq!(read(&server, "SIM.RAMP").await.len(), 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_cannot_be_a_program_ends_its_acquisition_with_the_reason() {
    let position = line(1, at_least(5), [1, 0], [1000, 1000]);
    let many: Vec<String> = (0..40)
        .map(|at| line(1, at_least(at), [1, 0], [1000, 1000]))
        .collect();
    for (lines, more, says) in [
        (
            vec![position.clone()],
            "PCAP.SAMPLE=ZERO",
            "line 1 waits for a position: set PCAP.SAMPLE",
        ),
        (
            vec![position.clone()],
            "SEQ1.POSA=ZERO",
            "line 1 waits for POSA, which is ZERO",
        ),
        (many, "SEQ1.REPEATS=1", "a row program 31 at most"),
        (
            vec![line(1, at_least(5), [2, 0], [1000, 1000])],
            "SEQ1.REPEATS=1",
            "never rises",
        ),
        (
            vec![position],
            "PCAP.GATE=SEQ1.OUTB",
            "SEQ1: PCAP.GATE is an output of it",
        ),
    ] {
        let (server, mut control) = armed(&lines, &[more]).await;
        // Before it is refused: of what is over for long, a reader gets nothing.
        let mut reader = server.reader("").await;
        control.set(&["SEQ1.ENABLE=ONE"]).await;
        let comment = reader.line().await;
        assert!(
            comment.starts_with("# SEQ1: ") && comment.contains(says),
            "{comment}"
        );
        control.until("PCAP.ACTIVE?", "0").await;
        assert_eq!(control.ask("PCAP.HEALTH?").await, "OK =The run failed");
        server.stop().await;
    }
}
