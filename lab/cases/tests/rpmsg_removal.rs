// SPDX-License-Identifier: MIT OR Apache-2.0
//! The remote goes while its endpoints are used: every one of them learns it, and nothing is used that has gone.
//!
//! `$STROBE_ROUNDS` says how often; lab/cases/rpmsg does it a thousand times.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use libc::{
    EADDRINUSE, EAGAIN, ENETRESET, ENOMEM, EPIPE, O_NONBLOCK, O_RDWR, POLLERR, POLLHUP, POLLIN,
    POLLOUT, POLLPRI,
};
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{asleep_in, epoll, epoll_wait, ioctl_at, references, until};
use strobe_cases::rpmsg::*;

/// How often the remote goes, in each context.
fn rounds() -> u64 {
    strobe_cases::rounds::rounds(100, 10)
}

#[test]
fn who_sleeps_in_read_poll_or_epoll_learns_that_the_remote_has_gone() {
    for processor in contexts() {
        for _ in 0..rounds() {
            let ends: Vec<OwnedFd> = (0..3).map(|_| endpoint(ANY, ANY, 0)).collect();
            let watch = epoll(&ends[2], libc::EPOLLIN);
            thread::scope(|scope| {
                let (_, read) = asleep_in(scope, libc::SYS_read, || receive(&ends[0]));
                let (_, polled) =
                    asleep_in(scope, libc::SYS_poll, || poll_for(&ends[1], POLLIN, -1));
                let (_, watched) =
                    asleep_in(scope, libc::SYS_epoll_wait, || epoll_wait(&watch, -1));
                processor.pull();
                assert_eq!(read.join().expect("the reader"), Err(EPIPE));
                let gone = polled.join().expect("the poller").expect("poll");
                assert_eq!(gone, POLLHUP | POLLERR);
                let gone = watched.join().expect("the watcher").expect("epoll");
                assert_eq!(gone as i16, POLLHUP | POLLERR);
            });
            processor.plug();
        }
    }
}

#[test]
fn who_sleeps_in_write_is_let_go_and_later_writes_say_epipe() {
    for processor in contexts() {
        for _ in 0..rounds() {
            let ends: Vec<OwnedFd> = (0..2).map(|_| endpoint(ANY, ANY, 0)).collect();
            processor.set("stalled", 1);
            thread::scope(|scope| {
                let (_, writing) = asleep_in(scope, libc::SYS_write, || send(&ends[0], b"x"));
                let (_, waiting) =
                    asleep_in(scope, libc::SYS_poll, || poll_for(&ends[1], POLLOUT, -1));
                processor.pull();
                assert_eq!(writing.join().expect("the writer"), Err(EPIPE));
                let gone = waiting.join().expect("the poller").expect("poll");
                assert_eq!(gone, POLLHUP | POLLERR);
            });
            assert_eq!(send(&ends[0], b"x"), Err(EPIPE));
            processor.set("stalled", 0);
            processor.plug();
            assert_eq!(
                send(&ends[0], b"x"),
                Err(EPIPE),
                "the old file stays as it is"
            );
        }
    }
}

#[test]
fn who_sleeps_while_an_endpoint_is_made_is_let_go_without_one() {
    for processor in contexts() {
        for _ in 0..rounds() {
            let old = control();
            let fds = || fs::read_dir("/proc/self/fd").expect("/proc").count();
            let before = fds();
            processor.set("shut", 1);
            thread::scope(|scope| {
                let (_, making) = asleep_in(scope, libc::SYS_ioctl, || {
                    create(&old, &mut asked(ANY, ANY, 0)).map(drop)
                });
                processor.pull();
                // The transport does not say why it makes none; it is heard before the channel has gone, or after that.
                let answer = making.join().expect("the maker");
                assert!(
                    [Err(ENETRESET), Err(ENOMEM)].contains(&answer),
                    "{answer:?}"
                );
            });
            assert_eq!(fds(), before);
            let answer = create_fd(&old, &mut wanted(ANY, ANY, O_RDWR)).map(drop);
            assert_eq!(answer, Err(ENETRESET));
            processor.set("shut", 0);
            processor.plug();
        }
    }
}

#[test]
fn messages_that_had_come_stay_readable_after_the_remote_has_gone() {
    for processor in contexts() {
        for round in 0..rounds() {
            let (one, other) = (endpoint(ANY, ANY, 0), endpoint(ANY, ANY, O_NONBLOCK));
            for n in 0..round % 20 + 1 {
                send(&one, &n.to_le_bytes()).expect("sent");
            }
            until("the echo", || {
                u64::from(stats(&one).expect("stats").queued) == round % 20 + 1
            });
            processor.pull();
            assert_eq!(state(&other), POLLHUP | POLLERR);
            for n in 0..round % 20 + 1 {
                assert_eq!(state(&one), POLLIN | POLLHUP | POLLERR);
                assert_eq!(receive(&one).as_deref(), Ok(&n.to_le_bytes()[..]));
            }
            assert_eq!((receive(&one), receive(&other)), (Err(EPIPE), Err(EPIPE)));
            assert_eq!(state(&one), POLLHUP | POLLERR);
            assert_eq!(ioctl_at(one.as_raw_fd(), SET_FLOW, 1), Err(EPIPE));
            assert_eq!(destroy(&one), Ok(0), "it is harmless");
            // Closed before the remote comes back, or after that.
            if round % 2 == 0 {
                drop((one, other));
                processor.plug();
            } else {
                processor.plug();
            }
        }
    }
}

#[test]
fn a_control_node_of_a_remote_that_has_gone_makes_nothing_any_more() {
    for processor in contexts() {
        let old = control();
        processor.pull();
        let create = |src| create_fd(&old, &mut wanted(src, ANY, O_RDWR)).map(drop);
        assert_eq!(create(ANY), Err(ENETRESET));
        assert_eq!(create_node(&old, ANY, ANY), Err(ENETRESET));
        processor.plug();
        assert_eq!(
            create(77),
            Err(ENETRESET),
            "another one has come, of another node"
        );
        let mut info = wanted(77, ANY, O_RDWR);
        create_fd(&control(), &mut info).expect("an endpoint of the new one");
    }
}

/// All that a program does with endpoints, as fast as it can, until it is told to end; `made` counts them.
fn busy(stop: &AtomicBool, made: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        // No node while there is no remote.
        let Ok(control) = open(CONTROL) else {
            thread::yield_now();
            continue;
        };
        for flags in [O_RDWR, O_RDWR | O_NONBLOCK] {
            let mut info = wanted(ANY, ANY, flags);
            let endpoint = match create_fd(&control, &mut info) {
                Ok(endpoint) => endpoint,
                Err(errno) => {
                    // The transport may refuse just before the channel has gone, and does not say why.
                    assert!([ENETRESET, ENOMEM].contains(&errno), "create: {errno}");
                    continue;
                }
            };
            let number = made.fetch_add(1, Ordering::Relaxed);
            for _ in 0..3 {
                match send(&endpoint, b"message") {
                    Ok(length) => assert_eq!(length, 7),
                    Err(errno) => assert!([EPIPE, EAGAIN].contains(&errno), "write: {errno}"),
                }
                match receive(&endpoint) {
                    Ok(message) => assert_eq!(message, b"message"),
                    Err(errno) => assert!([EPIPE, EAGAIN].contains(&errno), "read: {errno}"),
                }
                let is = poll_for(&endpoint, POLLIN | POLLOUT | POLLPRI, 0).expect("poll");
                assert_eq!(is & POLLHUP != 0, is & POLLERR != 0, "{is:x}");
            }
            if number % 3 == 0 {
                assert_eq!(destroy(&endpoint), Ok(0));
            }
        }
    }
}

#[test]
fn the_remote_comes_and_goes_while_threads_create_write_read_poll_and_close() {
    for processor in contexts() {
        let (stop, made) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| busy(&stop, &made));
            }
            for round in 0..rounds() {
                let before = made.load(Ordering::Relaxed);
                until("an endpoint", || made.load(Ordering::Relaxed) > before);
                if round % 5 == 0 {
                    processor.set("stalled", 1);
                }
                processor.pull();
                processor.set("stalled", 0);
                processor.plug();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let made = made.into_inner();
        println!("{} rounds, {made} endpoints", rounds());
    }
}

#[test]
fn an_address_is_free_for_the_next_remote_though_the_old_file_is_open() {
    for processor in contexts() {
        let old = endpoint(77, ANY, 0);
        let taken = create_fd(&control(), &mut wanted(77, ANY, O_RDWR)).map(drop);
        assert_eq!(taken, Err(EADDRINUSE));
        processor.pull();
        processor.plug();
        drop(endpoint(77, ANY, 0));
        drop(old);
    }
}

#[test]
fn the_driver_can_go_when_no_file_is_open_and_not_before() {
    for processor in contexts() {
        let endpoint = endpoint(ANY, ANY, 0);
        processor.pull();
        assert!(references("strobe_rpmsg") > 0, "a file holds it");
        drop(endpoint);
        until("the last file", || references("strobe_rpmsg") == 0);
        processor.plug();
        drop(processor);
        drop(Reloaded::with("", ""));
    }
}
