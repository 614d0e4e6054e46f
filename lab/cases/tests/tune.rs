// SPDX-License-Identifier: MIT OR Apache-2.0
//! STROBE_TUNE: who may, when it is possible, and what a row has of it.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libc::{EACCES, EBADF, EINVAL, ENOENT, ERANGE, ESHUTDOWN};
use rustix::process::{Pid, Signal, kill_process};
use strobe_cases::account::until;
use strobe_cases::dice::Dice;
use strobe_cases::machine::slowness;
use strobe_cases::raw::program::{tunable, tune};
use strobe_cases::raw::*;
use strobe_cases::rounds::{held, rounds};
use strobe_cases::tuned::tuned;
use strobe_cases::{Engine, Kernel, User};

/// The values that all rows have.
fn values(owner: &OwnedFd) -> Vec<u64> {
    let ring = reader(owner, 0, 0, NONBLOCK).expect("a reader");
    let rows = rows(&ring, 100).expect("rows");
    rows.iter().map(|row| row[4]).collect()
}

#[test]
fn its_owner_and_root_may_tune_a_run_and_who_only_looks_or_reads_may_not() {
    let control = control();
    let (owner, id) = tunable(&control, 64);
    assert_eq!(tune(&owner, 0, 7), Ok(()));
    assert_eq!(tune(&owner, id, 7), Err(EINVAL), "a number on an owner fd");
    assert_eq!(tune(&control, id, 8), Ok(()));
    assert_eq!(tune(&control, u32::MAX, 8), Err(ENOENT));
    assert_eq!(
        tune(&looking(), id, 8),
        Err(EBADF),
        "open for reading alone"
    );
    let user = |work: &dyn Fn() -> i32| {
        wait(fork(|| {
            become_user();
            work()
        }))
    };
    let errno = |fd: &OwnedFd, run| tune(fd, run, 9).err().unwrap_or(0);
    assert_eq!(user(&|| errno(&control, id)), EACCES, "root's run");
    assert_eq!(user(&|| errno(&owner, 0)), 0, "who has the owner fd");
    let own = user(&|| {
        let (_owner, id) = tunable(&control, 64);
        errno(&control, id)
    });
    assert_eq!(own, 0, "its own run");
}

#[test]
fn a_value_has_the_bits_of_its_column_and_a_run_that_has_ended_takes_none() {
    let control = control();
    let (owner, _) = tunable(&control, 8);
    assert_eq!(tune(&owner, 0, 255), Ok(()));
    assert_eq!(tune(&owner, 0, 256), Err(ERANGE));
    order(&owner, START, 0).expect("started");
    order(&owner, TRIGGER, 2).expect("triggered");
    assert_eq!(tune(&owner, 0, 1), Ok(()));
    order(&owner, PAUSE, 0).expect("paused");
    assert_eq!(tune(&owner, 0, 2), Ok(()));
    order(&owner, RESUME, 0).expect("resumed");
    order(&owner, TRIGGER, 1).expect("triggered");
    assert_eq!(values(&owner), [255, 255, 2]);
    order(&owner, STOP, 0).expect("stopped");
    assert_eq!(tune(&owner, 0, 3), Err(ESHUTDOWN));
    let (plain, _) = soft(&control, 8, 0);
    assert_eq!(tune(&plain, 0, 3), Err(EINVAL), "without a program");
}

#[test]
fn a_run_may_be_tuned_from_many_threads_while_it_makes_rows_and_goes() {
    let control = control();
    for _ in 0..20 {
        let (owner, id) = tunable(&control, 64);
        order(&owner, START, 0).expect("started");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for thread in 1..=3_u64 {
                let (control, is_over) = (&control, &is_over);
                threads.spawn(move || {
                    for n in 0.. {
                        match tune(control, id, thread << 32 | n) {
                            Ok(()) => {}
                            Err(ENOENT | ESHUTDOWN) if is_over.load(Ordering::Relaxed) => return,
                            Err(errno) => panic!("errno {errno}"),
                        }
                    }
                });
            }
            let ring = reader(&owner, 0, 0, NONBLOCK).expect("a reader");
            let mut seen = BTreeSet::new();
            until("values in rows", || {
                order(&owner, TRIGGER, 8).expect("triggered");
                for row in rows(&ring, 100).expect("rows") {
                    let (thread, n) = (row[4] >> 32, row[4] & 0xffff_ffff);
                    assert!(
                        thread <= 3 && (thread > 0 || n == 0),
                        "nobody has set {:#x}",
                        row[4]
                    );
                    seen.insert(row[4]);
                }
                seen.len() > 5
            });
            is_over.store(true, Ordering::Relaxed);
            drop(owner);
            drop(ring);
        });
    }
}

/// However many triggers are missed meanwhile; icount_tune.rs asks the same of a run that misses next to nothing.
#[test]
fn each_change_is_in_the_rows_of_either_engine_while_all_cpus_are_busy() {
    tuned(&Kernel::open(), rounds(100, 30));
    tuned(&User::open(), rounds(100, 30));
}

#[test]
fn who_owns_a_run_that_computes_acts_and_is_tuned_may_be_killed_at_any_moment() {
    let before = held();
    let (mut dice, mut tuned) = (Dice(11), 0);
    for round in 0..rounds(12, 10) {
        let mut record = Command::new("strobe")
            .args(["record", "--engine", "kernel", "--event", "timer:5kHz"])
            .args([
                "--read",
                "sim.counter",
                "--tune",
                "next = 0 like sim.counter",
            ])
            .args(["--when", "sim.counter >= next", "--set", "sim.latch=1"])
            .args([
                "--then",
                "next += 3",
                "--keep",
                "sim.counter & 1 == next & 1",
            ])
            .args(["--derive", "change = diff(sim.counter)", "-o", "-"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("strobe");
        let control = control();
        if round % 2 == 1 {
            // The program may take longer to start than the moments last.
            until("a run", || {
                let (entries, _) = list(&control, 0).expect("the catalogue");
                entries.iter().any(|entry| entry.kind == RUN)
            });
        }
        let end = Instant::now() + Duration::from_millis(dice.below(300) as u64 * slowness());
        while Instant::now() < end {
            let (entries, _) = list(&control, 0).expect("the catalogue");
            for run in entries.iter().filter(|entry| entry.kind == RUN) {
                // It may be gone already.
                tuned += u64::from(tune(&control, run.id, 1000).is_ok());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        record.kill().expect("to kill");
        record.wait().expect("an end");
    }
    assert!(tuned > 0, "nothing was tuned");
    until("nothing to be left", || held() == before);
}

/// What the program says, and its exit status.
fn strobe(words: &[&str]) -> (String, Option<i32>) {
    let done = Command::new("strobe").args(words).output().expect("strobe");
    let said = [done.stdout, done.stderr].concat();
    (
        String::from_utf8_lossy(&said).into_owned(),
        done.status.code(),
    )
}

#[test]
fn the_program_tunes_the_run_of_another_process_in_both_engines() {
    for engine in ["kernel", "user"] {
        let record = Command::new("strobe")
            .args(["record", "--event", "timer:2ms", "--read", "sim.counter"])
            .args(["--tune", "limit = 1.5 V", "--engine", engine, "-o", "-"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("strobe");
        // A row has the first value before there is another one.
        let run = loop {
            let (status, _) = strobe(&["status", "--json"]);
            let number = |key: &str| {
                let (_, after) = status.split_once(&format!("\"{key}\":"))?;
                after.split([',', '}']).next()?.parse::<u64>().ok()
            };
            if let (Some(run), Some(1..)) = (number("run"), number("rows")) {
                break format!("{engine}:{run}");
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        };
        // Who is too busy to answer in time is asked again.
        let tune = |value| loop {
            let (said, status) = strobe(&["tune", &run, value]);
            if !said.contains("does not answer") && !said.contains("very busy") {
                break (said, status);
            }
        };
        assert_eq!(tune("limit=2"), (String::new(), Some(0)));
        let (said, status) = tune("limit=2 mm");
        assert!(said.contains("unit") && status == Some(1), "{said}");
        let (said, status) = tune("limits=2");
        assert!(
            said.contains("this run has limit") && status == Some(1),
            "{said}"
        );
        std::thread::sleep(std::time::Duration::from_millis(300));
        kill_process(Pid::from_child(&record), Signal::INT).expect("a signal");
        let done = record.wait_with_output().expect("an end");
        let text = String::from_utf8_lossy(&done.stdout);
        let limits: BTreeSet<&str> = text
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
            .filter_map(|line| line.rsplit(',').next())
            .collect();
        assert_eq!(
            limits.into_iter().collect::<Vec<_>>(),
            ["1.5", "2"],
            "{engine}: {text}"
        );
    }
}
