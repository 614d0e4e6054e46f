// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of `include/uapi/strobe.h` that is about programs.
#![allow(missing_docs)]

use super::{NAME_SIZE, Value, size_of_u32};

/// `strobe_features.features`: rows can have a program.
pub const FEATURE_PROGRAMS: u64 = 1 << 0;
/// A program can have outputs written.
pub const FEATURE_ACT: u64 = 1 << 1;
/// Variables of a program can be tuned.
pub const FEATURE_TUNE: u64 = 1 << 2;
/// Runs can follow others.
pub const FEATURE_FOLLOW: u64 = 1 << 3;
/// `strobe_program.flags`: it may leave rows out.
pub const SKIPS: u32 = 1 << 0;

/// `struct strobe_derived`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Derived {
    pub name: [u8; NAME_SIZE],
    pub value: Value,
}

/// `struct strobe_program`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Program {
    pub size: u32,
    pub flags: u32,
    pub insns: u64,
    pub insn_count: u32,
    pub state: u32,
    pub derived: u64,
    pub derived_count: u32,
    pub derived_size: u32,
    pub tunables: u32,
    pub reserved: u32,
}

/// What a `struct strobe_program` is made of.
pub struct ProgramParts {
    pub flags: u32,
    /// Each as a `struct bpf_insn`.
    pub insns: Vec<[u8; 8]>,
    /// Words.
    pub state: u32,
    pub derived: Vec<Derived>,
    /// The first words of the state, and the first derived columns.
    pub tunables: u32,
}

impl Program {
    /// Its addresses are good for as long as that is there, and not changed.
    pub(super) fn of(given: &ProgramParts) -> Program {
        let count = |length| u32::try_from(length).unwrap_or(u32::MAX);
        Program {
            size: size_of_u32::<Program>(),
            flags: given.flags,
            insns: given.insns.as_ptr() as u64,
            insn_count: count(given.insns.len()),
            state: given.state,
            derived: given.derived.as_ptr() as u64,
            derived_count: count(given.derived.len()),
            derived_size: size_of_u32::<Derived>(),
            tunables: given.tunables,
            reserved: 0,
        }
    }
}
