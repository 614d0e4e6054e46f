// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is lost is counted, whoever lost it, and whoever was there then.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

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
    assert!(error.is_some_and(|error| error.to_string().contains("the stored run has ended")));
}

/// What a folder says of the run: the row after its last one, and how many of its rows are not there.
fn left(folder: &Path) -> (u64, u64) {
    let past = Spool::past(small(), folder).expect("files").expect("a run");
    let progress = past.progress();
    (progress.next, progress.lost + progress.unwritten)
}

#[test]
fn no_row_is_on_the_disk_before_what_was_lost_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..10, 0);
    wait_until(&spool, "rows are on the disk", |p| p.written == 10);
    // In the way of what is to be said.
    std::fs::create_dir(folder.path().join("new")).expect("a folder");
    append(&spool, 5000..6000, 4990);
    wait_until(&spool, "it is said", |p| p.error.is_some());
    assert_eq!(left(folder.path()), (10, 0));
    std::fs::remove_dir(folder.path().join("new")).expect("no folder");
    wait_until(&spool, "rows are on the disk", |p| p.written == 6000);
    assert!(spool.close(PATIENCE));
    assert_eq!(left(folder.path()), (6000, 4990));
}

#[test]
fn a_loss_whose_rows_did_not_come_to_the_disk_is_counted_once_by_the_next_daemon() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..10, 0);
    append(&spool, 20..30, 10);
    wait_until(&spool, "rows are on the disk", |p| p.written == 30);
    let file = only_recording(folder.path());
    let before = std::fs::read(&file).expect("a file");
    append(&spool, 5000..6000, 4970);
    assert!(spool.close(PATIENCE));
    drop(spool);
    // The daemon was killed when it had said what was lost, and before it had written the rows.
    std::fs::write(&file, before).expect("a file");
    assert_eq!(left(folder.path()), (30, 10));
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 6000..6010, 5970);
    assert!(spool.close(PATIENCE));
    assert_eq!(left(folder.path()), (6010, 5980));
}

fn only_recording(folder: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(folder).expect("files");
    let mut files = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "arrows"));
    let file = files.next().expect("a file");
    assert!(files.next().is_none());
    file
}

/// How often it is killed.
const KILLS: u64 = 10;
/// What it says when rows of it are on the disk.
const WRITTEN: &str = "rows are written";

/// A process of its own, which is killed again and again, and goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn whenever_it_is_killed_what_is_not_there_is_said() {
    if let Some(folder) = std::env::var_os("LOSES_ROWS_IN") {
        lose_rows(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let name = "spool::losses::whenever_it_is_killed_what_is_not_there_is_said";
    let this = std::env::current_exe().expect("this program");
    for kill in 0..KILLS {
        let mut child = Command::new(&this)
            .args(["--exact", name, "--nocapture"])
            .env("LOSES_ROWS_IN", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let said = BufReader::new(child.stdout.take().expect("its words"));
        if kill == KILLS - 1 {
            // A busy machine may have killed all before it too early.
            let mut lines = said.lines().map(|line| line.expect("a line"));
            assert!(lines.any(|line| line == WRITTEN), "it has ended");
        }
        std::thread::sleep(Duration::from_millis(30 + kill * 7919 % 200));
        child.kill().expect("a kill");
        child.wait().expect("its end");
        let past = Spool::past(small(), folder.path()).expect("files");
        // It may have been killed before its first rows.
        let Some(past) = past.map(Arc::new) else {
            continue;
        };
        let (_, missing) = read(&past, 0, usize::MAX).await;
        let progress = past.progress();
        let said = progress.lost + progress.unwritten;
        assert_eq!(said, missing, "kill {kill}: {progress:?}");
    }
    let (next, missing) = left(folder.path());
    assert!(missing > 0 && missing < next, "{missing} of {next}");
}

/// Of a hundred rows one is lost, for ever. What is written at once has many steps.
fn lose_rows(folder: &Path) -> ! {
    let spool = Spool::on_disk(run(), small(), folder).expect("a spool");
    let first = spool.progress().next;
    let (mut next, mut has_said) = (first, false);
    loop {
        append(&spool, next + 1..next + 100, 1);
        next += 100;
        if !has_said && spool.progress().written > first {
            has_said = true;
            // Who has gone does not want to hear it.
            let _ = writeln!(std::io::stdout(), "\n{WRITTEN}");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
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
