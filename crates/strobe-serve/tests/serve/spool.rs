// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spool on the disk: any row that is there can be read, and what is not is said.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::channel::Type;
use strobe::info::{End, RunInfo, Totals};
use strobe::ring::{Snapshot, State};
use strobe::samples::{channel, info, totals};
use strobe_serve::cursor::{Cursor, From};
use strobe_serve::spool::{Bounds, Progress, Spool};

use crate::small_disk::on_a_small_disk;

mod age;
mod damage;
mod losses;
mod runs;
mod stored;

const PATIENCE: Duration = Duration::from_secs(120);
/// Words of a row: its header and one channel.
const WIDTH: usize = 5;

fn run() -> RunInfo {
    info(vec![channel("sim.counter", Type::U64)])
}

fn snapshot(rows: u64) -> Snapshot {
    Snapshot {
        state: State::Running,
        head: rows,
        triggers: rows,
        skipped: 0,
        missed_by: [0; 8],
        errors: 0,
        error: 0,
        start: run().start,
        end_time: 0,
    }
}

/// Rows of these numbers, after so many that were lost.
fn append(spool: &Spool, rows: std::ops::Range<u64>, lost: u64) {
    let words = rows
        .clone()
        .flat_map(|row| [row, row, 1000 * row, 0, 7 * row]);
    let words: Vec<u64> = words.collect();
    let count = words.len() / WIDTH;
    let numbers = (rows.start, lost);
    let block = Block::new(
        Arc::new(run()),
        Arc::new(words),
        0..count,
        numbers,
        &mut None,
    );
    spool.append(&block, || snapshot(rows.end));
}

fn account(rows: u64) -> Totals {
    Totals {
        rows,
        triggers: rows,
        missed_by: [0; 8],
        skipped: 0,
        lost: 0,
        errors: 0,
        end: End::Complete,
        ..totals(rows)
    }
}

fn wait_until(spool: &Spool, what: &str, is_so: impl Fn(&Progress) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so(&spool.progress()) {
        assert!(
            Instant::now() < until,
            "never: {what}: {:?}",
            spool.progress()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All rows from this one on: those that were given, and how many were lost. Each is what it should be.
async fn read(spool: &Arc<Spool>, from: u64, at_most: usize) -> (Vec<u64>, u64) {
    let mut cursor = Cursor::new(Arc::clone(spool), From::Row(from));
    let (mut rows, mut next) = (Vec::new(), from);
    while let Some(block) = cursor.next(at_most).await {
        assert!(block.len() <= at_most);
        assert_eq!(block.first(), next + block.lost());
        for row in block.rows() {
            assert_eq!((row.time, row.values[0]), (1000 * row.row, 7 * row.row));
            rows.push(row.row);
        }
        next = block.first() + block.len() as u64;
    }
    assert_eq!(cursor.rows(), rows.len() as u64);
    assert_eq!(cursor.rows() + cursor.lost(), next - from);
    (rows, cursor.lost())
}

/// So little memory that nearly all rows are on the disk only.
fn small() -> Bounds {
    Bounds {
        recent: 64 << 10,
        bytes: 1 << 30,
        age: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_row_can_be_read_while_the_run_goes_on_and_afterwards_by_anybody() {
    let folder = tempfile::tempdir().expect("a folder");
    let bounds = Bounds {
        bytes: 8 << 20,
        ..small()
    };
    let spool = Spool::on_disk(run(), bounds, folder.path()).expect("a spool");
    let live = tokio::spawn({
        let spool = Arc::clone(&spool);
        async move { read(&spool, 0, 700).await }
    });
    for first in (0..50_000).step_by(1000) {
        append(&spool, first..first + 1000, 0);
        wait_until(&spool, "rows are on the disk", |p| p.written > first);
    }
    for from in [0, 1, 6_553, 25_000, 49_999, 50_000] {
        append_nothing(&spool);
        let cursor_rows = head(&spool, from, 10).await;
        let expected: Vec<u64> = (from..50_000).take(10).collect();
        assert_eq!(cursor_rows, expected);
    }
    spool.finish(account(50_000));
    assert_eq!(live.await.expect("a reader"), ((0..50_000).collect(), 0));
    assert!(spool.close(PATIENCE));
    let (rows, lost) = read(&spool, 12_345, 10_000).await;
    assert_eq!((rows.len(), lost), (50_000 - 12_345, 0));
    let files = std::fs::read_dir(folder.path()).expect("files").count();
    assert!(files > 2, "{files} files");

    drop(spool);
    let past = Spool::past(bounds, folder.path()).expect("files");
    let past = Arc::new(past.expect("a run"));
    assert_eq!(past.progress().totals, Some(account(50_000)));
    assert_eq!(
        past.info().channels,
        run().channels.iter().map(of_files).collect::<Vec<_>>()
    );
    assert_eq!(read(&past, 0, 999).await, ((0..50_000).collect(), 0));
    assert_eq!(read(&past, 49_990, 999).await.0.len(), 10);
}

/// What files have of a channel.
fn of_files(channel: &strobe::channel::Channel) -> strobe::channel::Channel {
    strobe::channel::Channel {
        cost_ns: 0,
        in_use: false,
        ..channel.clone()
    }
}

fn append_nothing(spool: &Spool) {
    spool.look(|| Some(snapshot(50_000)));
}

/// The first rows from there on, of a run that goes on.
async fn head(spool: &Arc<Spool>, from: u64, count: usize) -> Vec<u64> {
    let mut cursor = Cursor::new(Arc::clone(spool), From::Row(from));
    let mut rows = Vec::new();
    while rows.len() < count && cursor.next_row() < spool.progress().next {
        let block = cursor.next(count - rows.len()).await.expect("rows");
        rows.extend(block.rows().map(|row| row.row));
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_more_than_the_bounds_say_is_lost_with_its_range_and_the_disk_has_no_more_than_that()
 {
    let folder = tempfile::tempdir().expect("a folder");
    let bounds = Bounds {
        bytes: 4 << 20,
        ..small()
    };
    let spool = Spool::on_disk(run(), bounds, folder.path()).expect("a spool");
    for first in (0..300_000).step_by(1000) {
        append(&spool, first..first + 1000, 0);
        wait_until(&spool, "rows are on the disk", |p| p.written > first);
    }
    spool.finish(account(300_000));
    assert!(spool.close(PATIENCE));
    let bytes = std::fs::read_dir(folder.path()).expect("files");
    let bytes: u64 = bytes
        .map(|file| file.expect("a file").metadata().expect("its size").len())
        .sum();
    assert!((1 << 20..=(4 << 20) + 100_000).contains(&bytes), "{bytes}");
    let (rows, lost) = read(&spool, 0, usize::MAX).await;
    let oldest = spool.progress().oldest;
    assert_eq!(rows.first().copied(), Some(oldest));
    assert_eq!(rows.len() as u64 + lost, 300_000);
    assert_eq!(
        rows,
        (oldest..300_000)
            .filter(|row| rows.binary_search(row).is_ok())
            .collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ring_lost_is_a_step_for_everybody() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..3000, 0);
    wait_until(&spool, "rows are on the disk", |p| p.written == 3000);
    append(&spool, 5000..9000, 2000);
    wait_until(&spool, "rows are on the disk", |p| p.written == 9000);
    append(&spool, 9001..9002, 1);
    spool.finish(account(10_000));
    assert_eq!(spool.progress().lost, 2001);
    assert!(spool.close(PATIENCE));
    let expected: Vec<u64> = (0..3000).chain(5000..9000).chain(9001..9002).collect();
    assert_eq!(read(&spool, 0, 100).await, (expected.clone(), 2999));
    let past = Spool::past(small(), folder.path()).expect("files");
    let past = Arc::new(past.expect("a run"));
    assert_eq!(read(&past, 0, usize::MAX).await, (expected, 2999));
    assert_eq!(read(&past, 4000, 100).await.1, 1999);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_torn_is_read_up_to_its_last_whole_batch_and_the_run_goes_on_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..600, 0);
    wait_until(&spool, "a batch is on the disk", |p| p.written == 600);
    append(&spool, 600..1000, 0);
    assert!(spool.close(PATIENCE));
    // The daemon was killed when it had written half of its last batch.
    let file = only_file(folder.path());
    let mut torn = std::fs::read(&file).expect("a file");
    torn.truncate(torn.len() - 700);
    std::fs::write(&file, torn).expect("a torn file");

    let past = Spool::past(small(), folder.path()).expect("files");
    let past = Arc::new(past.expect("a run"));
    assert!(past.progress().totals.is_none() && past.progress().failed.is_some());
    assert_eq!(read(&past, 0, 64).await, ((0..600).collect(), 0));
    let next = past.progress().next;
    assert_eq!(next, 600);
    drop(past);
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    assert_eq!(spool.progress().next, next);
    append(&spool, next..2000, 0);
    spool.finish(account(2000));
    assert!(spool.close(PATIENCE));
    assert_eq!(read(&spool, 0, 64).await, ((0..2000).collect(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_a_whole_batch_is_in_nobodys_way() {
    for kept in [0, 7, 300, 100_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
        append(&spool, 0..10, 0);
        assert!(spool.close(PATIENCE));
        // The daemon was killed when it had written so much of the head, or all but the end of its only batch.
        let file = only_file(folder.path());
        let whole = std::fs::read(&file).expect("a file");
        let kept = kept.min(whole.len() - 64);
        std::fs::write(&file, &whole[..kept]).expect("a torn file");
        let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
        append(&spool, 0..20, 0);
        spool.finish(account(20));
        assert!(spool.close(PATIENCE));
        assert_eq!(spool.progress().error, None, "{kept} bytes");
        assert_eq!(read(&spool, 0, 64).await, ((0..20).collect(), 0));
    }
}

#[test]
fn files_that_are_not_understood_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..1000, 0);
    assert!(spool.close(PATIENCE));
    let file = only_file(folder.path());
    let rows = std::fs::read(&file).expect("a file");
    let place = rows.windows(13).position(|part| part == b"strobe.format");
    let place = place.expect("a format");
    let mut later = rows.clone();
    // The value of the key is the next text, or the one before it.
    let near = place.saturating_sub(64)..place + 64;
    let digit = near
        .clone()
        .find(|at| later[*at] == b'2' && later[at - 4..*at] == 1_u32.to_le_bytes());
    later[digit.expect("its value")] = b'9';
    for foreign in [later, b"row,trigger\n0,0\n".to_vec()] {
        std::fs::write(&file, &foreign).expect("a file");
        let refused = Spool::past(small(), folder.path())
            .err()
            .expect("a refusal");
        assert!(refused.to_string().contains(".arrows"), "{refused}");
        assert!(Spool::on_disk(run(), small(), folder.path()).is_err());
        assert_eq!(std::fs::read(&file).expect("it is there"), foreign);
    }
}

fn only_file(folder: &Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(folder).expect("files");
    let file = files.next().expect("a file").expect("a file").path();
    assert!(files.next().is_none());
    file
}

#[test]
fn a_full_disk_is_said_the_newest_rows_are_there_and_the_gap_is_a_step() {
    let name = "spool::a_full_disk_is_said_the_newest_rows_are_there_and_the_gap_is_a_step";
    on_a_small_disk(3, name, is_full_for_a_time);
}

fn is_full_for_a_time(folder: &Path) {
    let spool = Spool::on_disk(run(), small(), &folder.join("rows")).expect("a spool");
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 2 << 20]).expect("a file");
    let mut next = 0;
    while spool.progress().error.is_none() {
        append(&spool, next..next + 500, 0);
        next += 500;
        assert!(next < 10_000_000, "it is never full");
        std::thread::sleep(Duration::from_millis(2));
    }
    let error = spool.progress().error.expect("a reason");
    assert!(error.contains("No space left"), "{error}");
    // More than the memory holds.
    for _ in 0..100 {
        append(&spool, next..next + 500, 0);
        next += 500;
    }
    assert_eq!(spool.progress().next, next, "the run goes on");
    let newest = spool.read(next - 500, 10).map(|piece| piece.first);
    assert_eq!(newest, Some(next - 500), "the newest rows are there");
    std::fs::remove_file(&ballast).expect("room");
    wait_until(&spool, "there is room again", |p| p.error.is_none());
    append(&spool, next..next + 500, 0);
    next += 500;
    spool.finish(account(next));
    assert!(spool.close(PATIENCE));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (rows, lost) = runtime.block_on(read(&spool, 0, usize::MAX));
    assert!(lost > 0, "there is a gap");
    assert_eq!(spool.progress().unwritten, lost, "which is counted");
    assert_eq!(spool.unwritten(), lost);
    assert_eq!(rows.len() as u64 + lost, next);
    assert_eq!((rows.first(), rows.last()), (Some(&0), Some(&(next - 1))));
    drop(spool);
    let past = Spool::past(small(), &folder.join("rows")).expect("files");
    let past = Arc::new(past.expect("a run"));
    assert_eq!(runtime.block_on(read(&past, 0, usize::MAX)), (rows, lost));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_skips_to_the_newest_row_is_told_what_that_cost() {
    let spool = Arc::new(Spool::new(run(), Bounds::default()));
    append(&spool, 0..100, 0);
    let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(0));
    assert_eq!(cursor.next(10).await.map(|block| block.len()), Some(10));
    append(&spool, 100..200, 0);
    cursor.skip_to_newest();
    assert!(cursor.ready(10).is_none());
    append(&spool, 200..300, 0);
    let block = cursor.next(10).await.expect("rows");
    assert_eq!((block.first(), block.len(), block.lost()), (200, 10, 190));
    assert_eq!(cursor.rows() + cursor.lost(), cursor.next_row());
}
