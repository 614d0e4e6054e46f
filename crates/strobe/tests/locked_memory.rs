// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process that may lock no more memory is told.

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{Uid, set_thread_res_uid};
use strobe::engine::Source;
use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::rt::lock_memory;

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

#[test]
fn memory_that_must_not_be_locked_is_refused_with_the_limit_and_the_remedy() {
    const NAME: &str = "memory_that_must_not_be_locked_is_refused_with_the_limit_and_the_remedy";
    // In a child: what it loses it does not get back.
    if std::env::var_os("STROBE_TEST_MEMLOCK").is_none() {
        let itself = std::env::current_exe().expect("this program");
        let mut child = std::process::Command::new(itself);
        let child = child
            .args(["--exact", NAME])
            .env("STROBE_TEST_MEMLOCK", "1");
        let child = child.output().expect("a child");
        assert!(child.status.success(), "{child:?}");
        return;
    }
    let plan = |rows| {
        let mut plan = Plan::new("soft".parse().expect("an event"));
        plan.ring = Some(rows);
        plan
    };
    let engine = User::default();
    let small = engine.create(&plan(1 << 17)).expect("a run");
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
        .create(&plan(1 << 18))
        .err()
        .map(|error| error.to_string());
    let reader = Source::reader(&small).err().map(|error| error.to_string());
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
