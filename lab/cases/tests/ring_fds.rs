// SPDX-License-Identifier: MIT OR Apache-2.0
//! Abuse of a ring fd: mmap, read, poll and STROBE_ARM, in ways they are not meant for, and from
//! several sides at once.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use libc::{
    EACCES, EAGAIN, EBADF, EFAULT, EINTR, EINVAL, ENODEV, EPERM, MAP_PRIVATE, MAP_SHARED,
    PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE, SA_RESTART,
};
use rustix::event::{EventfdFlags, eventfd};
use strobe_cases::machine::patience;
use strobe_cases::raw::*;

/// Row `i` of a mapped ring with 64 bytes a row: number and value.
fn mapped_row(map: &Map, capacity: u64, i: u64) -> (u64, u64) {
    let at = 4096 + (i % capacity) as usize * 64;
    (map.get(at), map.get(at + 32))
}

#[test]
fn a_ring_is_mapped_read_only_from_its_start_and_no_further_than_its_end() {
    let control = control();
    let (owner, _) = soft(&control, 256, 0); // 4096 + 256 * 64 = 5 pages
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    let other = eventfd(0, EventfdFlags::empty()).expect("an eventfd");
    let before = census(&control);
    let mut findings = Findings::default();
    let (read, write, exec) = (PROT_READ, PROT_WRITE, PROT_EXEC);
    // Newer kernels forbid that of all files without a name, before the file is asked; an eventfd has nothing to map.
    let of_other = Map::new(other.as_raw_fd(), 4096, read | exec, MAP_PRIVATE, 0).map(drop);
    let execute = if of_other == Err(EPERM) {
        EPERM
    } else {
        EACCES
    };
    for (what, pages, prot, offset, want) in [
        ("all", 5, read, 0, Ok(())),
        ("a part", 1, read, 0, Ok(())),
        ("inaccessible", 5, PROT_NONE, 0, Ok(())),
        ("a page more", 6, read, 0, Err(EINVAL)),
        ("much more", 1 << 30, read, 0, Err(EINVAL)),
        ("nothing", 0, read, 0, Err(EINVAL)),
        ("not from the start", 4, read, 4096, Err(EINVAL)),
        ("behind the end", 1, read, 5 * 4096, Err(EINVAL)),
        ("far behind the end", 1, read, 1 << 62, Err(EINVAL)),
        ("between pages", 1, read, 64, Err(EINVAL)),
        ("to write", 5, write, 0, Err(EACCES)),
        ("to read and write", 5, read | write, 0, Err(EACCES)),
        ("to execute", 5, read | exec, 0, Err(execute)),
    ] {
        for sharing in [MAP_SHARED, MAP_PRIVATE] {
            let got = Map::new(ring.as_raw_fd(), pages * 4096, prot, sharing, offset);
            findings.equal(format!("{what}, sharing {sharing}"), got.map(drop), want);
        }
    }
    // That a shared mapping may not be written is found first.
    for (sharing, want) in [(MAP_SHARED, EACCES), (MAP_PRIVATE, execute)] {
        let got = Map::new(ring.as_raw_fd(), 5 * 4096, read | write | exec, sharing, 0);
        findings.equal(
            format!("for all, sharing {sharing}"),
            got.map(drop),
            Err(want),
        );
    }
    for (what, fd) in [("control", &control), ("owner", &owner)] {
        findings.equal(what, map(fd, 4096).map(drop), Err(ENODEV));
    }
    findings.equal("census", census(&control), before);
}

#[test]
fn a_mapping_never_becomes_writable_and_never_grows() {
    let soft = Soft::new(64, 0); // two pages
    soft.trigger(3);
    let mut findings = Findings::default();
    for sharing in [MAP_SHARED, MAP_PRIVATE] {
        let ring = soft.ring.as_raw_fd();
        let map = Map::new(ring, 8192, PROT_READ, sharing, 0).expect("a mapping");
        let what = |what: &str| format!("{what}, sharing {sharing}");
        for prot in [
            PROT_WRITE,
            PROT_READ | PROT_WRITE,
            PROT_EXEC,
            PROT_READ | PROT_EXEC,
        ] {
            findings.equal(what("mprotect"), map.protect(prot), Err(EACCES));
        }
        // A debugger's way of writing to what is read-only.
        let memory = File::options()
            .read(true)
            .write(true)
            .open("/proc/self/mem")
            .expect("mem");
        let at = (map.address + HEAD) as u64;
        findings.equal(
            what("/proc/self/mem"),
            memory.write_at(&[9], at).is_err(),
            true,
        );
        let remap = |old: usize, new: usize| {
            let flags = libc::MREMAP_MAYMOVE as usize;
            sys(libc::SYS_mremap, &[map.address, old, new, flags])
        };
        findings.equal(what("mremap, larger"), remap(8192, 12288), Err(EFAULT));
        findings.equal(what("mremap, twice"), remap(0, 8192).is_err(), true);
        findings.equal(what("head"), map.get(HEAD), 3u64);
        // Somewhere else, and smaller, is allowed.
        let place = Map::pages(2, PROT_NONE);
        let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
        let args = [map.address, 8192, 8192, flags, place.address];
        findings.equal(
            what("mremap, moved"),
            sys(libc::SYS_mremap, &args),
            Ok(place.address),
        );
        findings.equal(
            what("moved"),
            (place.get(HEAD), mapped_row(&place, 64, 2)),
            (3u64, (2, 2)),
        );
        let args = [place.address, 8192, 4096, 0];
        findings.equal(
            what("mremap, smaller"),
            sys(libc::SYS_mremap, &args),
            Ok(place.address),
        );
        findings.equal(what("smaller"), place.get(HEAD), 3u64);
    }
}

#[test]
fn rows_are_seen_through_every_mapping_and_by_a_child() {
    let soft = Soft::new(64, 0);
    let other = reader(&soft.owner, 0, 0, 0).expect("another reader");
    let (mine, theirs) = (soft.map(8192), map(&other, 8192).expect("a mapping"));
    let (ready, go) = UnixStream::pair().expect("sockets");
    let child = fork(|| {
        let _ = std::io::Read::read(&mut &ready, &mut [0]);
        i32::from(mine.get::<u64>(HEAD) != 10 || mapped_row(&theirs, 64, 9) != (9, 9))
    });
    soft.trigger(10);
    std::io::Write::write(&mut &go, &[0]).expect("told");
    assert_eq!(
        wait(child),
        0,
        "the child sees rows that were made after the fork"
    );
    for map in [&mine, &theirs] {
        assert_eq!((map.get::<u64>(HEAD), mapped_row(map, 64, 9)), (10, (9, 9)));
    }
}

#[test]
fn mappings_come_and_go_while_rows_are_made_and_fds_are_closed() {
    let control = control();
    let steps = [step(READ, "sim.counter", 0)];
    let (owner, c) = create(&control, &request("timer", 100_000, 64, &steps)).expect("a run");
    order(&owner, START, 0).expect("started");
    let before = census(&control);
    let shown = AtomicUsize::new(usize::MAX);
    let (tries, late) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let mapper = scope.spawn(|| {
            let mut good = 0;
            loop {
                let fd = shown.load(Ordering::Acquire);
                tries.fetch_add(1, Ordering::Relaxed);
                match Map::new(fd as i32, 8192, PROT_READ, MAP_SHARED, 0) {
                    _ if fd == 0 => break good,
                    Ok(map) => {
                        assert_eq!(map.get::<u32>(64), c.run, "this run's ring");
                        good += 1;
                    }
                    Err(errno) => {
                        assert_eq!(errno, EBADF);
                        late.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        // As long as it takes until both threads have run side by side, and one fd was closed first.
        let give_up = Instant::now() + patience(60);
        let few = |count: &AtomicUsize, least| count.load(Ordering::Relaxed) < least;
        let mut rings = 0;
        while (rings < 300 || few(&tries, 300) || few(&late, 1)) && Instant::now() < give_up {
            rings += 1;
            let ring = reader(&owner, 0, 0, 0).expect("a reader");
            shown.store(ring.as_raw_fd() as usize, Ordering::Release);
            drop(map(&ring, 8192).expect("a mapping"));
        }
        shown.store(0, Ordering::Release);
        let good = mapper.join().expect("no surprise");
        let bad = late.load(Ordering::Relaxed);
        assert!(bad > 0, "the race was run ({good} mapped, {bad} too late)");
    });
    let now = order(&owner, STATUS, 0).expect("status");
    assert_eq!((now.state, now.head > 0), (RUNNING, true));
    assert_eq!(census(&control), before);
}

#[test]
fn a_read_that_fails_leaves_the_cursor_where_it_was() {
    let soft = Soft::new(64, NONBLOCK);
    soft.trigger(5);
    let area = Map::pages(2, PROT_READ | PROT_WRITE);
    sys(
        libc::SYS_mprotect,
        &[area.address + 4096, 4096, PROT_READ as usize],
    )
    .expect("a wall");
    let wall = area.address + 4096;
    let mut findings = Findings::default();
    let read = |address: usize, bytes: usize| {
        sys(
            libc::SYS_read,
            &[soft.ring.as_raw_fd() as usize, address, bytes],
        )
    };
    for (what, address, bytes, want) in [
        ("nothing", area.address, 0, EINVAL),
        ("a row but for one byte", area.address, 39, EINVAL),
        ("to NULL", 0, 4000, EFAULT),
        ("to unmapped memory", 0x1000, 4000, EFAULT),
        ("to the kernel", 0xffff_8880_0000_0000, 4000, EFAULT),
        ("to read-only memory", wall, 4000, EFAULT),
        ("a part to read-only memory", wall - 100, 4000, EFAULT),
        ("the first row to read-only memory", wall - 39, 40, EFAULT),
    ] {
        findings.equal(what, read(address, bytes), Err(want));
    }
    findings.equal("up to the wall", read(wall - 40, 79), Ok(40));
    findings.equal("row 0", area.get(4096 - 40), 0u64);
    findings.equal("the others", soft.rows(100), Ok(vec![1, 2, 3, 4]));
    findings.equal("no more", soft.rows(1), Err(EAGAIN));
    findings.equal("no more, and no room", read(area.address, 39), Err(EINVAL));
    let write = [soft.ring.as_raw_fd() as usize, area.address, 40];
    findings.equal("write", sys(libc::SYS_write, &write), Err(EBADF));
    let write = [soft.owner.as_raw_fd() as usize, area.address, 40];
    findings.equal(
        "write to the owner",
        sys(libc::SYS_write, &write),
        Err(EINVAL),
    );
    findings.equal("read from the owner", rows(&soft.owner, 1), Err(EINVAL));
    soft.stop();
    findings.equal("the end", soft.rows(1), Ok(vec![]));
    findings.equal("still the end", soft.rows(1), Ok(vec![]));
}

#[test]
fn a_blocking_read_waits_for_a_row_a_signal_or_the_end() {
    let soft = Soft::new(64, 0);
    let reads = |wake: &dyn Fn(usize)| {
        let thread = AtomicUsize::new(0);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                thread.store(thread_id(), Ordering::Release);
                soft.rows(10)
            });
            until("the thread runs", || thread.load(Ordering::Acquire) != 0);
            let id = thread.load(Ordering::Acquire);
            until_asleep(id, libc::SYS_read);
            wake(id);
            reader.join().expect("no surprise")
        })
    };
    assert_eq!(reads(&|_| soft.trigger(1)), Ok(vec![0]));
    allow_interruption(0);
    assert_eq!(reads(&interrupt), Err(EINTR));
    allow_interruption(SA_RESTART);
    let restarted = reads(&|id| {
        interrupt(id);
        until_asleep(id, libc::SYS_read);
        soft.trigger(2);
    });
    assert!(
        matches!(restarted.as_deref(), Ok([1] | [1, 2])),
        "{restarted:?}"
    );
    soft.trigger(1);
    while soft.rows(10).expect("rows").last() != Some(&3) {}
    assert_eq!(reads(&|_| soft.stop()), Ok(vec![]));
}

#[test]
fn threads_that_share_a_ring_fd_get_each_row_once() {
    let (owner, _) = soft(&control(), 4096, 3000);
    order(&owner, START, 0).expect("started");
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    let mut all = thread::scope(|scope| {
        let read_all = || {
            let mut all = Vec::new();
            loop {
                match numbers(&ring, 7).expect("rows") {
                    rows if rows.is_empty() => break all,
                    rows => all.extend(rows),
                }
            }
        };
        let readers = [
            scope.spawn(read_all),
            scope.spawn(read_all),
            scope.spawn(read_all),
        ];
        for _ in 0..300 {
            order(&owner, TRIGGER, 10).expect("triggered");
        }
        readers
            .map(|reader| reader.join().expect("no surprise"))
            .concat()
    });
    all.sort_unstable();
    assert!(all.into_iter().eq(0..3000));
}
