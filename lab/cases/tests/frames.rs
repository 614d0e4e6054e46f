// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a co-processor as rows, by both engines: the remote is firmware/strobe_frames.c on the lab's transport.
// lab: --module strobe_rpmsg --module strobe_frames --module 'lab_rpmsg channels=adc-frames,strobe_rpmsg'

use std::fs;
use std::sync::Arc;

use strobe::board::{Board, Outcome, Policy, System};
use strobe::engine::user::{Settings, User};
use strobe::engine::Source;
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe_cases::account::{begin, read_now, read_to_end, until, until_rows, Account, Pace};
use strobe_cases::machine::patience;
use strobe_cases::rpmsg::{Coprocessor, Processor, Program};
use strobe_cases::{plan, Engine, Kernel};
use strobe_ring::Engine::Kernel as KernelEngine;
use strobe_ring::{Missed, Snapshot, State};

const BOARD: &str = "/boards/adc-frames.toml";
/// The address of the service.
const SERVICE: u32 = 0x400;
const FIELDS: [&str; 7] = [
    "adc.sequence",
    "adc.time",
    "adc.ch1",
    "adc.ch2",
    "adc.ch3",
    "adc.ch4",
    "adc.status",
];

fn board() -> Board {
    Board::from_toml(BOARD, &fs::read_to_string(BOARD).expect("a board file"))
        .unwrap_or_else(|faults| panic!("{faults}"))
}

/// The board, installed until this is dropped: the kernel engine has the service.
struct Installed(Board);

impl Installed {
    fn new() -> Installed {
        let text = fs::read_to_string(BOARD).expect("a board file");
        let board = board();
        let installed = System::default()
            .install(&board, &text, Policy::Free)
            .expect("to install");
        let outcomes = installed.bindings.iter().map(|binding| &binding.outcome);
        let bound = Outcome::Bound(Some("adc".into()));
        assert!(outcomes.eq([&bound]), "{installed:?}");
        Installed(board)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = System::default().remove(&self.0.hardware);
    }
}

/// Each engine, with the remote's messages arriving in each context.
fn engines(each: impl Fn(&dyn Fn(&Plan) -> Arc<dyn Source>, &Processor)) {
    for hard in [false, true] {
        let processor = Processor::new(hard);
        let installed = Installed::new();
        let kernel = Kernel::open();
        each(&|plan| Arc::new(kernel.run(plan)), &processor);
        drop(installed);
        let user = User::new(Settings::default()).with_board(board());
        each(
            &|plan| Arc::new(user.create(plan).expect("a run of the user engine")),
            &processor,
        );
    }
}

fn sample(ring: u64) -> Plan {
    Plan {
        ring: Some(ring),
        ..plan("adc.sample", &FIELDS)
    }
}

/// Each row is the sample that its number says, and the trigger's number is the sample's.
fn check(account: &Account) {
    let low = |word: u64| i64::from(word as u32 as i32) as u64;
    let high = |word: u64| low(word >> 32);
    for row in &account.rows {
        let [sequence, _, values @ ..] = &row.values[..] else {
            panic!("{row:?}");
        };
        assert_eq!(*sequence, row.trigger);
        let word = 1_000_003 * sequence;
        let wanted = [low(word), high(word), low(word + 1), high(word + 1), 0];
        assert_eq!(values, wanted, "{row:?}");
    }
}

/// A run from its start until the remote has sampled so often; and samples that it did not send, for the transport had
/// no room.
fn run_of(
    make: &dyn Fn(&Plan) -> Arc<dyn Source>,
    samples: u64,
    frames_a_message: u64,
) -> (RunReader, Snapshot, u64) {
    let mut remote = Coprocessor::start(samples, frames_a_message);
    let run = make(&sample(samples.next_power_of_two()));
    let (mut reader, mut account) = begin(run.as_ref());
    run.start().expect("to start");
    let (sampled, unsent) = remote.sampled();
    assert_eq!(sampled, samples);
    // What was sent last has arrived when nothing has come for a while.
    let (mut before, mut quiet) = (0, 0);
    until("all frames", || {
        std::thread::sleep(patience(1) / 20);
        let now = reader.snapshot().triggers;
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        quiet == 10
    });
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    check(&account);
    (reader, end, unsent)
}

/// Rows that a busy machine had no time for: frames of a message come all at once.
fn throttled(end: &Snapshot) -> u64 {
    end.missed_by[Missed::Throttled as usize]
}

/// Samples of which their numbers say that they did not come.
fn source(end: &Snapshot) -> u64 {
    end.missed_by[Missed::Source as usize]
}

/// Whether so many lost samples are what is known to be lost. The kernel engine loses none besides; a thread that does
/// not keep up loses what finds no room in its endpoint.
fn is_lost(reader: &RunReader, lost: u64, known: u64) -> bool {
    match reader.ring().header().engine {
        KernelEngine => lost == known,
        _ => lost >= known,
    }
}

#[test]
fn each_frame_is_a_row_with_its_fields_as_channels() {
    engines(|make, _| {
        for frames_a_message in [1, 4, 15] {
            let (reader, end, unsent) = run_of(make, 3_000, frames_a_message);
            // Behind the last frame that has come, nothing could tell of what was not sent.
            let lost = source(&end) + 3_000 - end.triggers;
            assert!(is_lost(&reader, lost, unsent), "{unsent}, {end:?}");
            assert_eq!(end.head + throttled(&end) + lost, 3_000, "{end:?}");
        }
    });
}

#[test]
fn what_the_transport_loses_is_missed_to_the_sample() {
    const SAMPLES: u64 = 100_000;
    const MOST: u64 = 8;
    engines(|make, processor| {
        let before = processor.dropped();
        processor.set("drop", 7);
        let (reader, end, unsent) = run_of(make, SAMPLES, MOST);
        processor.set("drop", 0);
        let dropped = processor.dropped() - before;
        assert!(dropped > SAMPLES / MOST / 8, "{dropped} dropped");
        let lost = source(&end) + SAMPLES - end.triggers;
        assert!(
            is_lost(&reader, lost, dropped * MOST + unsent),
            "{dropped}, {unsent}, {end:?}"
        );
        assert_eq!(end.head + throttled(&end) + lost, SAMPLES, "{end:?}");
    });
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits = hex.trim_start_matches('-').as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16);
    digits
        .map(|pair| byte(pair).expect("hexadecimal"))
        .collect()
}

/// Each line of tests/frames/refused.txt comes after a frame with sequence 5, and before the one with 6.

#[test]
fn each_kind_of_message_that_is_refused_is_counted_by_its_name_and_makes_no_row() {
    const COUNTERS: [&str; 5] = [
        "adc.messages",
        "adc.short",
        "adc.long",
        "adc.malformed",
        "adc.out_of_order",
    ];
    let refused = include_str!("../../../tests/frames/refused.txt").lines();
    let refused: Vec<&str> = refused.filter(|line| !line.starts_with('#')).collect();
    assert!(refused.len() >= 30, "{} kinds", refused.len());
    engines(|make, _| {
        let remote = Program::start();
        for line in &refused {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [counter, by, hex, _] = words[..] else {
                panic!("refused.txt: {line}");
            };
            let fields = [&["adc.sequence"][..], &COUNTERS].concat();
            let run = make(&plan("adc.sample", &fields));
            let (mut reader, mut account) = begin(run.as_ref());
            run.start().expect("to start");
            let (host, service, start) = remote.receive();
            assert_eq!(
                (service, &start[..4], start.len()),
                (SERVICE, &b"SF\x01\x10"[..], 16)
            );
            let stream = start[5];
            let good = |sequence: u8| {
                let head = [b'S', b'F', 1, 1, 1, stream, 32, 0, sequence];
                [&head[..], &[0; 31]].concat()
            };
            let mut wrong = from_hex(hex);
            // The file's stream is 1.
            if let Some(byte) = wrong.get_mut(5).filter(|_| counter != "malformed") {
                *byte = byte.wrapping_add(stream).wrapping_sub(1);
            }
            for message in [good(5), wrong, good(6)] {
                remote.send(SERVICE, host, &message).expect("to send");
            }
            until_rows(&reader, 2);
            run.stop().expect("to stop");
            // The user engine gives credit as well.
            until("STOP", || remote.receive().2[3] == 17);
            read_now(&mut reader, &mut account);
            let end = reader.snapshot();
            account.settle(&end);
            assert!(account.column(0).eq([5, 6]), "{line}");
            assert_eq!((end.missed(), source(&end)), (5, 5), "{line}");
            let grown = |column: usize| {
                let counts: Vec<u64> = account.column(column).collect();
                counts[1] - counts[0]
            };
            for (column, name) in (1..).zip(COUNTERS) {
                let wanted = match name.strip_prefix("adc.") {
                    Some("messages") => 2,
                    Some(name) if name == counter => by.parse().expect("a number"),
                    _ => 0,
                };
                assert_eq!(grown(column), wanted, "{name}: {line}");
            }
        }
    });
}

#[test]
fn a_remote_that_goes_ends_the_run_and_what_came_is_there() {
    engines(|make, processor| {
        let remote = Coprocessor::start(1_000_000, 2);
        let run = make(&sample(1 << 16));
        let (mut reader, _) = begin(run.as_ref());
        run.start().expect("to start");
        until_rows(&reader, 100);
        processor.pull();
        let account = read_to_end(&mut reader, Pace::FAST);
        let end = reader.snapshot();
        account.settle(&end);
        check(&account);
        assert_eq!(
            (end.state, end.error),
            (State::Failed, -libc::ENODEV),
            "{end:?}"
        );
        assert!(end.head >= 100);
        drop((remote, run));
        processor.plug();
    });
}

#[test]
fn a_second_run_begins_anew_and_takes_nothing_of_the_first() {
    engines(|make, _| {
        for _ in 0..3 {
            let (reader, end, unsent) = run_of(make, 300, 3);
            let lost = source(&end) + 300 - end.triggers;
            assert!(is_lost(&reader, lost, unsent), "{unsent}, {end:?}");
        }
    });
}
