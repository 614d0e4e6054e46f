// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what is done to instructions.

use crate::insn::*;
use crate::node::{Cond, Do, Node, Op, Quotient, Window};
use crate::program::INSNS_MAX;
use crate::tree::Compare;

/// Why there are no instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuch {
    /// More values at once than there are registers.
    Registers,
    /// More instructions than a program may have.
    Insns,
}

/// The instructions; `met`: the word of the state with what the answer says of rules, if there are some.
pub fn emit(does: &[Do], met: Option<usize>) -> Result<Vec<Insn>, TooMuch> {
    let mut emitter = Emitter {
        insns: Vec::new(),
        met,
    };
    emitter.all(does)?;
    match emitter.insns.len() <= INSNS_MAX {
        true => Ok(emitter.insns),
        false => Err(TooMuch::Insns),
    }
}

struct Emitter {
    insns: Vec<Insn>,
    met: Option<usize>,
}

/// Jumps that do not know yet where they lead.
type Jumps = Vec<usize>;
type Done<T = ()> = Result<T, TooMuch>;

impl Emitter {
    fn all(&mut self, does: &[Do]) -> Done {
        does.iter().try_for_each(|what| self.one(what))
    }

    fn one(&mut self, what: &Do) -> Done {
        match what {
            Do::Row(place, node) => {
                self.value(node, FIRST)?;
                self.put(STX, ROW, FIRST, offset(*place)?, 0);
            }
            Do::State(place, node) => {
                self.value(node, FIRST)?;
                self.put(STX, STATE, FIRST, offset(*place)?, 0);
            }
            Do::Element(window, node) => {
                self.value(node, FIRST)?;
                self.element(*window, FIRST + 1)?;
                self.put(STX, FIRST + 1, FIRST, offset(window.first)?, 0);
            }
            Do::If(cond, then, otherwise) => {
                let past = self.jump_if(cond, false, FIRST)?;
                self.all(then)?;
                if otherwise.is_empty() {
                    return self.here(&past);
                }
                // Behind an answer nothing is done, and nothing may stand.
                let mut end = Jumps::new();
                if !matches!(then.last(), Some(Do::Answer(_))) {
                    end.push(self.jump(JA, 0, 0, 0));
                }
                self.here(&past)?;
                self.all(otherwise)?;
                self.here(&end)?;
            }
            Do::Answer(is_kept) => {
                let left_out = i32::from(!is_kept);
                match self.met {
                    None => self.put(MOV, R0, 0, 0, left_out),
                    Some(word) => {
                        self.put(LDX, R0, STATE, offset(word)?, 0);
                        if !is_kept {
                            self.put(OR, R0, 0, 0, left_out);
                        }
                    }
                }
                self.put(EXIT, 0, 0, 0, 0);
            }
        }
        Ok(())
    }

    /// Computes a word into this register; those after it are free. The way to its first operand is a loop: a sum of many is
    /// a long way down.
    fn value(&mut self, node: &Node, dst: u8) -> Done {
        let (mut first, mut operators) = (node, Vec::new());
        while let Node::Op(op, left, right) = first {
            if short(*op, right).is_none() && need(right) > need(left) {
                break;
            }
            operators.push((*op, right));
            first = left;
        }
        self.part(first, dst)?;
        while let Some((op, right)) = operators.pop() {
            self.with(op, right, dst)?;
        }
        Ok(())
    }

    fn part(&mut self, node: &Node, dst: u8) -> Done {
        if dst >= FIRST + COUNT {
            return Err(TooMuch::Registers);
        }
        match node {
            Node::Const(number) => self.number(*number, dst),
            Node::Row(place) => self.put(LDX, dst, ROW, offset(*place)?, 0),
            Node::State(place) => self.put(LDX, dst, STATE, offset(*place)?, 0),
            Node::Element(window) => {
                self.element(*window, dst)?;
                self.put(LDX, dst, dst, offset(window.first)?, 0);
            }
            Node::Op(op, left, right) => {
                let (a, b) = self.two(left, right, dst)?;
                self.op(*op, a, b, dst)?;
            }
            Node::Abs(inner) => {
                self.value(inner, dst)?;
                self.positive(dst);
            }
            Node::Quotient(quotient) => self.quotient(quotient, dst)?,
            Node::Truth(cond) => {
                let no = self.jump_if(cond, false, dst)?;
                self.put(MOV, dst, 0, 0, 1);
                let end = self.jump(JA, 0, 0, 0);
                self.here(&no)?;
                self.put(MOV, dst, 0, 0, 0);
                self.here(&[end])?;
            }
        }
        self.is_short()
    }

    /// An operation on the word that is in this register and another one.
    fn with(&mut self, op: Op, right: &Node, dst: u8) -> Done {
        match short(op, right) {
            Some(number) => self.put(code(op), dst, 0, 0, number),
            None => {
                self.value(right, dst + 1)?;
                self.op(op, dst, dst + 1, dst)?;
            }
        }
        self.is_short()
    }

    /// Long before it matters to memory.
    fn is_short(&self) -> Done {
        match self.insns.len() > INSNS_MAX {
            true => Err(TooMuch::Insns),
            false => Ok(()),
        }
    }

    fn number(&mut self, number: i128, dst: u8) {
        match i32::try_from(number) {
            Ok(number) => self.put(MOV, dst, 0, 0, number),
            Err(_) => {
                let word = number as u64;
                self.put(LD_IMM64, dst, 0, 0, word as i32);
                self.put(0, 0, 0, 0, (word >> 32) as i32);
            }
        }
    }

    /// An operation on these two registers.
    fn op(&mut self, op: Op, a: u8, b: u8, dst: u8) -> Done {
        match op {
            Op::Min { signed } | Op::Max { signed } => {
                let is_max = matches!(op, Op::Max { .. });
                let compare = if is_max {
                    Compare::GreaterOrEqual
                } else {
                    Compare::LessOrEqual
                };
                let end = self.jump(jump_code(compare, signed) | X, a, b, 0);
                self.put(MOV | X, a, b, 0, 0);
                self.here(&[end])?;
            }
            Op::Rest => self.divide(MOD, a, b),
            _ => self.put(code(op) | X, a, b, 0, 0),
        }
        if a != dst {
            self.put(MOV | X, dst, a, 0, 0);
        }
        Ok(())
    }

    /// The divisor is not 0, but who runs the program cannot know that, and some processors would stop.
    fn divide(&mut self, code: u8, dividend: u8, divisor: u8) {
        self.put(JNE, divisor, 0, 1, 0);
        self.put(MOV, divisor, 0, 0, 1);
        self.put(code | X, dividend, divisor, 0, 0);
    }

    /// Two words into `dst` and the register after it; what needs more registers comes first.
    fn two(&mut self, left: &Node, right: &Node, dst: u8) -> Done<(u8, u8)> {
        let (a, b) = if need(right) > need(left) {
            (dst + 1, dst)
        } else {
            (dst, dst + 1)
        };
        let (first, second) = if a == dst {
            (left, right)
        } else {
            (right, left)
        };
        self.value(first, dst)?;
        self.value(second, dst + 1)?;
        Ok((a, b))
    }

    /// The processor divides without a sign. R0 has the sign of the result meanwhile.
    fn quotient(&mut self, quotient: &Quotient, dst: u8) -> Done {
        let (a, b) = self.two(&quotient.dividend, &quotient.divisor, dst)?;
        let of_zero = quotient.of_zero.map(|word| (word, self.jump(JEQ, b, 0, 0)));
        let signed = quotient.signed;
        // What is never negative has no sign to take away, and may look as if it had one.
        match signed {
            (true, true) => {
                self.put(MOV | X, R0, a, 0, 0);
                self.put(XOR | X, R0, b, 0, 0);
                self.positive(a);
                self.positive(b);
            }
            (true, false) => {
                self.put(MOV | X, R0, a, 0, 0);
                self.positive(a);
            }
            (false, true) => {
                self.put(MOV | X, R0, b, 0, 0);
                self.positive(b);
            }
            (false, false) => {}
        }
        self.divide(DIV, a, b);
        if signed != (false, false) {
            let end = self.jump(JSGE, R0, 0, 0);
            self.put(NEG, a, 0, 0, 0);
            self.here(&[end])?;
        }
        if let Some((word, jump)) = of_zero {
            let end = self.jump(JA, 0, 0, 0);
            self.here(&[jump])?;
            self.number(word, a);
            self.here(&[end])?;
        }
        if a != dst {
            self.put(MOV | X, dst, a, 0, 0);
        }
        Ok(())
    }

    fn positive(&mut self, register: u8) {
        self.put(JSGE, register, 0, 1, 0);
        self.put(NEG, register, 0, 0, 0);
    }

    /// The address of a word whose place the state says, but for the offset of the first one. A mask bounds the place,
    /// which is never outside: so it is inside also for who cannot know that, and for a processor that guesses.
    fn element(&mut self, window: Window, dst: u8) -> Done {
        let mask = i32::try_from(window.words - 1).map_err(|_| TooMuch::Insns)?;
        self.put(LDX, dst, STATE, offset(window.index)?, 0);
        self.put(AND, dst, 0, 0, mask);
        self.put(LSH, dst, 0, 0, 3);
        self.put(ADD | X, dst, STATE, 0, 0);
        Ok(())
    }

    /// Jumps if the condition is as wanted; goes on if not.
    fn jump_if(&mut self, cond: &Cond, wanted: bool, dst: u8) -> Done<Jumps> {
        Ok(match cond {
            Cond::Const(is) if *is == wanted => vec![self.jump(JA, 0, 0, 0)],
            Cond::Const(_) => Vec::new(),
            Cond::Not(inner) => self.jump_if(inner, !wanted, dst)?,
            Cond::All(a, b) | Cond::Any(a, b) => {
                // What decides alone.
                let enough = matches!(cond, Cond::Any(..));
                let mut first = self.jump_if(a, enough, dst)?;
                let second = self.jump_if(b, wanted, dst)?;
                match enough == wanted {
                    true => {
                        first.extend(second);
                        first
                    }
                    false => {
                        self.here(&first)?;
                        second
                    }
                }
            }
            Cond::Compare(compare, signed, left, right) => {
                let compare = if wanted { *compare } else { compare.opposite() };
                if let Node::Const(number) = right {
                    // Interpreters are not of one mind about a negative number that is compared without a sign.
                    let has_sign =
                        *signed && !matches!(compare, Compare::Equal | Compare::NotEqual);
                    let short = i32::try_from(*number).ok();
                    if let Some(number) = short.filter(|number| *number >= 0 || has_sign) {
                        self.value(left, dst)?;
                        return Ok(vec![self.jump(jump_code(compare, *signed), dst, 0, number)]);
                    }
                }
                let (a, b) = self.two(left, right, dst)?;
                vec![self.jump(jump_code(compare, *signed) | X, a, b, 0)]
            }
        })
    }

    fn put(&mut self, code: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.insns.push(Insn {
            code,
            dst,
            src,
            off,
            imm,
        });
    }

    fn jump(&mut self, code: u8, dst: u8, src: u8, imm: i32) -> usize {
        self.put(code, dst, src, 0, imm);
        self.insns.len() - 1
    }

    /// These jumps lead to what comes next.
    fn here(&mut self, jumps: &[usize]) -> Done {
        for &jump in jumps {
            let off = i16::try_from(self.insns.len() - jump - 1).map_err(|_| TooMuch::Insns)?;
            self.insns[jump].off = off;
        }
        Ok(())
    }
}

fn offset(place: usize) -> Done<i16> {
    place
        .checked_mul(8)
        .and_then(|bytes| i16::try_from(bytes).ok())
        .ok_or(TooMuch::Insns)
}

fn code(op: Op) -> u8 {
    match op {
        Op::Add => ADD,
        Op::Sub => SUB,
        Op::Mul => MUL,
        Op::Rest => MOD,
        Op::And => AND,
        Op::Or => OR,
        Op::Xor => XOR,
        Op::Left => LSH,
        Op::Right => RSH,
        Op::RightSigned => ARSH,
        Op::Min { .. } | Op::Max { .. } => MOV,
    }
}

fn jump_code(compare: Compare, signed: bool) -> u8 {
    match (compare, signed) {
        (Compare::Equal, _) => JEQ,
        (Compare::NotEqual, _) => JNE,
        (Compare::Less, true) => JSLT,
        (Compare::Less, false) => JLT,
        (Compare::LessOrEqual, true) => JSLE,
        (Compare::LessOrEqual, false) => JLE,
        (Compare::Greater, true) => JSGT,
        (Compare::Greater, false) => JGT,
        (Compare::GreaterOrEqual, true) => JSGE,
        (Compare::GreaterOrEqual, false) => JGE,
    }
}

/// A second operand that fits into the instruction.
fn short(op: Op, right: &Node) -> Option<i32> {
    match right {
        Node::Const(number) if !matches!(op, Op::Min { .. } | Op::Max { .. }) => {
            i32::try_from(*number).ok()
        }
        _ => None,
    }
}

/// Registers that a word takes.
fn need(node: &Node) -> usize {
    let (mut first, mut others) = (node, Vec::new());
    while let Node::Op(_, left, right) = first {
        others.push(right);
        first = left;
    }
    let most = match first {
        Node::Quotient(quotient) => of_two(need(&quotient.dividend), need(&quotient.divisor)),
        Node::Abs(inner) => need(inner),
        Node::Truth(cond) => need_of(cond),
        _ => 1,
    };
    let others = others.into_iter().rev();
    others.fold(most, |most, other| of_two(most, need(other)))
}

fn of_two(a: usize, b: usize) -> usize {
    if a == b { a + 1 } else { a.max(b) }
}

fn need_of(cond: &Cond) -> usize {
    match cond {
        Cond::Const(_) => 1,
        Cond::Not(inner) => need_of(inner),
        Cond::All(a, b) | Cond::Any(a, b) => need_of(a).max(need_of(b)),
        Cond::Compare(_, _, a, b) => of_two(need(a), need(b)),
    }
}
