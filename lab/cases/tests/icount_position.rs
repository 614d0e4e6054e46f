// SPDX-License-Identifier: MIT OR Apache-2.0
//! Position compare by a rule: an output at each of many positions of an axis, and how late it is. The counter's own clock
//! says when the output came, and the encoder's speed when the position was reached; neither asks strobe.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::thread;
use std::time::Duration;

use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::machine::{slowness, timer, undisturbed};
use strobe_cases::pci::{self, once, put, set};
use strobe_cases::{Account, Engine, plan};
use strobe_ring::Snapshot;

const BOARDS: [&str; 2] = ["lab-counter", "lab-encoder"];
const CHANNELS: [&str; 4] = [
    "encoder.position",
    "counter.held",
    "encoder.held",
    "clock.late",
];
/// Both cards say when they were told so: the time, and the position at it.
const OUTPUTS: [&str; 2] = ["counter.hold", "encoder.hold"];
const SECOND: u64 = 1_000_000_000;
/// Of a row.
const PERIOD: u64 = 100_000;
/// From one position that is waited for to the next, in counts.
const STEP: u64 = 100;
/// Counts in a second: from one position to the next are two rows and a half, and a little, so that the positions lie
/// anywhere between two rows.
const SPEED: u64 = 398_765;

/// How many positions; a longer run says so.
fn positions() -> u64 {
    std::env::var("STROBE_POSITIONS").map_or(1000, |n| n.parse().expect("a number"))
}

/// Lets the axis stand still at 0, where its position is held.
fn stop(engine: &impl Engine) {
    let writes = [
        ("encoder.speed", 0),
        ("encoder.position", 0),
        ("encoder.hold", 1),
    ];
    put(engine, &writes);
}

fn speed() -> u64 {
    SPEED / slowness()
}

/// Lets the axis turn from 0, and answers when it began, on the counter's clock.
fn turn(engine: &impl Engine) -> u64 {
    let writes = [
        ("encoder.resolution", 0),
        ("encoder.speed", speed()),
        ("encoder.position", 0),
        ("counter.hold", 1),
    ];
    let row = once(engine, &writes, &["counter.held", "encoder.since"]);
    row[0] - u64::from((row[0] as u32).wrapping_sub(row[1] as u32))
}

/// Rows of the axis from where it stands still, until it has passed the last position and all is done there.
fn scan(
    engine: &impl Engine,
    run: &impl OwnedRun,
    is_done: impl Fn() -> bool,
) -> (Account, Snapshot, u64) {
    stop(engine);
    let (mut reader, mut account) = begin(run);
    run.start().expect("to start");
    let begun = turn(engine);
    until("the last position", || {
        read_now(&mut reader, &mut account);
        let last = account.rows.last();
        last.is_some_and(|row| row.values[0] as i64 > ((positions() + 1) * STEP) as i64)
            && is_done()
    });
    // What was done last is in the rows after it.
    let head = reader.snapshot().head;
    until("two rows more", || reader.snapshot().head > head + 2);
    run.stop().expect("to stop");
    stop(engine);
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((account.lost, end.errors), (0, 0));
    (account, end, begun)
}

/// What is late, in ns, for each output: each new time that is held is one.
fn late(account: &Account, begun: u64) -> Vec<u64> {
    let held = |row: usize| account.rows[row].values[1];
    let outputs = (1..account.rows.len()).filter(|row| held(*row) != held(row - 1));
    // What was held while the axis was told to turn is none.
    let outputs = outputs.filter(|row| account.rows[*row].values[2] as i64 >= STEP as i64);
    let late = outputs.zip(1..).map(|(row, position)| {
        let reached = begun + (position * STEP * SECOND).div_ceil(speed());
        let at = account.rows[row].values[2];
        assert!(at >= position * STEP, "{position}: {:?}", account.rows[row]);
        let late = held(row).checked_sub(reached);
        late.unwrap_or_else(|| panic!("too early at {position}: {:?}", account.rows[row]))
    });
    late.take(positions() as usize).collect()
}

fn say(what: &str, mut late: Vec<u64>) -> [u64; 3] {
    assert_eq!(
        late.len() as u64,
        positions(),
        "an output for each position"
    );
    late.sort_unstable();
    let three = [0, late.len() / 2, late.len() - 1].map(|n| late[n]);
    let [best, typical, worst] = three;
    println!(
        "{what}: {} positions, best {best} ns, typical {typical} ns, worst {worst} ns",
        late.len()
    );
    three
}

/// The rule, in either engine.
fn ruled<E: Engine>(engine: &E) -> (Account, Snapshot, [u64; 3]) {
    let mut plan = Plan {
        ring: Some(1 << 16),
        ..plan(&timer(PERIOD), &CHANNELS)
    };
    plan.program = ProgramText {
        variables: vec![format!("next = {STEP} counts like encoder.position")],
        rules: vec![Rule {
            when: "encoder.position >= next".into(),
            then: vec![format!("next += {STEP} counts")],
        }],
        ..ProgramText::default()
    };
    plan.steps.extend(OUTPUTS.map(|output| Step::Act {
        output: output.into(),
        value: 1,
        rule: 0,
    }));
    let run = engine.run(&plan);
    let (account, end, begun) = scan(engine, &run, || true);
    let late = say(
        &format!("a rule, {:?} engine", E::KIND),
        late(&account, begun),
    );
    (account, end, late)
}

#[test]
fn a_rule_of_the_kernel_engine_writes_its_outputs_in_the_first_row_that_sees_the_position() {
    let (account, end, [_, _, worst]) = ruled(&pci::kernel(&BOARDS).engine);
    assert_eq!(end.missed(), 0, "{end:?}");
    let latest = account.column(3).max().unwrap_or(0);
    let most = (PERIOD + 20_000) * slowness() + latest;
    assert!(worst < most, "{worst} ns is more than {most}");
}

#[test]
fn a_rule_of_the_user_engine_writes_its_outputs_at_each_position_too() {
    undisturbed();
    ruled(&pci::user(&BOARDS).engine);
}

/// A program that looks at the latest row as soon as there is one, and writes the outputs for the next position, until the last.
fn compare(mut reader: RunReader, writes: &impl OwnedRun) {
    let mut buffer = vec![0; 1024 * reader.ring().row_words()];
    let (mut next, mut seen) = (STEP as i64, 0);
    while next <= (positions() * STEP) as i64 && !reader.ring().ended() {
        reader.wait(1, Duration::from_millis(100)).expect("to wait");
        let batch = reader.read(&mut buffer);
        let last = batch.rows().last().filter(|row| row.row >= seen);
        if last.is_some_and(|row| row.values[0] as i64 >= next) {
            writes.trigger(1).expect("to write");
            next += STEP as i64;
            // Of two outputs between two rows, the rows show one. The row that is being made may be before this one.
            seen = reader.snapshot().head + 1;
        }
    }
}

#[test]
fn a_program_that_reads_the_rows_and_writes_the_outputs_itself_is_compared() {
    let lab = pci::kernel(&BOARDS);
    let engine = &lab.engine;
    let run = engine.run(&Plan {
        ring: Some(1 << 16),
        ..plan(&timer(PERIOD), &CHANNELS)
    });
    let writes = engine.run(&Plan {
        steps: OUTPUTS.map(|output| set(output, 1)).to_vec(),
        ..plan("soft", &[])
    });
    writes.start().expect("to start");
    let watched = run.reader().expect("a reader");
    let (account, _, begun) = thread::scope(|scope| {
        let program = scope.spawn(|| compare(watched, &writes));
        let scanned = scan(engine, &run, || program.is_finished());
        program.join().expect("a program");
        scanned
    });
    say("a program that reads the rows", late(&account, begun));
}
