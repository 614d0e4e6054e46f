// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that are run twice: by this crate, and by an interpreter of eBPF that others have written.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use strobe_expr::{Answer, Column, Fault, Insn, Machine, Program, ProgramText, Rule, compile};

/// The channels of these tests.
pub fn columns() -> Vec<Column> {
    let column = |name: &str, unit: &str, signed, bits, scale, offset| Column {
        unit: unit.into(),
        bits,
        scale,
        offset,
        ..if signed {
            Column::signed(name)
        } else {
            Column::unsigned(name)
        }
    };
    vec![
        column("enc.pos", "mm", true, 32, 0.001, 0.0),
        column("adc.a", "V", true, 16, 0.0025, -0.5),
        column("adc.b", "mV", false, 12, -0.5, 1000.0),
        column("io.in", "", false, 8, 1.0, 0.0),
        column("clock.time", "ns", false, 64, 1.0, 0.0),
        column("cnt.n", "counts", false, 64, 1.0, 0.0),
    ]
}

pub fn text(derive: &[&str], keep: &[&str], every: Option<u64>) -> ProgramText {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    ProgramText {
        derive: owned(derive),
        keep: owned(keep),
        every,
        ..ProgramText::default()
    }
}

/// Variables, and rules: a condition and what it changes.
pub fn rules(variables: &[&str], rules: &[(&str, &[&str])]) -> ProgramText {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    ProgramText {
        variables: owned(variables),
        rules: rules
            .iter()
            .map(|(when, then)| Rule {
                when: (*when).to_owned(),
                then: owned(then),
            })
            .collect(),
        ..ProgramText::default()
    }
}

pub struct Twice {
    pub program: Arc<Program>,
    machine: Machine,
    code: Vec<u8>,
    /// The row, then the state.
    memory: Vec<u8>,
    /// Words of the row.
    width: usize,
}

impl Twice {
    pub fn new(text: &ProgramText, columns: &[Column]) -> Result<Twice, Fault> {
        let program = Arc::new(compile(text, columns)?);
        let width = columns.len() + program.derived().len();
        // R9 = R1 + the row
        let insn = |code, imm| Insn {
            code,
            dst: 9,
            src: 1,
            off: 0,
            imm,
        };
        let start = [
            insn(0xbf, 0),
            Insn {
                src: 0,
                ..insn(0x07, 8 * width as i32)
            },
        ];
        let insns = start.iter().chain(program.insns());
        let mut twice = Twice {
            machine: Machine::new(Arc::clone(&program)),
            code: insns.flat_map(|insn| insn.to_bytes()).collect(),
            memory: vec![0; 8 * (width + program.state())],
            width,
            program: Arc::clone(&program),
        };
        for (tunable, word) in program.tunables().iter().enumerate() {
            twice.store(tunable, *word);
        }
        Ok(twice)
    }

    /// Gives a tunable a new word.
    pub fn tune(&mut self, tunable: usize, word: u64) {
        self.machine.tune(tunable, word);
        self.store(tunable, word);
    }

    fn store(&mut self, place: usize, word: u64) {
        let at = 8 * (self.width + place);
        self.memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    pub fn of(derive: &[&str], keep: &[&str], every: Option<u64>) -> Twice {
        Twice::new(&text(derive, keep, every), &columns()).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// The derived words of a row, and whether it is kept.
    pub fn run(&mut self, inputs: &[u64]) -> (Vec<u64>, bool) {
        let (words, answer) = self.answer(inputs);
        (words, answer.is_kept())
    }

    /// The derived words of a row, and all that the program says of it.
    pub fn answer(&mut self, inputs: &[u64]) -> (Vec<u64>, Answer) {
        let mut row = inputs.to_vec();
        row.resize(inputs.len() + self.program.derived().len(), 0);
        for (bytes, word) in self.memory.chunks_exact_mut(8).zip(&row) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let said = self.machine.run(&mut row);
        let bits = (0..self.program.rules()).map(|rule| u64::from(said.meets(rule)) << (rule + 1));
        let bits = bits.sum::<u64>() | u64::from(!said.is_kept());
        let vm = rbpf::EbpfVmRaw::new(Some(&self.code)).expect("a program that it takes");
        let answer = vm
            .execute_program(&mut self.memory)
            .expect("a program that ends");
        let words: Vec<u64> = self
            .memory
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(
            (answer, &words[..row.len()]),
            (bits, row.as_slice()),
            "the interpreters disagree"
        );
        (row.split_off(inputs.len()), said)
    }

    /// The derived values of a row.
    pub fn values(&mut self, inputs: &[u64]) -> Vec<f64> {
        let (words, _) = self.run(inputs);
        let derived = self.program.derived().iter();
        derived
            .zip(words)
            .map(|(column, word)| value(column, word))
            .collect()
    }

    /// The rules whose conditions a row meets.
    pub fn meets(&mut self, inputs: &[u64]) -> Vec<usize> {
        let (_, answer) = self.answer(inputs);
        let rules = 0..self.program.rules();
        rules.filter(|rule| answer.meets(*rule)).collect()
    }

    pub fn keeps(&mut self, inputs: &[u64]) -> bool {
        self.run(inputs).1
    }
}

pub fn value(column: &Column, word: u64) -> f64 {
    let word = match column.word {
        strobe_expr::Word::Unsigned => word as f64,
        _ => word as i64 as f64,
    };
    word * column.scale + column.offset
}

/// A row of [`columns`].
pub fn row(pos: i64, a: i64, b: u64, io: u64, time: u64) -> [u64; 6] {
    [pos as u64, a as u64, b, io, time, 7]
}
