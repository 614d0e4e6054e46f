// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of a run, as the module takes it.

use strobe_expr::{Column, Program, Word};
use strobe_hw::uapi::program::{Derived, ProgramParts, SKIPS};
use strobe_hw::uapi::{UNIT_SIZE, Value};

use super::fixed;
use crate::error::Error;

/// # Errors
/// A column has a name or a unit that the contract has no room for.
pub(super) fn given(program: &Program) -> Result<ProgramParts, Error> {
    let insns = program.insns().iter().map(|insn| insn.to_bytes());
    let derived = program.derived().iter().map(derived);
    Ok(ProgramParts {
        flags: if program.skips() { SKIPS } else { 0 },
        insns: insns.collect(),
        state: u32::try_from(program.state()).unwrap_or(u32::MAX),
        derived: derived.collect::<Result<_, _>>()?,
        tunables: u32::try_from(program.tunables().len()).unwrap_or(u32::MAX),
    })
}

fn derived(column: &Column) -> Result<Derived, Error> {
    let too_long = |what: &str| {
        let name = &column.name;
        Error::ProgramOfKernel(format!(
            "the {what} of column {name} is too long for the module"
        ))
    };
    Ok(Derived {
        name: fixed(&column.name).ok_or_else(|| too_long("name"))?,
        value: Value {
            kind: match column.word {
                Word::Unsigned => 0,
                Word::Signed => 1,
                Word::Real => 2,
            },
            cost_class: 0,
            unit: fixed::<UNIT_SIZE>(&column.unit).ok_or_else(|| too_long("unit"))?,
            scale: column.scale.to_bits(),
            offset: column.offset.to_bits(),
            bits: column.bits,
            cost_ns: 0,
        },
    })
}
