// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::fd::AsFd;
use std::time::Duration;

use super::entries::text;
use super::ring_fd::wait_for;
use super::run::failure;
use super::*;

fn plan(event: &str) -> Plan {
    let mut plan = Plan::new(event.parse().expect("an event"));
    plan.steps = vec![
        Step::Write {
            output: "sim.latch".into(),
            value: 256,
        },
        Step::Read("sim.foo".into()),
    ];
    plan
}

/// A control device that answers nothing, so that messages have no catalogue.
fn deaf() -> Control {
    Control::open_at("/dev/null", OFlags::RDONLY).expect("/dev/null")
}

fn refusal(event: &str, why: u32, fault_step: u32, errno: Errno) -> String {
    let answer = uapi::Created {
        why,
        fault_step,
        capacity: 3,
        ring_bytes: 5 << 20,
        cost_ns: 2_500_000,
        ..uapi::Created::NOTHING
    };
    deaf().refusal(&plan(event), &answer, errno).to_string()
}

#[test]
fn without_a_module_the_remedy_is_to_load_it() {
    let error = Control::open_at("/dev/nonexistent", OFlags::RDWR)
        .err()
        .map(|e| e.to_string());
    assert_eq!(
        error.as_deref(),
        Some(
            "/dev/nonexistent: not available: the kernel engine is not loaded; load it as root: modprobe strobe"
        )
    );
}

#[test]
fn a_device_that_is_not_strobe_is_named_with_the_remedy() {
    let error = deaf().catalogue().map_err(|e| e.to_string());
    assert_eq!(
        error,
        Err("/dev/null: STROBE_LIST was refused (Inappropriate ioctl for device (os error 25)): the loaded \
             module and this program have different versions (its contract is unknown, ours 1.6); install both \
             from one release, then modprobe -r strobe"
            .to_owned())
    );
}

#[test]
fn every_refusal_names_the_object() {
    let none = u32::MAX;
    for (why, step, errno, object) in [
        (
            why::EVENT,
            none,
            Errno::NOENT,
            "event sim.bar: no such event",
        ),
        (why::STEPS, none, Errno::INVAL, "2 channels and outputs"),
        (
            why::NAME,
            1,
            Errno::NOENT,
            "channel sim.foo: no such channel",
        ),
        (
            why::NAME,
            0,
            Errno::NOENT,
            "output sim.latch: no such output",
        ),
        (
            why::BUSY,
            1,
            Errno::BUSY,
            "channel sim.foo: another run uses it",
        ),
        (
            why::BUSY,
            none,
            Errno::BUSY,
            "event sim.bar: another run uses it",
        ),
        (
            why::VALUE,
            0,
            Errno::RANGE,
            "output sim.latch: 256 does not fit",
        ),
        (
            why::DUE,
            1,
            Errno::OPNOTSUPP,
            "channel sim.foo: event sim.bar has no due time",
        ),
        (why::CAPACITY, none, Errno::INVAL, "a ring of 3 rows"),
        (why::MEMORY, none, Errno::NOSPC, "a ring of 5 MiB"),
        (
            why::PROVIDER,
            1,
            Errno::IO,
            "channel sim.foo: its driver refused",
        ),
        (
            why::CLOCK,
            none,
            Errno::INVAL,
            "/dev/null: STROBE_CREATE was refused",
        ),
        (
            why::COST,
            none,
            Errno::PERM,
            "run on event sim.bar: its steps take about 2.5 ms in an interrupt, where 1 ms are allowed",
        ),
        (
            why::RUNS,
            none,
            Errno::USERS,
            "run on event sim.bar: this user has reached the limit of runs",
        ),
        (
            why::ASYNC,
            none,
            Errno::USERS,
            "run on event sim.bar: all runs together would have more than 1024 async channels",
        ),
        (0, none, Errno::BADF, "/dev/null: no permission"),
        (0, none, Errno::NOMEM, "a ring of 5 MiB: not enough memory"),
        (
            0,
            none,
            Errno::MFILE,
            "run on event sim.bar: its creation failed: Too many open files",
        ),
        // A module of a later version may know more reasons, and more steps.
        (
            99,
            77,
            Errno::IO,
            "run on event sim.bar: its creation failed",
        ),
    ] {
        let message = refusal("sim.bar", why, step, errno);
        assert!(message.starts_with(object), "{message}");
    }
    let message = refusal("timer:2h", why::PERIOD, none, Errno::INVAL);
    assert_eq!(
        message,
        "event timer:2h: a period of 7200 s: it must be from 1 us to 1 h"
    );
}

#[test]
fn events_of_the_user_engine_are_refused() {
    for event in ["uio:edu", "hpet:64Hz"] {
        let error = kernel_event(&plan(event))
            .map(|_| ())
            .map_err(|e| e.to_string());
        assert!(error.is_err_and(|e| e.starts_with(&format!("event {event}: the kernel engine"))));
    }
    for (event, name, period_ns) in [
        ("timer:1kHz", "timer", 1_000_000),
        ("sim.pulse", "sim.pulse", 0),
        ("gpio:lab/wave:both", "gpio:lab/wave:both", 0),
    ] {
        let plan = plan(event);
        let known = kernel_event(&plan).expect("one of the kernel engine");
        assert_eq!(known, (name.into(), period_ns));
    }
}

#[test]
fn a_name_that_does_not_fit_is_not_cut() {
    assert_eq!(fixed::<4>("abc"), Some(*b"abc\0"));
    assert_eq!(fixed::<4>("abcd"), None);
    assert_eq!(fixed::<4>("abcdefgh"), None);
    assert_eq!(fixed::<4>("a\0b"), None);
    assert_eq!(text(b"abc\0zz"), "abc");
    assert_eq!(text(b"abcd"), "abcd");
}

#[test]
fn a_start_that_the_driver_of_the_event_refused_says_why() {
    let answer = uapi::Control {
        cause: -Errno::BUSY.raw_os_error(),
        ..uapi::Control::default()
    };
    let said = |answer| failure("sim.bar", "the start", &answer, Errno::NODEV).to_string();
    assert_eq!(
        said(answer),
        "event sim.bar: its driver refused: Device or resource busy (os error 16); see the kernel's log (dmesg)"
    );
    assert_eq!(
        said(uapi::Control::default()),
        "run on event sim.bar: the start failed: No such device (os error 19)"
    );
}

#[test]
fn a_run_that_refuses_says_why_and_what_to_do() {
    let said =
        |doing, errno| failure("sim.bar", doing, &uapi::Control::default(), errno).to_string();
    assert_eq!(
        said("the trigger", Errno::OPNOTSUPP),
        "run on event sim.bar: the trigger failed: only runs on the event soft are triggered by a call; \
         make the run on the event soft, or let its own event trigger it"
    );
    assert!(said("the pause", Errno::SHUTDOWN).ends_with("it has ended; make a new run"));
    // A driver may be busy, too.
    assert!(said("the start", Errno::BUSY).ends_with("Device or resource busy (os error 16)"));
}

#[test]
fn the_longest_time_is_for_ever_and_no_error() {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::write(&writer, b"x").expect("to write");
    assert_eq!(wait_for(reader.as_fd(), Duration::MAX), Ok(()));
}

#[test]
fn what_there_is_no_more_of_is_no_matter_of_versions() {
    for (errno, remedy) in [
        (Errno::MFILE, "raise its limit (ulimit -n)"),
        (Errno::NFILE, "fs.file-max"),
        (Errno::NOMEM, "a shorter ring"),
    ] {
        let whose = Whose::Run(3);
        for said in [
            deaf().not_listed(0, errno).to_string(),
            whose.no_reader("making a reader", errno).to_string(),
        ] {
            assert!(
                said.contains(remedy) && !said.contains("versions"),
                "{said}"
            );
        }
    }
    let said = refusal("sim.bar", 0, u32::MAX, Errno::MFILE);
    assert!(
        said.ends_with("close files of this process, or raise its limit (ulimit -n)"),
        "{said}"
    );
}

#[test]
fn a_run_that_has_ended_or_is_anothers_is_named_by_its_number() {
    let ended = "run kernel:3: no such run, or it has just ended; `strobe status` shows the runs";
    assert_eq!(deaf().not_listed(3, Errno::NOENT).to_string(), ended);
    let said = |errno| {
        Whose::Run(3)
            .no_reader("making a reader", errno)
            .to_string()
    };
    assert_eq!(said(Errno::NOENT), ended);
    assert_eq!(
        said(Errno::ACCESS),
        "run kernel:3: it belongs to another user, who has not shared it; ask that user to share it, or be root"
    );
    assert!(said(Errno::IO).starts_with("run kernel:3: making a reader failed: "));
}
