// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames without a co-processor: the remote is the other end of a pair of sockets.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Instant;

use strobe_hw::wakeup::wakeup;

use super::*;
use crate::info::Clock;

fn frames() -> Frames {
    let text = include_str!("../../../../../../boards/adc-frames.toml");
    let board = Board::from_toml("adc-frames.toml", text).expect("a board");
    Frames::new(board).expect("of a co-processor")
}

fn row() -> Row {
    Row {
        time: 0,
        start: 0,
        trigger: Trigger::PLAIN,
    }
}

#[test]
fn fields_are_read_from_the_last_frame_with_their_signs() {
    let frames = frames();
    let word = |index: usize, value: u64| frames.last.words[index].store(value, Ordering::Relaxed);
    word(0, 0x0000_0007_0000_0005);
    word(1, 1_000_000);
    word(2, 0x0000_0002_ffff_fffe);
    for (name, value) in [
        ("adc.sequence", 5),
        ("adc.status", 7),
        ("adc.time", 1_000_000),
        ("adc.ch1", -2_i64 as u64),
        ("adc.ch2", 2),
        ("adc.messages", 0),
    ] {
        let found = frames.channel(name).expect(name).expect(name);
        let mut reader = found.open().expect(name);
        assert_eq!(reader.read(&row()).expect("a value"), value, "{name}");
    }
    assert!(frames.channel("adc.none").is_none());
    assert!(frames.channel("other.ch1").is_none());
}

#[test]
fn one_run_has_the_stream() {
    let frames = frames();
    let claim = Claim::of(&frames.last).expect("free");
    assert!(Claim::of(&frames.last).is_none());
    drop(claim);
    assert!(Claim::of(&frames.last).is_some());
}

#[test]
fn without_a_channel_the_event_says_what_to_do() {
    let frames = frames();
    let event = "adc.sample".parse().expect("an event");
    if Control::list().is_empty() {
        let found = frames
            .event(&event, &Settings::default())
            .expect("of this board");
        let why = found.err().expect("refused").to_string();
        assert!(
            why.contains("adc.sample") && why.contains("strobe_rpmsg"),
            "{why}"
        );
    }
    assert!(
        !frames.last.taken.load(Ordering::Relaxed),
        "and is free again"
    );
}

/// A source, and the remote that it talks with.
fn source(wait: WaitMode) -> (Source, Remote) {
    let (host, remote) = UnixDatagram::pair().expect("a pair");
    let endpoint = Endpoint::from(File::from(OwnedFd::from(host)));
    let claim = Claim::of(&frames().last).expect("free");
    let source = Source::new(claim, endpoint, QUEUE_KIB, wait).expect("a source");
    (source, Remote(remote))
}

struct Remote(UnixDatagram);

impl Remote {
    /// The next command of the host: its kind, its stream, its credits.
    fn command(&self) -> (u8, u8, u32) {
        let mut message = [0; 16];
        let patience = Some(Duration::from_secs(10));
        self.0.set_read_timeout(patience).expect("to set it");
        self.0.recv(&mut message).expect("a command");
        let [b'S', b'F', 1, kind, 0, stream, 0, 0, a, b, c, d, ..] = message else {
            panic!("{message:?}");
        };
        (kind, stream, u32::from_le_bytes([a, b, c, d]))
    }

    fn has_heard_nothing(&self) -> bool {
        self.0.set_nonblocking(true).expect("to set it");
        let heard = self.0.recv(&mut [0; 16]);
        self.0.set_nonblocking(false).expect("to set it");
        heard.is_err()
    }

    /// Sends frames with these numbers in one message, and `more` bytes that nobody expects.
    fn send(&self, stream: u8, numbers: std::ops::Range<u32>, more: usize) {
        let mut message = vec![b'S', b'F', 1, 1, numbers.len() as u8, stream, 32, 0];
        for number in numbers {
            message.extend(number.to_le_bytes());
            message.extend([0; 28]);
        }
        message.resize(message.len() + more, 0);
        self.0.send(&message).expect("to send");
    }
}

const START: u8 = 16;
const STOP: u8 = 17;
const CREDIT: u8 = 18;

fn clock() -> RunClock {
    RunClock::new(Clock::Monotonic)
}

fn begin(source: &mut Source, remote: &Remote) -> u8 {
    source.begin(&clock(), 0).expect("to begin");
    let (kind, stream, credits) = remote.command();
    assert_eq!((kind, credits), (START, 120));
    stream
}

/// The next trigger's number, and how many were missed before it.
fn next(source: &mut Source) -> (u64, u64) {
    let (_waker, mut wakeup) = wakeup().expect("a wake-up");
    match source.wait(&clock(), &mut wakeup).expect("to wait") {
        WaitOutcome::Trigger(trigger) => (trigger.count, trigger.missed),
        other => panic!("nobody rang: {other:?}"),
    }
}

/// Waits in vain while `meanwhile` goes on.
fn in_vain<T>(source: &mut Source, meanwhile: impl FnOnce() -> T) -> T {
    let (waker, mut wakeup) = wakeup().expect("a wake-up");
    thread::scope(|scope| {
        let waiting = scope.spawn(move || source.wait(&clock(), &mut wakeup));
        let done = meanwhile();
        waker.wake();
        let woken = waiting.join().expect("it waits").expect("to wait");
        assert_eq!(woken, WaitOutcome::Wakeup);
        done
    })
}

#[test]
fn what_comes_between_two_runs_is_not_of_the_next() {
    let (mut source, remote) = source(WaitMode::Block);
    let before = begin(&mut source, &remote);
    remote.send(before, 0..2, 0);
    assert_eq!([next(&mut source), next(&mut source)], [(0, 0), (1, 0)]);
    source.end();
    assert_eq!(remote.command(), (STOP, before, 0));
    remote.send(before, 7_000..7_001, 0);
    remote.send(before, 7_001..7_002, 0);
    let stream = begin(&mut source, &remote);
    assert_eq!(stream, before.wrapping_add(1));
    // This one was on its way for longer.
    remote.send(before, 7_002..7_003, 0);
    remote.send(stream, 1..2, 0);
    assert_eq!(next(&mut source), (1, 1));
    assert_eq!(source.decoder.counters().out_of_order, 3);
}

#[test]
fn a_message_that_is_too_long_is_refused_and_not_cut() {
    let (mut source, remote) = source(WaitMode::Block);
    let stream = begin(&mut source, &remote);
    remote.send(stream, 0..255, 1);
    remote.send(stream, 255..256, 0);
    assert_eq!(next(&mut source), (255, 255));
    assert_eq!(source.decoder.counters().long, 1);
}

#[test]
fn start_is_sent_as_soon_as_the_remote_has_room() {
    let (mut source, remote) = source(WaitMode::Block);
    // A busy machine may make room late.
    source.patience_ns = 60_000_000_000;
    let mut other = 0;
    while source.endpoint.send(b"something else").is_ok() {
        other += 1;
    }
    let begun = thread::scope(|scope| {
        let remote = &remote;
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(20));
            for _ in 0..other {
                remote.0.recv(&mut [0; 16]).expect("something else");
            }
        });
        source.begin(&clock(), 0)
    });
    begun.expect("to begin");
    assert_eq!(remote.command().0, START);
    // One that never has room is not waited for without end.
    source.patience_ns = PATIENCE_NS;
    while source.endpoint.send(b"something else").is_ok() {}
    let refused = source.begin(&clock(), 0).expect_err("no room");
    let again = Errno::AGAIN.raw_os_error();
    assert_eq!(refused.raw_os_error(), Some(again));
}

#[test]
fn credits_come_after_a_quarter_of_the_room_when_nothing_waits() {
    for wait in [WaitMode::Block, WaitMode::Spin] {
        let (mut source, remote) = source(wait);
        let stream = begin(&mut source, &remote);
        // 56 samples of which 28 were missed; then 10 more.
        remote.send(stream, 28..56, 0);
        remote.send(stream, 56..66, 0);
        for sequence in 28..66 {
            assert_eq!(next(&mut source).0, sequence);
        }
        assert!(
            remote.has_heard_nothing(),
            "nobody has seen that all is taken"
        );
        let credit = in_vain(&mut source, || remote.command());
        assert_eq!(credit, (CREDIT, stream, 120));
    }
}

#[test]
fn silence_brings_credits_again_and_again() {
    for wait in [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin] {
        let (mut source, remote) = source(wait);
        // Silence begins when START is sent, somewhere in here.
        let start = Instant::now();
        let stream = begin(&mut source, &remote);
        let credits = in_vain(&mut source, || [remote.command(), remote.command()]);
        assert_eq!(credits, [(CREDIT, stream, 120); 2]);
        let quiet = Duration::from_nanos(QUIET_NS);
        assert!(start.elapsed() >= 2 * quiet, "{:?}", start.elapsed());
    }
}
