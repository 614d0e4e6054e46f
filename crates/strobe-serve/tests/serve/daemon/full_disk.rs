// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon whose disk is full for a time: the run goes on, and what was not written is counted.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::daemon::{Daemon, PATIENCE, command, rows, start};

/// Waits until this is so of the first run, and answers it.
fn wait(daemon: &Daemon, what: &str, happened: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let run: Value = serde_json::from_str(&daemon.get("/api/runs/1")).expect("a run");
        if happened(&run) {
            return run;
        }
        assert!(Instant::now() < until, "{what}: {run}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name}: {of}"))
}

/// On a file system of 8 MiB, which this process and the daemon alone have.
#[test]
fn a_run_goes_on_while_the_disk_is_full_and_what_is_missing_is_counted() {
    if let Some(folder) = std::env::var_os("ON_A_SMALL_DISK") {
        return on_a_small_disk(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let name =
        "daemon::full_disk::a_run_goes_on_while_the_disk_is_full_and_what_is_missing_is_counted";
    let mount = "mount -t tmpfs -o size=8m none \"$0\" && exec \"$@\"";
    let done = Command::new("unshare")
        .args(["-rm", "sh", "-c", mount])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env("ON_A_SMALL_DISK", folder.path())
        .output()
        .expect("unshare, of util-linux");
    let said = String::from_utf8_lossy(&done.stdout);
    print!("{said}");
    let failed = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{failed}"
    );
}

fn on_a_small_disk(folder: &Path) {
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
    daemon.make(5_000);
    let full = wait(&daemon, "it is full", |run| {
        let why = run["spool"]["error"].as_str().unwrap_or_default();
        number(&run["spool"], "unwritten") > 0 && why.contains("No space left")
    });
    assert_eq!(full["state"], "running");
    std::fs::remove_file(&ballast).expect("room");
    let again = wait(&daemon, "there is room again", |run| {
        run["spool"]["error"].is_null()
    });
    let next = number(&again, "next");
    wait(&daemon, "it is written again", |run| {
        number(&run["spool"], "written") > next
    });
    daemon.stop();
    let end = wait(&daemon, "it has ended", |run| run["state"] == "stopped");
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
