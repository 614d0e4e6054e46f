// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a generator writes, by the kernel's compiler: what that makes of each does what the evaluator says, on words
//! that the generator chooses. `crates/strobe-expr/tests` compares the evaluator with two others by the same programs.
//!
//! The words come from registers that remember what is written to them. They are written from here, past the driver of the card,
//! which a kernel otherwise forbids: hence `iomem=relaxed`.
// lab: --append iomem=relaxed

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use strobe::map::{Region, Register};
use strobe_board::{Board, Policy, System};
use strobe_cases::compared::Compared;
use strobe_cases::machine::slowness;
use strobe_cases::pci::{Bound, cards};
use strobe_cases::raw::program::{about, bytes, columns as derived};
use strobe_cases::raw::*;
use strobe_expr::{Machine, ProgramText, compile};

#[allow(dead_code)] // What is exact is for those who compare with it.
#[path = "../../../crates/strobe-expr/tests/expr/exact.rs"]
mod exact;
#[path = "../../../crates/strobe-expr/tests/expr/generator.rs"]
mod generator;

use exact::{ROWS, Written, quotient};
use generator::{CHANNELS, Random, columns};

/// The card's registers for DMA, which does nothing without a command.
const REGISTERS: [u64; 3] = [0x80, 0x88, 0x90];
/// Where each channel is: the register, and its lowest bit there.
const PLACES: [(usize, u32); CHANNELS.len()] =
    [(0, 0), (0, 8), (0, 32), (1, 0), (2, 0), (2, 16), (2, 28)];
const BOARD: &str = r#"
[board]
name = "words"
[match]
pci = "1234:11e8"
[bar.0]
size = 0x100000
"#;

type Words = [u64; CHANNELS.len()];

/// What the channel is called on the board.
fn short(name: &str) -> &str {
    name.split_once('.').expect("a device and a channel").1
}

/// The card whose channels are those of the generator.
struct Card {
    registers: [Register; 3],
    _bound: Bound,
}

impl Card {
    fn new() -> Card {
        let mut text = BOARD.to_owned();
        for (n, offset) in REGISTERS.iter().enumerate() {
            text += &format!("[register.r{n}]\noffset = {offset}\nwidth = 64\naccess = \"ro\"\n");
        }
        for ((name, signed, bits, ..), (register, low)) in CHANNELS.iter().zip(PLACES) {
            text += &format!(
                "[channel.{}]\nregister = \"r{register}\"\nbits = \"{}:{low}\"\nsigned = {signed}\n",
                short(name),
                low + bits - 1
            );
        }
        let board = Board::from_toml("words.toml", &text);
        let board = board.unwrap_or_else(|faults| panic!("{faults}"));
        System::default()
            .install(&board, &text, Policy::FilesOnly)
            .expect("to install it");
        let path = &cards(0x11e8)[0];
        let bound = Bound::to("strobe_board", path);
        let file = File::options()
            .read(true)
            .write(true)
            .open(path.join("resource0"));
        let bar = Region::map(&file.expect("its BAR"), 0, 4096, true).expect("to map it");
        Card {
            registers: REGISTERS.map(|offset| bar.register(offset, 8).expect("a register")),
            _bound: bound,
        }
    }

    /// From now on the channels have these words.
    fn set(&self, words: &Words) {
        let mut registers = [0; REGISTERS.len()];
        for (n, (register, low)) in PLACES.iter().enumerate() {
            let bits = u64::MAX >> (64 - CHANNELS[n].2);
            registers[*register] |= (words[n] & bits) << low;
        }
        for (register, word) in self.registers.iter().zip(registers) {
            register.write(word);
        }
    }
}

/// The program of a seed, and its rows.
fn program(seed: u64) -> Option<(ProgramText, Vec<Words>)> {
    if seed % 4 != 0 {
        let written = Written::new(seed)?;
        let words = written.rows.iter().map(|row| row.words);
        return Some((written.text, words.collect()));
    }
    let mut random = Random(seed);
    let (_, _, text) = quotient(&mut random);
    let mut words = || CHANNELS.map(|about| random.word(about) as u64);
    Some((text, (0..ROWS).map(|_| words()).collect()))
}

#[derive(Debug, Default)]
struct Count {
    refused: u64,
    run: u64,
    quotients: u64,
    kept: u64,
    left_out: u64,
}

#[test]
fn a_program_by_the_kernels_compiler_does_what_the_evaluator_says() {
    let said = std::env::var("STROBE_FUZZ").ok();
    let programs = said.map_or(1000 / slowness(), |n| n.parse().expect("a number"));
    let (control, card, mut count) = (control(), Card::new(), Count::default());
    for seed in 0..programs {
        one(seed, &control, &card, &mut count);
    }
    println!("{programs} programs: {count:?}");
    assert!(
        count.run > programs / 3 && count.refused > programs / 50,
        "{count:?}"
    );
    assert!(
        count.quotients > programs / 20 && count.kept.min(count.left_out) > programs / 2,
        "a test of nothing: {count:?}"
    );
}

fn one(seed: u64, control: &OwnedFd, card: &Card, count: &mut Count) {
    let Some((text, rows)) = program(seed) else {
        return;
    };
    let Ok(program) = compile(&text, &columns()) else {
        count.refused += 1;
        return;
    };
    let insns = bytes(program.insns());
    let derived = derived(program.derived().len());
    let asked = Program {
        state: program.state() as u32,
        flags: if program.skips() { SKIPS } else { 0 },
        ..about(&insns, &derived)
    };
    let steps = CHANNELS.map(|(name, ..)| step(READ, &format!("words.{}", short(name)), 0));
    let request = Create {
        program: std::ptr::from_ref(&asked) as u64,
        ..request("soft", 0, 2 * ROWS as u64, &steps)
    };
    let (answer, created) = ask(control, &request);
    let what = format!("seed {seed}, {text:?}");
    assert_eq!(answer, Ok(0), "{what}: {created:?}");
    count.run += 1;
    count.quotients += u64::from(seed % 4 == 0);
    let mut run = Compared::start(&created, Machine::new(Arc::new(program)), what);
    for words in &rows {
        card.set(words);
        let (row, is_kept) = run.trigger();
        assert_eq!(
            &row[..CHANNELS.len()],
            words,
            "seed {seed}: what was written is not read"
        );
        count.kept += u64::from(is_kept);
    }
    count.left_out += run.left_out();
}
