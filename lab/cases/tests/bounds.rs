// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an ordinary user can take from others, in number: runs, threads, memory, ring fds. What it costs them in time
//! is in icount_bounds.rs.
// lab: --module strobe_sample

use std::fs;
use std::os::fd::OwnedFd;

use libc::{EAGAIN, EBUSY, ENOSPC, EPERM, EUSERS};
use strobe_cases::crowd::{runs, threads};
use strobe_cases::raw::*;

const ANN: usize = 1001;
const BOB: usize = 1002;
const MIB: u64 = 1 << 20;

fn errno(number: Option<u64>) -> i32 {
    number.expect("an answer") as i32
}

#[test]
fn a_user_has_so_many_runs_and_threads_and_no_more() {
    let bound: u64 = fs::read_to_string("/sys/module/strobe/parameters/user_runs_max")
        .map_or(256, |text| text.trim().parse().expect("a number"));
    let mut ann = OtherUser::new(ANN, |control, talk| {
        let (mut made, why) = runs(control, &["sim.slow"], 2, 3000);
        talk.say(made.len() as u64);
        talk.say(why.unwrap_or(0) as u64);
        talk.hear();
        // One that goes makes room for one.
        made.pop();
        talk.say(runs(control, &["sim.slow"], 2, 10).0.len() as u64);
        talk.hear();
    });
    let made = ann.talk().hear().expect("a number");
    println!("{made} runs with a thread each");
    assert_eq!((made, errno(ann.talk().hear())), (bound, EUSERS));
    assert_eq!(threads() as u64, bound);
    // Another user has as many of its own.
    let mut bob = OtherUser::new(BOB, |control, talk| {
        talk.say(runs(control, &["sim.slow"], 2, 10).0.len() as u64);
    });
    assert_eq!(bob.talk().hear(), Some(10));
    ann.talk().say(0);
    assert_eq!(ann.talk().hear(), Some(1));
}

#[test]
fn threads_of_runs_count_as_the_users_processes() {
    let mut ann = OtherUser::new(ANN, |control, talk| {
        limit(libc::RLIMIT_NPROC as usize, 20);
        let (made, why) = runs(control, &["sim.slow"], 2, 100);
        talk.say(made.len() as u64);
        talk.say(why.unwrap_or(0) as u64);
        // A run without a thread is none.
        talk.say(runs(control, &["sim.counter"], 2, 30).0.len() as u64);
    });
    let made = ann.talk().hear().expect("a number");
    assert!((10..20).contains(&made), "{made} threads");
    assert_eq!(errno(ann.talk().hear()), EAGAIN);
    assert_eq!(ann.talk().hear(), Some(30));
}

#[test]
fn a_user_cannot_take_all_the_memory_of_rings() {
    let _bound = Parameter::set("ring_bytes_max", 64 * MIB);
    let mut ann = OtherUser::new(ANN, |control, talk| {
        // Rings of a mebibyte each.
        let (made, why) = runs(control, &["sim.counter"], 16384, 100);
        talk.say(made.len() as u64);
        talk.say(why.unwrap_or(0) as u64);
        talk.hear();
    });
    let made = ann.talk().hear().expect("a number");
    assert!(made <= 32, "{made} MiB of 64");
    assert_eq!(errno(ann.talk().hear()), ENOSPC);
    let mut bob = OtherUser::new(BOB, |control, talk| {
        talk.say(runs(control, &["sim.counter"], 16384, 8).0.len() as u64);
    });
    assert_eq!(bob.talk().hear(), Some(8));
}

#[test]
fn memory_beyond_what_is_free_is_locked_memory_of_the_user() {
    let _free = Parameter::set("user_bytes_free", 4 * MIB);
    let mut ann = OtherUser::new(ANN, |control, talk| {
        limit(libc::RLIMIT_MEMLOCK as usize, 8 * MIB);
        let (made, why) = runs(control, &["sim.counter"], 16384, 100);
        talk.say(made.len() as u64);
        talk.say(why.unwrap_or(0) as u64);
        drop(made);
        talk.say(runs(control, &["sim.counter"], 16384, 100).0.len() as u64);
    });
    let made = ann.talk().hear().expect("a number");
    assert!((8..12).contains(&made), "{made} MiB of 4 and 8");
    assert_eq!(errno(ann.talk().hear()), ENOSPC);
    assert_eq!(ann.talk().hear(), Some(made), "all was given back");
}

#[test]
fn other_users_leave_the_owner_of_a_shared_run_its_ring_fds() {
    let mut ann = OtherUser::new(ANN, |control, talk| {
        let steps = [step(READ, "sim.counter", 0)];
        let shared = Create {
            flags: SHARED,
            ..request("soft", 0, 2, &steps)
        };
        let (owner, made) = create(control, &shared).expect("a run");
        talk.say(made.run.into());
        talk.hear();
        let mine: Vec<_> = (0..64)
            .map_while(|_| reader(&owner, 0, 0, 0).ok())
            .collect();
        talk.say(mine.len() as u64);
    });
    let run = ann.talk().hear().expect("a run") as u32;
    // One after the other: the first ones find enough.
    let others = (0..20).map(|i| {
        let mut other = OtherUser::new(BOB + i, |control, talk| {
            let all = (0..300).map(|_| reader(control, run, 0, 0));
            let open: Vec<_> = all.map_while(Result::ok).collect();
            talk.say(open.len() as u64);
            talk.hear();
        });
        let open = other.talk().hear().expect("a number");
        (other, open)
    });
    let (_others, open): (Vec<_>, Vec<u64>) = others.unzip();
    assert!(open.iter().all(|fds| *fds <= 16), "{open:?}");
    assert!(open[0] == 16, "{open:?}");
    ann.talk().say(0);
    assert_eq!(ann.talk().hear(), Some(64), "beside {open:?}");
}

#[test]
fn a_ring_that_another_user_holds_is_that_users() {
    // A ring of a half and one of two thirds are too much for one user.
    const HALF: u64 = 65536;
    let _free = Parameter::set("user_bytes_free", 10 * MIB);
    let make = |control: &OwnedFd, capacity| {
        let steps = [step(READ, "sim.counter", 0)];
        let shared = Create {
            flags: SHARED,
            ..request("soft", 0, capacity, &steps)
        };
        create(control, &shared).map(|(owner, made)| (owner, made.run))
    };
    let why = |made: Result<(OwnedFd, u32), i32>| made.err().unwrap_or(0) as u64;
    let mut ann = OtherUser::new(ANN, |control, talk| {
        limit(libc::RLIMIT_MEMLOCK as usize, 0);
        let (owner, run) = make(control, HALF).expect("a run");
        talk.say(run.into());
        talk.hear();
        talk.say(why(make(control, 2 * HALF)));
        drop(owner);
        talk.say(why(make(control, 2 * HALF)));
    });
    let run = ann.talk().hear().expect("a run") as u32;
    let mut bob = OtherUser::new(BOB, |control, talk| {
        limit(libc::RLIMIT_MEMLOCK as usize, 0);
        let ring = reader(control, run, 0, 0).expect("a reader");
        talk.say(why(make(control, 2 * HALF)));
        talk.hear();
        talk.say(why(make(control, 2 * HALF)));
        drop(ring);
        talk.say(why(make(control, 2 * HALF)));
    });
    assert_eq!(errno(bob.talk().hear()), 0, "the ring is Ann's");
    ann.talk().say(0);
    assert_eq!(errno(ann.talk().hear()), ENOSPC, "with the first one");
    assert_eq!(errno(ann.talk().hear()), 0, "without it");
    bob.talk().say(0);
    assert_eq!(errno(bob.talk().hear()), ENOSPC, "the ring is Bob's now");
    assert_eq!(errno(bob.talk().hear()), 0, "it is gone");
}

#[test]
fn a_row_that_keeps_interrupts_off_for_long_is_not_for_everybody() {
    // A microsecond each.
    let long = ["sample.level"; 1024];
    let mut ann = OtherUser::new(ANN, |control, talk| {
        let why = |channels: &[&str]| runs(control, channels, 2, 1).1.unwrap_or(0) as u64;
        talk.say(why(&long));
        talk.say(why(&long[..1000]));
        // Others can interrupt a thread.
        talk.say(why(&[&long[..1023], &["sim.slow"]].concat()));
    });
    assert_eq!(errno(ann.talk().hear()), EPERM);
    assert_eq!(errno(ann.talk().hear()), 0);
    assert_eq!(errno(ann.talk().hear()), 0);
    assert_eq!(runs(&control(), &long, 2, 1).1, None, "with CAP_SYS_NICE");
}

#[test]
fn what_was_prepared_for_a_run_that_is_refused_is_undone() {
    let powered = || {
        let text = fs::read_to_string("/sys/module/strobe_sample/parameters/powered");
        text.expect("a parameter")
            .trim()
            .parse::<u32>()
            .expect("a number")
    };
    let control = control();
    let since = ["sample.level", "sample.since"];
    assert_eq!(powered(), 0);
    let first = runs(&control, &since, 2, 1);
    assert_eq!((first.0.len(), powered()), (1, 1));
    let second = runs(&control, &since, 2, 1);
    assert_eq!((second.0.len(), second.1, powered()), (0, Some(EBUSY), 1));
    drop(first);
    assert_eq!(powered(), 0);
}
