// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program, as the kernel does: the same instructions, the same results.

use std::sync::Arc;

use crate::insn::*;
use crate::program::{Answer, Program};

/// A program with its state.
#[derive(Debug, Clone)]
pub struct Machine {
    program: Arc<Program>,
    state: Box<[u64]>,
}

impl Machine {
    /// Before the first row.
    pub fn new(program: Arc<Program>) -> Machine {
        let mut machine = Machine {
            state: vec![0; program.state].into(),
            program,
        };
        machine.reset();
        machine
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Forgets all rows.
    pub fn reset(&mut self) {
        self.state.fill(0);
        for (word, first) in self.state.iter_mut().zip(&self.program.first) {
            *word = *first;
        }
    }

    /// Gives the tunable of this place a new value; nothing if there is none.
    pub fn tune(&mut self, tunable: usize, word: u64) {
        if tunable < self.program.first.len()
            && let Some(place) = self.state.get_mut(tunable)
        {
            *place = word;
        }
    }

    /// Computes the derived values of a row, which stand behind those of the channels, and answers whether it is kept and
    /// which rules it meets.
    ///
    /// A program that was compiled does nothing that would not be defined. Words outside of the row and of the state would
    /// be 0, and an instruction that is none would keep the row.
    #[inline]
    pub fn run(&mut self, row: &mut [u64]) -> Answer {
        let mut regs = [0_u64; 16];
        let mut at = 0;
        while let Some(&insn) = self.program.insns.get(at) {
            at += 1;
            let Insn {
                code,
                dst,
                src,
                off,
                imm,
            } = insn;
            let (dst, src) = (usize::from(dst & 15), usize::from(src & 15));
            let right = if code & X != 0 {
                regs[src]
            } else {
                i64::from(imm) as u64
            };
            let left = regs[dst];
            match code {
                LDX => {
                    // The row and the state begin at 0, each in an address space of its own.
                    let word = regs[src].wrapping_add_signed(i64::from(off)) / 8;
                    let memory = if src == usize::from(ROW) {
                        &*row
                    } else {
                        &self.state
                    };
                    regs[dst] = memory.get(word as usize).copied().unwrap_or(0);
                    continue;
                }
                STX => {
                    let word = left.wrapping_add_signed(i64::from(off)) / 8;
                    let memory = if dst == usize::from(ROW) {
                        &mut *row
                    } else {
                        &mut self.state
                    };
                    if let Some(place) = memory.get_mut(word as usize) {
                        *place = regs[src];
                    }
                    continue;
                }
                LD_IMM64 => {
                    let high = self.program.insns.get(at).map_or(0, |next| next.imm);
                    regs[dst] = u64::from(imm as u32) | u64::from(high as u32) << 32;
                    at += 1;
                    continue;
                }
                EXIT => break,
                _ => {}
            }
            let signed = (left as i64, right as i64);
            let jumps = match code & !X {
                ADD => return_to(&mut regs[dst], left.wrapping_add(right)),
                SUB => return_to(&mut regs[dst], left.wrapping_sub(right)),
                MUL => return_to(&mut regs[dst], left.wrapping_mul(right)),
                DIV => return_to(&mut regs[dst], left.checked_div(right).unwrap_or(0)),
                MOD => return_to(&mut regs[dst], left.checked_rem(right).unwrap_or(left)),
                OR => return_to(&mut regs[dst], left | right),
                AND => return_to(&mut regs[dst], left & right),
                XOR => return_to(&mut regs[dst], left ^ right),
                LSH => return_to(&mut regs[dst], left << (right & 63)),
                RSH => return_to(&mut regs[dst], left >> (right & 63)),
                ARSH => return_to(&mut regs[dst], (signed.0 >> (right & 63)) as u64),
                NEG => return_to(&mut regs[dst], left.wrapping_neg()),
                MOV => return_to(&mut regs[dst], right),
                JA => true,
                JEQ => left == right,
                JNE => left != right,
                JGT => left > right,
                JGE => left >= right,
                JLT => left < right,
                JLE => left <= right,
                JSGT => signed.0 > signed.1,
                JSGE => signed.0 >= signed.1,
                JSLT => signed.0 < signed.1,
                JSLE => signed.0 <= signed.1,
                _ => return Answer(0),
            };
            if jumps {
                at += usize::try_from(off).unwrap_or(0);
            }
        }
        Answer(regs[usize::from(R0)] as u32)
    }
}

/// The result of an instruction that does not jump.
#[inline(always)]
fn return_to(register: &mut u64, value: u64) -> bool {
    *register = value;
    false
}
