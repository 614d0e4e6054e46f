// SPDX-License-Identifier: MIT OR Apache-2.0
//! Abuse of the contract: each field, size, flag and pointer of every call wrong in turn. What
//! fails must say so by the errno of the header, and must have changed nothing.

use std::fs::File;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use libc::{E2BIG, EBADF, EFAULT, EINVAL, ENOENT, ENOTTY, PROT_NONE, PROT_READ, PROT_WRITE};
use strobe_cases::raw::program::tunable;
use strobe_cases::raw::*;

const UNMAPPED: usize = 0x1000;
const KERNEL: usize = 0xffff_8880_0000_0000;
const NON_CANONICAL: usize = 0x8000_0000_0000_0000;

/// One fd of each kind, and a run behind the latter two.
struct Fds {
    control: OwnedFd,
    owner: OwnedFd,
    ring: OwnedFd,
}

fn fds() -> Fds {
    let control = control();
    let owner = tunable(&control, 64).0;
    let ring = reader(&owner, 0, 0, NONBLOCK).expect("a reader");
    Fds {
        control,
        owner,
        ring,
    }
}

thread_local! {
    /// Where the answers of STROBE_CREATE go.
    static ANSWER: Map = Map::pages(1, PROT_READ | PROT_WRITE);
}

/// A call that works, put into memory at `at`: its number, its size, and the fd it is for.
fn good_calls(fds: &Fds) -> Vec<(&'static str, i32, u32, usize, Vec<u8>)> {
    let page = Map::pages(1, PROT_READ | PROT_WRITE);
    let bytes = |size: usize| (0..size).map(|i| page.get::<u8>(i)).collect::<Vec<u8>>();
    let (control, owner, ring) = (
        fds.control.as_raw_fd(),
        fds.owner.as_raw_fd(),
        fds.ring.as_raw_fd(),
    );
    let mut calls = Vec::new();
    page.put(
        0,
        List {
            size: 40,
            entry_size: size_of::<Entry>() as u32,
            ..List::zero()
        },
    );
    calls.push(("LIST", control, LIST, 40, bytes(40)));
    page.put(
        0,
        Create {
            flags: DRY_RUN,
            answer: ANSWER.with(|answer| answer.address) as u64,
            answer_size: size_of::<Created>() as u32,
            ..request("soft", 0, 2, &[])
        },
    );
    calls.push(("CREATE", control, CREATE, 144, bytes(144)));
    page.put(
        0,
        Control {
            size: 56,
            op: STATUS,
            ..Control::zero()
        },
    );
    calls.push(("CONTROL", owner, CONTROL, 56, bytes(56)));
    page.put(
        0,
        Reader {
            size: 48,
            ..Reader::zero()
        },
    );
    calls.push(("READER", owner, READER, 48, bytes(48)));
    page.put(
        0,
        Features {
            size: 40,
            ..Features::zero()
        },
    );
    calls.push(("FEATURES", control, FEATURES, 40, bytes(40)));
    page.put(
        0,
        Arm {
            size: 16,
            flags: 0,
            rows: 3,
        },
    );
    calls.push(("ARM", ring, ARM, 16, bytes(16)));
    page.put(
        0,
        Tune {
            size: 24,
            ..Tune::zero()
        },
    );
    calls.push(("TUNE", owner, TUNE, 24, bytes(24)));
    calls
}

/// The size of the first version, of a structure whose size is now `known`.
fn first_size(number: u32, known: usize) -> usize {
    if number == CREATE { 136 } else { known }
}

fn put_bytes(map: &Map, at: usize, bytes: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        map.put(at + i, *byte);
    }
}

/// Closes what a STROBE_READER at `at` has made.
fn close_made(number: u32, page: &Map, at: usize) {
    if number == READER {
        drop(adopt(page.get::<u32>(at + 24) as i32));
    }
}

#[test]
fn each_call_is_for_its_own_kind_of_fd() {
    let fds = fds();
    let calls = good_calls(&fds);
    let null = File::open("/dev/null").expect("/dev/null");
    let event = adopt(sys(libc::SYS_eventfd2, &[0, 0]).expect("an eventfd") as i32);
    let (socket, _peer) = UnixStream::pair().expect("sockets");
    let path = c"/dev/strobe".as_ptr() as usize;
    let flags = libc::O_PATH as usize;
    let cwd = libc::AT_FDCWD as usize;
    let o_path = adopt(sys(libc::SYS_openat, &[cwd, path, flags]).expect("O_PATH") as i32);
    let closed = File::open("/dev/strobe").expect("/dev/strobe").as_raw_fd();
    let kinds: [(&str, i32, &[u32], i32); 9] = [
        (
            "control",
            fds.control.as_raw_fd(),
            &[LIST, CREATE, READER, FEATURES, TUNE],
            ENOTTY,
        ),
        (
            "owner",
            fds.owner.as_raw_fd(),
            &[CONTROL, READER, TUNE],
            ENOTTY,
        ),
        ("ring", fds.ring.as_raw_fd(), &[ARM], ENOTTY),
        ("/dev/null", null.as_raw_fd(), &[], ENOTTY),
        ("eventfd", event.as_raw_fd(), &[], ENOTTY),
        ("socket", socket.as_raw_fd(), &[], ENOTTY),
        ("O_PATH", o_path.as_raw_fd(), &[], EBADF),
        ("closed", closed, &[], EBADF),
        ("-1", -1, &[], EBADF),
    ];
    let page = Map::pages(1, PROT_READ | PROT_WRITE);
    let before = census(&fds.control);
    let mut findings = Findings::default();
    for (kind, fd, own, error) in kinds {
        for (name, _, number, _, bytes) in &calls {
            put_bytes(&page, 0, bytes);
            let run_by_id = [READER, TUNE].contains(number) && kind == "control";
            let want = match own.contains(number) {
                true if run_by_id => Err(ENOENT), // run 0
                true => Ok(0),
                false => Err(error),
            };
            let got = ioctl_at(fd, *number, page.address);
            if got == Ok(0) {
                close_made(*number, &page, 0);
            }
            findings.equal(format!("{name} on {kind}"), got, want);
        }
    }
    findings.equal("census", census(&fds.control), before);
}

#[test]
fn unknown_numbers_are_enotty() {
    let fds = fds();
    let page = Map::pages(1, PROT_READ | PROT_WRITE);
    page.put(0, request("soft", 0, 2, &[]));
    let before = census(&fds.control);
    let mut findings = Findings::default();
    let unknown = (7..256u32).map(|n| 0xDA00 | n);
    // A known number, but with a direction or a size in it, or of another driver.
    let disguised = [
        0x4000_0000u32,
        0x8000_0000,
        0xC000_0000,
        40 << 16,
        136 << 16,
        0xC088_0000,
    ];
    let disguised = disguised
        .into_iter()
        .flat_map(|bits| (0..7).map(move |n| bits | 0xDA00 | n));
    let foreign = [0u32, 1, 4, 0xDB00, 0xD900, 0xDB01, u32::MAX];
    for number in unknown.chain(disguised).chain(foreign) {
        for (kind, fd) in [
            ("control", &fds.control),
            ("owner", &fds.owner),
            ("ring", &fds.ring),
        ] {
            let got = ioctl_at(fd.as_raw_fd(), number, page.address);
            findings.equal(format!("{number:#x} on {kind}"), got, Err(ENOTTY));
        }
    }
    findings.equal("census", census(&fds.control), before);
}

#[test]
fn every_argument_may_grow_by_zeros_and_by_nothing_else() {
    let fds = fds();
    let page = Map::pages(2, PROT_READ | PROT_WRITE);
    let before = census(&fds.control);
    let mut findings = Findings::default();
    for (name, fd, number, known, bytes) in good_calls(&fds) {
        let first = first_size(number, known);
        let sizes = [
            (0, Err(EINVAL)),
            (3, Err(EINVAL)),
            (4, Err(EINVAL)),
            (first - 8, Err(EINVAL)),
            (first - 1, Err(EINVAL)),
            (first, Ok(0)),
            (known, Ok(0)),
            (known + 1, Ok(0)),
            (known + 8, Ok(0)),
            (4096, Ok(0)),
            (4097, Err(E2BIG)),
            (u32::MAX as usize, Err(E2BIG)),
        ];
        let mut call = |what: String, size: usize, poison: Option<usize>, want: Answer| {
            put_bytes(&page, 0, &[0; 8192]);
            put_bytes(&page, 0, &bytes);
            page.put(0, size as u32);
            if let Some(at) = poison {
                page.put(at, 1u8);
            }
            let got = ioctl_at(fd, number, page.address);
            if got == Ok(0) {
                close_made(number, &page, 0);
                findings.equal(
                    format!("{name}: size kept"),
                    page.get::<u32>(0) as usize,
                    size,
                );
                let tail = (known..8192).find(|&i| page.get::<u8>(i) != 0 && Some(i) != poison);
                findings.equal(format!("{name}: tail written"), tail, None);
            }
            findings.equal(format!("{name}, {what}"), got, want);
        };
        for (size, want) in sizes {
            call(format!("size {size}"), size, None, want);
        }
        for (size, at) in [(known + 1, known), (known + 9, known + 8), (4096, 4095)] {
            call(
                format!("size {size}, byte {at} set"),
                size,
                Some(at),
                Err(E2BIG),
            );
        }
        call(
            "a byte beyond the size set".into(),
            known + 8,
            Some(known + 8),
            Ok(0),
        );
    }
    findings.equal("census", census(&fds.control), before);
}

#[test]
fn bad_pointers_are_efault_and_nothing_has_happened() {
    let fds = fds();
    let area = Map::pages(3, PROT_READ | PROT_WRITE);
    // One page that is mapped, then one that is not accessible.
    let wall = area.address + 2 * 4096;
    sys(libc::SYS_mprotect, &[wall, 4096, PROT_NONE as usize]).expect("a wall");
    let before = census(&fds.control);
    let mut findings = Findings::default();
    for (name, fd, number, known, bytes) in good_calls(&fds) {
        let cut = 2 * 4096 - known;
        put_bytes(&area, cut, &bytes);
        let ends = [
            ("NULL", 0, false),
            ("unmapped", UNMAPPED, false),
            ("kernel", KERNEL, false),
            ("not canonical", NON_CANONICAL, false),
            ("last", usize::MAX, false),
            ("inaccessible", wall, false),
            ("up to the wall", area.address + cut, true),
        ];
        for (what, address, works) in ends {
            let got = ioctl_at(fd, number, address);
            if got == Ok(0) {
                close_made(number, &area, cut);
            }
            findings.equal(
                format!("{name} at {what}"),
                got,
                if works { Ok(0) } else { Err(EFAULT) },
            );
        }
        // 1, 2, 3 bytes, then more of the structure, but never all of it before the wall.
        for short in [1, 2, 3, 4, known - 1] {
            let at = 2 * 4096 - short;
            put_bytes(&area, at, &bytes[..short]);
            let got = ioctl_at(fd, number, area.address + at);
            findings.equal(
                format!("{name}, {short} bytes before the wall"),
                got,
                Err(EFAULT),
            );
        }
        // What is only read may be read-only; an answer needs room.
        let page = Map::pages(1, PROT_READ | PROT_WRITE);
        put_bytes(&page, 0, &bytes);
        page.protect(PROT_READ).expect("read-only");
        let want = match number {
            ARM | CREATE | TUNE => Ok(0),
            _ => Err(EFAULT),
        };
        findings.equal(
            format!("{name}, read-only"),
            ioctl_at(fd, number, page.address),
            want,
        );
    }
    findings.equal("census", census(&fds.control), before);
}

#[test]
fn a_change_whose_answer_has_no_room_is_not_made() {
    let fds = fds();
    let call = |fd: &OwnedFd, number, put: &dyn Fn(&Map)| {
        let page = Map::pages(1, PROT_READ | PROT_WRITE);
        put(&page);
        page.protect(PROT_READ).expect("read-only");
        ioctl_at(fd.as_raw_fd(), number, page.address)
    };
    let mut findings = Findings::default();
    let before = census(&fds.control);
    let got = call(&fds.owner, READER, &|page| {
        page.put(
            0,
            Reader {
                size: 48,
                ..Reader::zero()
            },
        );
    });
    findings.equal("READER", got, Err(EFAULT));
    findings.equal("census", census(&fds.control), before);
    for (op, count) in [(START, 0), (TRIGGER, 5), (PAUSE, 0), (RESUME, 0), (STOP, 0)] {
        let before = order(&fds.owner, STATUS, 0).expect("status");
        let arg = Control {
            size: 56,
            op,
            count,
            ..Control::zero()
        };
        findings.equal(
            format!("op {op}"),
            call(&fds.owner, CONTROL, &|p| p.put(0, arg)),
            Err(EFAULT),
        );
        findings.equal(
            format!("after op {op}"),
            order(&fds.owner, STATUS, 0),
            Ok(before),
        );
        let _ = order(&fds.owner, op, count);
    }
}

#[test]
fn unknown_flags_are_einval_bit_by_bit() {
    let fds = fds();
    let before = census(&fds.control);
    let mut findings = Findings::default();
    for bit in 0..32 {
        let flags = 1u32 << bit;
        let mut list = List {
            size: 40,
            flags,
            entry_size: size_of::<Entry>() as u32,
            ..List::zero()
        };
        findings.equal(
            format!("LIST {bit}"),
            ioctl(&fds.control, LIST, &mut list),
            Err(EINVAL),
        );
        let mut control = Control {
            size: 56,
            flags,
            ..Control::zero()
        };
        let got = ioctl(&fds.owner, CONTROL, &mut control);
        findings.equal(format!("CONTROL {bit}"), got, Err(EINVAL));
        let mut arm = Arm {
            size: 16,
            flags,
            rows: 1,
        };
        let mut tune = Tune {
            size: 24,
            flags,
            ..Tune::zero()
        };
        let got = ioctl(&fds.owner, TUNE, &mut tune);
        findings.equal(format!("TUNE {bit}"), got, Err(EINVAL));
        let mut features = Features {
            size: 40,
            flags,
            ..Features::zero()
        };
        let got = ioctl(&fds.control, FEATURES, &mut features);
        findings.equal(format!("FEATURES {bit}"), got, Err(EINVAL));
        findings.equal(
            format!("ARM {bit}"),
            ioctl(&fds.ring, ARM, &mut arm),
            Err(EINVAL),
        );
        if flags & NONBLOCK == 0 {
            let got = reader(&fds.owner, 0, 0, flags).map(drop);
            findings.equal(format!("READER {bit}"), got, Err(EINVAL));
        }
        if flags & (DRY_RUN | SHARED) == 0 {
            let wrong = Create {
                flags,
                ..request("soft", 0, 2, &[])
            };
            let (result, answer) = ask(&fds.control, &wrong);
            findings.equal(format!("CREATE {bit}"), result, Err(EINVAL));
            let got = (answer.fd, answer.run, answer.fault_step, answer.why);
            findings.equal(format!("CREATE {bit}: answer"), got, (-1, 0, NO_STEP, 0));
        }
    }
    findings.equal("census", census(&fds.control), before);
}

#[test]
fn reserved_fields_that_are_not_zero_are_einval_and_out_fields_are_not_looked_at() {
    let fds = fds();
    let mut findings = Findings::default();
    let full = u64::MAX;
    let mut reader = Reader {
        size: 48,
        reserved: 1,
        ..Reader::zero()
    };
    let got = ioctl(&fds.owner, READER, &mut reader);
    findings.equal("READER: reserved", got, Err(EINVAL));
    reader = Reader {
        reserved: 0,
        fd: -7,
        channels: 7,
        outputs: 7,
        row_size: 7,
        ring_bytes: full,
        ..reader
    };
    let got = ioctl(&fds.owner, READER, &mut reader);
    findings.equal("READER: out", got, Ok(0));
    drop(adopt(reader.fd));
    let shape = (reader.channels, reader.outputs, reader.row_size);
    findings.equal("READER: answer", shape, (1, 0, 40));
    let status = Control {
        size: 56,
        op: STATUS,
        state: 7,
        error: 7,
        head: full,
        triggers: full,
        skipped: full,
        cause: 7,
        ..Control::zero()
    };
    let mut control = Control {
        reserved: 1,
        ..status
    };
    let got = ioctl(&fds.owner, CONTROL, &mut control);
    findings.equal("CONTROL: reserved", got, Err(EINVAL));
    control = status;
    let got = ioctl(&fds.owner, CONTROL, &mut control);
    findings.equal("CONTROL: out", got, Ok(0));
    let counts = (control.state, control.error, control.cause);
    findings.equal("CONTROL: answer", counts, (READY, 0, 0));
    let counts = (control.head, control.triggers, control.skipped);
    findings.equal("CONTROL: counts", counts, (0, 0, 0));
    let mut features = Features {
        size: 40,
        major: 7,
        steps_max: 7,
        features: full,
        ..Features::zero()
    };
    let got = ioctl(&fds.control, FEATURES, &mut features);
    findings.equal("FEATURES: out", got, Ok(0));
    findings.equal(
        "FEATURES: answer",
        (features.major, features.features),
        (1, 15),
    );
}
