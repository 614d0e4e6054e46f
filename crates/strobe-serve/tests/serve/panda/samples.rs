// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read between two triggers: means, sums and extremes, and position compare.

use crate::panda::client::{Control, Server, within};

/// A trigger each 10 ms, and ten samples for each. The ramp counts them, from 0.
const TEN: [&str; 6] = [
    "*CAPTURE=",
    "SIM.RAMP.SCALE=1",
    "EVENT1.PERIOD=0.01",
    "EVENT2.PERIOD=0.001",
    "PCAP.SAMPLE=EVENT2.OUT",
    "PCAP.NUM_TRIG=5",
];

/// The sine as whole numbers.
const SINE: [&str; 3] = [
    "SIM.SINE.CAPTURE=Value",
    "SIM.SINE.SCALE=1",
    "SIM.SINE.OFFSET=0",
];

/// Arms, and gets all rows of these columns as numbers.
async fn rows(server: &Server, control: &mut Control, columns: &str) -> Vec<Vec<f64>> {
    control.set(&["*PCAP.ARM="]).await;
    control.until("PCAP.ACTIVE?", "0").await;
    read(server, columns).await
}

/// All rows of these columns as numbers. They are doubles, or whole numbers that doubles have.
pub async fn read(server: &Server, columns: &str) -> Vec<Vec<f64>> {
    let mut reader = server.reader(&format!("FROM=0 COLS={columns}")).await;
    let header = reader.header().await;
    let is_double = |line: &&str| line.starts_with("<field ").then(|| line.contains("double"));
    let doubles: Vec<bool> = (header.lines().collect::<Vec<_>>().iter())
        .filter_map(is_double)
        .collect();
    let (words, rows, reason) = reader.words().await;
    assert_eq!(reason, "Ok", "{header}");
    assert_eq!(words.len() as u64, rows * doubles.len() as u64);
    let number = |(word, is_double): (&u64, &bool)| match is_double {
        true => f64::from_bits(*word),
        false => *word as f64,
    };
    let row = |words: &[u64]| words.iter().zip(&doubles).map(number).collect();
    words.chunks_exact(doubles.len()).map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn means_sums_and_extremes_are_of_all_samples_since_the_row_before() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&TEN).await;
    control
        .set(&["PCAP.SAMPLES.CAPTURE=Value", "PCAP.INDEX.CAPTURE=Value"])
        .await;
    let n = |row: usize| 10.0 * row as f64;
    for (label, of_row) in [
        (
            "Value",
            &(|row| vec![n(row) + 9.0]) as &dyn Fn(usize) -> Vec<f64>,
        ),
        ("Sum", &|row| vec![10.0 * n(row) + 45.0]),
        ("Mean", &|row| vec![n(row) + 4.5]),
        ("Min", &|row| vec![n(row)]),
        ("Max", &|row| vec![n(row) + 9.0]),
        ("Min Max", &|row| vec![n(row), n(row) + 9.0]),
        ("Min Max Mean", &|row| {
            vec![n(row), n(row) + 9.0, n(row) + 4.5]
        }),
    ] {
        control.set(&[&format!("SIM.RAMP.CAPTURE={label}")]).await;
        let rows = rows(&server, &mut control, "PCAP.INDEX,PCAP.SAMPLES,SIM.RAMP").await;
        let want = |row: usize| [vec![row as f64, 10.0], of_row(row)].concat();
        assert_eq!(rows, (0..5).map(want).collect::<Vec<_>>(), "{label}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sum_has_the_offset_of_each_sample_and_a_mean_has_it_once() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&TEN).await;
    control
        .set(&["SIM.RAMP.SCALE=0.5", "SIM.RAMP.OFFSET=3"])
        .await;
    for (label, of_row) in [
        (
            "Sum",
            &(|row| 50.0 * row + 22.5 + 30.0) as &dyn Fn(f64) -> f64,
        ),
        ("Mean", &|row| 5.0 * row + 2.25 + 3.0),
        ("Max", &|row| 5.0 * row + 4.5 + 3.0),
    ] {
        control.set(&[&format!("SIM.RAMP.CAPTURE={label}")]).await;
        let rows = rows(&server, &mut control, "SIM.RAMP").await;
        let want = |row: u32| vec![of_row(f64::from(row))];
        assert_eq!(rows, (0..5).map(want).collect::<Vec<_>>(), "{label}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_sequence_has_samples_too() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&TEN).await;
    let table = format!(
        "SEQ1.TABLE<\n{}",
        crate::panda::gates::line(4, 0, [1, 0], [5000, 5000])
    );
    control
        .set(&["PCAP.TRIG=SEQ1.OUTA", &table, "SIM.RAMP.CAPTURE=Sum"])
        .await;
    control
        .set(&["PCAP.ENABLE=SEQ1.ACTIVE", "*PCAP.ARM=", "SEQ1.ENABLE=ONE"])
        .await;
    control.until("PCAP.ACTIVE?", "0").await;
    let rows = read(&server, "SIM.RAMP").await;
    assert_eq!(rows, [[45.0], [145.0], [245.0], [345.0]]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_samples_is_refused_without_them_and_says_what_to_set() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&["SIM.RAMP.CAPTURE=Mean"]).await;
    let why = control.ask("*PCAP.ARM=").await;
    assert!(
        why.starts_with("ERR SIM.RAMP.CAPTURE is Mean: set PCAP.SAMPLE"),
        "{why}"
    );
    for (set, says) in [
        (
            ["EVENT2.PERIOD=0.0003", "PCAP.SAMPLE=EVENT2.OUT"],
            "ERR PCAP.SAMPLE (timer:300000ns) does not divide",
        ),
        (
            ["EVENT2.SOURCE=soft", "PCAP.SAMPLE=EVENT2.OUT"],
            "ERR PCAP.SAMPLE (soft) does not divide",
        ),
        (
            ["PCAP.TRIG=PCOMP1.OUT", "PCAP.SAMPLE=ZERO"],
            "ERR SIM.RAMP.CAPTURE is Mean",
        ),
        (
            ["SIM.RAMP.CAPTURE=Value", "PCAP.SAMPLE=ZERO"],
            "ERR PCAP.SAMPLE is ZERO: set it to the event at which PCOMP1",
        ),
    ] {
        control.set(&set).await;
        let why = control.ask("*PCAP.ARM=").await;
        assert!(why.starts_with(says), "{why}");
    }
    assert_eq!(control.ask("PCAP.ACTIVE?").await, "OK =0");
    server.stop().await;
}

/// Arms, enables PCOMP1, and gets this column of all rows when it has made its last pulse.
async fn compared(server: &Server, control: &mut Control, column: &str) -> Vec<f64> {
    control.set(&["*PCAP.ARM=", "PCOMP1.ENABLE=ONE"]).await;
    control.until("PCAP.ACTIVE?", "0").await;
    read(server, column).await.concat()
}

/// The words of a signed channel, which is captured as it is.
fn signed(rows: &[f64]) -> Vec<i64> {
    let word = |row: &f64| i64::from_ne_bytes((*row as u64).to_ne_bytes());
    rows.iter().map(word).collect()
}

/// Rows where PCOMP1 passes, at samples of 1 kHz.
async fn compare(control: &mut Control, more: &[&str]) {
    control
        .set(&[
            "EVENT2.PERIOD=0.001",
            "PCAP.SAMPLE=EVENT2.OUT",
            "PCAP.TRIG=PCOMP1.OUT",
            "PCAP.ENABLE=PCOMP1.ACTIVE",
            "PCOMP1.INP=SIM.RAMP",
        ])
        .await;
    control.set(more).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_passing_of_a_position_is_a_row_and_the_last_pulse_is_the_end() {
    let server = Server::start().await;
    let mut control = server.control().await;
    compare(
        &mut control,
        &["PCOMP1.START=100", "PCOMP1.STEP=10", "PCOMP1.PULSES=5"],
    )
    .await;
    control
        .set(&[
            "*CAPTURE=",
            "SIM.RAMP.SCALE=1",
            "SIM.RAMP.CAPTURE=Value",
            "PCOMP1.INP=SIM.RAMP",
        ])
        .await;
    assert_eq!(
        compared(&server, &mut control, "SIM.RAMP").await,
        [100.0, 110.0, 120.0, 130.0, 140.0]
    );
    control.until("PCOMP1.ACTIVE?", "0").await;
    assert_eq!(control.ask("PCOMP1.PRODUCED?").await, "OK =5");
    assert_eq!(control.ask("PCOMP1.HEALTH?").await, "OK =OK");
    let run = server.daemon.runs.list().pop().expect("a run");
    let totals = run.progress().totals.expect("an account");
    assert_eq!(totals.rows, 5);
    assert_eq!(
        totals.triggers,
        totals.rows + totals.skipped + totals.missed()
    );
    // What lies between two pulses is averaged.
    compare(
        &mut control,
        &[
            "PCOMP1.ENABLE=ZERO",
            "PCOMP1.INP=SIM.RAMP",
            "SIM.RAMP.CAPTURE=Mean",
        ],
    )
    .await;
    let means = compared(&server, &mut control, "SIM.RAMP").await;
    assert_eq!(means.len(), 5);
    for (row, mean) in means.iter().enumerate() {
        let want = if row == 0 {
            50.0
        } else {
            95.5 + 10.0 * row as f64
        };
        // As a quotient with 16 bits for its fraction.
        assert!((mean - want).abs() < 1.0 / 65536.0, "{means:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compare_knows_directions_sides_and_where_it_began() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&SINE).await;
    let relative = [
        "PCOMP1.RELATIVE=Relative",
        "PCOMP1.START=7",
        "PCOMP1.STEP=3",
        "PCOMP1.PULSES=2",
    ];
    compare(&mut control, &relative).await;
    assert_eq!(
        compared(&server, &mut control, "SIM.COUNTER").await,
        [7.0, 10.0]
    );
    compare(
        &mut control,
        &[
            "PCOMP1.ENABLE=ZERO",
            "PCOMP1.RELATIVE=Absolute",
            "PCOMP1.INP=SIM.SINE",
            "PCOMP1.DIR=Negative",
            "PCOMP1.START=-10",
            "PCOMP1.PRE_START=5",
            "PCOMP1.PULSES=1",
        ],
    )
    .await;
    let rows = signed(&compared(&server, &mut control, "SIM.SINE").await);
    assert!(rows.len() == 1 && rows[0] <= -10, "{rows:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relative_compare_counts_in_its_direction() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&SINE).await;
    // The sine begins at 0, rises, and falls below -3000 in its second half.
    compare(
        &mut control,
        &[
            "PCOMP1.INP=SIM.SINE",
            "PCOMP1.RELATIVE=Relative",
            "PCOMP1.DIR=Negative",
            "PCOMP1.START=3000",
            "PCOMP1.PULSES=1",
        ],
    )
    .await;
    let rows = signed(&compared(&server, &mut control, "SIM.SINE").await);
    assert!(rows.len() == 1 && rows[0] <= -3000, "{rows:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compare_that_cannot_be_made_ends_its_acquisition_with_the_reason() {
    let server = Server::start().await;
    let mut control = server.control().await;
    for (set, says) in [
        ("PCOMP1.INP=ZERO", "PCOMP1.INP is ZERO"),
        ("PCOMP1.STEP=0", "PCOMP1.STEP is 0"),
        ("PCOMP1.DIR=Either", "PCOMP1.DIR is Either"),
    ] {
        compare(
            &mut control,
            &[
                "PCOMP1.ENABLE=ZERO",
                "PCOMP1.PULSES=3",
                "PCOMP1.STEP=1",
                "PCOMP1.DIR=Positive",
            ],
        )
        .await;
        control.set(&[set, "*PCAP.ARM="]).await;
        let mut reader = server.reader("").await;
        control.set(&["PCOMP1.ENABLE=ONE"]).await;
        let comment = reader.line().await;
        assert!(comment.contains(says), "{comment}");
        reader.header().await;
        assert_eq!(reader.words().await.1, 0);
        control.until("PCAP.ACTIVE?", "0").await;
        assert_eq!(control.ask("PCAP.HEALTH?").await, "OK =The run failed");
        // Who waits for its end is told.
        control.until("PCOMP1.ACTIVE?", "0").await;
        control
            .until("PCOMP1.HEALTH?", "Its run cannot be made")
            .await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compare_that_is_disabled_ends_its_run_and_without_a_run_it_says_so() {
    let server = Server::start().await;
    let mut control = server.control().await;
    control.set(&["PCOMP1.ENABLE=ONE"]).await;
    control.until("PCOMP1.HEALTH?", "No run waits for it").await;
    compare(
        &mut control,
        &[
            "PCOMP1.ENABLE=ZERO",
            "PCOMP1.PULSES=0",
            "PCOMP1.STEP=2",
            "PCOMP1.START=3",
        ],
    )
    .await;
    control.set(&["*PCAP.ARM="]).await;
    let mut reader = server.reader("").await;
    control.set(&["PCOMP1.ENABLE=ONE"]).await;
    reader.header().await;
    let first = within(reader.frame()).await;
    assert!(
        matches!(first, crate::panda::client::Frame::Rows(_)),
        "{first:?}"
    );
    control.set(&["PCOMP1.ENABLE=ZERO"]).await;
    assert_eq!(reader.words().await.2, "Ok");
    control.until("PCOMP1.ACTIVE?", "0").await;
    assert_eq!(control.ask("PCOMP1.HEALTH?").await, "OK =OK");
    server.stop().await;
}
