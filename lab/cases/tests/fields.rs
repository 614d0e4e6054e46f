// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels of a row that are fields of one register are of one instant, in both engines: the lab's counter counts
//! nanoseconds, so two accesses never read the same.
// lab: --device lab-counter,id=first --device lab-counter,master=first --module uio_pci_generic

use strobe::engine::user::{Settings, User};
use strobe::plan::{Plan, Step};
use strobe_board::{Board, Policy, System};
use strobe_cases::account::record;
use strobe_cases::machine::slowness;
use strobe_cases::pci::{Bound, cards, set};
use strobe_cases::{Account, Engine, Kernel, plan};

/// The counter and its low half: each whole under two names, and fields that lie side by side, over each other, and
/// in two's complement. `anew` is the counter again, with an access for each channel.
const BOARD: &str = r#"
[board]
name = "counter"
[match]
pci = "1234:1ab1"
[bar.0]
size = 0x1000
[bar.2]
size = 0x1000
[register]
wide   = { bar = 2, offset = 0x00, width = 64, access = "ro" }
anew   = { bar = 2, offset = 0x00, width = 64, access = "ro", reread = true }
narrow = { offset = 0x50, access = "ro" }
limit  = { offset = 0x44 }
[channel]
wide          = {}
wide_again    = { register = "wide" }
wide_low      = { register = "wide", bits = "15:0" }
wide_middle   = { register = "wide", bits = "39:8" }
wide_signed   = { register = "wide", bits = "15:0", signed = true }
wide_high     = { register = "wide", bits = "63:16" }
narrow        = {}
narrow_again  = { register = "narrow" }
narrow_low    = { register = "narrow", bits = "15:0" }
narrow_middle = { register = "narrow", bits = "23:8" }
narrow_signed = { register = "narrow", bits = "15:0", signed = true }
narrow_high   = { register = "narrow", bits = "31:16" }
anew          = {}
anew_again    = { register = "anew" }
anew_low      = { register = "anew", bits = "15:0" }
[output]
limit = {}
"#;
const ROWS: u64 = 1000;

fn board() -> Board {
    Board::from_toml("fields.toml", BOARD).unwrap_or_else(|faults| panic!("{faults}"))
}

fn card(driver: &str) -> Bound {
    Bound::to(driver, &cards(0x1ab1)[0])
}

/// The kernel engine with the card, and the card until the end.
fn kernel() -> (Kernel, Bound) {
    System::default()
        .install(&board(), BOARD, Policy::FilesOnly)
        .expect("to install it");
    let card = card("strobe_board");
    (Kernel::open(), card)
}

/// The user engine with the card, and the card until the end.
fn user() -> (strobe_cases::User, Bound) {
    let card = card("uio_pci_generic");
    let engine = User::new(Settings::default()).with_board(board());
    (strobe_cases::User(engine), card)
}

macro_rules! both {
    ($($sentence:ident,)*) => {
        mod kernel {
            $(#[test]
            fn $sentence() {
                super::$sentence(&super::kernel().0);
            })*
        }
        mod user {
            $(#[test]
            fn $sentence() {
                super::$sentence(&super::user().0);
            })*
        }
    };
}

both! {
    fields_of_one_register_are_of_one_instant,
    fields_in_a_row_that_a_thread_makes_are_of_one_instant,
    a_register_that_wants_it_is_read_for_each_channel,
    a_channel_that_stands_twice_is_read_twice,
    after_a_write_a_register_is_read_again,
}

/// Rows of these channels of the card.
fn rows(engine: &impl Engine, channels: &[&str]) -> Account {
    let steps = channels.iter().map(|name| Step::Read(name_of(name)));
    rows_of(engine, steps.collect())
}

fn rows_of(engine: &impl Engine, steps: Vec<Step>) -> Account {
    let (account, end) = record(&engine.run(&Plan {
        steps,
        limit: Some(ROWS),
        ring: Some(ROWS),
        ..plan(&format!("timer:{}Hz", 1000 / slowness()), &[])
    }));
    assert_eq!((account.rows.len() as u64, end.errors), (ROWS, 0));
    account
}

/// A channel of the card, unless it is one of another device.
fn name_of(part: &str) -> String {
    match part.contains('.') {
        true => part.to_owned(),
        false => format!("counter.{part}"),
    }
}

/// Rows of all fields of a register, and of it whole; behind the first of them come these channels.
fn fields_are_bits_of_the_whole(engine: &impl Engine, register: &str, more: &[&str]) {
    let names = ["low", "middle", "", "again", "signed", "high"].map(|part| match part {
        "" => register.to_owned(),
        part => format!("{register}_{part}"),
    });
    let mut channels: Vec<&str> = names.iter().map(String::as_str).collect();
    channels.splice(1..1, more.iter().copied());
    let middle = if register == "wide" { 32 } else { 16 };
    for row in &rows(engine, &channels).rows {
        let mut values = row.values.clone();
        values.drain(1..1 + more.len());
        let whole = values[2];
        let expected = [
            whole & 0xffff,
            whole >> 8 & ((1 << middle) - 1),
            whole,
            whole,
            i64::from(whole as i16) as u64,
            whole >> 16,
        ];
        assert_eq!(values[..], expected, "{row:x?}");
    }
}

fn fields_of_one_register_are_of_one_instant(engine: &impl Engine) {
    for register in ["wide", "narrow"] {
        fields_are_bits_of_the_whole(engine, register, &[]);
        // Another register between them changes nothing.
        let other = if register == "wide" { "narrow" } else { "wide" };
        fields_are_bits_of_the_whole(engine, register, &[other, "clock.time"]);
    }
}

fn fields_in_a_row_that_a_thread_makes_are_of_one_instant(engine: &impl Engine) {
    for register in ["wide", "narrow"] {
        fields_are_bits_of_the_whole(engine, register, &["sim.slow"]);
    }
}

fn a_register_that_wants_it_is_read_for_each_channel(engine: &impl Engine) {
    let account = rows(engine, &["anew", "anew_low", "anew_again"]);
    let mut torn = 0;
    for row in &account.rows {
        assert!(row.values[0] < row.values[2], "{row:x?}");
        torn += u64::from(row.values[0] & 0xffff != row.values[1]);
    }
    // A field has the same bits now and then.
    assert!(torn > ROWS / 2, "{torn} of {ROWS}");
}

fn a_channel_that_stands_twice_is_read_twice(engine: &impl Engine) {
    for register in ["wide", "narrow"] {
        let again = format!("{register}_again");
        let account = rows(engine, &[register, register, &again, &again]);
        for row in &account.rows {
            let v = &row.values;
            assert_ne!(v[0], v[1], "{row:x?}");
            assert_eq!((v[2], v[3]), (v[0], v[1]), "{row:x?}");
        }
    }
}

fn after_a_write_a_register_is_read_again(engine: &impl Engine) {
    for register in ["wide", "narrow"] {
        let read = |part: &str| Step::Read(format!("counter.{register}{part}"));
        let steps = vec![
            read(""),
            set("counter.limit", 0),
            read("_again"),
            read("_low"),
        ];
        for row in &rows_of(engine, steps).rows {
            let v = &row.values;
            assert_ne!(v[0], v[1], "{row:x?}");
            assert_eq!(v[2], v[1] & 0xffff, "{row:x?}");
        }
    }
}
