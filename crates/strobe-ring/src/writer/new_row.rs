// SPDX-License-Identifier: MIT OR Apache-2.0
//! The row that the producer is making, in its place in the ring.

use super::Live;
use crate::barrier;
use crate::layout::{ROW_FLAGS, ROW_RESUMED, RingHeader, RowHeader, STATUS_FAULTS};
use crate::sync::{AtomicU64, Ordering};
use std::mem::offset_of;

pub(super) const ROW: usize = offset_of!(RowHeader, row) / 8;
pub(super) const TRIGGER: usize = offset_of!(RowHeader, trigger) / 8;
pub(super) const TIME: usize = offset_of!(RowHeader, time) / 8;
const STATUS: usize = offset_of!(RowHeader, status) / 8;

/// A row that is being made in its place: each value is written once.
#[must_use = "a row exists when it is committed"]
pub struct NewRow<'w> {
    pub(super) header: &'w [AtomicU64],
    pub(super) row: &'w [AtomicU64],
    pub(super) values: &'w [AtomicU64],
    /// The fault words, and the count of skipped triggers if the ring has it.
    pub(super) behind: &'w [AtomicU64],
    pub(super) filled: usize,
    /// As in the status; what is beyond is in the fault words.
    pub(super) faults: u32,
    pub(super) faulty: bool,
    pub(super) outputs: usize,
    pub(super) live: &'w mut Live,
}

impl NewRow<'_> {
    /// Number of the trigger.
    pub fn trigger(&self) -> u64 {
        self.live.triggers
    }

    /// The value of the next channel. One channel too many is left out.
    #[inline]
    pub fn value(&mut self, value: u64) {
        if let Some(word) = self.values.get(self.filled) {
            word.store(value, Ordering::Relaxed);
            self.filled += 1;
        }
    }

    /// The next channel failed: its value is 0, and the row says that it failed.
    #[inline] // or the row would have to lie in memory, where each value waits for the one before
    pub fn failed(&mut self) {
        if self.filled < self.values.len() {
            self.fault(self.filled);
            self.value(0);
        }
    }

    /// The output of this number failed, counted from 0 in the order of the run's steps. One that the run does not
    /// have is left out.
    #[inline]
    pub fn output_failed(&mut self, output: usize) {
        if output < self.outputs {
            self.fault(self.values.len() + output);
        }
    }

    #[inline]
    fn fault(&mut self, index: usize) {
        self.faulty = true;
        match index.checked_sub(STATUS_FAULTS as usize) {
            None => self.faults |= 1 << index,
            Some(bit) => self.live.faults[bit / 64] |= 1 << (bit % 64),
        }
    }

    /// Publishes the row. `flags` are [`ROW_LATE`](crate::layout::ROW_LATE) or 0; channels without a value
    /// have failed.
    #[inline(always)] // as with failed(): a row is made in registers
    pub fn commit(mut self, flags: u64) {
        while self.filled < self.values.len() {
            self.failed();
        }
        let live = self.live;
        let mut status = flags & ROW_FLAGS | u64::from(self.faults) << 32;
        if live.resumed {
            live.resumed = false;
            status |= ROW_RESUMED;
        }
        self.row[STATUS].store(status, Ordering::Relaxed);
        // All of them in each row, or those of an older row would be there still.
        let behind = live.faults.iter().copied().chain([live.skipped]);
        for (word, value) in self.behind.iter().zip(behind) {
            word.store(value, Ordering::Relaxed);
        }
        live.triggers = live.triggers.saturating_add(1);
        self.header[offset_of!(RingHeader, triggers) / 8].store(live.triggers, Ordering::Relaxed);
        if self.faulty {
            live.errors += 1;
            self.header[offset_of!(RingHeader, errors) / 8].store(live.errors, Ordering::Relaxed);
        }
        live.head += 1;
        barrier::publish(&self.header[offset_of!(RingHeader, head) / 8], live.head);
        // B
    }
}
