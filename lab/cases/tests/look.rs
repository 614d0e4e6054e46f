// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the control device says to who looks: its features, its catalogue and when that changes, and
//! what an open for reading alone may do.

use libc::ENOENT;
use strobe_cases::raw::*;

/// STROBE_WHY_EVENT.
const WHY_EVENT: u32 = 1;

#[test]
fn the_features_are_those_of_the_header() {
    for (who, control) in [("writing", control()), ("looking", looking())] {
        let got = features(&control).expect(who);
        let want = Features {
            size: 40,
            flags: 0,
            major: 1,
            minor: 6,
            create_flags: DRY_RUN | SHARED,
            reader_flags: NONBLOCK,
            incompat: 3,
            causes: 0b1_1111,
            steps_max: 1024,
            features: 15,
        };
        assert_eq!(got, want, "{who}");
    }
}

#[test]
fn who_may_only_look_sees_all_and_reads_what_is_shared() {
    let writing = control();
    let looking = looking();
    let c = Create {
        flags: SHARED,
        ..request("soft", 0, 8, &[])
    };
    let (owner, made) = create(&writing, &c).expect("a run");
    let (mine, theirs) = (list(&writing, 0), list(&looking, 0));
    assert_eq!(theirs, mine, "the same catalogue");
    let entry = mine.expect("a catalogue").0;
    let entry = entry.iter().find(|e| e.kind == RUN).expect("the run");
    assert_eq!(
        (entry.id, entry.flags & ENTRY_SHARED),
        (made.run, ENTRY_SHARED)
    );
    let ring = reader(&looking, made.run, 0, NONBLOCK).expect("a reader");
    order(&owner, START, 0).expect("started");
    order(&owner, TRIGGER, 1).expect("triggered");
    assert_eq!(poll(&ring, 0), Ok(libc::POLLIN));
    let child = fork(|| {
        become_user();
        let is_read = reader(&looking, made.run, 0, 0).is_ok();
        let is_listed = list(&looking, made.run).is_ok();
        i32::from(!(is_read && is_listed))
    });
    assert_eq!(wait(child), 0, "a user, too");
}

#[test]
fn who_may_only_look_makes_no_run_but_may_ask_what_it_would_be() {
    let control = looking();
    let c = request("soft", 0, 4, &[]);
    let (result, answer) = ask(&control, &c);
    assert_eq!(result, Err(libc::EBADF));
    assert!([-1, 77].contains(&answer.fd), "{answer:?}");
    let dry = Create {
        flags: DRY_RUN,
        ..c
    };
    let (result, answer) = ask(&control, &dry);
    assert_eq!((result, answer.fd, answer.capacity), (Ok(0), -1, 4));
    let wrong = Create {
        flags: DRY_RUN,
        ..request("nothing", 0, 4, &[])
    };
    let (result, answer) = ask(&control, &wrong);
    assert_eq!((result, answer.why), (Err(ENOENT), WHY_EVENT));
}

#[test]
fn the_control_device_is_ready_when_the_catalogue_is_another() {
    const IN: i16 = libc::POLLIN;
    let maker = control();
    for control in [control(), looking()] {
        let seen = |what: &str| {
            assert_eq!(poll(&control, 0), Ok(IN), "{what}");
            list(&control, 0).expect("a catalogue");
            assert_eq!(poll(&control, 0), Ok(0), "{what}: seen");
        };
        seen("nothing was listed yet");
        let (owner, id) = soft(&maker, 8, 0);
        assert_eq!(poll(&control, 0), Ok(IN));
        list(&control, id).expect("the run");
        assert_eq!(
            poll(&control, 0),
            Ok(IN),
            "a part of the catalogue is not it"
        );
        seen("a run came");
        order(&owner, START, 0).expect("started");
        order(&owner, TRIGGER, 3).expect("triggered");
        assert_eq!(poll(&control, 0), Ok(0), "a run works");
        let another = looking();
        list(&another, 0).expect("a catalogue");
        drop(owner);
        list(&another, 0).expect("a catalogue");
        seen("a run went, and another has seen it");
        let away = Parameter::set("sim", 0);
        seen("a device went");
        drop(away);
        seen("a device came");
        // Who sleeps is woken.
        let run = std::thread::scope(|scope| {
            let (_, sleeper) = asleep_in(scope, libc::SYS_poll, || poll(&control, 20_000));
            let run = soft(&maker, 8, 0);
            assert_eq!(sleeper.join().expect("no panic"), Ok(IN));
            run
        });
        drop(run);
    }
}
