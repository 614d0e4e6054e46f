// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peers that mean harm, or are broken: each is a named fault, and is bounded in memory and in time.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strobe_board::Board;
use strobe_instrument::{Conversation, Fault};

/// Seconds to wait for a peer that does something: nobody waits so long, however busy the machine is.
const PATIENT: f64 = 30.0;
/// For a peer of which the fault is that it lets one wait.
const SHORT: f64 = 0.3;

/// What a peer does with each connection after the first question of it.
type Deed = fn(&mut TcpStream);

/// A peer on a port of its own, and how often it was connected to.
fn peer(deed: Deed) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connections = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            seen.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                if stream.read(&mut [0; 256]).is_ok_and(|read| read > 0) {
                    deed(&mut stream);
                }
            });
        }
    });
    (port, connections)
}

fn conversation(port: u16, kind: &str, timeout: f64, channel: &str) -> Conversation {
    let text = format!(
        "[board]\nname = \"peer\"\n[transport]\nkind = \"{kind}\"\naddress = \"127.0.0.1:{port}\"\n\
         timeout = {timeout:?}\nretry = 0.02\n[channel.x]\n{channel}\n"
    );
    let board = Board::from_toml("test.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    let instrument = board.instrument.expect("an instrument");
    Conversation::open(instrument).unwrap_or_else(|why| panic!("{why}"))
}

/// Asks once; at most a moment more than the timeout.
fn ask(conversation: &Conversation) -> Result<u64, Fault> {
    let errand = conversation.question(0);
    conversation.give(&errand, 0);
    errand.wait(conversation.patience())?;
    errand.channel(0)
}

/// Asks until something else than `Absent` is the answer.
fn ask_until_there(conversation: &Conversation) -> Result<u64, Fault> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match ask(conversation) {
            Err(Fault::Absent) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(5));
            }
            answer => return answer,
        }
    }
}

/// Bytes of memory that this process has.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    4096 * pages.unwrap_or(0)
}

/// The account of a conversation: each question has one end.
fn check(conversation: &Conversation) {
    let count = |name| conversation.counts().named(name).expect(name);
    let ends = [
        "answers", "late", "wrong", "cut", "long", "extra", "refused", "absent",
    ];
    let sum: u64 = ends.map(count).iter().sum();
    assert_eq!(count("questions"), sum);
}

/// Sends until nobody takes it any more.
fn send_forever(stream: &mut TcpStream, bytes: &[u8]) {
    while stream.write_all(bytes).is_ok() {}
}

#[test]
fn whatever_a_hostile_peer_sends_is_a_named_fault_and_takes_no_memory() {
    let text = "query = \"X?\"";
    let block = "query = \"X?\"\nblock = true\nbinary = \"u16\"\nendian = \"big\"";
    let endless: Deed = |stream| send_forever(stream, &[b'1'; 65536]);
    let noise: Deed = |stream| {
        let noise: Vec<u8> = (0..65536_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80)
            .collect();
        send_forever(stream, &noise);
    };
    let gigabyte: Deed = |stream| {
        let _ = stream.write_all(b"#9999999999");
        send_forever(stream, &[0; 65536]);
    };
    let drops: Deed = |stream| {
        while stream.write_all(b"7").is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    };
    let lines: Deed = |stream| send_forever(stream, &b"1\n".repeat(2048));
    let silence: Deed = |_| thread::sleep(Duration::from_secs(3));
    let hang_up: Deed = |_| {};
    let before = memory();
    let flood = &[Fault::Long, Fault::Cut][..];
    for (name, deed, timeout, channel, faults) in [
        ("an endless line", endless, PATIENT, text, flood),
        ("noise", noise, PATIENT, text, flood),
        ("a gigabyte", gigabyte, PATIENT, block, flood),
        // Its first byte has to be there by then.
        ("drops", drops, 1.5, text, &[Fault::Cut]),
        ("lines without end", lines, PATIENT, text, &[Fault::Extra]),
        ("silence", silence, SHORT, text, &[Fault::Late]),
        ("hanging up", hang_up, PATIENT, text, &[Fault::Cut]),
    ] {
        let (port, connections) = peer(deed);
        let conversation = conversation(port, "tcp", timeout, channel);
        for _ in 0..3 {
            let answer = ask_until_there(&conversation);
            let fault = answer.expect_err(name);
            assert!(faults.contains(&fault), "{name}: {fault:?}");
        }
        check(&conversation);
        let reconnects = || conversation.counts().named("reconnects").unwrap_or(0);
        let until = Instant::now() + Duration::from_secs(20);
        while connections.load(Ordering::SeqCst) != reconnects() + 1 {
            assert!(
                Instant::now() < until,
                "{name}: {} reconnects",
                reconnects()
            );
            thread::sleep(Duration::from_millis(1));
        }
        assert!(reconnects() >= 2, "{name}");
    }
    let more = memory().saturating_sub(before);
    assert!(more < 32 << 20, "{more} bytes more");
}

#[test]
fn what_is_no_modbus_is_a_named_fault() {
    let noise: Deed = |stream| send_forever(stream, &[0xff; 4096]);
    let zeros: Deed = |stream| send_forever(stream, &[0; 4096]);
    let short: Deed = |stream| {
        let _ = stream.write_all(&[0, 1, 0, 0, 0, 3, 1, 3, 2]);
    };
    let other: Deed = |stream| {
        let _ = stream.write_all(&[0, 1, 0, 0, 0, 5, 1, 4, 2, 0, 7]);
        thread::sleep(Duration::from_secs(1));
    };
    for (name, deed, timeout, faults) in [
        ("noise", noise, PATIENT, &[Fault::Wrong][..]),
        // Each is thrown away, until it is too late.
        (
            "frames without end",
            zeros,
            SHORT,
            &[Fault::Late, Fault::Cut],
        ),
        (
            "a short frame",
            short,
            PATIENT,
            &[Fault::Wrong, Fault::Refused],
        ),
        ("another function", other, PATIENT, &[Fault::Wrong]),
    ] {
        let (port, _) = peer(deed);
        let conversation = conversation(port, "modbus-tcp", timeout, "query = \"holding 1\"");
        let fault = ask_until_there(&conversation).expect_err(name);
        assert!(faults.contains(&fault), "{name}: {fault:?}");
        check(&conversation);
    }
}

#[test]
fn a_late_answer_is_never_that_to_the_next_question() {
    // Answers 1, 2, 3 ... to the questions of all connections; each third one is late.
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let deed: Deed = |stream| {
        loop {
            let number = ASKED.fetch_add(1, Ordering::SeqCst) + 1;
            if number % 3 == 0 {
                // Until nobody waits for it any more: the connection is given up.
                let _ = stream.read(&mut [0; 64]);
            }
            let sent = stream.write_all(format!("{number}\n").as_bytes());
            if sent.is_err() || !stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {
                return;
            }
        }
    };
    let (port, _) = peer(deed);
    // Those in time have to be so on a busy machine, too; but it is waited so long for each third one.
    let conversation = conversation(port, "tcp", 1.0, "query = \"X?\"\ntype = \"integer\"");
    let (mut last, mut late) = (0, 0);
    for _ in 0..12 {
        match ask_until_there(&conversation) {
            Ok(number) => {
                assert!(number > last && number % 3 != 0, "{number} after {last}");
                assert_eq!(number, ASKED.load(Ordering::SeqCst), "an answer of before");
                last = number;
            }
            Err(fault) => {
                assert_eq!(fault, Fault::Late);
                late += 1;
            }
        }
    }
    // Each third one, and what a busy machine has made late.
    assert!(late >= 4, "{late}");
    assert_eq!(conversation.counts().named("late"), Some(late));
    check(&conversation);
}

#[test]
fn an_instrument_that_is_not_there_or_another_one_is_refused_with_the_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let text = |port, timeout: f64, more: &str| {
        let text = format!(
            "[board]\nname = \"peer\"\n[transport]\nkind = \"tcp\"\naddress = \"127.0.0.1:{port}\"\n\
             timeout = {timeout:?}\n{more}\n[channel.x]\nquery = \"X?\"\n"
        );
        let board = Board::from_toml("test.toml", &text).expect("a board");
        let opened = Conversation::open(board.instrument.expect("an instrument"));
        opened.map(drop).expect_err("nobody is there")
    };
    let refused = text(port, PATIENT, "");
    assert!(refused.contains("is its server on"), "{refused}");
    let (port, _) = peer(|stream| {
        let _ = stream.write_all(b"OTHER,X1\n");
    });
    let other = text(port, PATIENT, "[identity]\nexpect = \"ACME{*}\"");
    assert!(
        other.contains("*IDN? answers \"OTHER,X1\"")
            && other.contains("is it the right instrument"),
        "{other}"
    );
    let (port, _) = peer(|_| thread::sleep(Duration::from_secs(1)));
    let silent = text(port, SHORT, "[identity]\nexpect = \"ACME{*}\"");
    assert!(silent.contains("*IDN?: it does not answer"), "{silent}");
}
