// SPDX-License-Identifier: MIT OR Apache-2.0
//! Row programs: expressions that run on each trigger, after the channels were read.
//!
//! A [`ProgramText`] says which columns are derived, which rows are kept, and what is done where. [`compile`] makes it a [`Program`]: whole
//! numbers only, with a proof that nothing overflows, in instructions that are a subset of eBPF's. A [`Machine`] runs it
//! on row after row. docs/reference/row-programs.md explains the language.
//!
//! ```
//! use strobe_expr::{Column, Machine, ProgramText, compile};
//!
//! let text = ProgramText {
//!     derive: vec!["step = diff(enc.pos)".into()],
//!     keep: vec!["enc.pos >= 1 mm".into()],
//!     ..ProgramText::default()
//! };
//! let position = Column { unit: "mm".into(), scale: 0.001, bits: 32, ..Column::signed("enc.pos") };
//! let program = compile(&text, &[position])?;
//! let mut machine = Machine::new(program.into());
//! let mut row = [999, 0];
//! assert!(!machine.run(&mut row).is_kept());
//! let mut row = [1004, 0];
//! assert!(machine.run(&mut row).is_kept());
//! assert_eq!(row, [1004, 5]);
//! # Ok::<(), strobe_expr::Fault>(())
//! ```
#![forbid(unsafe_code)]

mod arithmetic;
mod compile;
mod emit;
mod eval;
mod fault;
mod insn;
mod lex;
mod node;
mod parse;
mod program;
mod range;
mod rational;
mod tree;
mod unit;
mod value;

pub use compile::{compile, word};
pub use eval::Machine;
pub use fault::{Fault, Part};
pub use insn::Insn;
pub use program::{
    Answer, Column, INSNS_MAX, Program, ProgramText, RULES_MAX, Rule, STATE_MAX, TUNABLES_MAX, Word,
};
