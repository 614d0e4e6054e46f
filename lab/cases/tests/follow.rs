// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the kernel engine that follow others of it, in interrupts: what run_rows asks of both engines comes first.

use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{EINVAL, ENOENT};
use strobe::plan::{Plan, Step};
use strobe::reader::{Begin, ReaderOptions, RunReader};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, record, until, until_rows};
use strobe_cases::grouped::{GROUP, Grouped, USER};
use strobe_cases::machine::{Sim, patience};
use strobe_cases::raw::{Census, READ, WRITE, census, control, create, list, request, step};
use strobe_cases::rounds::rounds;
use strobe_cases::{Account, Engine, Kernel, plan};
use strobe_ring::{Missed, Snapshot, State};

type KernelRun = <Kernel as Engine>::Run;

/// A run on this event that reads these channels, and makes so many rows.
fn run(event: &str, channels: &[&str], limit: Option<u64>) -> KernelRun {
    Kernel::open().run(&Plan {
        limit,
        ring: Some(4096),
        ..plan(event, channels)
    })
}

/// Its rows as an event.
fn rows_of(run: &impl Run) -> String {
    format!("run:kernel:{}.row", run.info().run)
}

/// Its account once it has ended by itself, which must be whole.
fn ended(run: &KernelRun) -> Snapshot {
    until("its end", || {
        run.snapshot().expect("a snapshot").state.is_final()
    });
    let end = run.snapshot().expect("a snapshot");
    assert_eq!(
        end.triggers,
        end.head + end.missed() + end.skipped,
        "{end:?}"
    );
    end
}

#[test]
fn a_chain_of_runs_has_the_same_rows_in_each_and_ends_with_the_first() {
    let first = run("timer:1kHz", &["sim.ramp"], Some(500));
    let mut chain = vec![first];
    for _ in 0..8 {
        let last = chain.last().expect("a run");
        let (rows, value) = (rows_of(last), &last.info().channels[0].name);
        let value = format!("run:kernel:{}.{value}", last.info().run);
        // Names of all before it would not fit.
        let value = if chain.len() == 1 {
            value
        } else {
            rows.clone()
        };
        chain.push(run(&rows, &[&value], None));
        chain.last().expect("a run").start().expect("to start");
    }
    let (theirs, end) = record(&chain[0]);
    assert_eq!((end.state, end.head), (State::Done, 500));
    for (place, run) in chain.iter().enumerate().skip(1) {
        let end = ended(run);
        assert_eq!((end.state, end.error), (State::Stopped, 0), "{place}");
        let before = chain[place - 1].snapshot().expect("a snapshot").head;
        assert_eq!(end.triggers, before, "{place}");
        let (mut reader, mut account) = begin_at_first(run);
        read_now(&mut reader, &mut account);
        for row in &account.rows {
            // Its trigger's number is that of that row, whatever was missed before it.
            let wanted = match place {
                1 => theirs.rows[row.trigger as usize].values[0],
                _ => row.trigger,
            };
            assert_eq!(row.values[0], wanted, "{place}: {row:?}");
        }
    }
}

/// A reader of all that is there.
fn begin_at_first(run: &KernelRun) -> (RunReader, Account) {
    let options = ReaderOptions {
        begin: Begin::Oldest,
        ..ReaderOptions::default()
    };
    let reader = run.reader_with(options).expect("a reader");
    let channels = reader.ring().geometry().channels() as usize;
    let account = Account::new(reader.ring().begun_at(), channels);
    (reader, account)
}

#[test]
fn another_event_finds_the_newest_row_whole_and_nothing_before_the_first_or_after_the_end() {
    let fast = run("timer:10kHz", &["sim.ramp", "sim.counter"], None);
    let name = format!("run:kernel:{}", fast.info().run);
    let parts = ["row", "sim.ramp", "sim.counter", "row", "time"].map(|p| format!("{name}.{p}"));
    let slow = run("timer:1kHz", &parts.each_ref().map(String::as_str), None);
    let (mut reader, mut account) = begin(&slow);
    slow.start().expect("to start");
    until_rows(&reader, 20);
    fast.start().expect("to start");
    let (fast_reader, mut theirs) = begin_at_first(&fast);
    let mut fast_reader = fast_reader;
    until_rows(&reader, 200);
    fast.stop().expect("to stop");
    read_now(&mut fast_reader, &mut theirs);
    let after = reader.snapshot().head;
    until_rows(&reader, after + 20);
    slow.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let (mut whole, mut absent) = (0, 0);
    for row in &account.rows {
        if row.faults.is_empty() {
            whole += 1;
            let [number, ramp, counter, again, time] = row.values[..] else {
                panic!("{row:?}");
            };
            assert_eq!(number, again);
            if let Some(their) = theirs.rows.iter().find(|their| their.row == number) {
                assert_eq!((ramp, counter), (their.values[0], their.values[1]));
                assert_eq!(time, their.time);
            }
        } else {
            absent += 1;
            assert_eq!(row.faults.len(), 5, "{row:?}");
        }
    }
    assert!(
        whole >= 150 && absent >= 30,
        "{whole} whole, {absent} absent"
    );
}

#[test]
fn a_pause_leaves_out_what_comes_meanwhile_and_a_limit_ends_only_who_has_it() {
    let fast = run("timer:1kHz", &["sim.ramp"], None);
    let rows = rows_of(&fast);
    let slow = run(&rows, &[&rows], None);
    let few = run(&rows, &[&rows], Some(10));
    for run in [&slow, &few, &fast] {
        run.start().expect("to start");
    }
    let (mut reader, mut account) = begin(&slow);
    until_rows(&reader, 30);
    slow.pause().expect("to pause");
    let paused = fast.snapshot().expect("a snapshot").head;
    until("more rows", || {
        fast.snapshot().expect("a snapshot").head > paused + 50
    });
    let resumed = fast.snapshot().expect("a snapshot").head;
    slow.resume().expect("to go on");
    let now = reader.snapshot().head;
    until_rows(&reader, now + 30);
    slow.stop().expect("to stop");
    let end = ended(&slow);
    read_now(&mut reader, &mut account);
    let numbers: Vec<u64> = account.rows.iter().map(|row| row.values[0]).collect();
    assert!(
        numbers.iter().all(|n| *n <= paused || *n >= resumed),
        "{numbers:?}"
    );
    assert!(end.triggers < fast.snapshot().expect("a snapshot").head - 50);
    let end = ended(&few);
    assert_eq!((end.state, end.head), (State::Done, 10));
    assert_eq!(fast.snapshot().expect("a snapshot").state, State::Running);
}

#[test]
fn who_begins_while_rows_are_made_gets_each_from_then_on() {
    let fast = run("timer:10us", &["sim.ramp"], None);
    let rows = rows_of(&fast);
    fast.start().expect("to start");
    for round in 0..rounds(100, 100) {
        let slow = run(&rows, &[&rows], None);
        let (mut reader, mut account) = begin(&slow);
        slow.start().expect("to start");
        until_rows(&reader, 3);
        slow.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        account.settle(&reader.snapshot());
        let (first, last) = (&account.rows[0], account.rows.last().expect("rows"));
        let passed = last.values[0] - first.values[0];
        assert_eq!(last.trigger - first.trigger, passed, "round {round}");
    }
}

#[test]
fn a_row_that_waits_for_a_slow_channel_keeps_the_values_of_the_row_that_has_opened_it() {
    let fast = run("timer:10kHz", &["sim.ramp"], Some(3000));
    let rows = rows_of(&fast);
    let value = format!("run:kernel:{}.sim.ramp", fast.info().run);
    let slow = run(&rows, &[&rows, "sim.slow", &value], None);
    slow.start().expect("to start");
    let (theirs, _) = record(&fast);
    let end = ended(&slow);
    assert_eq!(end.triggers, 3000, "{end:?}");
    let (mut reader, mut account) = begin_at_first(&slow);
    read_now(&mut reader, &mut account);
    assert!(!account.rows.is_empty(), "{end:?}");
    for row in &account.rows {
        let their = &theirs.rows[row.values[0] as usize];
        assert!(row.faults.is_empty(), "{row:?}");
        assert_eq!(
            (row.trigger, row.values[2]),
            (row.values[0], their.values[0])
        );
    }
}

/// The account of a run that follows one of a single row. What other tests did may leave no room in the budget of this CPU for
/// that trigger: then another one is made.
fn follows_one_row(channels: &[&str]) -> Snapshot {
    for _ in 0..100 {
        let fast = run("timer:1kHz", &["sim.ramp"], Some(1));
        let slow = run(&rows_of(&fast), channels, None);
        slow.start().expect("to start");
        fast.start().expect("to start");
        let end = ended(&slow);
        if end.missed_by[Missed::Throttled as usize] == 0 {
            return end;
        }
    }
    panic!("each trigger was throttled");
}

#[test]
fn a_row_that_awaits_a_value_when_the_other_run_ends_is_made_but_not_awaited_for_ever() {
    let sim = Sim::well();
    for (arrives_ns, rows_made) in [(100_000_000, 1), (3_600_000_000_000, 0)] {
        sim.set("sim_async_ns", arrives_ns);
        // In the second run the step of sim.async comes after one of the thread.
        for channels in [&["sim.async"][..], &["sim.slow", "sim.async"]] {
            let end = follows_one_row(channels);
            assert_eq!((end.state, end.error), (State::Stopped, 0), "{end:?}");
            assert_eq!((end.triggers, end.head), (1, rows_made), "{end:?}");
        }
    }
}

#[test]
fn a_value_that_is_fetched_before_the_next_row_delays_none() {
    let fast = run("timer:1kHz", &["sim.ramp"], Some(300));
    let rows = rows_of(&fast);
    let slow = run(&rows, &[&rows, "sim.next"], None);
    slow.start().expect("to start");
    fast.start().expect("to start");
    let end = ended(&slow);
    assert_eq!((end.state, end.triggers), (State::Stopped, 300), "{end:?}");
    let by = |cause| end.missed_by[cause as usize];
    // The other rows may come while the interrupt of one is late, or the budget has no room: how many is the machine's affair.
    let late = by(Missed::Source) + by(Missed::Throttled);
    assert_eq!(end.head + late, 300, "{end:?}");
    assert!(end.head >= 30, "{end:?}");
}

#[test]
fn many_that_follow_a_fast_run_stop_no_cpu_and_each_account_is_whole() {
    let fast = Kernel::open().run(&Plan {
        // A small ring: some rows are gone before they are seen.
        ring: Some(4),
        ..plan("timer:20us", &["sim.ramp"])
    });
    let rows = rows_of(&fast);
    let followers: Vec<KernelRun> = (0..40)
        .map(|n| run(&format!("{rows}:{}", 1 + n % 3), &[&rows], None))
        .collect();
    for run in &followers {
        run.start().expect("to start");
    }
    fast.start().expect("to start");
    // This program is of ordinary priority, and is still served.
    std::thread::sleep(patience(2));
    until("rows of all", || {
        let heads = followers
            .iter()
            .map(|run| run.snapshot().expect("a snapshot").head);
        heads.min().expect("runs") > 0
    });
    fast.stop().expect("to stop");
    let their = ended(&fast);
    for (n, run) in followers.iter().enumerate() {
        let end = ended(run);
        assert_eq!((end.state, end.error), (State::Stopped, 0), "{n}");
        assert_eq!(
            end.triggers,
            their.head.div_ceil(1 + n as u64 % 3),
            "{n}: {end:?}"
        );
    }
}

#[test]
fn what_is_no_name_of_a_run_is_refused() {
    let control = control();
    let fast = run("soft", &["sim.counter"], None);
    let id = fast.info().run;
    let before = census(&control);
    let event = |name: &str| create(&control, &request(name, 0, 0, &[])).err();
    for name in [
        "run:",
        "run:.row",
        "run:0.row",
        "run:4294967296.row",
        "run:99999999999.row",
        "run:1",
        "run:x.row",
    ] {
        assert_eq!(event(name), Some(ENOENT), "{name}");
    }
    for part in [
        "",
        "rows",
        "row:",
        "row:0",
        "row:x",
        "row:+1",
        "row:1\n",
        "row:4294967296",
        "time",
        "sim.counter",
    ] {
        assert_eq!(event(&format!("run:{id}.{part}")), Some(ENOENT), "{part}");
    }
    assert!(event(&format!("run:{id}.row:4294967295")).is_none());
    let channel = |name: &str| {
        let steps = [step(READ, name, 0)];
        create(&control, &request("soft", 0, 0, &steps)).err()
    };
    for part in ["", "row:2", "sim.ramp", "sim", "trigger"] {
        assert_eq!(channel(&format!("run:{id}.{part}")), Some(ENOENT), "{part}");
    }
    assert_eq!(channel("run:99999.row"), Some(ENOENT));
    for (op, value, errno) in [(WRITE, 0, ENOENT), (READ, 7, EINVAL)] {
        let steps = [step(op, &format!("run:{id}.row"), value)];
        let refused = create(&control, &request("soft", 0, 0, &steps)).err();
        assert_eq!(refused, Some(errno));
    }
    let after = census(&control);
    assert_eq!((after.entries, after.fds), (before.entries, before.fds));
    let readers = list(&control, id).expect("listed").0[0].readers();
    assert_eq!(readers, 0, "who was refused, or has gone, reads no more");
}

#[test]
fn who_follows_keeps_the_rows_and_nothing_else_of_a_run_that_has_gone() {
    let control = control();
    let before = census(&control);
    for starts in [false, true] {
        let fast = run("timer:1kHz", &["sim.ramp"], None);
        let rows = rows_of(&fast);
        let value = format!("run:kernel:{}.sim.ramp", fast.info().run);
        let slow = run(&rows, &[&rows, &value], None);
        let late = run("timer:1kHz", &[&value], Some(30));
        if starts {
            slow.start().expect("to start");
            fast.start().expect("to start");
            let reader = slow.reader().expect("a reader");
            until_rows(&reader, 10);
        }
        drop(fast);
        // Not started yet, it finds that all is over.
        let _ = slow.start();
        let end = ended(&slow);
        assert_eq!(end.state, State::Failed, "{end:?}");
        let (account, end) = record(&late);
        assert_eq!((end.state, end.head), (State::Done, 30));
        assert!(account.rows.iter().all(|row| row.faults == [0]));
    }
    let after = census(&control);
    let left = |census: Census| (census.entries, census.references, census.fds);
    assert_eq!(left(after), left(before));
}

/// `strobe record` of a user who may open the device, on this event.
fn as_user(event: &str) -> (Option<i32>, String) {
    let done = Command::new("strobe")
        .args([
            "record",
            "--engine",
            "kernel",
            "--rows",
            "5",
            "--allow-loss",
            "-o",
            "-",
            "--event",
            event,
            "--read",
            event,
        ])
        .uid(USER)
        .gid(GROUP)
        .output()
        .expect("strobe");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn who_may_not_read_a_run_may_not_follow_it() {
    let _device = Grouped::begin();
    for shared in [false, true] {
        let fast = Kernel::open().run(&Plan {
            shared,
            ..plan("timer:1kHz", &["sim.ramp"])
        });
        fast.start().expect("to start");
        let (status, said) = as_user(&rows_of(&fast));
        if shared {
            assert_eq!(status, Some(0), "{said}");
        } else {
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains("must be started as shared"), "{said}");
        }
    }
}

#[test]
fn a_program_and_an_output_work_in_a_run_that_follows() {
    let fast = run("timer:1kHz", &["sim.ramp"], Some(200));
    let rows = rows_of(&fast);
    let mut plan = plan(&rows, &[&rows]);
    plan.steps.push(Step::Write {
        output: "sim.latch".into(),
        value: 7,
    });
    plan.program = strobe_cases::engine::program(&[], &[], Some(10));
    plan.ring = Some(4096);
    let slow = Kernel::open().run(&plan);
    slow.start().expect("to start");
    let (_, end) = record(&fast);
    assert_eq!(end.head, 200);
    let end = ended(&slow);
    assert_eq!(end.triggers, 200);
    // Each tenth of those that were not missed on a slow machine.
    let made = 200 - end.missed();
    assert!(
        made > 100 && (made / 10..=made.div_ceil(10)).contains(&end.head),
        "{end:?}"
    );
    assert_eq!(end.skipped, made - end.head, "{end:?}");
}
