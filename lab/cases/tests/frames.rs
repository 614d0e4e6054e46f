// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a co-processor as rows, by both engines: the remote is firmware/strobe_frames.c on the lab's transport.
// lab: --module strobe_rpmsg --module strobe_frames --module 'lab_rpmsg channels=adc-frames,strobe_rpmsg'

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use strobe::board::{Board, Outcome, Policy, System};
use strobe::engine::user::{Settings, User};
use strobe::engine::Source;
use strobe::plan::Plan;
use strobe_cases::account::{begin, read_now, read_to_end, until, until_rows, Account, Pace};
use strobe_cases::rpmsg::{Processor, Program};
use strobe_cases::{plan, Engine, Kernel};
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

/// The remote's firmware, which waits for START.
struct Firmware {
    program: Child,
    says: BufReader<ChildStdout>,
}

impl Firmware {
    fn start(count: u32, period_us: u32, frames_a_message: u32) -> Firmware {
        let words = [count, period_us, frames_a_message].map(|word| word.to_string());
        let mut program = Command::new("remote")
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the firmware");
        let says = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut firmware = Firmware { program, says };
        assert_eq!(firmware.line(), "ready");
        firmware
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    /// How much it has sampled, and how much of it was not sent.
    fn sampled(&mut self) -> (u64, u64) {
        let line = self.line();
        let (sampled, missed) = line.split_once(' ').expect("two numbers");
        (
            sampled.parse().expect("a number"),
            missed.parse().expect("a number"),
        )
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn sample(ring: u64) -> Plan {
    Plan {
        ring: Some(ring),
        ..plan("adc.sample", &FIELDS)
    }
}

/// Each row is the sample that its number says.
fn check(account: &Account) {
    let columns: Vec<Vec<u64>> = (0..FIELDS.len())
        .map(|index| account.column(index).collect())
        .collect();
    for (row, &n) in columns[0].iter().enumerate() {
        let got: Vec<u64> = columns.iter().map(|column| column[row]).collect();
        let field = |value: u32| i64::from(value as i32) as u64;
        let number = n as u32;
        let wanted = [
            n,
            n,
            field(number),
            field(number.wrapping_neg()),
            field(number.wrapping_mul(3)),
            field(!number),
            0,
        ];
        assert_eq!(got, wanted, "row {row}");
    }
}

/// A run of so many samples from its start to the end of its firmware.
fn run_of(
    make: &dyn Fn(&Plan) -> Arc<dyn Source>,
    count: u32,
    period_us: u32,
    frames_a_message: u32,
) -> (Account, Snapshot, (u64, u64)) {
    let mut firmware = Firmware::start(count, period_us, frames_a_message);
    let run = make(&sample(1 << 18));
    let (mut reader, mut account) = begin(run.as_ref());
    run.start().expect("to start");
    let sampled = firmware.sampled();
    // What was sent last has arrived when nothing comes any more.
    let mut before = u64::MAX;
    until("all frames", || {
        let now = reader.snapshot().head;
        std::mem::replace(&mut before, now) == now
    });
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    (account, end, sampled)
}

#[test]
fn each_frame_is_a_row_with_its_fields_as_channels() {
    engines(|make, _| {
        for frames_a_message in [1, 4, 15] {
            let (account, end, (sampled, unsent)) = run_of(make, 600, 100, frames_a_message);
            check(&account);
            assert_eq!((sampled, unsent, end.missed()), (600, 0, 0), "{end:?}");
            assert_eq!(end.head, 600);
            assert!(account.column(0).eq(0..600));
        }
    });
}

#[test]
fn what_the_transport_loses_is_missed_exactly() {
    engines(|make, processor| {
        let before = processor.dropped();
        processor.set("drop", 7);
        let (account, end, (sampled, _)) = run_of(make, 20_001, 0, 1);
        processor.set("drop", 0);
        let dropped = processor.dropped() - before;
        check(&account);
        assert!(dropped > 1000, "{dropped}");
        // All but what was lost after the last frame that came.
        let last = account.column(0).last().expect("a row");
        assert_eq!(end.head + end.missed(), last + 1, "{end:?}");
        assert!(sampled - last <= 2, "{sampled} sampled, {last} came last");
        assert_eq!(end.missed(), end.missed_by[Missed::Source as usize]);
    });
}

#[test]
fn what_is_no_frame_is_counted_by_name_and_makes_no_row() {
    const COUNTERS: [&str; 5] = [
        "adc.messages",
        "adc.short",
        "adc.long",
        "adc.malformed",
        "adc.out_of_order",
    ];
    engines(|make, _| {
        let remote = Program::start();
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
        let frame = |sequence: u32| [&sequence.to_le_bytes()[..], &[0; 28]].concat();
        let message = |head: [u8; 6], body: &[u8]| [&b"SF"[..], &head, body].concat();
        let good = |sequence| message([1, 1, 1, stream, 32, 0], &frame(sequence));
        let one = frame(1);
        for bytes in [
            good(0),
            b"SF\x01".to_vec(),                      // short
            message([1, 1, 2, stream, 32, 0], &one), // short
            [good(1), vec![0]].concat(),             // long
            message([1, 1, 0, stream, 32, 0], &[]),  // malformed, as the next
            message([2, 1, 1, stream, 32, 0], &one),
            message([1, 9, 1, stream, 32, 0], &one),
            message(
                [1, 1, 1, stream, 40, 0],
                &[one.clone(), vec![0; 8]].concat(),
            ),
            [b"XX", &good(1)[2..]].concat(),
            message([1, 1, 1, stream.wrapping_sub(1), 32, 0], &one), // of another stream
            good(0),                                                 // a duplicate
            good(3),
        ] {
            remote.send(SERVICE, host, &bytes).expect("to send");
        }
        until_rows(&reader, 2);
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        assert_eq!((end.head, end.missed()), (2, 2), "{end:?}");
        assert!(account.column(0).eq([0, 3]));
        let counted: Vec<u64> = (1..6)
            .map(|column| account.column(column).last().expect("a row"))
            .collect();
        assert_eq!(counted[1..], [2, 1, 5, 2], "{counted:?}");
    });
}

#[test]
fn a_remote_that_goes_ends_the_run_and_what_came_is_there() {
    engines(|make, processor| {
        let mut firmware = Firmware::start(1_000_000, 500, 2);
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
        let _ = firmware.program.kill();
        drop(run);
        processor.plug();
    });
}

#[test]
fn a_second_run_begins_anew_and_takes_nothing_of_the_first() {
    engines(|make, _| {
        for _ in 0..3 {
            let (account, end, _) = run_of(make, 300, 0, 3);
            check(&account);
            assert_eq!(account.column(0).next(), Some(0));
            assert_eq!((end.head, end.missed()), (300, 0), "{end:?}");
        }
    });
}
