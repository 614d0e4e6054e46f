// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs by their instructions, in numbers of the contract, and runs that are asked for with them.
#![allow(missing_docs)] // the header has the numbers

use std::os::fd::OwnedFd;

use strobe_expr::Insn;

use super::{
    Answer, Create, Created, Derived, Program, READ, SKIPS, TUNE, Tune, adopt, ask, control, ioctl,
    named, request, step,
};

/// enum strobe_why.
pub const WHY_PROGRAM: u32 = 17;
pub const WHY_DERIVED: u32 = 18;

pub const STATE_WORDS: u32 = 16;
pub const CHANNELS: usize = 2;
pub const DERIVED: usize = 2;

pub const LDX: u8 = 0x79;
pub const STX: u8 = 0x7b;
pub const MOV: u8 = 0xb7;
pub const ADD: u8 = 0x07;
pub const SUB: u8 = 0x17;
pub const AND: u8 = 0x57;
pub const LSH: u8 = 0x67;
pub const DIV: u8 = 0x37;
pub const MOD: u8 = 0x97;
pub const NEG: u8 = 0x87;
pub const JA: u8 = 0x05;
pub const JEQ: u8 = 0x15;
pub const JNE: u8 = 0x55;
pub const EXIT: u8 = 0x95;
pub const LD: u8 = 0x18;
pub const X: u8 = 0x08;

/// An instruction.
pub fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
    Insn {
        code,
        dst,
        src,
        off,
        imm,
    }
}

/// Register = number.
pub fn mov(dst: u8, imm: i32) -> Insn {
    insn(MOV, dst, 0, 0, imm)
}

/// The end.
pub fn exit() -> Insn {
    insn(EXIT, 0, 0, 0, 0)
}

/// So many derived columns.
pub fn columns(count: usize) -> Vec<Derived> {
    let column = |n| Derived {
        name: named(&format!("d{n}")),
        bits: 64,
        ..Derived::zero()
    };
    (0..count).map(column).collect()
}

/// Asks for a run with this program, of two channels.
pub fn ask_with(program: &Program) -> (Answer, Created) {
    ask_at(&control(), program)
}

/// The same of somebody else.
pub fn ask_at(control: &OwnedFd, program: &Program) -> (Answer, Created) {
    ask_on("soft", control, program)
}

/// The same on another event.
pub fn ask_on(event: &str, control: &OwnedFd, program: &Program) -> (Answer, Created) {
    let steps = [step(READ, "sim.counter", 0), step(READ, "sim.ramp", 0)];
    let request = Create {
        program: std::ptr::from_ref(program) as u64,
        ..request(event, 0, 16, &steps)
    };
    ask(control, &request)
}

/// A run of the event "soft" whose program keeps all rows and has a tunable of so many bits; and its id.
pub fn tunable(control: &OwnedFd, bits: u32) -> (OwnedFd, u32) {
    let (answer, created) = ask_tunable(control, bits);
    answer.expect("a run");
    (adopt(created.fd), created.run)
}

/// Asks for such a run.
pub fn ask_tunable(control: &OwnedFd, bits: u32) -> (Answer, Created) {
    let mut derived = columns(1);
    derived[0].bits = bits;
    // What is derived is what the state has.
    let insns = bytes(&[
        insn(LDX, 2, 9, 0, 0),
        insn(STX, 1, 2, 0, 0),
        mov(0, 0),
        exit(),
    ]);
    let program = Program {
        flags: 0,
        tunables: 1,
        ..about(&insns, &derived)
    };
    let create = Create {
        program: std::ptr::from_ref(&program) as u64,
        ..request("soft", 0, 8, &[])
    };
    ask(control, &create)
}

/// Tunes a run: on the control device that of this id, on an owner fd that of id 0.
pub fn tune(fd: &OwnedFd, run: u32, value: u64) -> Result<(), i32> {
    let mut tune = Tune {
        size: size_of::<Tune>() as u32,
        run,
        value,
        ..Tune::zero()
    };
    ioctl(fd, TUNE, &mut tune).map(|_| ())
}

/// What is said of a program; its arrays must live until it is used.
pub fn about(insns: &[[u8; 8]], derived: &[Derived]) -> Program {
    Program {
        size: size_of::<Program>() as u32,
        flags: SKIPS,
        insns: insns.as_ptr() as u64,
        insn_count: insns.len() as u32,
        state: STATE_WORDS,
        derived: derived.as_ptr() as u64,
        derived_count: derived.len() as u32,
        derived_size: size_of::<Derived>() as u32,
        ..Program::zero()
    }
}

/// As the kernel takes them.
pub fn bytes(insns: &[Insn]) -> Vec<[u8; 8]> {
    insns.iter().map(|insn| insn.to_bytes()).collect()
}
