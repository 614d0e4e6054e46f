// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an endpoint that is a file does while its channel is there. Everything in both contexts that messages arrive in.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use libc::{
    EADDRINUSE, EAGAIN, EBADF, EFAULT, EINTR, EINVAL, EMFILE, EMSGSIZE, ENOTTY, EPIPE, O_CLOEXEC,
    O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, PROT_READ,
    PROT_WRITE,
};
use strobe_cases::machine::slowness;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{
    allow_interruption, become_user, fork, interrupt, ioctl, ioctl_at, receive_fd, references,
    send_fd, sys, thread_id, until, until_asleep, wait, Findings, Map,
};
use strobe_cases::rpmsg::*;

/// An address that nobody has.
const HERE: u32 = 77;
const MTU: usize = 496;

/// Open fds of this process.
fn fds() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

/// A word of the endpoint's fdinfo.
fn fdinfo(endpoint: &OwnedFd, name: &str) -> String {
    let file = format!("/proc/self/fdinfo/{}", endpoint.as_raw_fd());
    let text = fs::read_to_string(file).expect("fdinfo");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in {text}"))
        .trim()
        .into()
}

fn set_flags(fd: &OwnedFd, flags: i32) {
    let args = [
        fd.as_raw_fd() as usize,
        libc::F_SETFL as usize,
        flags as usize,
    ];
    sys(libc::SYS_fcntl, &args).expect("fcntl");
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
    for number in [0xB563, DESTROY_EPT, GET_FLOW, GET_STATS, CREATE_DEV] {
        assert_eq!(
            ioctl(&control, number, &mut info),
            Err(ENOTTY),
            "{number:x}"
        );
    }
    for number in [0xB563, CREATE_EPT, CREATE_EPT_FD, CREATE_DEV] {
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
fn read_takes_one_message_and_the_tail_of_a_longer_one_is_cut() {
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, 0);
        for message in [&b"first"[..], b"", b"the third", &[7; MTU]] {
            assert_eq!(send(&endpoint, message), Ok(message.len()));
        }
        assert_eq!(receive_up_to(&endpoint, 3).as_deref(), Ok(&b"fir"[..]));
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b""[..]), "an empty one");
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"the third"[..]));
        assert_eq!(receive(&endpoint).as_deref(), Ok(&[7; MTU][..]));
    }
}

#[test]
fn a_message_that_could_not_be_copied_is_the_next_one() {
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, 0);
        send(&endpoint, b"message").expect("sent");
        let args = [endpoint.as_raw_fd() as usize, 8, 100];
        assert_eq!(sys(libc::SYS_read, &args), Err(EFAULT));
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"message"[..]));
        let args = [endpoint.as_raw_fd() as usize, 8, 100];
        assert_eq!(sys(libc::SYS_write, &args), Err(EFAULT));
        assert_eq!(stats(&endpoint).expect("stats").sent, 1);
    }
}

#[test]
fn a_message_is_checked_against_what_the_transport_takes() {
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, O_NONBLOCK);
        assert_eq!(stats(&endpoint).expect("stats").mtu as usize, MTU);
        for length in [MTU + 1, 4096, 1 << 20] {
            assert_eq!(send(&endpoint, &vec![0; length]), Err(EMSGSIZE), "{length}");
        }
        // Before any memory is taken for it, and before the bytes are looked at.
        let args = [endpoint.as_raw_fd() as usize, 8, 0x7000_0000];
        assert_eq!(sys(libc::SYS_write, &args), Err(EMSGSIZE));
        assert_eq!(receive(&endpoint), Err(EAGAIN));
        assert_eq!(stats(&endpoint).expect("stats").sent, 0);
    }
}

#[test]
fn the_queue_holds_256_messages_and_counts_those_that_find_no_room() {
    for _processor in contexts() {
        let (from, to) = (endpoint(HERE, 78, 0), endpoint(78, HERE, O_NONBLOCK));
        for n in 0..300u32 {
            assert_eq!(send(&from, &n.to_le_bytes()), Ok(4));
        }
        until("the last", || {
            let stats = stats(&to).expect("stats");
            stats.received + stats.dropped == 300
        });
        let said = stats(&to).expect("stats");
        assert_eq!(
            (said.received, said.dropped, u64::from(said.queued)),
            (QUEUE, 44, QUEUE)
        );
        assert_eq!((said.src, said.dst, said.sent), (78, HERE, 0));
        assert_eq!(
            stats(&from).expect("stats").sent,
            300,
            "who sends cannot know"
        );
        assert_eq!(fdinfo(&to, "rpmsg-name:"), "test");
        assert_eq!(fdinfo(&to, "rpmsg-queued:"), "256");
        assert_eq!(fdinfo(&to, "rpmsg-dropped:"), "44");
        assert_eq!(fdinfo(&to, "rpmsg-dst:"), "0x4d");
        for n in 0..256u32 {
            assert_eq!(
                receive(&to).as_deref(),
                Ok(&n.to_le_bytes()[..]),
                "the oldest stay"
            );
        }
        assert_eq!(receive(&to), Err(EAGAIN));
        send(&from, b"room again").expect("sent");
        until("it", || state(&to) & POLLIN != 0);
        assert_eq!(receive(&to).as_deref(), Ok(&b"room again"[..]));
    }
}

#[test]
fn long_messages_fill_the_queue_by_their_bytes() {
    // Of 32 KiB, some of which are the endpoint's; each message with its length: 500 bytes.
    const ROOM: usize = (32768 - 512) / (MTU + 4);
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, O_NONBLOCK);
        // Several times around the ring, so that messages lie across its end.
        for round in 0..5u8 {
            for n in 0..ROOM as u8 + 3 {
                let message = [[round, n].as_slice(), &[n; MTU - 2]].concat();
                send(&endpoint, &message).expect("sent");
            }
            until("the last", || {
                let said = stats(&endpoint).expect("stats");
                said.received + said.dropped == said.sent
            });
            for n in 0..ROOM as u8 {
                let message = [[round, n].as_slice(), &[n; MTU - 2]].concat();
                assert_eq!(receive(&endpoint), Ok(message));
            }
            assert_eq!(receive(&endpoint), Err(EAGAIN));
        }
        assert_eq!(stats(&endpoint).expect("stats").dropped, 15);
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
    let mut larger = [0u64; 8];
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

/// How many messages a pair exchanges.
const MANY: u32 = 10_000;

/// The number in a message.
fn number(message: &[u8]) -> u32 {
    u32::from_le_bytes(message.try_into().expect("a word"))
}

#[test]
fn ten_thousand_messages_between_a_pair_arrive_in_order() {
    for _processor in contexts() {
        let (from, to) = (endpoint(500, 501, 0), &endpoint(501, 500, 0));
        let begun = Instant::now();
        // How many were read: as many as fit may be under way, since nothing holds a sender back.
        let read = &AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..MANY {
                    while n - read.load(Ordering::Acquire) >= QUEUE as u32 {
                        thread::yield_now();
                    }
                    assert_eq!(send(&from, &n.to_le_bytes()), Ok(4));
                }
            });
            for n in 0..MANY {
                assert_eq!(receive(to).as_deref(), Ok(&n.to_le_bytes()[..]));
                read.store(n + 1, Ordering::Release);
            }
        });
        let said = stats(to).expect("stats");
        assert_eq!((said.received, said.dropped), (u64::from(MANY), 0));
        println!("{MANY} messages in {:?}", begun.elapsed());
    }
}

#[test]
fn of_ten_thousand_messages_that_nothing_holds_back_those_that_are_not_there_were_counted() {
    for _processor in contexts() {
        let (from, to) = (endpoint(500, 501, 0), &endpoint(501, 500, 0));
        let begun = Instant::now();
        let numbers = thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut numbers = Vec::new();
                // Until its endpoint has gone.
                while let Ok(message) = receive(to) {
                    numbers.push(number(&message));
                }
                numbers
            });
            for n in 0..MANY {
                assert_eq!(send(&from, &n.to_le_bytes()), Ok(4));
            }
            until("the last", || {
                let said = stats(to).expect("stats");
                said.received + said.dropped == u64::from(MANY)
            });
            destroy(to).expect("destroyed");
            reader.join().expect("the reader")
        });
        let said = stats(to).expect("stats");
        assert_eq!(numbers.len() as u64, said.received);
        assert!(numbers.len() as u64 >= QUEUE, "the first found room");
        assert_eq!(said.received + said.dropped, u64::from(MANY));
        assert!(numbers.is_sorted_by(|one, next| one < next), "in order");
        println!(
            "{MANY} messages in {:?}: {} were read, {} dropped",
            begun.elapsed(),
            said.received,
            said.dropped
        );
    }
}

#[test]
fn messages_go_both_ways_between_a_program_of_the_remote_and_an_endpoint() {
    for _processor in contexts() {
        let remote = Program::start();
        let endpoint = endpoint(HERE, REMOTE + 5, 0);
        send(&endpoint, b"question").expect("sent");
        assert_eq!(remote.receive(), (HERE, REMOTE + 5, b"question".to_vec()));
        remote.send(REMOTE + 9, HERE, b"answer").expect("sent");
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"answer"[..]));
        assert_eq!(
            remote.send(REMOTE, 9, b"?"),
            Err(libc::ENXIO),
            "nobody has it"
        );
    }
}

#[test]
fn a_reader_sleeps_until_a_message_comes_or_a_signal() {
    allow_interruption(0);
    for _processor in contexts() {
        let endpoint = &endpoint(ANY, ANY, 0);
        thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let reader = scope.spawn(move || {
                tell.send(thread_id()).expect("told");
                (receive(endpoint), receive(endpoint))
            });
            let id = told.recv().expect("its id");
            until_asleep(id, libc::SYS_read);
            interrupt(id);
            until_asleep(id, libc::SYS_read);
            send(endpoint, b"message").expect("sent");
            let answers = reader.join().expect("the reader");
            assert_eq!(answers, (Err(EINTR), Ok(b"message".to_vec())));
        });
    }
}

#[test]
fn a_transport_without_room_holds_writers_back_or_says_so() {
    for processor in contexts() {
        let endpoint = &endpoint(ANY, ANY, O_NONBLOCK);
        assert_eq!(state(endpoint), POLLOUT);
        processor.set("stalled", 1);
        assert_eq!(send(endpoint, b"no"), Err(EAGAIN));
        assert_eq!(state(endpoint), 0);
        thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let poller = scope.spawn(move || {
                tell.send(thread_id()).expect("told");
                poll_for(endpoint, POLLOUT, -1)
            });
            until_asleep(told.recv().expect("its id"), libc::SYS_poll);
            processor.set("stalled", 0);
            assert_eq!(poller.join().expect("the poller"), Ok(POLLOUT));
        });
        processor.set("stalled", 1);
        set_flags(endpoint, 0);
        thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let writer = scope.spawn(move || {
                tell.send(thread_id()).expect("told");
                send(endpoint, b"message")
            });
            until_asleep(told.recv().expect("its id"), libc::SYS_write);
            assert_eq!(state(endpoint), 0, "who looks is not held back");
            processor.set("stalled", 0);
            assert_eq!(writer.join().expect("the writer"), Ok(7));
        });
        assert_eq!(receive(endpoint).as_deref(), Ok(&b"message"[..]));
    }
}

#[test]
fn a_writer_that_waits_is_let_go_by_a_signal_though_the_transport_would_not() {
    allow_interruption(0);
    for processor in contexts() {
        let endpoint = &endpoint(ANY, ANY, 0);
        processor.set("stalled", 1);
        thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let writer = scope.spawn(move || {
                tell.send(thread_id()).expect("told");
                send(endpoint, b"message")
            });
            let id = told.recv().expect("its id");
            until_asleep(id, libc::SYS_write);
            interrupt(id);
            assert_eq!(writer.join().expect("the writer"), Err(EINTR));
        });
        assert_eq!(stats(endpoint).expect("stats").sent, 0);
    }
}

#[test]
fn an_endpoint_can_be_destroyed_while_a_writer_waits() {
    for processor in contexts() {
        let endpoint = &endpoint(ANY, ANY, 0);
        processor.set("stalled", 1);
        thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let writer = scope.spawn(move || {
                tell.send(thread_id()).expect("told");
                send(endpoint, b"message")
            });
            until_asleep(told.recv().expect("its id"), libc::SYS_write);
            destroy(endpoint).expect("destroyed");
            assert_eq!(writer.join().expect("the writer"), Err(EPIPE));
        });
    }
}

#[test]
fn a_remote_that_wants_no_more_is_news_once() {
    for _processor in contexts() {
        let (here, there) = (&endpoint(HERE, 78, 0), endpoint(78, HERE, 0));
        let asked = || {
            let mut paused = 7u32;
            ioctl(here, GET_FLOW, &mut paused).map(|_| paused)
        };
        let tell = |pause| ioctl_at(there.as_raw_fd(), SET_FLOW, pause);
        assert_eq!((state(here), asked()), (POLLOUT, Ok(0)));
        for pause in [1, 0, 1] {
            assert_eq!(tell(pause), Ok(0));
            assert_eq!(state(here), POLLOUT | POLLPRI, "news");
            assert_eq!(asked(), Ok(pause as u32));
            assert_eq!(state(here), POLLOUT, "no news any more");
        }
        assert_eq!(tell(2), Err(EINVAL));
        let wild = ioctl_at(here.as_raw_fd(), GET_FLOW, 8);
        assert_eq!(wild, Err(EFAULT));
    }
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
