// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions: a subset of eBPF's, encoded as eBPF's.
//!
//! All arithmetic is of 64 bits; there are forward jumps, loads and stores of whole words, and no calls. `R1` is the row,
//! `R9` the state; neither is ever changed, and what is reckoned from `R9` stays inside of the state.

/// Of eight bytes, as `struct bpf_insn` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// What to do.
    pub code: u8,
    /// Register that is changed, compared, or that a store goes to.
    pub dst: u8,
    /// The other register.
    pub src: u8,
    /// Of a jump, instructions; of a load or store, bytes.
    pub off: i16,
    /// A number.
    pub imm: i32,
}

/// The answer.
pub const R0: u8 = 0;
/// The row.
pub const ROW: u8 = 1;
/// The first of the registers that expressions are computed in, and how many they are.
pub const FIRST: u8 = 2;
pub const COUNT: u8 = 6;
/// The state.
pub const STATE: u8 = 9;

/// The second operand is a register.
pub const X: u8 = 0x08;
pub const ALU: u8 = 0x07;
pub const JMP: u8 = 0x05;

pub const ADD: u8 = ALU;
pub const SUB: u8 = 0x10 | ALU;
pub const MUL: u8 = 0x20 | ALU;
pub const DIV: u8 = 0x30 | ALU;
pub const OR: u8 = 0x40 | ALU;
pub const AND: u8 = 0x50 | ALU;
pub const LSH: u8 = 0x60 | ALU;
pub const RSH: u8 = 0x70 | ALU;
pub const NEG: u8 = 0x80 | ALU;
pub const MOD: u8 = 0x90 | ALU;
pub const XOR: u8 = 0xa0 | ALU;
pub const MOV: u8 = 0xb0 | ALU;
pub const ARSH: u8 = 0xc0 | ALU;

pub const JA: u8 = JMP;
pub const JEQ: u8 = 0x10 | JMP;
pub const JGT: u8 = 0x20 | JMP;
pub const JGE: u8 = 0x30 | JMP;
pub const JNE: u8 = 0x50 | JMP;
pub const JSGT: u8 = 0x60 | JMP;
pub const JSGE: u8 = 0x70 | JMP;
pub const EXIT: u8 = 0x90 | JMP;
pub const JLT: u8 = 0xa0 | JMP;
pub const JLE: u8 = 0xb0 | JMP;
pub const JSLT: u8 = 0xc0 | JMP;
pub const JSLE: u8 = 0xd0 | JMP;

/// A number of 64 bits, in two instructions.
pub const LD_IMM64: u8 = 0x18;
/// A word from memory.
pub const LDX: u8 = 0x79;
/// A word to memory.
pub const STX: u8 = 0x7b;

impl Insn {
    /// As it lies in memory.
    pub fn to_bytes(self) -> [u8; 8] {
        let off = self.off.to_le_bytes();
        let imm = self.imm.to_le_bytes();
        [
            self.code,
            self.dst | self.src << 4,
            off[0],
            off[1],
            imm[0],
            imm[1],
            imm[2],
            imm[3],
        ]
    }
}
