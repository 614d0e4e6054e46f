// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of a run, and the row that it works on. Nothing is allocated when rows are made.

use std::sync::Arc;

use strobe_expr::{Answer, Machine, Program};

/// Runs a program on one row after the other.
pub struct Computer {
    machine: Machine,
    row: Box<[u64]>,
    filled: usize,
    has_failed: bool,
}

impl Computer {
    /// Before the first row.
    pub fn new(program: Program) -> Computer {
        Computer {
            row: vec![0; program.inputs() + program.derived().len()].into(),
            machine: Machine::new(Arc::new(program)),
            filled: 0,
            has_failed: false,
        }
    }

    /// The value of the row's next channel.
    #[inline]
    pub fn value(&mut self, word: u64) {
        if let Some(place) = self.row.get_mut(self.filled) {
            *place = word;
            self.filled += 1;
        }
    }

    /// A channel or an output of the row failed.
    pub fn failed(&mut self) {
        self.has_failed = true;
    }

    /// The row has all its values; the next one begins. `None` if something in it failed: the program does not see it.
    #[inline]
    pub fn compute(&mut self) -> Option<Answer> {
        self.filled = 0;
        match std::mem::take(&mut self.has_failed) {
            true => None,
            false => Some(self.machine.run(&mut self.row)),
        }
    }

    /// The derived values of the row that was computed last.
    #[inline]
    pub fn derived(&self) -> &[u64] {
        let inputs = self.machine.program().inputs();
        self.row.get(inputs..).unwrap_or_default()
    }
}
