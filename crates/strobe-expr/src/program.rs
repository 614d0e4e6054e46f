// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: as it is written, and as it is run.

use crate::insn::Insn;

/// Instructions of a program, at most.
pub const INSNS_MAX: usize = 4096;
/// Words that a program keeps from row to row, at most.
pub const STATE_MAX: usize = 4096;

/// Variables of a program that can be tuned, at most.
pub const TUNABLES_MAX: usize = 64;

/// Rules of a program, at most: its answer has a bit for each.
pub const RULES_MAX: usize = 31;

/// A program as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramText {
    /// Variables that can be tuned while the run goes on. Each is a column of the row, too, so that the row says with what
    /// it was computed. They are written as variables are.
    pub tunables: Vec<String>,
    /// Values that are kept from row to row, and that rules change: `NAME = NUMBER`, or `NAME = NUMBER like CHANNEL`.
    pub variables: Vec<String>,
    /// What is done where a condition is met.
    pub rules: Vec<Rule>,
    /// Columns that are computed: `NAME = EXPRESSION`, or `NAME = EXPRESSION in UNIT`.
    pub derive: Vec<String>,
    /// A row is kept if all of these are so.
    pub keep: Vec<String>,
    /// Of the rows that these would keep, only each Nth is; and the Nth is the first.
    pub every: Option<u64>,
}

/// What is done in each row that meets a condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The condition.
    pub when: String,
    /// How variables change: `NAME = EXPRESSION`, or with `+=` or `-=`.
    pub then: Vec<String>,
}

impl ProgramText {
    /// Whether nothing is computed, and no row left out.
    pub fn is_empty(&self) -> bool {
        self == &ProgramText::default()
    }

    /// Whether rows may be left out.
    pub fn skips(&self) -> bool {
        !self.keep.is_empty() || self.every.is_some()
    }
}

/// How the word of a column is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Whole, not negative.
    Unsigned,
    /// Whole.
    Signed,
    /// A binary fraction: programs have none.
    Real,
}

/// A value of a row: `word * scale + offset`, in a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// What expressions call it.
    pub name: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// How its word is to be understood.
    pub word: Word,
    /// Significant bits of the word.
    pub bits: u32,
    /// Factor from the word to the value.
    pub scale: f64,
    /// What is added then.
    pub offset: f64,
}

impl Column {
    /// One of 64 bits, without a sign, scale and unit.
    pub fn unsigned(name: &str) -> Column {
        Column {
            name: name.to_owned(),
            unit: String::new(),
            word: Word::Unsigned,
            bits: 64,
            scale: 1.0,
            offset: 0.0,
        }
    }

    /// The same with a sign.
    pub fn signed(name: &str) -> Column {
        Column {
            word: Word::Signed,
            ..Column::unsigned(name)
        }
    }
}

/// A program that was found good.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub(crate) insns: Vec<Insn>,
    pub(crate) state: usize,
    pub(crate) inputs: usize,
    pub(crate) derived: Vec<Column>,
    pub(crate) first: Vec<u64>,
    pub(crate) skips: bool,
    pub(crate) rules: usize,
}

/// What a program says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer(pub(crate) u32);

impl Answer {
    /// Whether the row is kept.
    pub fn is_kept(self) -> bool {
        self.0 & 1 == 0
    }

    /// Whether the row meets the condition of the rule of this place, which is below [`RULES_MAX`].
    pub fn meets(self, rule: usize) -> bool {
        self.0 >> 1 >> rule & 1 != 0
    }
}

impl Program {
    /// One that was not compiled here, for tests of who else runs it. It keeps rows or not.
    #[doc(hidden)]
    pub fn of_insns(insns: Vec<Insn>, state: usize, inputs: usize, derived: usize) -> Program {
        let column = |n| Column::unsigned(&format!("d{n}"));
        Program {
            insns,
            state,
            inputs,
            derived: (0..derived).map(column).collect(),
            first: Vec::new(),
            skips: true,
            rules: 0,
        }
    }

    /// Its instructions. On entry R1 is the address of the row's values, those of the channels and then those that are
    /// derived, and R9 that of the state. Bit 0 of the answer, in R0, says that the row is to be left out, bit 1 that it meets
    /// the condition of the first rule, and so on.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// Words of its state; before the first row those of the tunables are as [`Program::tunables`] says, all others 0.
    pub fn state(&self) -> usize {
        self.state
    }

    /// What the tunables are at first: the first words of the state, which the first derived columns show.
    pub fn tunables(&self) -> &[u64] {
        &self.first
    }

    /// Values that a row has of its channels.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// What it computes: these follow the values of the channels.
    pub fn derived(&self) -> &[Column] {
        &self.derived
    }

    /// Whether it may leave rows out.
    pub fn skips(&self) -> bool {
        self.skips
    }

    /// Rules that it has.
    pub fn rules(&self) -> usize {
        self.rules
    }
}
