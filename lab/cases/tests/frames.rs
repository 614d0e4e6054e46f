// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a co-processor as rows, by both engines: the remote is firmware/strobe_frames.c on the lab's transport.
//! There are two control nodes: the remote that announces the service tells them apart, or that they lead to the same.
// lab: --module strobe_rpmsg --module strobe_frames --module 'lab_rpmsg channels=adc-frames,strobe_rpmsg,strobe_rpmsg'

use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::cell::Cell;
use std::fs;
use std::io;
use std::sync::Arc;
use std::thread;

use strobe::catalogue::Catalogue;
use strobe::engine;
use strobe::engine::user::provider::{ChannelOpener, Provider, ReadChannel, Row};
use strobe::engine::user::{Settings, User};
use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe_board::{Board, Outcome, Policy, System};
use strobe_cases::account::{Account, Pace, begin, read_now, read_to_end, until, until_rows};
use strobe_cases::machine::{command, patience};
use strobe_cases::rounds::rounds;
use strobe_cases::rpmsg::{Coprocessor, Processor, Program, overflown};
use strobe_cases::slow::{Slowness, made_up};
use strobe_cases::{Engine, Kernel, plan, raw};
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
fn engines(each: impl Fn(&dyn Fn(&Plan) -> Arc<dyn OwnedRun>, &Processor)) {
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
        let [sequence, _, values @ ..] = &row.values[..FIELDS.len()] else {
            panic!("{row:?}");
        };
        assert_eq!(*sequence, row.trigger);
        let word = 1_000_003 * sequence;
        let wanted = [low(word), high(word), low(word + 1), high(word + 1), 0];
        assert_eq!(values, wanted, "{row:?}");
    }
}

/// What has become of the samples of a run.
struct Ran {
    account: Account,
    end: Snapshot,
    samples: u64,
    /// Samples that the remote did not send, for want of credit or of room in the transport.
    unsent: u64,
}

impl Ran {
    /// Samples that have not come. Behind the last frame that has, nothing could tell the host.
    fn lost(&self) -> u64 {
        self.end.missed_by[Missed::Source as usize] + self.samples - self.end.triggers
    }

    /// Each sample is a row or missed, and no more are missed than is known: these, and those that were not sent.
    fn must_have_lost(&self, dropped: u64) {
        // Rows that a busy machine had no time for: frames of a message come all at once.
        let throttled = self.end.missed_by[Missed::Throttled as usize];
        let all = self.end.head + throttled + self.lost();
        assert_eq!(all, self.samples, "{:?}", self.end);
        let known = dropped + self.unsent;
        assert_eq!(self.lost(), known, "{dropped} dropped, {:?}", self.end);
        println!(
            "{} samples: {} rows, {throttled} throttled, {dropped} dropped, {} not sent",
            self.samples, self.end.head, self.unsent
        );
    }
}

/// A run from its start until the remote has sampled so often. No endpoint has been too full for a message.
fn run_of(make: &dyn Fn(&Plan) -> Arc<dyn OwnedRun>, samples: u64, frames_a_message: u64) -> Ran {
    let mut remote = Coprocessor::start(samples, frames_a_message);
    let run = make(&sample(samples.next_power_of_two()));
    let (mut reader, mut account) = begin(run.as_ref());
    run.start().expect("to start");
    let (sampled, unsent) = remote.sampled();
    assert_eq!(sampled, samples);
    // What was sent last has arrived when nothing has come for a while.
    let (mut before, mut quiet) = (0, 0);
    until("all frames", || {
        thread::sleep(patience(1) / 20);
        let now = reader.snapshot().triggers;
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        quiet == 10
    });
    run.stop().expect("to stop");
    assert_eq!(overflown(), 0, "messages that found no room");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    check(&account);
    Ran {
        account,
        end,
        samples,
        unsent,
    }
}

#[test]
fn each_frame_is_a_row_with_its_fields_as_channels() {
    engines(|make, _| {
        for frames_a_message in [1, 4, 15] {
            run_of(make, 3_000, frames_a_message).must_have_lost(0);
        }
    });
}

#[test]
fn what_the_transport_loses_is_missed_to_the_sample() {
    let samples = 500 * rounds(20, 20);
    engines(|make, processor| {
        let before = (processor.dropped(), processor.dropped_bytes());
        processor.set("drop", 7);
        let ran = run_of(make, samples, 8);
        processor.set("drop", 0);
        let messages = processor.dropped() - before.0;
        // Without credit to fill them, some had fewer than 8 frames.
        let frames = (processor.dropped_bytes() - before.1 - 8 * messages) / 32;
        assert!(messages > 0 && frames > messages, "{messages} dropped");
        ran.must_have_lost(frames);
    });
}

thread_local! {
    /// Calls of the allocator by this thread, to get and to give back.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system's allocator does it; counting touches nothing but a number of this thread, which needs no memory
// and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Has `own.calls`, of the allocator by the run's thread so far.
struct Own;

struct Calls;

impl ReadChannel for Calls {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(CALLS.get())
    }
}

impl Provider for Own {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, engine::Error>> {
        let found = || Ok(ChannelOpener::ready(made_up(name), Box::new(Calls)));
        (name == "own.calls").then(found)
    }
}

#[test]
fn a_thread_that_is_held_up_stops_the_remote_in_time_and_takes_no_memory() {
    let samples = 200 * rounds(50, 20);
    for hard in [false, true] {
        let _processor = Processor::new(hard);
        let held_up = Slowness {
            every: 777,
            sleep: patience(1) * 30 / 1_000,
        };
        let user = User::new(Settings::default())
            .with(Arc::new(Own))
            .with(Arc::new(held_up))
            .with_board(board());
        let make = |plan: &Plan| -> Arc<dyn OwnedRun> {
            let mut plan = plan.clone();
            let own = ["own.calls", "slow.count"].map(|name| Step::Read(name.into()));
            plan.steps.extend(own);
            Arc::new(user.create(&plan).expect("a run of the user engine"))
        };
        for frames_a_message in [1, 8] {
            let ran = run_of(&make, samples, frames_a_message);
            ran.must_have_lost(0);
            assert!(ran.unsent > 0, "it was not held up");
            let calls: Vec<u64> = ran.account.column(FIELDS.len()).collect();
            // The first row may pay for what only it needs.
            let more = calls.windows(2).skip(1).position(|two| two[0] != two[1]);
            assert_eq!(more, None, "a row before which the allocator was called");
        }
    }
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
        let mut left = refused.clone();
        while let Some(line) = left.pop() {
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
            until("all seven samples", || reader.snapshot().triggers == 7);
            run.stop().expect("to stop");
            // The user engine gives credit as well.
            until("STOP", || remote.receive().2[3] == 17);
            read_now(&mut reader, &mut account);
            let end = reader.snapshot();
            account.settle(&end);
            if end.missed_by[Missed::Throttled as usize] > 0 {
                // The machine was too busy for a row: once more.
                left.push(line);
                continue;
            }
            assert!(account.column(0).eq([5, 6]), "{line}");
            let source = end.missed_by[Missed::Source as usize];
            assert_eq!((end.missed(), source), (5, 5), "{line}");
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
            run_of(make, 300, 3).must_have_lost(0);
        }
    });
}

#[test]
fn frames_need_no_driver_of_cards() {
    assert_eq!(raw::unload("strobe_board"), Ok(0), "nobody needs it");
    let _installed = Installed::new();
    let kernel = Kernel::open();
    run_of(&|plan| Arc::new(kernel.run(plan)), 300, 3).must_have_lost(0);
    assert!(command("modprobe strobe_board"));
}
