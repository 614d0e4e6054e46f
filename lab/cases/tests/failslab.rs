// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every allocation of every call fails in turn: the call says ENOMEM, has changed nothing, and the next one works. What
//! is lost nevertheless, kmemleak finds when the guest ends.
// kernels: debug
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48,0x51 bank_reg=0,0x4e bank_mask=0,7 bank_start=0,0x50 bank_end=0,0x5f'
// lab: --module strobe_sample --module strobe_sample_i2c

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{ENOMEM, EPOLLIN, MAP_SHARED, PROT_READ};
use strobe_cases::failslab::{Allocations, MANY};
use strobe_cases::raw::*;
use strobe_cases::thermometer::Thermometer;

/// Does `call` again and again, with each of its allocations failing in turn, until it makes no more. `undo` what
/// has worked. Answers how many allocations there were, and the last answer.
fn each<T>(
    allocations: &Allocations,
    what: &str,
    control: &OwnedFd,
    mut call: impl FnMut() -> Result<T, i32>,
) -> (usize, T) {
    let mut before = (census(control), directories());
    for nth in 1..MANY {
        let (answer, has_failed) = allocations.fail(nth, &mut call);
        match answer {
            Ok(good) if !has_failed => return (nth - 1, good),
            // What the kernel can do without, or finds elsewhere.
            Ok(good) => {
                drop(good);
                before.0.generation = census(control).generation;
            }
            Err(errno) => {
                assert!(has_failed, "{what}: fails by itself, errno {errno}");
                assert_eq!(errno, ENOMEM, "{what}: allocation {nth}");
            }
        }
        let now = (census(control), directories());
        assert_eq!(now, before, "{what}: allocation {nth} has left something");
    }
    panic!("{what}: {MANY} allocations and no end");
}

/// The control device; with nothing around that would allocate.
fn open() -> Result<OwnedFd, i32> {
    let path = c"/dev/strobe".as_ptr() as usize;
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
    sys(libc::SYS_openat, &[libc::AT_FDCWD as usize, path, flags]).map(|fd| adopt(fd as i32))
}

/// Runs and devices that sysfs shows.
fn directories() -> usize {
    fs::read_dir("/sys/class/strobe").expect("sysfs").count()
}

/// Steps of every kind that is ready at once.
fn steps() -> Vec<Step> {
    vec![
        step(READ, "sim.counter", 0),
        step(WRITE, "sample.step", 1),
        step(READ, "sample.level", 0),
        step(READ, "clock.time", 0),
    ]
}

/// Channels of all classes, of three providers.
fn slow_steps() -> Vec<Step> {
    let slow = [
        "sim.slow",
        "sim.async",
        "sim.next",
        "thermometer.temperature",
        "clock.waited",
    ];
    let slow = slow.map(|name| step(READ, name, 0));
    [steps(), slow.to_vec()].concat()
}

/// What a run may be made of: an event, its period, steps, the priority of the thread that they need.
fn runs() -> [(&'static str, u64, Vec<Step>, u32); 6] {
    [
        ("timer", 50_000_000, steps(), 0),
        ("soft", 0, steps(), 0),
        ("sim.pulse", 0, steps(), 0),
        ("timer", 50_000_000, slow_steps(), 0),
        ("soft", 0, slow_steps(), 70),
        ("soft", 0, vec![step(READ, "sim.async", 0)], 0),
    ]
}

#[test]
fn the_knob_makes_the_allocation_fail_that_it_is_told() {
    let allocations = Allocations::of_this_thread();
    let (answer, has_failed) = allocations.fail(1, open);
    assert_eq!((answer.map(drop), has_failed), (Err(ENOMEM), true));
    let (answer, has_failed) = allocations.fail(MANY, open);
    assert_eq!((answer.map(drop), has_failed), (Ok(()), false));
}

#[test]
fn creating_a_run_fails_whole_whichever_allocation_fails() {
    let allocations = Allocations::of_this_thread();
    let control = control();
    let _thermometer = Thermometer::new();
    for (event, period, steps, priority) in runs() {
        let what = format!("CREATE {event}, {} steps", steps.len());
        let (count, owner) = each(&allocations, &what, &control, || {
            let mut c = request(event, period, 64, &steps);
            c.priority = priority;
            create(&control, &c).map(|(owner, _)| owner)
        });
        // The run, its steps four times, the ring, its pages, its mapping, sysfs, the file.
        assert!(count >= 10, "{what}: only {count} allocations failed");
        println!("{what}: {count} allocations");
        order(&owner, START, 0).expect("the run works");
        order(&owner, STOP, 0).expect("and ends");
    }
}

#[test]
fn a_dry_run_fails_whole_whichever_allocation_fails() {
    let allocations = Allocations::of_this_thread();
    let control = control();
    let _thermometer = Thermometer::new();
    for (event, period, steps, priority) in runs() {
        let what = format!("DRY_RUN {event}, {} steps", steps.len());
        let (count, ()) = each(&allocations, &what, &control, || {
            let mut c = request(event, period, 64, &steps);
            (c.flags, c.priority) = (DRY_RUN, priority);
            ask(&control, &c).0.map(drop)
        });
        println!("{what}: {count} allocations");
        assert!(count >= 4, "{what}: only {count} allocations failed");
    }
}

#[test]
fn a_request_that_is_wrong_says_so_or_that_memory_is_short() {
    let allocations = Allocations::of_this_thread();
    let control = control();
    let wrong = [step(READ, "sim.nothing", 0)];
    for nth in 1..MANY {
        let c = request("soft", 0, 64, &wrong);
        let before = census(&control);
        let (answer, has_failed) = allocations.fail(nth, || create(&control, &c).map(drop));
        assert_eq!(census(&control), before, "allocation {nth}");
        let Err(errno) = answer else {
            panic!("a channel that is not there");
        };
        if !has_failed {
            assert_eq!(errno, libc::ENOENT);
            return;
        }
        // Memory for rows is taken first, and judged last: then what is wrong is said instead.
        assert!([ENOMEM, libc::ENOENT].contains(&errno), "{errno}");
    }
    panic!("no end");
}

#[test]
fn the_catalogue_is_whole_or_refused_whichever_allocation_fails() {
    let allocations = Allocations::of_this_thread();
    let control = control();
    let run = soft(&control, 64, 0);
    let mut entries = vec![Entry::zero(); 4096];
    for id in [0, run.1] {
        let (count, listed) = each(&allocations, &format!("LIST {id}"), &control, || {
            let mut arg = List {
                size: 40,
                run: id,
                entry_size: std::mem::size_of::<Entry>() as u32,
                buffer: entries.as_mut_ptr() as u64,
                room: 4096,
                ..List::zero()
            };
            ioctl(&control, LIST, &mut arg).map(|_| arg.count)
        });
        println!("LIST {id}: {count} allocations");
        assert!(listed >= 2, "{listed} entries");
    }
}

#[test]
fn orders_of_the_owner_are_followed_or_refused_whichever_allocation_fails() {
    let allocations = Allocations::of_this_thread();
    let control = control();
    let _thermometer = Thermometer::new();
    for (event, period, steps, priority) in runs() {
        // A new run for each allocation that fails: an order that has worked cannot be repeated.
        for op in [STATUS, START, PAUSE, RESUME, STOP, TRIGGER] {
            if op == TRIGGER && event != "soft" {
                continue;
            }
            let count = u32::from(op == TRIGGER) * 5;
            for nth in 1..MANY {
                let mut c = request(event, period, 64, &steps);
                c.priority = priority;
                let (owner, _) = create(&control, &c).expect("a run");
                let ring = reader(&owner, 0, 0, NONBLOCK).expect("a reader");
                if op != START {
                    order(&owner, START, 0).expect("started");
                }
                if op == RESUME {
                    order(&owner, PAUSE, 0).expect("paused");
                }
                let before = order(&owner, STATUS, 0).expect("a state").state;
                let (answer, has_failed) = allocations.fail(nth, || order(&owner, op, count));
                let now = order(&owner, STATUS, 0).expect("a state").state;
                match answer {
                    Ok(said) => assert_eq!(said.state, now, "{event}, order {op}"),
                    Err(errno) => {
                        assert_eq!((errno, has_failed), (ENOMEM, true), "{event}, order {op}");
                        assert_eq!(now, before, "{event}, order {op} has changed something");
                    }
                }
                order(&owner, STOP, 0).expect("the next call works");
                drop((owner, ring));
                if !has_failed {
                    println!("CONTROL {event}, order {op}: {} allocations", nth - 1);
                    break;
                }
                assert!(nth < MANY - 1, "no end");
            }
        }
    }
}

#[test]
fn readers_come_and_work_or_are_refused_whichever_allocation_fails() {
    let allocations = Allocations::of_this_thread();
    let control = control();
    let mut c = request("soft", 0, 64, &[]);
    c.flags = SHARED;
    let (owner, c) = create(&control, &c).expect("a run");
    order(&owner, START, 0).expect("started");
    order(&owner, TRIGGER, 20).expect("triggered");
    let (count, ring) = each(&allocations, "READER of the owner", &control, || {
        reader(&owner, 0, 0, NONBLOCK)
    });
    println!("READER: {count} allocations");
    assert!(count >= 2, "the reader, and its file: {count}");
    each(
        &allocations,
        "READER of the control device",
        &control,
        || reader(&control, c.run, 0, 0),
    );
    // mmap: ENOMEM, and nothing stays mapped; pages are there already.
    let length = c.ring_bytes as usize;
    let (count, map) = each(&allocations, "mmap", &control, || {
        Map::new(ring.as_raw_fd(), length, PROT_READ, MAP_SHARED, 0)
    });
    println!("mmap: {count} allocations");
    assert!(count >= 1, "the vma: {count}");
    assert_eq!(map.get::<u64>(HEAD), 20, "the ring is there");
    let (count, _) = each(&allocations, "ARM", &control, || arm(&ring, 30));
    println!("ARM: {count} allocations");
    let (count, _watch) = each(&allocations, "epoll", &control, || {
        let epoll = sys(libc::SYS_epoll_create1, &[0]).map(|fd| adopt(fd as i32))?;
        let mut event = libc::epoll_event {
            events: EPOLLIN as u32,
            u64: 0,
        };
        let address = std::ptr::from_mut(&mut event) as usize;
        let fds = [&epoll, &ring].map(|fd| fd.as_raw_fd() as usize);
        let args = [fds[0], libc::EPOLL_CTL_ADD as usize, fds[1], address];
        sys(libc::SYS_epoll_ctl, &args).map(|_| epoll)
    });
    println!("epoll: {count} allocations");
    let mut room = [[0u64; 4]; 4];
    let address = room.as_mut_ptr() as usize;
    let (count, bytes) = each(&allocations, "read", &control, || {
        sys(libc::SYS_read, &[ring.as_raw_fd() as usize, address, 128])
    });
    println!("read: {count} allocations");
    assert_eq!(bytes, 128, "four rows");
    assert_eq!(poll(&ring, 0), Ok(0), "armed for row 30");
    order(&owner, TRIGGER, 10).expect("triggered");
    assert_eq!(poll(&ring, 0), Ok(libc::POLLIN));
}

#[test]
fn the_control_device_opens_or_not_whichever_allocation_fails() {
    let allocations = Allocations::of_this_thread();
    let before = control();
    let (count, _file) = each(&allocations, "open", &before, open);
    println!("open: {count} allocations");
    assert!(count >= 2, "a name, and a file: {count}");
}
