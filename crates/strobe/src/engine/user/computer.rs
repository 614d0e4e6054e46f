// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of a run, and the row that it works on. Nothing is allocated when rows are made.

use std::sync::Arc;

use strobe_expr::{Answer, Machine, Program};

use super::tuning::Tuning;

/// Runs a program on one row after the other.
pub struct Computer {
    machine: Machine,
    tuning: Arc<Tuning>,
    row: Box<[u64]>,
    filled: usize,
    has_failed: bool,
}

impl Computer {
    /// Before the first row.
    pub fn new(program: Program) -> Computer {
        Computer {
            row: vec![0; program.inputs() + program.derived().len()].into(),
            tuning: Arc::new(Tuning::of(&program)),
            machine: Machine::new(Arc::new(program)),
            filled: 0,
            has_failed: false,
        }
    }

    /// What gives its tunables new values.
    pub fn tuning(&self) -> &Arc<Tuning> {
        &self.tuning
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
            false => {
                let machine = &mut self.machine;
                self.tuning
                    .take(|(tunable, word)| machine.tune(tunable, word));
                Some(machine.run(&mut self.row))
            }
        }
    }

    /// The derived values of the row that was computed last.
    #[inline]
    pub fn derived(&self) -> &[u64] {
        let inputs = self.machine.program().inputs();
        self.row.get(inputs..).unwrap_or_default()
    }
}
