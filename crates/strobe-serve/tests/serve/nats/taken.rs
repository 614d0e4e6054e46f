// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a subscriber takes, and what it says was lost.

use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Config;
use strobe::block::{Block, Place};
use strobe::channel::Type;
use strobe::engine::user::User;
use strobe::info::{RunInfo, Totals};
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun as _, Run as _};
use strobe::samples::{channel, info, totals};
use strobe_files::sink::arrow::{ArrowStream, account};
use strobe_serve::nats::subscribe::Outcome;

use crate::nats::common::{Lab, subscriber, until, until_over};

#[tokio::test(flavor = "multi_thread")]
async fn what_the_spool_had_no_room_for_is_lost_and_the_account_says_so() {
    let lab = Lab::new("[spool]\nrecent = 1048576\n", "").await;
    // 2.4 MB of rows; the bus comes too late for most of them.
    let run = lab.run("scan", "event = \"timer:10kHz\"\nrows = 60000\n");
    until_over(&run).await;
    assert!(run.progress().oldest > 0, "all rows are there");
    lab.publish();
    let summary = lab.take("scan", "scan.csv").await;
    let came = lab.rows("scan.csv").len() as u64;
    assert!(summary.lost > 0 && !summary.is_whole());
    assert_eq!((summary.rows, came + summary.lost), (60000, 60000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_programs_run_made_before_the_daemon_came_is_no_loss() {
    let lab = Lab::new("", "").await;
    let mut plan = Plan::new("soft".parse().expect("an event"));
    plan.steps.push(Step::Read("sim.counter".to_owned()));
    // Three times what the ring holds.
    plan.ring = Some(65536);
    let run = User::default().create(&plan).expect("a run");
    run.start().expect("a start");
    let capacity = run.info().capacity;
    let made = 3 * capacity;
    let has_made = async |rows: u64| run.snapshot().expect("counters").head >= rows;
    for rows in (1..=6).map(|part| part * made / 6) {
        let before = run.snapshot().expect("counters").head;
        let count = u32::try_from(rows - before).expect("a number");
        run.trigger(count).expect("triggers");
        until("rows", async || has_made(rows).await).await;
    }
    let name = format!("user:{}", run.info().run);
    let name = name.parse().expect("a name");
    let mut served = None;
    // On a busy machine, its owner may be late with its answer for once.
    until("it is found", async || {
        served = lab.daemon.runs.export(&name).ok();
        served.is_some()
    })
    .await;
    let served = served.expect("a run");
    let begun = served.progress().begun;
    assert!((1..=made).contains(&begun), "{begun}");
    lab.publish();
    run.trigger(10).expect("triggers");
    until("more rows", async || has_made(made + 10).await).await;
    run.stop().expect("an end");
    until_over(&served).await;
    let lost = served.progress().lost;
    let summary = lab.take(served.name(), "scan.csv").await;
    let rows = lab.rows("scan.csv");
    assert_eq!((summary.rows, summary.lost), (made + 10, lost));
    assert_eq!(begun + rows.len() as u64 + lost, made + 10);
    assert_eq!(rows.last(), Some(&(made + 9)));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_have_nothing_before_their_end_are_refused_with_the_remedy() {
    let lab = Lab::new("", "").await;
    let refused = lab.try_to_take("scan", "scan.parquet").await;
    let words = refused.err().expect("a refusal").to_string();
    assert!(words.contains("strobe convert"), "{words}");
    assert!(!std::path::Path::new(&lab.file("scan.parquet")).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_name_does_for_run_after_run_and_what_was_taken_is_not_waited_for() {
    let lab = Lab::new("", "").await;
    for name in ["one", "two"] {
        lab.run(name, "event = \"timer:1kHz\"\nrows = 100\n");
    }
    lab.publish();
    assert_eq!(lab.take("one", "one.csv").await.rows, 100);
    let again = lab.subscribe("one", "again.csv").await;
    assert!(matches!(again, Outcome::TakenBefore));
    assert!(!std::path::Path::new(&lab.file("again.csv")).exists());
    assert_eq!(lab.take("two", "two.csv").await.rows, 100);
    assert_eq!(lab.rows("two.csv"), (0..100).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_rows_that_was_over_before_it_could_be_published_comes_with_its_account() {
    let lab = Lab::new("", "").await;
    let run = lab.run("scan", "event = \"soft\"\n");
    run.stop().expect("an end");
    until_over(&run).await;
    lab.publish();
    let summary = lab.take("scan", "scan.csv").await;
    assert_eq!((summary.rows, summary.lost), (0, 0));
    assert!(lab.rows("scan.csv").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_full_refuses_rows_and_gets_them_when_it_has_room_again() {
    let lab = Lab::new("", "bytes = 60000\n").await;
    // The ring holds all of it: none is lost there, however late it is taken.
    let recipe = "event = \"timer:5kHz\"\nrows = 10000\nring = 65536\n";
    let run = lab.run("scan", recipe);
    lab.publish();
    until_over(&run).await;
    let stream = lab.stream().await;
    let has_some = async || {
        let info = stream.get_info().await.expect("the stream");
        // Rows of 40 bytes are too many for it.
        assert!(info.state.bytes <= 60_000 && info.config.max_bytes == 60_000);
        info.state.messages > 0
    };
    until("rows", has_some).await;
    let config = stream.get_info().await.expect("the stream").config;
    let config = Config {
        max_bytes: -1,
        ..config
    };
    lab.context.update_stream(config).await.expect("room");
    let summary = lab.take("scan", "scan.csv").await;
    assert_eq!((summary.rows, summary.lost), (10000, 0));
    assert_eq!(lab.rows("scan.csv"), (0..10000).collect::<Vec<_>>());
}

/// Rows of a run that somebody publishes, from this one to before that one.
fn rows(info: &RunInfo, first: u64, next: u64) -> Vec<u8> {
    let words = (first..next).flat_map(|row| [row, row, 2_000 + row, 0, row]);
    let (words, count) = (Arc::new(words.collect()), (next - first) as usize);
    let info = Arc::new(info.clone());
    let mut last = Some(Place::START);
    let block = Block::new(info, words, 0..count, (first, 0), &mut last);
    let mut stream = ArrowStream::new(block.info(), None).expect("a stream");
    let mut bytes = stream.schema();
    bytes.extend(stream.batch(&block).expect("a batch"));
    bytes.extend(stream.end().expect("an end"));
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_the_rows_before_it_is_not_acknowledged_though_it_comes_again() {
    let lab = Lab::new("", "").await;
    // It makes the stream.
    lab.publish();
    lab.run("other", "event = \"timer:1kHz\"\nrows = 1\n");
    let stream = lab.stream().await;
    let info = info(vec![channel("a.x", Type::U64)]);
    let publish = async |first: u64, next: u64, end: &str, bytes: Vec<u8>| {
        let mut headers = HeaderMap::new();
        for (name, number) in [("first", first), ("next", next), ("lost", 0), ("missed", 0)] {
            headers.insert(format!("strobe-{name}"), number.to_string());
        }
        headers.insert("strobe-end", end);
        let subject = "strobe.there.scan.1-1";
        let kept = lab
            .context
            .publish_with_headers(subject, headers, bytes.into());
        kept.await.expect("a bus").await.expect("a message");
    };
    publish(0, 10, "0", rows(&info, 0, 10)).await;
    publish(20, 30, "0", rows(&info, 20, 30)).await;
    let taking = lab.take("scan", "scan.csv");
    let meanwhile = async {
        let is_there_again = async || {
            let known = subscriber(&stream).await;
            known.is_some_and(|known| known.num_redelivered == 1 && known.num_ack_pending == 1)
        };
        until("it comes again", is_there_again).await;
        publish(10, 20, "0", rows(&info, 10, 20)).await;
        let totals = Totals {
            triggers: 30,
            ..totals(30)
        };
        let account = account(&info, &totals).expect("an account");
        publish(30, 30, "1", account).await;
    };
    let (summary, ()) = tokio::join!(taking, meanwhile);
    assert_eq!((summary.rows, summary.lost), (30, 0));
    assert_eq!(lab.rows("scan.csv"), (0..30).collect::<Vec<_>>());
}
