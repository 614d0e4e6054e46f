// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process that may lock no more memory is told.

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{Uid, set_thread_res_uid};
use strobe::engine::user::{Lock, Settings, User, UserRun};
use strobe::plan::Plan;
use strobe::rt::lock_memory;
use strobe::run::Run;

/// Of this process.
fn locked_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let kb = line.and_then(|line| line.trim().strip_suffix("kB"));
    kb.and_then(|kb| kb.trim().parse().ok()).unwrap_or(0) * 1024
}

/// Whether all threads but this one wait for something.
fn others_sleep() -> bool {
    let me = rustix::thread::gettid().as_raw_pid().to_string();
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        task.file_name().to_string_lossy() == *me || stat.contains(") S ")
    })
}

/// Whether this is the child in which the test of this name does its work: what it locks, and what it loses, it does not
/// get back.
fn is_child(test: &str) -> bool {
    if std::env::var_os("STROBE_TEST_MEMLOCK").is_some() {
        return true;
    }
    let itself = std::env::current_exe().expect("this program");
    let mut child = std::process::Command::new(itself);
    let child = child
        .args(["--exact", &format!("locked_memory::{test}")])
        .env("STROBE_TEST_MEMLOCK", "1");
    let child = child.output().expect("a child");
    assert!(child.status.success(), "{child:?}");
    false
}

fn soft(rows: u64) -> Plan {
    let mut plan = Plan::new("soft".parse().expect("an event"));
    plan.ring = Some(rows);
    plan
}

fn engine(lock: Lock) -> User {
    User::new(Settings {
        lock,
        ..Settings::default()
    })
}

/// What the set-up of a run says of this part.
fn step(run: &UserRun, what: &str) -> Option<(bool, String)> {
    let mut steps = run.info().set_up.iter();
    let step = steps.find(|step| step.what == what)?;
    Some((step.ok, step.got.clone()))
}

#[test]
fn a_run_locks_its_ring_and_its_stack_and_no_other_memory_of_the_process() {
    if !is_child("a_run_locks_its_ring_and_its_stack_and_no_other_memory_of_the_process") {
        return;
    }
    let before = vec![1_u8; 16 << 20];
    let run = engine(Lock::default()).create(&soft(1024)).expect("a run");
    let after = vec![1_u8; 16 << 20];
    std::hint::black_box((before, after));
    assert!(locked_bytes() < 4 << 20, "{} are locked", locked_bytes());
    let (ring, stack) = (step(&run, "ring"), step(&run, "stack"));
    let is_locked = |step: Option<(bool, String)>| step.is_some_and(|(ok, _)| ok);
    assert_eq!(step(&run, "memory"), None);
    if is_locked(ring) && is_locked(stack) {
        assert!(locked_bytes() >= 512 << 10, "{} are locked", locked_bytes());
    }
}

#[test]
fn a_run_that_is_to_lock_nothing_locks_nothing() {
    if !is_child("a_run_that_is_to_lock_nothing_locks_nothing") {
        return;
    }
    let run = engine(Lock::None).create(&soft(1024)).expect("a run");
    assert_eq!(locked_bytes(), 0);
    assert!(step(&run, "ring").is_some_and(|(ok, got)| ok && got.ends_with("not locked")));
}

#[test]
fn memory_that_may_be_locked_later_is_locked_later() {
    if !is_child("memory_that_may_be_locked_later_is_locked_later") {
        return;
    }
    let limit = getrlimit(Resource::Memlock);
    let mut none = limit;
    none.current = Some(0);
    setrlimit(Resource::Memlock, none).expect("a lower limit");
    // Root is not bound by the limit.
    let nobody = Uid::from_raw(65534);
    let _ = set_thread_res_uid(nobody, nobody, nobody);
    let first = lock_memory();
    let mut more = limit;
    more.current = limit.maximum;
    setrlimit(Resource::Memlock, more).expect("the limit that it may have");
    let second = lock_memory();
    assert!(!first.ok, "{first:?}");
    assert!(second.ok || second.got != first.got, "{second:?}");
}

#[test]
fn memory_that_must_not_be_locked_is_refused_with_the_limit_and_the_remedy() {
    const NAME: &str = "memory_that_must_not_be_locked_is_refused_with_the_limit_and_the_remedy";
    if !is_child(NAME) {
        return;
    }
    let engine = engine(Lock::Process);
    let small = engine.create(&soft(1 << 17)).expect("a run");
    // A thread that begins takes memory for a moment.
    while !others_sleep() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let locked = lock_memory().ok;
    let room = locked_bytes() + (2 << 20);
    let mut limit = getrlimit(Resource::Memlock);
    limit.current = Some(limit.maximum.map_or(room, |most| most.min(room)));
    setrlimit(Resource::Memlock, limit).expect("a lower limit");
    // Root is not bound by the limit.
    let nobody = Uid::from_raw(65534);
    let _ = set_thread_res_uid(nobody, nobody, nobody);
    let said = engine
        .create(&soft(1 << 18))
        .err()
        .map(|error| error.to_string());
    let reader = Run::reader(&small).err().map(|error| error.to_string());
    for (said, doing) in [(said, "making its ring"), (reader, "making a reader")] {
        // Who may lock nothing at all has all that there is.
        assert_eq!(said.is_some(), locked, "{said:?}");
        let good = said.is_none_or(|said| {
            said.starts_with(&format!("run on event soft: {doing} failed: "))
                && said.contains("KiB (ulimit -l): raise it (LimitMEMLOCK=infinity")
        });
        assert!(good);
    }
}
