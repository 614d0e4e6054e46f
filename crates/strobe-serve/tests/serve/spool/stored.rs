// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches as they lie on the disk, for who wants no other form of them.

use futures_util::FutureExt;

use super::*;

/// What a cursor gives, batches where it can: the numbers of all rows, how many came in batches, and how many were lost.
async fn read(spool: &Arc<Spool>, from: u64, to: u64) -> (Vec<u64>, usize, u64) {
    let mut cursor = Cursor::new(Arc::clone(spool), From::Row(from));
    let (mut rows, mut batches) = (Vec::new(), 0);
    while cursor.next_row() < to {
        if let Some(stored) = cursor.batch(to).await {
            assert!(stored.bytes.len() % 8 == 0 && !stored.bytes.is_empty());
            batches += stored.rows.clone().count();
            rows.extend(stored.rows);
            continue;
        }
        let room = (to - cursor.next_row()).min(1000);
        match cursor.next(room as usize).await {
            Some(block) => rows.extend(block.rows().map(|row| row.row)),
            None => break,
        }
    }
    assert_eq!(cursor.rows(), rows.len() as u64);
    // After a gap there may be more of them than were asked for.
    rows.retain(|row| *row < to);
    (rows, batches, cursor.lost())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_in_batches_and_between_them_and_each_comes_once() {
    const ROWS: u64 = 300_000;
    let folder = tempfile::tempdir().expect("a folder");
    let bounds = Bounds {
        recent: 64 << 20,
        ..Bounds::default()
    };
    let spool = Spool::on_disk(run(), bounds, folder.path()).expect("a spool");
    let gap = 100_000..100_500;
    for (begin, end, lost) in [(0, gap.start, 0), (gap.end, ROWS, 500)] {
        for row in (begin..end).step_by(5000) {
            let is_first = row == begin;
            append(
                &spool,
                row..(row + 5000).min(end),
                if is_first { lost } else { 0 },
            );
        }
    }
    let all = |from: u64, to: u64| (from..to).filter(|row| !gap.contains(row));
    wait_until(&spool, "all are written", |p| p.written == ROWS);
    // All of it is in memory, too: nobody waits for the disk.
    for (from, to) in [
        (0, ROWS),
        (1, ROWS - 1),
        (99_000, 101_000),
        (100_200, 200_001),
    ] {
        let (rows, batches, lost) = read(&spool, from, to).await;
        assert!(rows.iter().copied().eq(all(from, to)), "{from} to {to}");
        assert_eq!((rows.len() as u64 + lost, batches), (to - from, 0));
    }
    spool.finish(account(ROWS));
    assert!(spool.close(PATIENCE));
    // And nothing is known of these files but what is in them.
    let past = Spool::past(Bounds::default(), folder.path()).expect("files");
    let past = Arc::new(past.expect("a run"));
    for (from, to) in [(0, ROWS), (12_345, 234_567), (99_999, 100_501)] {
        let (rows, batches, lost) = read(&past, from, to).await;
        assert!(rows.iter().copied().eq(all(from, to)), "{from} to {to}");
        assert_eq!(rows.len() as u64 + lost, to - from);
        assert!(batches > 0 || to - from < 1000, "{from} to {to}: {batches}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_nobody_waited_for_is_not_given_after_its_rows() {
    const ROWS: u64 = 20_000;
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), Bounds::default(), folder.path()).expect("a spool");
    append(&spool, 0..ROWS, 0);
    spool.finish(account(ROWS));
    assert!(spool.close(PATIENCE));
    let past = Spool::past(Bounds::default(), folder.path()).expect("files");
    let past = Arc::new(past.expect("a run"));
    let mut given_up = 0;
    for _ in 0..50 {
        let mut cursor = Cursor::new(Arc::clone(&past), From::Row(0));
        // Begun, and given up.
        if cursor.batch(u64::MAX).now_or_never().is_some() {
            // It was there at once.
            continue;
        }
        given_up += 1;
        // Somebody else has given these.
        assert!(cursor.pass(10));
        let stored = cursor.batch(u64::MAX).await;
        assert!(stored.is_none_or(|stored| stored.rows.start == 10));
        let block = cursor.next(ROWS as usize).await.expect("rows");
        assert_eq!((block.first(), block.lost()), (10, 0));
    }
    assert!(given_up > 0, "each was there at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_rows_from_somebody_else_goes_on_after_them() {
    let spool = Arc::new(Spool::new(run(), Bounds::default()));
    append(&spool, 0..100, 0);
    let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(0));
    assert!(cursor.pass(40) && !cursor.pass(40));
    let block = cursor.next(1000).await.expect("rows");
    assert_eq!((block.first(), block.len(), block.lost()), (40, 60, 0));
    assert_eq!((cursor.rows(), cursor.lost()), (100, 0));
    append(&spool, 100..200, 0);
    cursor.skip_to(150);
    assert!(!cursor.pass(120), "it does not want them");
    let block = cursor.next(1000).await.expect("rows");
    assert_eq!((block.first(), block.lost()), (150, 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_in_memory_are_not_given_up_because_the_disk_has_only_later_ones() {
    const ROWS: u64 = 400_000;
    let folder = tempfile::tempdir().expect("a folder");
    let bounds = Bounds {
        recent: 8 << 20,
        bytes: 4 << 20,
        age: None,
    };
    let spool = Spool::on_disk(run(), bounds, folder.path()).expect("a spool");
    for row in (0..ROWS).step_by(5000) {
        append(&spool, row..row + 5000, 0);
        wait_until(&spool, "it is written", |p| p.written == row + 5000);
    }
    // The run goes on: of one that has ended, rows on the disk do not stay in memory.
    let first = |block: Option<Block>| block.expect("rows").first();
    let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(0));
    let oldest = first(cursor.next(1).await);
    let files = std::fs::read_dir(folder.path()).expect("files");
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let on_disk = names.filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
    assert!(on_disk.min().expect("a file") > oldest + 10_000);
    let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(0));
    assert!(cursor.batch(u64::MAX).await.is_none());
    assert_eq!(
        (first(cursor.next(1).await), cursor.lost()),
        (oldest, oldest)
    );
    let mut cursor = Cursor::new(spool, From::Row(0));
    assert!(cursor.columns(1).await.is_none());
    assert_eq!(
        (first(cursor.next(1).await), cursor.lost()),
        (oldest, oldest)
    );
}
