// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody in a control group can take by slow runs, each of which has a ring and a thread of the kernel: the ring is
//! memory of the group; the thread is none of its processes, and there are so many of a user.
//! The sanitizers' kernels are small: they have no such groups.
// kernels: amd64 rt

use std::fs;
use std::os::fd::OwnedFd;

use libc::{ENOMEM, EUSERS};
use strobe_cases::cgroup::Group;
use strobe_cases::crowd::{runs, threads};
use strobe_cases::raw::*;

const ANN: usize = 1001;
const BOB: usize = 1002;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// More slow runs than anybody gets.
const MANY: usize = 50_000;
/// Runs that a user may have.
const RUNS: u64 = 256;
/// Of the machine's memory; as exactly as the kernel knows what is free.
const LITTLE: u64 = 128 * MIB;
/// Rows of a ring of 4 MiB.
const ROWS: u64 = 65536;
/// What an innocent user wants.
const FEW: u64 = 10;

/// Memory that the machine has for whoever asks.
fn available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.expect("a number").parse::<u64>().expect("a number") * KIB
}

/// Makes slow runs until it is refused, says how many and why, and keeps them until it is spoken to; and once more.
fn take_all(control: &OwnedFd, talk: &mut Talk, capacity: u64) {
    loop {
        let (made, why) = runs(control, &["sim.slow"], capacity, MANY);
        talk.say(made.len() as u64);
        talk.say(why.expect("nobody gets so many") as u64);
        if talk.hear().is_none() {
            return;
        }
    }
}

/// A greedy user in a group, who has been refused.
struct Greedy {
    user: OtherUser,
    made: u64,
    why: i32,
}

impl Greedy {
    fn new(group: &Group, capacity: u64) -> Greedy {
        let mut greedy = Greedy {
            user: group
                .around(|| OtherUser::new(ANN, |control, talk| take_all(control, talk, capacity))),
            made: 0,
            why: 0,
        };
        greedy.listen();
        greedy
    }

    fn listen(&mut self) {
        let mut hear = || self.user.talk().hear().expect("a number");
        (self.made, self.why) = (hear(), hear() as i32);
    }

    /// Gives everything back, and takes it again.
    fn again(&mut self) {
        let before = (self.made, self.why);
        self.user.talk().say(0);
        self.listen();
        println!("{} again", self.made);
        assert_eq!((self.made, self.why), before, "all was given back");
    }
}

/// Others make slow runs all the same: another user, and root.
fn others_are_served() {
    let mut bob = OtherUser::new(BOB, |control, talk| {
        talk.say(runs(control, &["sim.slow"], 2, FEW as usize).0.len() as u64);
    });
    assert_eq!(bob.talk().hear(), Some(FEW));
    let ours = runs(&control(), &["sim.slow"], 2, FEW as usize);
    assert_eq!((ours.0.len() as u64, ours.1), (FEW, None));
}

/// Nothing is left of what the greedy user had.
fn until_all_is_back(group: &Group) {
    until("its threads are gone", || threads() == 0);
    // What each CPU keeps in advance stays until somebody needs it.
    until("its memory is back", || group.get("memory.current") < MIB);
}

#[test]
fn threads_of_slow_runs_are_bounded_though_they_are_no_processes_of_a_group() {
    let group = Group::new("ann", 256 * MIB, 8);
    let before = available();
    let mut greedy = Greedy::new(&group, 2);
    let spent = before.saturating_sub(available());
    let charged = group.get("memory.current");
    println!(
        "{} slow runs: {} KiB of the machine, the group pays for {} KiB",
        greedy.made,
        spent / KIB,
        charged / KIB,
    );
    assert_eq!((greedy.made, greedy.why), (RUNS, EUSERS));
    assert_eq!(threads() as u64, RUNS);
    assert_eq!(group.get("pids.current"), 1);
    // A ring is two pages at the least.
    assert!(charged >= RUNS * 8 * KIB, "{charged} bytes");
    assert!(spent < LITTLE, "{spent} bytes");
    others_are_served();
    greedy.again();
    greedy.user.kill();
    until_all_is_back(&group);
}

#[test]
fn rings_of_slow_runs_are_memory_of_a_group_and_the_run_it_has_none_for_is_refused() {
    const FIT: u64 = 14;
    let _free = Parameter::set("user_bytes_free", 1024 * MIB);
    // Room for all but the last, and not for the last one's ring alone: the killer is for what cannot be refused.
    let group = Group::new("ann", FIT * 4 * MIB + 3 * MIB, 8);
    let mut greedy = Greedy::new(&group, ROWS);
    println!(
        "{} slow runs of 4 MiB: the group pays for {} KiB",
        greedy.made,
        group.get("memory.current") / KIB,
    );
    assert_eq!((greedy.made, greedy.why), (FIT, ENOMEM));
    others_are_served();
    greedy.again();
    assert_eq!(group.killed(), 0, "it was told, and not killed");
    greedy.user.kill();
    until_all_is_back(&group);
}
