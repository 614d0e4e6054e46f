// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon whose disk is full for a time: the run goes on, and what was not written is counted.

use std::path::Path;

use crate::daemon::{command, number, rows, start};
use crate::small_disk::on_a_small_disk;

#[test]
fn a_run_goes_on_while_the_disk_is_full_and_what_is_missing_is_counted() {
    let name =
        "daemon::full_disk::a_run_goes_on_while_the_disk_is_full_and_what_is_missing_is_counted";
    on_a_small_disk(8, name, is_full_for_a_time);
}

fn is_full_for_a_time(folder: &Path) {
    let (data, config) = (folder.join("data"), folder.join("serve.toml"));
    std::fs::write(&config, "[spool]\nrecent = 1048576\n").expect("a file");
    let serve = || {
        let mut command = command(&data);
        command.arg(&config);
        start(command)
    };
    let daemon = serve();
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 15 << 19]).expect("a file");
    let id = daemon.make(5_000);
    let full = daemon.wait(id, "it is full", |run| {
        let why = run["spool"]["error"].as_str().unwrap_or_default();
        number(&run["spool"], "unwritten") > 0 && why.contains("No space left")
    });
    assert_eq!(full["state"], "running");
    std::fs::remove_file(&ballast).expect("room");
    let again = daemon.wait(id, "there is room again", |run| {
        run["spool"]["error"].is_null()
    });
    let next = number(&again, "next");
    daemon.wait(id, "it is written again", |run| {
        number(&run["spool"], "written") > next
    });
    daemon.stop();
    let end = daemon.wait(id, "it has ended", |run| run["state"] == "stopped");
    let (made, unwritten) = (number(&end, "rows"), number(&end["spool"], "unwritten"));
    assert_eq!(
        number(&end, "triggers"),
        made + number(&end, "missed") + number(&end, "skipped")
    );
    // The run never waited for the disk.
    assert_eq!((number(&end, "lost"), number(&end, "next")), (0, made));
    let found = rows(&daemon);
    assert_eq!(found.len() as u64 + unwritten, made);
    assert!(found.is_sorted_by(|one, next| one < next));
    assert_eq!((found.first(), found.last()), (Some(&0), Some(&(made - 1))));
    println!("{made} rows, {unwritten} of them not written, nothing else is missing");
    assert!(daemon.ended("-TERM").success());
    assert_eq!(rows(&serve()), found, "after a restart");
}
