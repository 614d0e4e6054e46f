// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware of a co-processor, as it is compiled for one, and the kernel engine at the other end: samples become rows.
// lab: --module 'lab_rpmsg channels=adc-frames'

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use strobe::board::{Board, Outcome, Policy, System};
use strobe::engine::Source;
use strobe::plan::Plan;
use strobe_cases::account::{begin, read_now};
use strobe_cases::machine::slowness;
use strobe_cases::rpmsg::{contexts, Processor};
use strobe_cases::{plan, Account, Engine, Kernel};
use strobe_ring::{Missed, Snapshot};

/// Frames a message.
const MOST: u64 = 8;

/// Of a long recording.
const SAMPLES: u64 = 100_000;

/// The board of the example, installed; removed when dropped.
struct Installed(Board);

impl Installed {
    fn new() -> Installed {
        let text = fs::read_to_string("/boards/adc-frames.toml").expect("a board file");
        let board = Board::from_toml("adc-frames.toml", &text).expect("it is right");
        let installed = System::default().install(&board, &text, Policy::Free);
        let bindings = installed.expect("to install").bindings;
        let outcomes: Vec<_> = bindings.into_iter().map(|b| b.outcome).collect();
        assert_eq!(outcomes, [Outcome::Bound(Some("adc".into()))]);
        Installed(board)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = System::default().remove(&self.0.hardware);
    }
}

/// The program on the remote.
struct Coprocessor {
    program: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Coprocessor {
    fn new(samples: u64) -> Coprocessor {
        // As fast as it can most of it would be throttled.
        let period_us = 50 * slowness();
        let mut program = Command::new("coprocessor")
            .args([32, MOST, samples, period_us].map(|word| word.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let said = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut coprocessor = Coprocessor { program, said };
        assert_eq!(coprocessor.line(), "ready");
        coprocessor
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

impl Drop for Coprocessor {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Records until the remote has taken all its samples; each row is checked.
fn recorded(samples: u64) -> (Account, Snapshot) {
    let mut coprocessor = Coprocessor::new(samples);
    let channels = ["adc.sequence", "adc.status", "adc.ch1", "adc.ch3"];
    let run = Kernel::open().run(&Plan {
        ring: Some(samples.next_power_of_two()),
        ..plan("adc.sample", &channels)
    });
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    assert_eq!(coprocessor.line(), format!("sampled {samples} missed 0"));
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    for row in &account.rows {
        let sequence = row.values[0];
        // The trigger's number is the sample's: rows and missed are all there are.
        assert_eq!(sequence, row.trigger);
        let word = 1_000_003 * sequence;
        let low = |word: u64| i64::from(word as u32 as i32) as u64;
        assert_eq!(row.values[1..], [0, low(word), low(word + 1)]);
    }
    (account, end)
}

/// Rows that a busy machine had no time for: frames of a message come all at once.
fn throttled(end: &Snapshot) -> u64 {
    end.missed_by[Missed::Throttled as usize]
}

#[test]
fn each_sample_of_the_firmware_is_a_row_in_both_contexts() {
    for _processor in contexts() {
        let _board = Installed::new();
        let (account, end) = recorded(10_000);
        assert_eq!(end.triggers, 10_000, "{end:?}");
        let rows = account.rows.len() as u64;
        assert_eq!(rows + throttled(&end), 10_000, "{end:?}");
    }
}

#[test]
fn what_the_transport_has_lost_is_missed_to_the_sample() {
    for hard in [false, true] {
        let processor = Processor::new(hard);
        let _board = Installed::new();
        let before = processor.dropped();
        processor.set("drop", 7);
        let (account, end) = recorded(SAMPLES);
        processor.set("drop", 0);
        let dropped = processor.dropped() - before;
        assert!(dropped >= SAMPLES / MOST / 7, "{dropped} dropped");
        // Behind the last frame that has come, nothing could tell of what was lost.
        let unknown = SAMPLES - end.triggers;
        assert!(unknown <= MOST, "{end:?}");
        let lost = end.missed_by[Missed::Source as usize] + unknown;
        assert_eq!(lost, dropped * MOST, "{end:?}");
        let rows = account.rows.len() as u64;
        assert_eq!(rows + lost + throttled(&end), SAMPLES, "{end:?}");
    }
}
