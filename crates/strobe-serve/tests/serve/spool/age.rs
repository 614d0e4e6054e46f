// SPDX-License-Identifier: MIT OR Apache-2.0
//! How old rows get.

use super::*;
use std::fs::File;
use std::time::SystemTime;

fn of_age(age: Duration) -> Bounds {
    Bounds {
        age: Some(age),
        ..small()
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_run_that_has_just_ended_is_not_too_old_wherever_its_rows_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let spools = [
        Arc::new(Spool::new(run(), of_age(HOUR))),
        Spool::on_disk(run(), of_age(HOUR), folder.path()).expect("a spool"),
    ];
    for spool in spools {
        spool.finish(account(0));
        assert!(!spool.is_old(), "it has no rows");
        append(&spool, 0..10, 0);
        assert!(!spool.is_old());
    }
}

#[test]
fn rows_are_as_old_as_their_file_whenever_the_daemon_was_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    append(&spool, 0..10, 0);
    spool.finish(account(10));
    assert!(spool.close(PATIENCE));
    let past = || {
        let past = Spool::past(of_age(HOUR), folder.path()).expect("files");
        past.expect("a run").is_old()
    };
    assert!(!past());
    let file = File::options().write(true).open(only_file(folder.path()));
    let before = SystemTime::now() - 2 * HOUR;
    file.and_then(|file| file.set_modified(before))
        .expect("a time");
    assert!(past());
}

#[test]
fn a_slow_run_has_more_files_than_one_and_a_quiet_one_gives_up_those_that_are_too_old() {
    let folder = tempfile::tempdir().expect("a folder");
    let age = Duration::from_secs(1);
    let spool = Spool::on_disk(run(), of_age(age), folder.path()).expect("a spool");
    let files = || std::fs::read_dir(folder.path()).expect("files").count();
    let until = Instant::now() + PATIENCE;
    let mut next = 0;
    while files() < 2 {
        append(&spool, next..next + 1, 0);
        next += 1;
        assert!(Instant::now() < until, "all is in one file");
        std::thread::sleep(Duration::from_millis(20));
    }
    // No more rows come.
    wait_until(&spool, "old rows are given up", |p| {
        p.written == next && files() == 1
    });
}
