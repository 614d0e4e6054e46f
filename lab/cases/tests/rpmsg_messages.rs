// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of an endpoint that is a file: how they come and go, wait, find no room, and who sleeps for them. Everything in both
//! contexts that messages arrive in.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use libc::{
    EAGAIN, EFAULT, EINTR, EINVAL, EMSGSIZE, ENOBUFS, EPIPE, O_NONBLOCK, POLLIN, POLLOUT, POLLPRI,
};
use strobe_cases::machine::slowness;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{
    allow_interruption, asleep_in, interrupt, ioctl, ioctl_at, set_flags, sys, until, until_asleep,
};
use strobe_cases::rpmsg::*;

/// An address that nobody has.
const HERE: u32 = 77;

/// How many messages a pair exchanges.
const MANY: u32 = 10_000;

/// The number in a message.
fn number(message: &[u8]) -> u32 {
    u32::from_le_bytes(message.try_into().expect("a word"))
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
        assert_eq!((said.address, said.dst, said.sent), (78, HERE, 0));
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
fn messages_of_any_length_come_out_as_they_went_in_wherever_they_lie_in_the_ring() {
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, O_NONBLOCK);
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut dice = move |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % bound
        };
        let mut waiting = VecDeque::new();
        let (mut sent, mut received) = (0, 0);
        for _ in 0..400 / slowness() {
            // Until there is no room; long ones fill the bytes, short ones the messages.
            let longest = 1 + dice(MTU as u64);
            for _ in 0..3 * QUEUE {
                let message: Vec<u8> = (0..dice(longest + 1)).map(|_| dice(256) as u8).collect();
                send(&endpoint, &message).expect("sent");
                sent += 1;
                let mut said = stats(&endpoint).expect("stats");
                until("it", || {
                    said = stats(&endpoint).expect("stats");
                    said.received + said.dropped == sent
                });
                if said.received == received {
                    break;
                }
                received += 1;
                waiting.push_back(message);
                assert_eq!(said.queued as usize, waiting.len());
            }
            assert_eq!(received + stats(&endpoint).expect("stats").dropped, sent);
            for _ in 0..=dice(waiting.len() as u64) {
                assert_eq!(receive(&endpoint).ok(), waiting.pop_front());
            }
        }
        for message in waiting {
            assert_eq!(receive(&endpoint), Ok(message));
        }
        assert_eq!(receive(&endpoint), Err(EAGAIN));
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
            let (id, reader) = asleep_in(scope, libc::SYS_read, move || {
                (receive(endpoint), receive(endpoint))
            });
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
            let (_, poller) = asleep_in(scope, libc::SYS_poll, move || {
                poll_for(endpoint, POLLOUT, -1)
            });
            processor.set("stalled", 0);
            assert_eq!(poller.join().expect("the poller"), Ok(POLLOUT));
        });
        processor.set("stalled", 1);
        set_flags(endpoint, 0);
        thread::scope(|scope| {
            let (_, writer) = asleep_in(scope, libc::SYS_write, move || send(endpoint, b"message"));
            assert_eq!(state(endpoint), 0, "who looks is not held back");
            processor.set("stalled", 0);
            assert_eq!(writer.join().expect("the writer"), Ok(7));
        });
        assert_eq!(receive(endpoint).as_deref(), Ok(&b"message"[..]));
    }
}

#[test]
fn a_remote_that_is_asked_for_a_buffer_is_asked_for_who_may_wait_and_its_no_is_final() {
    for processor in contexts() {
        let endpoint = endpoint(ANY, ANY, O_NONBLOCK);
        processor.set("asks", 1);
        assert_eq!(send(&endpoint, b"no"), Err(EAGAIN));
        set_flags(&endpoint, 0);
        assert_eq!(send(&endpoint, b"message"), Ok(7));
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"message"[..]));
        processor.set("asks", 2);
        assert_eq!(send(&endpoint, b"no"), Err(ENOBUFS));
    }
}

#[test]
fn a_writer_that_waits_is_let_go_by_a_signal_though_the_transport_would_not() {
    allow_interruption(0);
    for processor in contexts() {
        let endpoint = &endpoint(ANY, ANY, 0);
        processor.set("stalled", 1);
        thread::scope(|scope| {
            let (id, writer) =
                asleep_in(scope, libc::SYS_write, move || send(endpoint, b"message"));
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
            let (_, writer) = asleep_in(scope, libc::SYS_write, move || send(endpoint, b"message"));
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
