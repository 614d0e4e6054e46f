// SPDX-License-Identifier: MIT OR Apache-2.0
//! poll, epoll and STROBE_ARM: who waits for what, from several sides at once, and that no wake-up
//! is lost.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use libc::{EAGAIN, EPOLLET, EPOLLIN, POLLHUP, POLLIN, POLLNVAL};
use strobe_cases::machine::patience;
use strobe_cases::raw::*;
use strobe_cases::rounds::rounds;

const IN: i16 = POLLIN;
const IN_HUP: i16 = POLLIN | POLLHUP;
/// ms; longer than anything takes; only reached when a wake-up was lost.
fn long() -> i32 {
    patience(20).as_millis() as i32
}

#[test]
fn poll_is_ready_when_there_is_something_to_read_and_at_the_end() {
    let soft = Soft::new(64, NONBLOCK);
    assert_eq!(poll(&soft.ring, 0), Ok(0));
    soft.trigger(2);
    assert_eq!(poll(&soft.ring, 0), Ok(IN));
    assert_eq!(soft.rows(1), Ok(vec![0]));
    assert_eq!(poll(&soft.ring, 0), Ok(IN), "one row is left");
    assert_eq!(soft.rows(1), Ok(vec![1]));
    assert_eq!(poll(&soft.ring, 0), Ok(0));
    for (row, want) in [(2, IN), (3, 0), (u64::MAX, 0), (1, IN), (0, 0)] {
        arm(&soft.ring, row).expect("armed");
        assert_eq!(poll(&soft.ring, 0), Ok(want), "armed {row}");
    }
    arm(&soft.ring, 100).expect("armed");
    soft.trigger(1);
    assert_eq!(
        poll(&soft.ring, 0),
        Ok(0),
        "armed for later, whatever read() would return"
    );
    soft.stop();
    assert_eq!(poll(&soft.ring, 0), Ok(IN_HUP));
    assert_eq!(soft.rows(10), Ok(vec![2]));
    assert_eq!(poll(&soft.ring, 0), Ok(IN_HUP), "to its end");
}

/// Lets a thread poll, and when it sleeps, does something: what the thread is told.
fn poll_while(ring: &(impl AsRawFd + Sync), work: impl FnOnce()) -> Result<i16, i32> {
    let thread = AtomicUsize::new(0);
    thread::scope(|scope| {
        let poller = scope.spawn(|| {
            thread.store(thread_id(), Ordering::Release);
            poll(ring, long())
        });
        until("the thread runs", || thread.load(Ordering::Acquire) != 0);
        until_asleep(thread.load(Ordering::Acquire), libc::SYS_poll);
        work();
        poller.join().expect("no surprise")
    })
}

#[test]
fn whoever_sleeps_is_woken_by_the_end_of_the_run() {
    for row in [0, 1, 1000, u64::MAX - 1, u64::MAX] {
        let soft = Soft::new(64, 0);
        arm(&soft.ring, row).expect("armed");
        assert_eq!(
            poll_while(&soft.ring, || soft.stop()),
            Ok(IN_HUP),
            "armed {row}"
        );
    }
    for first in [0, 1000, u64::MAX - 1, FROM_NOW] {
        let soft = Soft::new(64, 0);
        let ring = reader(&soft.owner, 0, first, 0).expect("a reader");
        assert_eq!(
            poll_while(&ring, || soft.stop()),
            Ok(IN_HUP),
            "first {first}"
        );
    }
}

#[test]
fn waiting_for_a_late_row_does_not_hide_an_early_one_from_another_thread() {
    let soft = Soft::new(64, 0);
    let thread = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Both wait on one fd: this one for row 0 ...
        let reader = scope.spawn(|| {
            thread.store(thread_id(), Ordering::Release);
            soft.rows(1)
        });
        until("the thread runs", || thread.load(Ordering::Acquire) != 0);
        let id = thread.load(Ordering::Acquire);
        until_asleep(id, libc::SYS_read);
        // ... and that one for 50 rows.
        arm(&soft.ring, 50).expect("armed");
        let told = poll_while(&soft.ring, || {
            soft.trigger(1);
            let asleep = |id| {
                let call = std::fs::read_to_string(format!("/proc/self/task/{id}/syscall"));
                call.unwrap_or_default().starts_with("0 ")
            };
            let end = std::time::Instant::now() + patience(60);
            while asleep(id) && std::time::Instant::now() < end {
                thread::yield_now();
            }
            let was_woken = !asleep(id);
            soft.trigger(49);
            assert!(was_woken, "row 0 has woken nobody");
        });
        assert_eq!(told, Ok(IN));
        assert_eq!(reader.join().expect("no surprise"), Ok(vec![0]));
    });
}

#[test]
fn an_fd_may_be_closed_by_another_thread_while_one_waits_on_it() {
    let soft = Soft::new(64, 0);
    let before = references("strobe");
    let new_ring = || {
        reader(&soft.owner, 0, 0, 0)
            .expect("a reader")
            .into_raw_fd()
    };
    // poll() looks at the number again when it is woken.
    let ring = new_ring();
    let told = poll_while(&ring, || {
        drop(adopt(ring));
        soft.trigger(1);
    });
    assert_eq!(told, Ok(POLLNVAL));
    // read() holds what it was called on.
    let ring = new_ring();
    soft.trigger(1);
    assert_eq!(numbers(&ring, 10), Ok(vec![0, 1]));
    let thread = AtomicUsize::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            thread.store(thread_id(), Ordering::Release);
            numbers(&ring, 10)
        });
        until("the thread runs", || thread.load(Ordering::Acquire) != 0);
        until_asleep(thread.load(Ordering::Acquire), libc::SYS_read);
        drop(adopt(ring));
        soft.trigger(1);
        assert_eq!(reader.join().expect("no surprise"), Ok(vec![2]));
    });
    assert_eq!(references("strobe"), before, "nothing holds them any more");
}

#[test]
fn epoll_forgets_a_ring_that_is_closed() {
    let soft = Soft::new(64, 0);
    let ring = reader(&soft.owner, 0, 0, 0).expect("a reader");
    let epoll = epoll(&ring, EPOLLIN);
    soft.trigger(1);
    assert_eq!(epoll_wait(&epoll, 0), Ok(EPOLLIN as u32));
    drop(ring);
    soft.trigger(1);
    assert_eq!(epoll_wait(&epoll, 0), Ok(0));
}

#[test]
fn edge_triggered_readers_that_read_until_eagain_miss_nothing() {
    let soft = Soft::new(64, NONBLOCK);
    let epoll = epoll(&soft.ring, EPOLLIN | EPOLLET);
    for round in 0..200 {
        soft.trigger(3);
        assert_eq!(
            epoll_wait(&epoll, long()),
            Ok(EPOLLIN as u32),
            "round {round}"
        );
        assert_eq!(soft.rows(10).expect("rows").len(), 3);
        assert_eq!(soft.rows(10), Err(EAGAIN));
        assert_eq!(epoll_wait(&epoll, 0), Ok(0), "an edge is told once");
    }
}

#[test]
fn the_end_is_an_edge_of_its_own() {
    let soft = Soft::new(64, NONBLOCK);
    let epoll = epoll(&soft.ring, EPOLLIN | EPOLLET);
    arm(&soft.ring, 2).expect("armed");
    soft.trigger(5);
    assert_eq!(epoll_wait(&epoll, long()), Ok(EPOLLIN as u32));
    // Nothing is armed anew, nothing read: the run just ends.
    soft.stop();
    assert_eq!(epoll_wait(&epoll, 3000), Ok(IN_HUP as u32));
}

/// A fast timer, and `rounds` times: arm the next row, wait for it.
fn arm_and_wait(rounds: u64, wait: impl Fn(&OwnedFd) -> Result<u32, i32>) {
    let steps = [step(READ, "sim.counter", 0)];
    let c = request("timer", 20_000, 1024, &steps);
    let (owner, made) = create(&control(), &c).expect("a run");
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    let map = map(&ring, made.ring_bytes as usize).expect("a mapping");
    order(&owner, START, 0).expect("started");
    for round in 0..rounds {
        // One to three rows ahead: the producer is before, within and after the call.
        let row = map.get::<u64>(HEAD) + 1 + round % 3;
        arm(&ring, row).expect("armed");
        assert_eq!(
            wait(&ring),
            Ok(EPOLLIN as u32),
            "round {round}: row {row} has woken nobody"
        );
        assert!(
            map.get::<u64>(HEAD) >= row,
            "round {round}: woken too early"
        );
    }
    arm(&ring, u64::MAX - 1).expect("armed");
    order(&owner, STOP, 0).expect("stopped");
    assert_eq!(wait(&ring), Ok(IN_HUP as u32), "the end");
}

#[test]
fn no_wake_up_is_lost_by_poll_in_thousands_of_rounds() {
    arm_and_wait(50 * rounds(40, 200), |ring| {
        poll(ring, long()).map(|bits| bits as u32)
    });
}

#[test]
fn no_wake_up_is_lost_by_an_edge_triggered_epoll_in_thousands_of_rounds() {
    let instance = std::cell::OnceCell::new();
    arm_and_wait(50 * rounds(40, 200), |ring| {
        let epoll = instance.get_or_init(|| epoll(ring, EPOLLIN | EPOLLET));
        epoll_wait(epoll, long())
    });
}
