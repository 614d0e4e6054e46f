// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every width and order of bytes that a board may name, in memory and at I/O ports, on a card whose bytes are known.
//!
//! The test device of QEMU has a test chosen by a byte written at its start, 0 for the first of those by memory (BAR 0) or
//! of those by ports (BAR 1); after that both answer the same: bytes, among them the test's name. BAR 2 of another card is plain memory.
// lab: --module uio_edu --device edu,addr=0x05 --device pci-testdev
// lab: --device ivshmem-plain,memdev=plain --qemu=-object --qemu=memory-backend-ram,id=plain,size=1M

use std::fs;
use std::path::PathBuf;

use strobe::engine::user::{Settings, User};
use strobe_board::{Board, Policy, System};
use strobe_cases::pci::{Bound, cards, once};
use strobe_cases::{Engine, Kernel};

/// Of the test device, and of the card with memory.
const TEST: u16 = 0x0005;
const PLAIN: u16 = 0x1110;
/// Where the name is.
const NAME: u64 = 0x10;
const MEMORY: &[u8; 16] = b"mmio-no-eventfd\0";
const PORTS: &[u8; 16] = b"portio-no-eventf";
/// Written to plain memory.
const BYTES: [u8; 8] = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8];

/// A register of one kind.
struct Kind {
    bar: u8,
    offset: u64,
    width: u8,
    big: bool,
}

impl Kind {
    fn name(&self) -> String {
        let order = if self.big { "big" } else { "little" };
        format!("r{}-{}-{}-{order}", self.bar, self.offset, self.width)
    }

    /// What it holds, if these are the bytes there.
    fn value(&self, bytes: &[u8]) -> u64 {
        let bytes = &bytes[..usize::from(self.width / 8)];
        let next = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self.big {
            true => bytes.iter().fold(0, next),
            false => bytes.iter().rev().fold(0, next),
        }
    }
}

/// Each width in its orders of bytes.
fn kinds(bar: u8, offset: u64) -> Vec<Kind> {
    let orders = |width| match (bar, width) {
        (1, 64) => &[][..],
        (1, _) | (_, 8) => &[false][..],
        _ => &[false, true][..],
    };
    let kind = |width| {
        move |big: &bool| Kind {
            bar,
            offset,
            width,
            big: *big,
        }
    };
    [8, 16, 32, 64]
        .into_iter()
        .flat_map(|width| orders(width).iter().map(kind(width)))
        .collect()
}

/// The card that has these registers, which are of one BAR.
fn card(kinds: &[Kind]) -> PathBuf {
    cards(if kinds[0].bar == 2 { PLAIN } else { TEST }).remove(0)
}

/// A board with these registers as channels and outputs.
fn board(kinds: &[Kind]) -> (Board, String) {
    let (bar, size, card) = match kinds[0].bar {
        2 => (2, 0x2000, "1af4:1110"),
        bar => (bar, 0x100, "1b36:0005"),
    };
    let mut text = format!(
        "[board]\nname = \"test\"\n[match]\npci = \"{card}\"\n[bar.{bar}]\nsize = {size}\n"
    );
    for kind in kinds {
        let (
            name,
            Kind {
                bar, offset, width, ..
            },
        ) = (kind.name(), kind);
        let endian = if kind.big { "endian = \"big\"\n" } else { "" };
        text += &format!(
            "[register.{name}]\nbar = {bar}\noffset = {offset}\nwidth = {width}\n{endian}[channel.{name}]\n[output.{name}]\n"
        );
    }
    let board =
        Board::from_toml("test.toml", &text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    (board, text)
}

/// The kernel engine with the card, and the card until the end.
fn kernel(kinds: &[Kind]) -> (Kernel, Bound) {
    let (board, text) = board(kinds);
    System::default()
        .install(&board, &text, Policy::FilesOnly)
        .expect("to install it");
    let bound = Bound::to("strobe_board", &card(kinds));
    (Kernel::open(), bound)
}

/// The user engine with the card, which is on.
fn user(kinds: &[Kind]) -> strobe_cases::User {
    fs::write(card(kinds).join("enable"), "1").expect("to switch it on");
    strobe_cases::User(User::new(Settings::default()).with_board(board(kinds).0))
}

/// Writes one of them, and reads some.
fn row(engine: &impl Engine, write: (&Kind, u64), read: &[&Kind]) -> Vec<u64> {
    let names: Vec<String> = read
        .iter()
        .map(|kind| format!("test.{}", kind.name()))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    once(
        engine,
        &[(&format!("test.{}", write.0.name()), write.1)],
        &names,
    )
}

/// The test is chosen by each kind of write to the start, and its name read by each kind of read.
fn the_name_is_read(engine: &impl Engine, starts: &[Kind], names: &[Kind], bytes: &[u8; 16]) {
    let names: Vec<&Kind> = names.iter().collect();
    let expected: Vec<u64> = names.iter().map(|kind| kind.value(bytes)).collect();
    for start in starts {
        // Only the first byte chooses, and only 0 is the test: in the wrong order it is none, and all reads as 0.
        let chosen = start.value(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(
            row(engine, (start, chosen), &names),
            expected,
            "{}",
            start.name()
        );
        let wrong = start.value(&[0xff, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            row(engine, (start, wrong), &names),
            vec![0; names.len()],
            "{}",
            start.name()
        );
    }
}

/// What is written in one width and order is there in all.
fn each_write_is_read_in_all_kinds(engine: &impl Engine, kinds: &[Kind]) {
    let whole = &kinds[5];
    assert_eq!((whole.width, whole.big), (64, false));
    let all: Vec<&Kind> = kinds.iter().collect();
    for kind in kinds {
        row(engine, (whole, 0), &[]);
        let mut bytes = [0; 8];
        let written = usize::from(kind.width / 8);
        bytes[..written].copy_from_slice(&BYTES[..written]);
        let expected: Vec<u64> = all.iter().map(|other| other.value(&bytes)).collect();
        assert_eq!(
            row(engine, (kind, kind.value(&bytes)), &all),
            expected,
            "{}",
            kind.name()
        );
    }
}

/// Registers at the start of a BAR and of its name.
fn both(bar: u8) -> (Vec<Kind>, Vec<Kind>, Vec<Kind>) {
    (
        kinds(bar, 0).into_iter().chain(kinds(bar, NAME)).collect(),
        kinds(bar, 0),
        kinds(bar, NAME),
    )
}

#[test]
fn the_kernel_engine_reads_and_writes_memory_in_each_width_and_order() {
    let (all, starts, names) = both(0);
    let (engine, _card) = kernel(&all);
    the_name_is_read(&engine, &starts, &names, MEMORY);
}

#[test]
fn the_user_engine_reads_and_writes_memory_in_each_width_and_order() {
    let (all, starts, names) = both(0);
    the_name_is_read(&user(&all), &starts, &names, MEMORY);
}

#[test]
fn the_kernel_engine_reads_and_writes_ports_in_each_width() {
    let (all, starts, names) = both(1);
    assert_eq!(names.len(), 3);
    let (engine, _card) = kernel(&all);
    the_name_is_read(&engine, &starts, &names, PORTS);
}

#[test]
fn the_user_engine_says_that_it_has_no_ports() {
    let engine = user(&kinds(1, 0));
    let plan = strobe_cases::plan("soft", &["test.r1-0-8-little"]);
    let why = engine.0.create(&plan).err().expect("a refusal").to_string();
    assert!(why.contains("these are I/O ports"), "{why}");
}

#[test]
fn what_the_kernel_engine_writes_in_one_width_and_order_is_there_in_all() {
    let kinds = kinds(2, 0x1ff8);
    let (engine, _card) = kernel(&kinds);
    each_write_is_read_in_all_kinds(&engine, &kinds);
}

#[test]
fn what_the_user_engine_writes_in_one_width_and_order_is_there_in_all() {
    let kinds = kinds(2, 0x1ff8);
    each_write_is_read_in_all_kinds(&user(&kinds), &kinds);
}
