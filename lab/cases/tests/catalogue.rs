// SPDX-License-Identifier: MIT OR Apache-2.0
//! STROBE_LIST: what it stores where, what it counts, and when the generation changes.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libc::{EFAULT, EINVAL, ENOENT, PROT_READ, PROT_WRITE};
use strobe_cases::raw::*;

const ENTRY: usize = 288;

/// STROBE_LIST into pages that are full of 0xFF before.
fn list_into(control: &OwnedFd, room: u32, entry_size: usize) -> (Result<List, i32>, Map) {
    let pages = Map::pages(64, PROT_READ | PROT_WRITE);
    for at in (0..pages.length).step_by(8) {
        pages.put(at, u64::MAX);
    }
    let buffer = pages.address as u64;
    let mut arg = List {
        size: 40,
        entry_size: entry_size as u32,
        buffer,
        room,
        ..List::zero()
    };
    (ioctl(control, LIST, &mut arg).map(|_| arg), pages)
}

/// The entries, and nothing but zeros behind each; then nothing was written.
fn is_listed(pages: &Map, entries: &[Entry], entry_size: usize) -> bool {
    let whole = |(i, entry): (usize, &Entry)| {
        let tail = i * entry_size + ENTRY..(i + 1) * entry_size;
        pages.get::<Entry>(i * entry_size) == *entry
            && tail.into_iter().all(|at| pages.get::<u8>(at) == 0)
    };
    let end = entries.len() * entry_size;
    entries.iter().enumerate().all(whole)
        && (end..pages.length).all(|at| pages.get::<u8>(at) == 0xFF)
}

#[test]
fn the_catalogue_is_complete_and_each_part_has_its_device() {
    let control = control();
    let (owner, id) = soft(&control, 2, 0);
    let (entries, _) = list(&control, 0).expect("a catalogue");
    let by_name = |name: &str| entries.iter().find(|e| e.name() == name && e.kind != RUN);
    for (name, kind, in_use) in [
        ("timer", 4, 0),
        ("soft", 4, 0),
        ("clock", 1, 0),
        ("clock.late", 2, 0),
        ("sim", 1, 1),
        ("sim.counter", 2, 1),
        ("sim.ramp", 2, 0),
        ("sim.pulse", 4, 0),
    ] {
        let entry = by_name(name).unwrap_or_else(|| panic!("{name} is there"));
        assert_eq!((entry.kind, entry.flags & 1), (kind, in_use), "{name}");
    }
    let mut ids: Vec<(bool, u32)> = Vec::new();
    for entry in &entries {
        let part = entry.name().contains('.') && entry.kind != RUN;
        let parent = entries.iter().find(|e| e.kind == 1 && e.id == entry.parent);
        assert_eq!(parent.is_some(), part, "{}", entry.name());
        if let Some(parent) = parent {
            assert!(
                entry.name().starts_with(&format!("{}.", parent.name())),
                "{}",
                entry.name()
            );
        }
        if entry.id != 0 {
            ids.push((entry.kind == RUN, entry.id));
        }
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "ids are there once");
    let run = entries.iter().find(|e| e.kind == RUN).expect("a run");
    assert_eq!(
        (run.id, run.name(), run.state(), run.readers()),
        (id, "soft", READY, 0)
    );
    assert_eq!(run.detail[2] >> 32, u64::from(std::process::id()), "pid");
    drop(owner);
    let (entries, _) = list(&control, 0).expect("a catalogue");
    assert!(
        entries.iter().all(|e| e.kind != RUN && e.flags & 1 == 0),
        "nothing is in use"
    );
}

#[test]
fn a_list_stores_what_has_room_and_counts_what_there_is() {
    let control = control();
    let run = soft(&control, 2, 0);
    let (entries, generation) = list(&control, 0).expect("a catalogue");
    let all = entries.len();
    let mut findings = Findings::default();
    for entry_size in [ENTRY, ENTRY + 8, 512, 4096] {
        for room in [0, 1, all - 1, all, all + 1, u32::MAX as usize] {
            if room.min(all) * entry_size > 64 * 4096 {
                continue;
            }
            let (arg, pages) = list_into(&control, room as u32, entry_size);
            let what = format!("room {room}, entry_size {entry_size}");
            let answer = arg.map(|a| (a.count as usize, a.generation, a.room as usize));
            findings.equal(&what, answer, Ok((all, generation, room)));
            let stored = &entries[..room.min(all)];
            findings.equal(
                format!("{what}: stored"),
                is_listed(&pages, stored, entry_size),
                true,
            );
        }
    }
    for entry_size in [
        0,
        8,
        256,
        ENTRY - 1,
        ENTRY + 1,
        4097,
        4104,
        u32::MAX as usize,
    ] {
        let (arg, pages) = list_into(&control, all as u32, entry_size);
        findings.equal(format!("entry_size {entry_size}"), arg, Err(EINVAL));
        findings.equal(
            format!("entry_size {entry_size}: stored"),
            is_listed(&pages, &[], ENTRY),
            true,
        );
    }
    drop(run);
}

#[test]
fn a_list_into_bad_memory_is_efault() {
    let control = control();
    let pages = Map::pages(2, PROT_READ | PROT_WRITE);
    sys(
        libc::SYS_mprotect,
        &[pages.address + 4096, 4096, PROT_READ as usize],
    )
    .expect("a wall");
    let before = census(&control);
    let mut findings = Findings::default();
    for (what, buffer, room, want) in [
        ("NULL", 0, 5, Err(EFAULT)),
        ("NULL without room", 0, 0, Ok(0)),
        ("unmapped", 0x1000, 5, Err(EFAULT)),
        ("the kernel", 0xffff_8880_0000_0000, 5, Err(EFAULT)),
        ("the end of all", usize::MAX - 7, 5, Err(EFAULT)),
        ("read-only", pages.address + 4096, 5, Err(EFAULT)),
        (
            "partly read-only",
            pages.address + 4096 - 2 * ENTRY,
            5,
            Err(EFAULT),
        ),
        ("up to the wall", pages.address + 4096 - 5 * ENTRY, 5, Ok(0)),
    ] {
        let buffer = buffer as u64;
        let mut arg = List {
            size: 40,
            entry_size: ENTRY as u32,
            buffer,
            room,
            count: 77,
            ..List::zero()
        };
        findings.equal(what, ioctl(&control, LIST, &mut arg), want);
        findings.equal(format!("{what}: answered"), arg.count != 77, want.is_ok());
    }
    findings.equal("census", census(&control), before);
}

#[test]
fn a_list_of_a_run_has_its_steps_in_their_order_also_without_the_devices() {
    let control = control();
    let steps = [
        step(READ, "sim.ramp", 0),
        step(WRITE, "sim.latch", 7),
        step(READ, "clock.time", 0),
        step(READ, "sim.ramp", 0),
        step(READ, "cpu.id", 0),
    ];
    let names = [
        "sim.pulse",
        "sim.ramp",
        "sim.latch",
        "clock.time",
        "sim.ramp",
        "cpu.id",
    ];
    let kinds = [5, 2, 3, 2, 2, 2];
    let (owner, c) = create(&control, &request("sim.pulse", 0, 4, &steps)).expect("a run");
    let same = |when: &str| {
        let (entries, _) = list(&control, c.run).expect("the run");
        assert_eq!(
            entries.iter().map(Entry::name).collect::<Vec<_>>(),
            names,
            "{when}"
        );
        assert_eq!(
            entries.iter().map(|e| e.kind).collect::<Vec<_>>(),
            kinds,
            "{when}"
        );
    };
    same("before the start");
    let unplugged = Parameter::set("sim", 0);
    same("without the device");
    let status = order(&owner, STATUS, 0).expect("status");
    assert_eq!((status.state, status.error), (FAILED, -libc::ENODEV));
    drop(unplugged);
    same("after the device has come again");
    drop(owner);
    for (what, run) in [
        ("closed", c.run),
        ("next", c.run + 1),
        ("greatest", u32::MAX),
    ] {
        assert_eq!(list(&control, run), Err(ENOENT), "{what}");
        assert_eq!(reader(&control, run, 0, 0).err(), Some(ENOENT), "{what}");
    }
}

#[test]
fn the_generation_changes_with_what_is_there_and_with_nothing_else() {
    let control = control();
    let generation = || list(&control, 0).expect("a catalogue").1;
    let mut last = generation();
    let mut check = |what: &str, changes: bool| {
        let now = generation();
        assert_eq!(now != last, changes, "{what}: {last}, then {now}");
        last = now;
    };
    check("a list", false);
    let steps = [step(READ, "sim.counter", 0)];
    let c = Create {
        flags: DRY_RUN,
        ..request("soft", 0, 4, &steps)
    };
    assert_eq!(ask(&control, &c).0, Ok(0), "a dry run");
    check("a dry run", false);
    let (owner, id) = soft(&control, 4, 0);
    check("a run comes", true);
    let ring = reader(&control, id, 0, 0).expect("a reader");
    check("a reader comes", false);
    for (op, count) in [(START, 0), (TRIGGER, 3), (PAUSE, 0), (RESUME, 0), (STOP, 0)] {
        order(&owner, op, count).expect("possible");
        check("a change of state", false);
    }
    drop(ring);
    check("a reader goes", false);
    drop(owner);
    check("a run goes", true);
    let unplugged = Parameter::set("sim", 0);
    check("a device goes", true);
    drop(unplugged);
    check("a device comes", true);
}

#[test]
fn a_list_stores_all_it_counts_while_runs_come_and_go() {
    let control = control();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop((soft(&control, 2, 0), soft(&control, 2, 0)));
            }
        });
        let end = Instant::now() + Duration::from_secs(5);
        for round in 0.. {
            if Instant::now() > end {
                break;
            }
            let mut entries = vec![Entry::zero(); 200];
            let buffer = entries.as_mut_ptr() as u64;
            let mut arg = List {
                size: 40,
                entry_size: ENTRY as u32,
                buffer,
                room: 200,
                ..List::zero()
            };
            let answer = ioctl(&control, LIST, &mut arg);
            let stored = entries.iter().take_while(|entry| entry.kind != 0).count();
            if answer.is_err() || stored != arg.count as usize {
                stop.store(true, Ordering::Relaxed);
                panic!(
                    "round {round}: {answer:?}, counted {}, stored {stored}",
                    arg.count
                );
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
