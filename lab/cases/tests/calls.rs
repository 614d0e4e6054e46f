// SPDX-License-Identifier: MIT OR Apache-2.0
//! STROBE_CONTROL and STROBE_READER in all the states there are. What is wrong in itself is in
//! contract.rs.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{
    EACCES, EALREADY, EBUSY, EINVAL, ENOENT, EOPNOTSUPP, EPIPE, ESHUTDOWN, F_GETFL, O_ACCMODE,
    O_NONBLOCK, O_RDONLY, PROT_READ,
};
use strobe_cases::raw::*;

/// A run of the event "soft" in a state.
fn run_in(control: &OwnedFd, state: u32) -> OwnedFd {
    let (owner, _) = soft(control, 8, if state == DONE { 3 } else { 0 });
    let orders: &[(u32, u32)] = match state {
        RUNNING => &[(START, 0), (TRIGGER, 3)],
        PAUSED => &[(START, 0), (TRIGGER, 3), (PAUSE, 0)],
        DONE => &[(START, 0), (TRIGGER, 5)],
        STOPPED => &[(START, 0), (TRIGGER, 3), (STOP, 0)],
        FAILED => &[(START, 0), (TRIGGER, 3)],
        _ => &[],
    };
    for &(op, count) in orders {
        order(&owner, op, count).expect("possible");
    }
    if state == FAILED {
        drop(Parameter::set("sim", 0));
    }
    let status = order(&owner, STATUS, 0).expect("status");
    let rows = if state == READY { 0 } else { 3 };
    let error = if state == FAILED { -libc::ENODEV } else { 0 };
    assert_eq!(
        (status.state, status.head, status.error),
        (state, rows, error)
    );
    owner
}

#[test]
fn every_order_in_every_state() {
    const YES: i32 = 0;
    // STATUS, START, PAUSE, RESUME, STOP, TRIGGER; and the state after each that succeeds.
    let after = [u32::MAX, RUNNING, PAUSED, RUNNING, STOPPED, RUNNING];
    let table = [
        (READY, [YES, YES, EBUSY, EBUSY, YES, EBUSY]),
        (RUNNING, [YES, EALREADY, YES, EALREADY, YES, YES]),
        (PAUSED, [YES, EBUSY, EALREADY, YES, YES, EBUSY]),
        (DONE, [YES, ESHUTDOWN, ESHUTDOWN, ESHUTDOWN, YES, ESHUTDOWN]),
        (
            STOPPED,
            [YES, ESHUTDOWN, ESHUTDOWN, ESHUTDOWN, YES, ESHUTDOWN],
        ),
        (
            FAILED,
            [YES, ESHUTDOWN, ESHUTDOWN, ESHUTDOWN, YES, ESHUTDOWN],
        ),
    ];
    let control = control();
    let mut findings = Findings::default();
    for (state, errors) in table {
        for op in STATUS..=TRIGGER {
            let owner = run_in(&control, state);
            let before = order(&owner, STATUS, 0).expect("status");
            let got = order(&owner, op, u32::from(op == TRIGGER) * 2);
            let error = errors[op as usize];
            let what = format!("op {op} in state {state}");
            findings.equal(&what, got.err().unwrap_or(0), error);
            let now = order(&owner, STATUS, 0).expect("status");
            let ended = state >= DONE;
            let want = if error != YES || op == STATUS || ended {
                state
            } else {
                after[op as usize]
            };
            findings.equal(format!("{what}: state"), now.state, want);
            let made = u64::from(op == TRIGGER && error == YES) * 2;
            let want = (before.head + made, before.triggers + made, before.error);
            findings.equal(
                format!("{what}: rows"),
                (now.head, now.triggers, now.error),
                want,
            );
        }
    }
}

#[test]
fn a_count_is_for_triggers_and_has_its_bounds() {
    const MAX: u32 = 1_000_000;
    let control = control();
    let (owner, _) = soft(&control, 8, 0);
    order(&owner, START, 0).expect("started");
    let mut findings = Findings::default();
    for count in [0, MAX + 1, u32::MAX] {
        findings.equal(
            format!("{count} triggers"),
            order(&owner, TRIGGER, count).err(),
            Some(EINVAL),
        );
    }
    for op in [STATUS, START, PAUSE, RESUME, STOP] {
        findings.equal(
            format!("op {op} with a count"),
            order(&owner, op, 1).err(),
            Some(EINVAL),
        );
    }
    for op in [6, 7, 1 << 31, u32::MAX] {
        findings.equal(format!("op {op}"), order(&owner, op, 0).err(), Some(EINVAL));
    }
    let now = order(&owner, STATUS, 0).expect("status");
    findings.equal(
        "nothing has happened",
        (now.state, now.head, now.triggers),
        (RUNNING, 0, 0),
    );
    for (count, sum) in [(1, 1), (64, 65), (65, 130), (MAX, 130 + u64::from(MAX))] {
        let got = order(&owner, TRIGGER, count).map(|now| (now.head, now.triggers));
        findings.equal(format!("{count} triggers"), got, Ok((sum, sum)));
    }
}

#[test]
fn triggers_beyond_the_limit_are_none() {
    let control = control();
    for (limit, count, rows) in [(1, 1, 1), (1, 1000, 1), (64, 64, 64), (100, 1000, 100)] {
        let (owner, _) = soft(&control, 8, limit);
        order(&owner, START, 0).expect("started");
        let now = order(&owner, TRIGGER, count).expect("triggered");
        assert_eq!(
            (now.state, now.head, now.triggers),
            (DONE, rows, rows),
            "limit {limit}"
        );
        assert_eq!(order(&owner, TRIGGER, 1), Err(ESHUTDOWN));
    }
}

#[test]
fn only_the_event_soft_can_be_triggered() {
    let control = control();
    for (event, period) in [("timer", 3_600_000_000_000), ("sim.pulse", 0)] {
        let (owner, _) = create(&control, &request(event, period, 4, &[])).expect("a run");
        let slow = Parameter::set("sim_pulse_ns", 3_600_000_000_000u64);
        for op in [START, PAUSE, RESUME, STOP] {
            assert_eq!(
                order(&owner, TRIGGER, 1),
                Err(EOPNOTSUPP),
                "{event}, before op {op}"
            );
            order(&owner, op, 0).expect("possible");
            let now = order(&owner, STATUS, 0).expect("status");
            assert_eq!((now.head, now.triggers), (0, 0), "{event}, after op {op}");
        }
        drop(slow);
    }
}

#[test]
fn a_signal_ends_a_long_trigger_early_and_the_answer_says_how_many_there_were() {
    let control = control();
    let (owner, _) = soft(&control, 8, 0);
    order(&owner, START, 0).expect("started");
    allow_interruption(0);
    let main = thread_id();
    let all = 50_000_000;
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                interrupt(main);
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let mut short = 0;
        let mut sum = 0;
        while short < 3 && sum < all {
            let now = order(&owner, TRIGGER, 1_000_000).expect("no error");
            assert_eq!(now.head, now.triggers, "each is a row");
            assert!(now.head > sum, "at least one");
            short += u32::from(now.head - sum < 1_000_000);
            sum = now.head;
        }
        enough.store(true, Ordering::Relaxed);
        assert_eq!(short, 3, "signals have cut some of them short");
    });
}

#[test]
fn a_reader_is_of_a_run_that_is_there() {
    let control = control();
    let (owner, id) = soft(&control, 8, 0);
    let device = list(&control, 0)
        .expect("a catalogue")
        .0
        .iter()
        .map(|e| e.id)
        .max()
        .unwrap_or(0);
    let before = census(&control);
    let mut findings = Findings::default();
    for (what, fd, run, want) in [
        ("no run", &control, 0, Some(ENOENT)),
        ("no such run", &control, id + 1, Some(ENOENT)),
        (
            "no such run, perhaps a device",
            &control,
            device.max(id) + 1,
            Some(ENOENT),
        ),
        ("greatest id", &control, u32::MAX, Some(ENOENT)),
        ("the run, on its owner", &owner, id, Some(EINVAL)),
        ("another, on an owner", &owner, u32::MAX, Some(EINVAL)),
        ("the run", &control, id, None),
        ("the owner's own", &owner, 0, None),
    ] {
        let got = reader(fd, run, 0, 0);
        let readers = list(&control, id).expect("the run").0[0].readers();
        findings.equal(
            format!("{what}: readers"),
            readers,
            u32::from(want.is_none()),
        );
        findings.equal(what, got.map(drop).err(), want);
    }
    findings.equal("census", census(&control), before);
}

#[test]
fn a_reader_is_read_only_and_blocks_as_it_was_asked_to() {
    let control = control();
    let (owner, _) = soft(&control, 8, 0);
    for (flags, nonblock) in [(0, 0), (NONBLOCK, O_NONBLOCK)] {
        let mut arg = Reader {
            size: 48,
            flags,
            ..Reader::zero()
        };
        ioctl(&owner, READER, &mut arg).expect("a reader");
        let ring = adopt(arg.fd);
        let flags =
            sys(libc::SYS_fcntl, &[arg.fd as usize, F_GETFL as usize]).expect("flags") as i32;
        assert_eq!(
            (flags & O_ACCMODE, flags & O_NONBLOCK),
            (O_RDONLY, nonblock)
        );
        assert_eq!((arg.ring_bytes, arg.run), (8192, 0));
        assert_eq!((arg.channels, arg.outputs, arg.row_size), (1, 0, 40));
        drop(ring);
    }
}

#[test]
fn read_begins_with_the_row_that_was_asked_for() {
    let control = control();
    let (owner, _) = soft(&control, 8, 0);
    order(&owner, START, 0).expect("started");
    order(&owner, TRIGGER, 20).expect("triggered");
    // Rows 13 to 19 are there; row 12 is the guard.
    let cases = [
        (0, 13),
        (5, 13),
        (13, 13),
        (17, 17),
        (FROM_NOW, 20),
        (20, 20),
        (23, 23),
    ];
    let rings = cases.map(|(first, _)| reader(&owner, 0, first, NONBLOCK).expect("a reader"));
    order(&owner, TRIGGER, 1).expect("triggered"); // row 20
    for (ring, (first, begins)) in rings.iter().zip(cases) {
        let got = rows(ring, 100);
        let want: Vec<u64> = (begins.max(14)..21).collect();
        let got = got.map(|rows| rows.iter().map(|row| row[0]).collect());
        assert_eq!(
            got,
            if want.is_empty() {
                Err(libc::EAGAIN)
            } else {
                Ok(want)
            },
            "first {first}"
        );
    }
    order(&owner, TRIGGER, 3).expect("triggered"); // rows 21 to 23
    assert_eq!(
        rows(&rings[6], 100).expect("row 23")[0][0],
        23,
        "one to come"
    );
}

#[test]
fn a_reader_of_another_users_run_needs_leave() {
    let control = control();
    let user = |work: &dyn Fn() -> i32| {
        wait(fork(|| {
            become_user();
            work()
        }))
    };
    let (owner, id) = soft(&control, 8, 0);
    let c = Create {
        flags: SHARED,
        ..request("soft", 0, 8, &[])
    };
    let (shared, c) = create(&control, &c).expect("a run");
    let before = census(&control);
    let errno = |run: u32| reader(&control, run, 0, 0).err().unwrap_or(0);
    assert_eq!(user(&|| errno(id)), EACCES, "root's run");
    assert_eq!(user(&|| errno(c.run)), 0, "a shared run");
    assert_eq!(user(&|| errno(u32::MAX)), ENOENT, "no run");
    assert_eq!(
        user(&|| reader(&owner, 0, 0, 0).err().unwrap_or(0)),
        0,
        "who has the owner fd"
    );
    assert_eq!(census(&control), before);
    // A user's run: its own user and root may, and so may a group's other user not.
    let (mine, theirs) = UnixStream::pair().expect("sockets");
    let (hold, release) = UnixStream::pair().expect("sockets");
    let child = fork(|| {
        become_user();
        let (owner, id) = soft(&control, 8, 0);
        let own = reader(&control, id, 0, 0).is_ok();
        let wrote = std::io::Write::write(&mut &theirs, &id.to_le_bytes()).is_ok();
        let _ = std::io::Read::read(&mut &hold, &mut [0]);
        drop(owner);
        i32::from(!(own && wrote))
    });
    let mut id = [0; 4];
    std::io::Read::read_exact(&mut &mine, &mut id).expect("an id");
    let id = u32::from_le_bytes(id);
    let entry = list(&control, id).expect("the run").0[0];
    assert_eq!(entry.detail[2] as u32, 1000, "uid");
    let ring = reader(&control, id, 0, NONBLOCK).expect("root may");
    std::io::Write::write(&mut &release, &[0]).expect("released");
    assert_eq!(wait(child), 0);
    assert_eq!(rows(&ring, 1), Ok(vec![]), "ended");
    let map = Map::new(ring.as_raw_fd(), 4096, PROT_READ, libc::MAP_SHARED, 0).expect("a mapping");
    assert_eq!(
        (map.get::<u32>(STATE), map.get::<u32>(ERROR) as i32),
        (FAILED, -EPIPE)
    );
    drop(shared);
}
