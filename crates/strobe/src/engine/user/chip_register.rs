// SPDX-License-Identifier: MIT OR Apache-2.0
//! A register of a chip on a bus: who reads or writes it waits for the transfers.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strobe_board::Register;
use strobe_instrument::Chip;

use super::provider::WriteOutput;

/// A register of a chip that is open.
pub(super) struct ChipRegister {
    chip: Arc<Mutex<Chip>>,
    described: Register,
}

impl ChipRegister {
    /// The one that a board file describes.
    pub(super) fn new(chip: Arc<Mutex<Chip>>, described: Register) -> Self {
        ChipRegister { chip, described }
    }

    fn chip(&self) -> MutexGuard<'_, Chip> {
        self.chip.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the board file says of it.
    pub(super) fn described(&self) -> &Register {
        &self.described
    }

    /// Whether another one is of the same chip.
    pub(super) fn is_of_same_chip(&self, other: &ChipRegister) -> bool {
        Arc::ptr_eq(&self.chip, &other.chip)
    }

    /// What the chip says now.
    ///
    /// # Errors
    /// Those of the bus.
    pub(super) fn get(&self) -> io::Result<u64> {
        self.chip().read(&self.described)
    }
}

impl WriteOutput for ChipRegister {
    fn write(&mut self, word: u64) -> io::Result<()> {
        self.chip().write(&self.described, word)
    }
}
