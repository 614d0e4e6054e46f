// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs become one, by their times.

use std::time::Duration;

use strobe::stop::Stop;
use strobe_serve::nats::subscribe::{Matches, Options, Outcome, subscribe};

use crate::nats::common::{Lab, PATIENCE, until, until_over};

/// One, joined with another one.
fn options(lab: &Lab, file: &str) -> Options {
    Options {
        runs: vec!["one".to_owned(), "other".to_owned()],
        join: Some(Duration::from_millis(1)),
        ..lab.options("", file)
    }
}

async fn join(lab: &Lab, file: &str) -> (strobe_files::summary::Summary, Matches) {
    let stop = Stop::default();
    let done = tokio::time::timeout(PATIENCE, subscribe(options(lab, file), &stop)).await;
    match done.expect("an end").expect("rows") {
        Outcome::Recorded(summary, Some(matches)) => (*summary, matches),
        _ => panic!("no rows"),
    }
}

/// Number of the row, that of the row beside it, and how much later that was.
fn pairs(lab: &Lab, file: &str) -> Vec<(u64, Option<(u64, i64)>)> {
    let text = std::fs::read_to_string(lab.file(file)).expect("rows");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names = lines.next().expect("names");
    assert_eq!(
        names,
        "row,trigger,time,status,sim.counter,here.row,here.after,here.sim.counter"
    );
    let pair = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let (row, values) = fields.split_first().expect("a number");
        let beside = values[4].parse().ok().zip(values[5].parse().ok());
        assert_eq!(beside.is_none(), values[6].is_empty(), "{line}");
        (row.parse().expect("a number"), beside)
    };
    lines.map(pair).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_has_the_nearest_one_of_another_run_beside_it_and_the_account_says_how_many() {
    let lab = Lab::new("", "").await;
    let other = lab.run("other", "event = \"timer:1kHz\"\n");
    let one = lab.run("one", "event = \"timer:500Hz\"\nrows = 400\n");
    lab.publish();
    until_over(&one).await;
    other.stop().expect("an end");
    let (summary, matches) = join(&lab, "joined.csv").await;
    let pairs = pairs(&lab, "joined.csv");
    // However busy the machine was: what is missing is counted.
    assert_eq!(pairs.len() as u64 + summary.lost, summary.rows);
    let beside = pairs.iter().filter(|(_, beside)| beside.is_some()).count() as u64;
    assert_eq!(
        (matches.joined, matches.joined + matches.alone),
        (beside, pairs.len() as u64)
    );
    assert_eq!(summary.errors, matches.alone);
    assert!(beside > 0, "{matches:?}");
    let there: Vec<(u64, i64)> = pairs.iter().filter_map(|(_, beside)| *beside).collect();
    assert!(there.windows(2).all(|two| two[0].0 <= two[1].0));
    assert!(there.iter().all(|(_, after)| after.abs() <= 1_000_000));
    // All of it was taken.
    let stop = Stop::default();
    let again = subscribe(options(&lab, "again.csv"), &stop)
        .await
        .expect("an answer");
    assert!(matches!(again, Outcome::TakenBefore));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_stopped_and_started_again_joins_every_row_and_says_of_none_that_it_is_alone() {
    let lab = Lab::new("", "").await;
    let other = lab.run("other", "event = \"timer:1kHz\"\n");
    let one = lab.run("one", "event = \"timer:1kHz\"\n");
    lab.publish();
    let stop = Stop::default();
    let begun = {
        let (options, stop) = (options(&lab, "first.csv"), stop.clone());
        tokio::spawn(async move { subscribe(options, &stop).await })
    };
    let written = async |rows: u64| {
        let text = std::fs::read_to_string(lab.file("first.csv")).unwrap_or_default();
        text.lines().count() as u64 > rows
    };
    until("rows", async || written(500).await).await;
    stop.interrupt
        .store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(begun.await.expect("a task").is_ok());
    let next = one.progress().next + 500;
    until("more rows", async || one.progress().next > next).await;
    one.stop().expect("an end");
    until_over(&one).await;
    other.stop().expect("an end");
    join(&lab, "second.csv").await;
    let (first, second) = (pairs(&lab, "first.csv"), pairs(&lab, "second.csv"));
    let end = first.last().expect("rows").0;
    let begin = second.first().expect("rows").0;
    assert!(begin <= end + 1, "rows {end} to {begin} are in neither");
    assert_eq!(
        second.last().map(|(row, _)| row + 1),
        Some(one.progress().next)
    );
    // What is in both is beside the same.
    for (row, beside) in second.iter().take_while(|(row, _)| *row <= end) {
        assert_eq!(
            first.iter().find(|(known, _)| known == row),
            Some(&(*row, *beside))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_joined_is_said_with_the_remedy() {
    let lab = Lab::new("", "").await;
    let stop = Stop::default();
    let all = options(&lab, "joined.csv");
    for (runs, join) in [
        (vec!["one".to_owned()], all.join),
        (all.runs.clone(), None),
        (Vec::new(), all.join),
    ] {
        let wrong = Options {
            runs,
            join,
            ..all.clone()
        };
        let words = subscribe(wrong, &stop).await.err().expect("a refusal");
        assert!(words.to_string().contains("--join 1ms"), "{words}");
    }
}
