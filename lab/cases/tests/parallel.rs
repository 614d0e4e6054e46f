// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many at once: readers of one run, runs of one machine, processes; and what
//! they hold of each other's.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{read_to_end, until, until_rows};
use strobe_cases::machine::{Sim, command};
use strobe_cases::ringfd::RingFd;
use strobe_cases::{Engine, Kept, Kernel, Pace, plan};
use strobe_ring::State;

fn create(event: &str, ring: u64, limit: Option<u64>, channels: &[&str]) -> KernelRun {
    Kernel::open().run(&Plan {
        ring: Some(ring),
        limit,
        ..plan(event, channels)
    })
}

#[test]
fn eight_mapped_and_reading_readers_at_different_cursors_are_all_exact() {
    let run = create("timer:200us", 64, None, &["sim.counter", "sim.counter"]);
    let (id, channels) = (run.info().run, run.info().channels.len());
    let end = run.reader().expect("a reader");
    run.start().expect("to start");
    let accounts = thread::scope(|scope| {
        let mut readers = Vec::new();
        for i in 0..8_u64 {
            until_rows(&end, 40 * i);
            let pace = if i % 4 == 0 { Pace::SLOW } else { Pace::FAST };
            if i % 2 == 0 {
                let mut reader = run.reader().expect("a reader");
                readers.push(scope.spawn(move || {
                    // Longer than the ring, however slow this machine makes rows.
                    if i % 4 == 0 {
                        until_rows(&reader, reader.ring().begun_at() + 200);
                    }
                    read_to_end(&mut reader, pace)
                }));
            } else {
                // From a row that may be gone already, or is still to come.
                let reader = RingFd::open(id, channels, 100, i % 4 == 1);
                readers.push(scope.spawn(move || reader.read_to_end(pace)));
            }
        }
        until_rows(&end, end.snapshot().head + 2000);
        run.stop().expect("to stop");
        let accounts = readers
            .into_iter()
            .map(|r| r.join().expect("a whole account"));
        accounts.collect::<Vec<_>>()
    });
    let end = end.snapshot();
    for (i, account) in accounts.iter().enumerate() {
        account.settle(&end);
        for row in &account.rows {
            assert_eq!(row.values, [2 * row.row, 2 * row.row + 1], "reader {i}");
        }
    }
    assert!(
        accounts[0].lost > 0 && accounts[4].lost > 0,
        "two are too slow"
    );
    // Who got a row got the same row.
    let all = accounts.iter().flat_map(|account| &account.rows);
    let mut by_number: Vec<&Kept> = all.collect();
    by_number.sort_by_key(|row| row.row);
    assert!(
        by_number
            .windows(2)
            .all(|w| w[0].row != w[1].row || w[0] == w[1])
    );
}

#[test]
fn two_runs_on_one_event_see_the_same_triggers() {
    let first = create("sim.pulse", 1 << 17, None, &["clock.late"]);
    let mut first_reader = first.reader().expect("a reader");
    first.start().expect("to start");
    until_rows(&first_reader, 10);
    // It comes later and goes earlier; its triggers begin with 0 all the same.
    let second = create("sim.pulse", 1 << 17, None, &["clock.late", "sim.counter"]);
    let mut second_reader = second.reader().expect("a reader");
    second.start().expect("to start");
    until_rows(&second_reader, 50);
    second.stop().expect("to stop");
    let after = first_reader.snapshot().head;
    until_rows(&first_reader, after + 10);
    first.stop().expect("to stop");

    let ours = read_to_end(&mut first_reader, Pace::FAST).rows;
    let theirs = read_to_end(&mut second_reader, Pace::FAST).rows;
    let both = ours.iter().filter_map(|row| {
        let same = theirs.iter().find(|other| other.time == row.time)?;
        assert_eq!(same.values[0], row.values[0], "{row:?} {same:?}");
        Some(row.trigger - same.trigger)
    });
    let apart: Vec<u64> = both.collect();
    assert!(apart.iter().all(|n| *n == apart[0]), "{apart:?}");
    let spared = theirs.len() - apart.len();
    let throttled = first_reader.snapshot().missed_by[2];
    assert!(
        spared as u64 <= throttled,
        "{spared} rows of one run are none of the other"
    );
    assert!(
        theirs[0].trigger <= second_reader.snapshot().missed(),
        "{:?}",
        theirs[0]
    );
}

#[test]
fn thirty_two_runs_at_once_are_all_exact() {
    let _sim = Sim::well();
    let channels: [&[&str]; 4] = [
        &["sim.counter"],
        &["clock.time", "sim.ramp", "sim.sine"],
        &[],
        &[
            "sim.noise",
            "cpu.id",
            "clock.elapsed",
            "sim.counter",
            "cpu.cycles",
        ],
    ];
    let runs: Vec<KernelRun> = (0..32)
        .map(|i| {
            let event = match i % 4 {
                0 => "timer:2ms".to_owned(),
                1 => format!("timer:{}us", 1000 + 137 * i),
                2 => "sim.pulse".to_owned(),
                _ => "soft".to_owned(),
            };
            create(&event, 64 << (i % 3), Some(200), channels[i / 4 % 4])
        })
        .collect();
    thread::scope(|scope| {
        for (i, run) in runs.iter().enumerate() {
            let mut reader = run.reader().expect("a reader");
            let pace = if i % 5 == 0 { Pace::SLOW } else { Pace::FAST };
            scope.spawn(move || {
                let account = read_to_end(&mut reader, pace);
                let end = reader.snapshot();
                assert_eq!((end.state, end.head), (State::Done, 200), "run {i}");
                assert_eq!(account.rows.len() as u64 + account.lost, 200, "run {i}");
            });
        }
        runs.iter().for_each(|run| run.start().expect("to start"));
        for _ in 0..10 {
            let soft = runs.iter().skip(3).step_by(4);
            soft.for_each(|run| run.trigger(20).expect("to trigger"));
        }
    });
    let catalogue = Kernel::open().0.catalogue().expect("a catalogue");
    let listed: Vec<u32> = catalogue.runs.iter().map(|run| run.run).collect();
    assert!(
        runs.iter().all(|run| listed.contains(&run.info().run)),
        "{listed:?}"
    );
}

/// Not a test of its own: the process that another test kills.
#[test]
#[ignore = "a_run_whose_process_is_killed_has_failed_and_keeps_its_rows starts and kills it"]
fn owner_process() {
    // Longer than any pause of a loaded machine.
    let run = create("timer:1ms", 1 << 17, None, &["sim.counter"]);
    run.start().expect("to start");
    println!("run {}", run.info().run);
    thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_run_whose_process_is_killed_has_failed_and_keeps_its_rows() {
    let program = std::env::current_exe().expect("this program");
    let mut owner = Command::new(program)
        .args([
            "parallel::owner_process",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let lines = BufReader::new(owner.stdout.take().expect("its output")).lines();
    let mut said = lines.map_while(Result::ok);
    let id = said.find_map(|line| line.rsplit_once("run ")?.1.parse().ok());
    let id: u32 = id.expect("the number of its run");

    let mut mapped = Kernel::open()
        .0
        .attach(id)
        .expect("the run")
        .reader()
        .expect("a reader of another's run");
    let by_read = RingFd::open(id, 1, 0, true);
    let reading = thread::spawn(move || by_read.read_to_end(Pace::FAST));
    until_rows(&mapped, 50);
    owner.kill().expect("to kill");
    owner.wait().expect("its end");

    let account = read_to_end(&mut mapped, Pace::FAST);
    let end = mapped.snapshot();
    assert_eq!(
        (end.state, end.error),
        (State::Failed, -Errno::PIPE.raw_os_error())
    );
    assert!(end.head >= 50, "{end:?}");
    assert!(
        account.column(0).eq(account.begun_at..end.head),
        "{account:?}"
    );
    let other = reading.join().expect("a whole account");
    other.settle(&end);
    let runs = Kernel::open().0.catalogue().expect("a catalogue").runs;
    assert!(
        runs.iter().all(|run| run.run != id),
        "it is not listed any more"
    );
}

#[test]
fn a_run_that_is_done_gives_its_devices_back_at_once() {
    assert!(
        command("modprobe strobe_sample"),
        "to load the sample provider"
    );
    let run = create(
        "sample.tick",
        64,
        Some(10),
        &["sample.level", "sample.total"],
    );
    let mut reader = run.reader().expect("a reader");
    let in_use = || {
        let devices = Kernel::open().0.catalogue().expect("a catalogue").devices;
        devices
            .iter()
            .any(|device| device.name == "sample" && device.in_use)
    };
    assert!(in_use());
    assert!(
        !command("rmmod strobe_sample"),
        "a run that is ready uses its devices"
    );
    run.start().expect("to start");
    until_rows(&reader, 1);
    let account = read_to_end(&mut reader, Pace::FAST);
    assert_eq!(reader.snapshot().state, State::Done);
    let total: Vec<u64> = account.column(1).collect();
    assert!(total.windows(2).all(|w| w[0] < w[1]), "{total:?}");
    // At once, but for a moment of work that the last row has left behind.
    until("the device to be free", || !in_use());
    assert!(
        command("rmmod strobe_sample"),
        "run {} is open but done",
        run.info().run
    );
    // The owner and the reader have what they had.
    let mut late = run.reader().expect("a reader");
    assert_eq!(read_to_end(&mut late, Pace::FAST).rows, account.rows);
    assert_eq!(run.info().channels.len(), 2);
}

#[test]
fn a_channel_that_only_one_run_may_have_is_refused_to_the_second_by_name() {
    assert!(command("modprobe strobe_sample"), "to load the provider");
    let both = ["sample.since", "sample.total"];
    let first = create("sample.tick", 64, Some(5), &both);
    let refused = || {
        let second = Kernel::open().0.create(&plan("sample.tick", &both));
        second.err().expect("a refusal").to_string()
    };
    let message = "channel sample.since: another run uses it, and only one run can; \
                   `strobe status` shows the runs";
    assert_eq!(refused(), message);
    // Of what may be shared there can be any number beside it.
    let beside = create("sample.tick", 64, Some(5), &["sample.total"]);
    let (mut reader, mut other) = (first.reader().expect("one"), beside.reader().expect("one"));
    first.start().expect("to start");
    beside.start().expect("to start");
    let account = read_to_end(&mut reader, Pace::FAST);
    read_to_end(&mut other, Pace::FAST);
    // Nobody has taken a count away: each row has what came since the one before.
    let rows = account.rows.windows(2);
    let steps = rows.map(|two| two[1].values[1] - two[0].values[1]);
    assert!(account.column(0).skip(1).eq(steps), "{account:?}");
    // Twice in one row is one use; and a run that has ended has given it back.
    let twice = ["sample.since", "sample.since", "sample.total"];
    until("the first run to give it back", || {
        let again = Kernel::open().0.create(&plan("sample.tick", &twice));
        again.is_ok()
    });
    drop((first, beside));
    until("the provider to go", || command("rmmod strobe_sample"));
}

#[test]
fn read_begins_and_loses_as_a_mapped_reader_does() {
    let run = create("soft", 64, None, &["sim.counter"]);
    run.start().expect("to start");
    let asleep = RingFd::open(run.info().run, 1, 0, false);
    let mut account = asleep.account();
    assert_eq!(
        asleep.read(16, &mut account),
        Err(Errno::AGAIN),
        "there is no row yet"
    );
    run.trigger(200).expect("to trigger");
    assert_eq!(
        asleep.read(1000, &mut account),
        Ok(Some(63)),
        "one row is the guard"
    );
    assert_eq!((account.lost, account.next()), (137, 200));
    // From row 10 on, which is gone; and from the next one, which is to come.
    let late = RingFd::open(run.info().run, 1, 10, false);
    let coming = RingFd::open(run.info().run, 1, 200, true);
    let coming = thread::spawn(move || coming.read_to_end(Pace::FAST));
    run.trigger(1).expect("to trigger");
    run.stop().expect("to stop");
    let account = late.read_to_end(Pace {
        rows: 1,
        ..Pace::FAST
    });
    assert_eq!((account.rows.len(), account.lost), (63, 128));
    let account = coming.join().expect("a whole account");
    assert_eq!(
        (account.rows.len(), account.begun_at, account.lost),
        (1, 200, 0)
    );
}
