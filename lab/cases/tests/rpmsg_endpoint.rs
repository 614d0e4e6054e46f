// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an endpoint that is a file does while its channel is there. Everything in both contexts that messages arrive in.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;

use libc::{
    EADDRINUSE, EAGAIN, EBADF, EFAULT, EINVAL, EMFILE, ENOTTY, EPIPE, O_CLOEXEC, O_NONBLOCK,
    O_RDONLY, O_RDWR, O_WRONLY, POLLERR, POLLHUP, POLLIN, PROT_READ, PROT_WRITE,
};
use strobe_cases::machine::slowness;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{
    Findings, Map, adopt, become_user, fork, ioctl, ioctl_at, receive_fd, references, send_fd,
    set_flags, sys, until, wait,
};
use strobe_cases::rpmsg::*;

/// An address that nobody has.
const HERE: u32 = 77;

/// Open fds of this process.
fn fds() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

fn get(fd: &OwnedFd, what: i32) -> i32 {
    sys(libc::SYS_fcntl, &[fd.as_raw_fd() as usize, what as usize]).expect("fcntl") as i32
}

#[test]
fn an_endpoint_has_the_flags_that_were_asked_for_and_fcntl_changes_them() {
    let _processor = Processor::new(false);
    let control = control();
    for flags in [O_RDWR, O_RDWR | O_NONBLOCK, O_RDONLY | O_CLOEXEC, O_WRONLY] {
        let mut info = wanted(ANY, ANY, flags);
        let endpoint = create_fd(&control, &mut info).expect("an endpoint");
        let kept = get(&endpoint, libc::F_GETFL) & (libc::O_ACCMODE | O_NONBLOCK);
        assert_eq!(kept, flags & !O_CLOEXEC);
        let closes = get(&endpoint, libc::F_GETFD) == libc::FD_CLOEXEC;
        assert_eq!(closes, flags & O_CLOEXEC != 0, "not the default");
        set_flags(&endpoint, O_NONBLOCK);
        let nothing_yet = if flags & libc::O_ACCMODE == O_WRONLY {
            EBADF
        } else {
            EAGAIN
        };
        assert_eq!(receive(&endpoint), Err(nothing_yet));
        let written = if flags & libc::O_ACCMODE == O_RDONLY {
            Err(EBADF)
        } else {
            Ok(1)
        };
        assert_eq!(send(&endpoint, b"x"), written);
    }
}

#[test]
fn a_request_that_is_wrong_says_how_and_leaves_neither_fd_nor_address() {
    let _processor = Processor::new(false);
    let control = control();
    let good = wanted(HERE, ANY, O_RDWR);
    let open = fds();
    let mut findings = Findings::default();
    for (what, info) in [
        ("a flag", wanted(HERE, ANY, O_RDWR | libc::O_APPEND)),
        ("O_CREAT", wanted(HERE, ANY, O_RDWR | libc::O_CREAT)),
        (
            "both O_WRONLY and O_RDWR",
            wanted(HERE, ANY, libc::O_ACCMODE),
        ),
        (
            "a name without an end",
            EptFdInfo {
                name: [b'x'; 32],
                ..good
            },
        ),
    ] {
        let mut info = info;
        findings.equal(what, create_fd(&control, &mut info).map(drop), Err(EINVAL));
        findings.equal(format!("{what}: fd"), info.fd, -1);
    }
    let node = &mut EptInfo {
        name: [b'x'; 32],
        src: HERE,
        dst: ANY,
    };
    findings.equal(
        "a node's name",
        ioctl(&control, CREATE_EPT, node),
        Err(EINVAL),
    );
    let wild = ioctl_at(control.as_raw_fd(), CREATE_EPT_FD, 8);
    findings.equal("a wild address", wild, Err(EFAULT));
    let longest = &mut EptFdInfo {
        name: service(&"n".repeat(31)),
        ..good
    };
    let endpoint = create_fd(&control, longest);
    findings.equal(
        "31 characters, and the address is free",
        endpoint.map(drop),
        Ok(()),
    );
    findings.equal("fds", fds(), open);
}

#[test]
fn a_call_that_nobody_knows_is_enotty() {
    let _processor = Processor::new(false);
    let (control, endpoint) = (control(), endpoint(ANY, ANY, 0));
    let mut info = wanted(ANY, ANY, O_RDWR);
    for number in [0xB563, 0xDA22, DESTROY_EPT, GET_FLOW, GET_STATS] {
        assert_eq!(
            ioctl(&control, number, &mut info),
            Err(ENOTTY),
            "{number:x}"
        );
    }
    for number in [
        0xB563,
        CREATE,
        CREATE_EPT,
        CREATE_EPT_FD,
        CREATE_DEV,
        RELEASE_DEV,
    ] {
        assert_eq!(
            ioctl(&endpoint, number, &mut info),
            Err(ENOTTY),
            "{number:x}"
        );
    }
}

#[test]
fn the_address_is_reported_back_and_free_again_when_the_file_is_closed() {
    for _processor in contexts() {
        let control = control();
        let mut info = wanted(ANY, ANY, O_RDWR);
        let first = create_fd(&control, &mut info).expect("an endpoint");
        let address = info.src;
        assert_ne!(address, ANY);
        assert_eq!(fdinfo(&first, "rpmsg-src:"), format!("{address:#x}"));
        let second = create_fd(&control, &mut info).map(drop);
        assert_eq!(second, Err(EADDRINUSE), "the same structure again");
        drop(first);
        let again = create_fd(&control, &mut info).expect("the address is free");
        assert_eq!(info.src, address);
        destroy(&again).expect("destroyed");
        let third = create_fd(&control, &mut info).expect("free when it is destroyed, too");
        drop((again, third));
    }
}

#[test]
fn a_thousand_endpoints_closed_without_being_destroyed_leave_nothing() {
    let memory = || -> i64 {
        let text = fs::read_to_string("/proc/meminfo").expect("meminfo");
        let line = text.lines().find(|line| line.starts_with("MemFree:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse().ok()).expect("a number")
    };
    for _processor in contexts() {
        let control = control();
        let (references_before, before) = (references("strobe_rpmsg"), memory());
        for round in 0..1000 {
            let mut info = wanted(HERE, ANY, O_RDWR | O_NONBLOCK);
            let endpoint = create_fd(&control, &mut info);
            let endpoint = endpoint.unwrap_or_else(|errno| panic!("round {round}: {errno}"));
            send(&endpoint, b"a message that nobody reads").expect("sent");
        }
        assert_eq!(references("strobe_rpmsg"), references_before);
        // Each has 32 KiB and more. A kernel that looks for faults keeps what is freed for a while; kmemleak looks there.
        let lost = before - memory();
        assert!(slowness() > 1 || lost < 8000, "{lost} KiB are gone");
    }
}

#[test]
fn a_structure_of_another_size_is_served_by_what_both_know() {
    let _processor = Processor::new(false);
    let endpoint = endpoint(HERE, ANY, 0);
    let size = size_of::<EptStats>() as u32;
    for (said, errno) in [(0, EINVAL), (size - 8, EINVAL), (8192, libc::E2BIG)] {
        let mut stats = EptStats {
            size: said,
            ..EptStats::zero()
        };
        assert_eq!(
            ioctl(&endpoint, GET_STATS, &mut stats),
            Err(errno),
            "{said}"
        );
    }
    let mut larger = [0u64; 16];
    larger[0] = 64;
    assert_eq!(
        ioctl(&endpoint, GET_STATS, &mut Words { words: larger }),
        Ok(0)
    );
    larger[7] = 1;
    let unknown = ioctl(&endpoint, GET_STATS, &mut Words { words: larger });
    assert_eq!(
        unknown,
        Err(libc::E2BIG),
        "something that this kernel does not know"
    );
    assert_eq!(ioctl_at(endpoint.as_raw_fd(), GET_STATS, 8), Err(EFAULT));
}

#[test]
fn strobes_own_call_answers_beside_what_it_was_asked() {
    for _processor in contexts() {
        let control = control();
        let mut info = asked(ANY, HERE, 0);
        let endpoint = create(&control, &mut info).expect("an endpoint");
        let asked_before = (info.src, info.dst, info.flags, info.reserved);
        assert_eq!(asked_before, (ANY, HERE, READ | WRITE, 0), "it stays");
        let said = stats(&endpoint).expect("stats");
        assert_eq!((info.address, info.mtu), (said.address, MTU as u32));
        assert_eq!((said.dst, said.state), (HERE, 0));
        assert_eq!(get(&endpoint, libc::F_GETFD), libc::FD_CLOEXEC, "always");
        let second = create(&control, &mut info).expect("the same structure again");
        assert_ne!(info.address, said.address);
        drop(second);
        for (flags, mode) in [
            (READ, O_RDONLY),
            (WRITE, O_WRONLY),
            (READ | WRITE | NONBLOCK, O_RDWR | O_NONBLOCK),
        ] {
            let mut info = Create {
                flags,
                ..asked(ANY, ANY, 0)
            };
            let endpoint = create(&control, &mut info).expect("an endpoint");
            let kept = get(&endpoint, libc::F_GETFL) & (libc::O_ACCMODE | O_NONBLOCK);
            assert_eq!(kept, mode);
        }
        destroy(&endpoint).expect("destroyed");
        assert_eq!(stats(&endpoint).expect("stats").state, GONE);
    }
}

#[test]
fn strobes_own_call_refuses_what_it_does_not_know_and_takes_what_is_longer() {
    let _processor = Processor::new(false);
    let control = control();
    let open = fds();
    let good = asked(HERE, ANY, 0);
    let mut findings = Findings::default();
    let cases = [
        (
            "a flag",
            Create {
                flags: 8 | READ,
                ..good
            },
            EINVAL,
        ),
        (
            "nothing to do",
            Create {
                flags: NONBLOCK,
                ..good
            },
            EINVAL,
        ),
        (
            "reserved",
            Create {
                reserved: 1,
                ..good
            },
            EINVAL,
        ),
        (
            "no end",
            Create {
                name: [b'x'; 32],
                ..good
            },
            EINVAL,
        ),
        ("no size", Create { size: 0, ..good }, EINVAL),
        ("too short", Create { size: 60, ..good }, EINVAL),
        ("too long", Create { size: 4097, ..good }, libc::E2BIG),
    ];
    for (what, info, errno) in cases {
        let mut info = info;
        findings.equal(what, create(&control, &mut info).map(drop), Err(errno));
        findings.equal(format!("{what}: fd"), info.fd, -1);
    }
    let wild = ioctl_at(control.as_raw_fd(), CREATE, 8);
    findings.equal("a wild address", wild, Err(EFAULT));
    // As a later version would ask, whose new fields are zero, or are not.
    let mut larger = [0u64; 16];
    // SAFETY: plain numbers, of which there are fewer than there is room for.
    unsafe {
        larger
            .as_mut_ptr()
            .cast::<Create>()
            .write(Create { size: 128, ..good })
    };
    let mut words = Words { words: larger };
    findings.equal("longer", ioctl(&control, CREATE, &mut words), Ok(0));
    // SAFETY: it was written as such.
    let fd = unsafe { words.words.as_ptr().cast::<Create>().read() }.fd;
    drop(adopt(fd));
    larger[15] = 1;
    let mut words = Words { words: larger };
    let unknown = ioctl(&control, CREATE, &mut words);
    findings.equal("something unknown", unknown, Err(libc::E2BIG));
    let page = Map::pages(1, PROT_READ | PROT_WRITE);
    page.put(0, good);
    page.protect(PROT_READ).expect("read-only");
    for _ in 0..100 {
        let answer = ioctl_at(control.as_raw_fd(), CREATE, page.address);
        findings.equal("an answer that cannot be stored", answer, Err(EFAULT));
    }
    findings.equal("fds", fds(), open);
    create(&control, &mut asked(HERE, ANY, 0)).expect("the address is free");
}

#[test]
fn a_destroyed_endpoint_keeps_its_file_and_the_messages_that_had_come() {
    for _processor in contexts() {
        let endpoint = endpoint(HERE, ANY, 0);
        send(&endpoint, b"last").expect("sent");
        until("it", || state(&endpoint) & POLLIN != 0);
        assert_eq!(destroy(&endpoint), Ok(0));
        assert_eq!(state(&endpoint), POLLIN | POLLHUP | POLLERR);
        assert_eq!(fdinfo(&endpoint, "rpmsg-gone:"), "1");
        assert_eq!(stats(&endpoint).expect("stats").queued, 1);
        assert_eq!(send(&endpoint, b"more"), Err(EPIPE));
        assert_eq!(ioctl_at(endpoint.as_raw_fd(), SET_FLOW, 1), Err(EPIPE));
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"last"[..]));
        assert_eq!(receive(&endpoint), Err(EPIPE));
        assert_eq!(state(&endpoint), POLLHUP | POLLERR);
        assert_eq!(destroy(&endpoint), Ok(0), "twice is once");
    }
}

#[test]
fn an_answer_that_cannot_be_stored_leaves_no_fd_and_frees_the_address() {
    for _processor in contexts() {
        let control = control();
        let page = Map::pages(1, PROT_READ | PROT_WRITE);
        page.put(0, wanted(HERE, ANY, O_RDWR));
        page.protect(PROT_READ).expect("read-only");
        let before = (fds(), references("strobe_rpmsg"));
        for _ in 0..100 {
            let answer = ioctl_at(control.as_raw_fd(), CREATE_EPT_FD, page.address);
            assert_eq!(answer, Err(EFAULT));
        }
        assert_eq!((fds(), references("strobe_rpmsg")), before);
        create_fd(&control, &mut wanted(HERE, ANY, O_RDWR)).expect("the address is free");
    }
}

#[test]
fn without_a_number_for_the_file_there_is_no_endpoint() {
    for _processor in contexts() {
        let control = control();
        let mut usual = [0u64; 2];
        let address = usual.as_mut_ptr() as usize;
        let limit = libc::RLIMIT_NOFILE as usize;
        sys(libc::SYS_prlimit64, &[0, limit, 0, address]).expect("the limit");
        let none = [3, usual[1]];
        sys(libc::SYS_prlimit64, &[0, limit, none.as_ptr() as usize, 0]).expect("limited");
        let answer = create_fd(&control, &mut wanted(HERE, ANY, O_RDWR));
        sys(libc::SYS_prlimit64, &[0, limit, address, 0]).expect("as before");
        assert_eq!(answer.map(drop), Err(EMFILE));
        create_fd(&control, &mut wanted(HERE, ANY, O_RDWR)).expect("the address is free");
    }
}

#[test]
fn an_endpoint_works_in_a_process_that_has_nothing_but_its_fd() {
    for _processor in contexts() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let child = fork(|| {
            become_user();
            let endpoint = receive_fd(&far);
            assert!(open(CONTROL).is_err(), "the node is not for everybody");
            send(&endpoint, b"from the child").expect("sent");
            assert_eq!(receive(&endpoint).as_deref(), Ok(&b"from the child"[..]));
            0
        });
        send_fd(&near, &endpoint(ANY, ANY, 0));
        assert_eq!(wait(child), 0);
    }
}

#[test]
fn threads_make_and_close_endpoints_side_by_side() {
    for _processor in contexts() {
        let control = &control();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    for n in 0..500u32 {
                        let mut info = wanted(ANY, ANY, O_RDWR | O_CLOEXEC);
                        let endpoint = create_fd(control, &mut info).expect("an endpoint");
                        send(&endpoint, &n.to_le_bytes()).expect("sent");
                        assert_eq!(receive(&endpoint).as_deref(), Ok(&n.to_le_bytes()[..]));
                    }
                });
            }
        });
    }
}

#[test]
fn nobody_gets_memory_with_the_messages_of_another_in_it() {
    for processor in contexts() {
        for _ in 0..20 {
            let endpoint = endpoint(ANY, ANY, 0);
            for _ in 0..64 {
                send(&endpoint, &[0xa5; MTU]).expect("sent");
            }
            until("all of them", || {
                stats(&endpoint).expect("stats").received == 64
            });
            drop(endpoint);
        }
        // All that its queue has behind what it knows of itself, and that every setting of queue_kib has.
        processor.set("look", 16_384);
        let before = processor.unclean();
        for _ in 0..20 {
            endpoint(ANY, ANY, 0);
        }
        assert_eq!(processor.unclean() - before, 0, "bytes of others");
    }
}
