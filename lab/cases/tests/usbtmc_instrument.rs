// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instrument at USB, by the kernel's driver `usbtmc`.
//!
//! `$STROBE_ROUNDS` says how often it is unplugged.
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x50' --module spidev --module 'lab_spi mode=3 dummy=1'
// lab: --module dummy_hcd --module usb_f_fs --module usbtmc

use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;

use strobe::engine::user::{User, UserRun};
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_board::Board;
use strobe_cases::account::{begin, read_now, read_until, record, until};
use strobe_cases::chip::{read, write};
use strobe_cases::machine::{slowness, timer};
use strobe_cases::plan;
use strobe_cases::rounds::{held, rounds};
use strobe_cases::usbtmc::{Instrument, LATE, NODE};
use strobe_ring::State;

/// One for all tests, which come one after the other; plugged in.
static PLUGGED: LazyLock<Instrument> = LazyLock::new(|| {
    let instrument = Instrument::new();
    instrument.plug();
    instrument
});

fn user(timeout: f64, channels: &str) -> User {
    let text = format!(
        "[board]\nname = \"chip\"\n[transport]\nkind = \"usbtmc\"\ndevice = \"{NODE}\"\ntimeout = {timeout}\nretry = 0.01\n\
         {channels}"
    );
    let board = Board::from_toml("chip.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    User::default().with_board(board)
}

/// Seconds that only a failure takes.
const LONG: f64 = 30.0;

/// A run, as soon as the instrument can be reached.
fn reached(user: &User, plan: &Plan) -> UserRun {
    let mut run = None;
    until("the instrument", || {
        run = user.create(plan).map_err(|why| eprintln!("{why}")).ok();
        run.is_some()
    });
    run.expect("a run")
}

#[test]
fn answers_and_outputs_of_a_usb_instrument_are_in_one_row() {
    let before = PLUGGED.clears();
    let user = user(
        LONG,
        "[channel.bare]\nquery = \"BARE?\"\ntype = \"integer\"\n\
         [channel.level]\nquery = \"LEVEL?\"\ntype = \"integer\"\n\
         [channel.last]\nquery = \"BLOCK?\"\nblock = true\nbinary = \"u8\"\nat = 4088\n\
         [output.level]\nsend = \"LEVEL {}\"\n",
    );
    let plan = Plan {
        limit: Some(50),
        steps: vec![
            write("level", 37),
            read("level"),
            read("bare"),
            read("last"),
        ],
        ..plan("timer:20ms", &[])
    };
    let run = reached(&user, &plan);
    let (account, end) = record(&run);
    assert_eq!((end.state, account.rows.len()), (State::Done, 50));
    for row in &account.rows {
        assert!(row.faults.is_empty(), "{row:?}");
        assert_eq!(row.values, [37, 42, u64::from(4088_u16 as u8)]);
    }
    assert!(PLUGGED.clears() > before, "when it was reached");
}

/// By itself the driver waits for five seconds.
#[test]
fn an_answer_that_is_late_is_a_fault_and_never_the_answer_to_the_next_question() {
    let before = PLUGGED.clears();
    let names = [
        "chip.number",
        "chip.late",
        "chip.cut",
        "chip.absent",
        "chip.reconnects",
    ];
    // A row waits as long as all questions may take: by the one that nobody asks it has time.
    let user = user(
        0.2 * slowness() as f64,
        "[channel.number]\nquery = \"N?\"\ntype = \"integer\"\n\
         [channel.spare]\nquery = \"BARE?\"\ntimeout = 30\n",
    );
    let run = reached(&user, &plan(&timer(20_000_000), &names));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    until("answers after one that was late", || {
        sleep(Duration::from_millis(20));
        read_now(&mut reader, &mut account);
        account.column(0).any(|number| number > LATE)
    });
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    let (mut faults, mut latest) = (0, 0);
    for row in &account.rows {
        let [number, late, cut, absent, _] = row.values[..] else {
            panic!("{row:?}");
        };
        if row.faults.is_empty() {
            assert!(number > latest && !number.is_multiple_of(LATE), "{row:?}");
            latest = number;
        } else {
            faults += 1;
        }
        assert_eq!(faults, late + cut + absent, "{row:?}");
    }
    let last = account.rows.last().expect("rows");
    let (late, reconnects) = (last.values[1], last.values[4]);
    assert!(late > 0 && reconnects > 0, "{last:?}");
    assert!(PLUGGED.clears() > before + reconnects);
}

#[test]
fn an_instrument_that_is_unplugged_is_a_named_fault_until_it_is_there_again() {
    let names = [
        "chip.bare",
        "chip.cut",
        "chip.late",
        "chip.absent",
        "chip.questions",
        "chip.answers",
    ];
    LazyLock::force(&PLUGGED);
    let user = user(
        LONG,
        "[channel.bare]\nquery = \"BARE?\"\ntype = \"integer\"\n",
    );
    let run = reached(&user, &plan("timer:20ms", &names));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    let before = held();
    for _ in 0..rounds(10, 3) {
        read_until("rows", false, &mut reader, &mut account);
        PLUGGED.unplug();
        read_until("rows that failed", true, &mut reader, &mut account);
        PLUGGED.plug();
    }
    read_until("rows again", false, &mut reader, &mut account);
    assert_eq!(held(), before);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    for row in &account.rows {
        let [bare, cut, late, absent, questions, answers] = row.values[..] else {
            panic!("{row:?}");
        };
        assert_eq!(questions, answers + cut + late + absent, "{row:?}");
        assert!(!row.faults.is_empty() || bare == 42, "{row:?}");
    }
}
