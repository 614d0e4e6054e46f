// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is lost is counted, whoever lost it, and whoever was there then.

use super::*;

#[test]
fn what_was_lost_before_a_restart_is_in_the_account_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..10, 0);
    append(&spool, 5000..6000, 4990);
    assert!(spool.close(PATIENCE));
    drop(spool);
    let past = || {
        let past = Spool::past(small(), folder.path()).expect("files");
        past.expect("a run").progress()
    };
    assert_eq!(past().lost, 4990);
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    assert_eq!(spool.progress().lost, 4990);
    append(&spool, 6001..6002, 1);
    let of_reader = Totals {
        lost: 1,
        ..account(6002)
    };
    spool.finish(of_reader.clone());
    assert!(spool.close(PATIENCE));
    let totals = Totals {
        lost: 4991,
        ..of_reader
    };
    assert_eq!(spool.progress().totals, Some(totals.clone()));
    drop(spool);
    assert_eq!((past().lost, past().totals), (4991, Some(totals)));
    // Nothing can follow what has come to its end.
    let error = Spool::on_disk(run(), small(), folder.path()).err();
    assert!(error.is_some_and(|error| error.to_string().contains("come to its end")));
}

#[test]
fn rows_that_never_reach_the_disk_are_counted_and_the_end_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = folder.path().join("rows");
    let spool = Spool::on_disk(run(), small(), &rows).expect("a spool");
    std::fs::remove_dir(&rows).expect("no folder");
    append(&spool, 0..500, 0);
    wait_until(&spool, "it is said", |p| p.error.is_some());
    // More than the memory holds.
    for first in (500..10_000).step_by(500) {
        append(&spool, first..first + 500, 0);
    }
    assert_eq!(spool.unwritten(), 10_000);
    assert!(!spool.close(PATIENCE), "they are not on the disk");
    assert_eq!(spool.unwritten(), 10_000);
    let kept = spool.read(0, usize::MAX).map(|piece| piece.first);
    let gone = kept.expect("rows");
    assert!(gone > 0);
    assert_eq!(spool.progress().unwritten, gone);
}

#[tokio::test]
async fn who_comes_before_the_first_rows_of_a_run_that_was_there_already_has_lost_none() {
    let spool = Arc::new(Spool::new(run(), small()));
    spool.begin_at(5000);
    let mut cursor = Cursor::new(Arc::clone(&spool), From::Oldest);
    append(&spool, 5000..5010, 0);
    let block = cursor.next(100).await.expect("rows");
    assert_eq!((block.first(), block.len(), block.lost()), (5000, 10, 0));
}
