// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run outlives the process that has made it, if somebody else keeps its owner fd: what a service manager does for the
//! daemon while that is restarted.

use std::io::IoSlice;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use strobe::engine::kernel::Control;
use strobe::info::End;
use strobe::plan::{CpuLatency, Plan, Step};
use strobe::reader::{Begin, ReaderOptions};
use strobe::run::{OwnedRun, Run};
use strobe::source::RowSource;
use strobe_cases::machine::patience;

const NAME: &str = "outlive::rows_go_on_where_the_one_that_was_killed_has_left_them";
const ROUNDS: u64 = 10;

fn plan() -> Plan {
    let mut plan = Plan::new("timer:1kHz".parse().expect("an event"));
    plan.steps.push(Step::Read("sim.counter".into()));
    // Longer than any pause of a loaded machine.
    plan.ring = Some(1 << 17);
    plan
}

/// Makes a run, gives its owner fd and its number away, and waits to be killed.
fn owner() {
    let run = Control::open().and_then(|control| control.create(&plan()));
    let run = run.expect("a run");
    run.start().expect("a start");
    let socket = std::io::stdin();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut room);
    let fds = [run.owner().expect("its owner fd")];
    assert!(with.push(SendAncillaryMessage::ScmRights(&fds)));
    let number = run.info().run.to_ne_bytes();
    sendmsg(
        socket.as_fd(),
        &[IoSlice::new(&number)],
        &mut with,
        SendFlags::empty(),
    )
    .expect("sent");
    std::thread::sleep(Duration::from_secs(3600));
}

/// Another process makes a run, and is killed.
fn left() -> (OwnedFd, u32) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let this = std::env::current_exe().expect("this program");
    let mut child = Command::new(this)
        .args(["--exact", NAME])
        .env("OWNER", "1")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut room);
    let mut number = [0; 4];
    let mut text = [IoSliceMut::new(&mut number)];
    recvmsg(&ours, &mut text, &mut with, RecvFlags::CMSG_CLOEXEC).expect("a message");
    let mut fds = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let owner = fds.next().and_then(|mut fds| fds.next()).expect("an fd");
    child.kill().expect("killed");
    child.wait().expect("its end");
    (owner, u32::from_ne_bytes(number))
}

#[test]
fn rows_go_on_where_the_one_that_was_killed_has_left_them() {
    if std::env::var_os("OWNER").is_some() {
        return owner();
    }
    let (owner, number) = left();
    let control = Control::open().expect("the module");
    assert!(
        control
            .adopt(
                owner.try_clone().expect("a copy"),
                number + 1,
                CpuLatency(None)
            )
            .is_err(),
        "it is another run's number"
    );
    let (mut next, mut triggers) = (0, 0);
    for round in 0..ROUNDS {
        // Each time somebody else, who knows nothing but this.
        let copy = owner.try_clone().expect("a copy");
        let run = control
            .adopt(copy, number, CpuLatency(None))
            .expect("the run");
        assert_eq!(
            (run.info().run, run.info().period_ns),
            (number, Some(1_000_000))
        );
        assert_eq!(run.info().channels[0].name, "sim.counter");
        let options = ReaderOptions {
            begin: Begin::Row(next),
            ..ReaderOptions::default()
        };
        let mut reader = run.reader_with(options).expect("a reader");
        if round == ROUNDS - 1 {
            run.stop().expect("a stop");
        }
        let (until, goal) = (Instant::now() + patience(60), next + 100);
        while let Some(block) = reader.next(Duration::from_millis(100)).expect("rows") {
            assert_eq!((block.lost(), block.first()), (0, next));
            next += block.len() as u64;
            triggers = block.triggers().last().map_or(triggers, |last| last + 1);
            if round < ROUNDS - 1 && next >= goal {
                break;
            }
            assert!(Instant::now() < until, "no rows");
        }
        if round == ROUNDS - 1 {
            let totals = RowSource::totals(&reader).expect("an account");
            assert_eq!(
                (totals.rows, totals.lost, totals.end.clone()),
                (next, 0, End::Stopped)
            );
            assert_eq!(
                totals.triggers,
                totals.rows + totals.missed() + totals.skipped
            );
            assert!(totals.triggers >= triggers);
        }
    }
}
