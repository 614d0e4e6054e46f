// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row consists of, and what failed in it.

use crate::layout::{INCOMPAT_FAULTS, INCOMPAT_SKIPPED, ROW_HEADER_WORDS, STATUS_FAULTS};
use std::fmt;

/// Words of a row: four of its own, the values, fault words, and the count of skipped triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowShape {
    /// Values in a row.
    pub channels: u32,
    /// Outputs that a row writes. They have no words, but a row names those that failed.
    pub outputs: u32,
    /// Whether a row tells how many triggers were skipped before it. A run whose event leaves out triggers on
    /// purpose must have it: without it a reader takes them for missed.
    pub skipped: bool,
}

impl RowShape {
    /// Rows of so many channels, which write nothing, of an event that skips nothing.
    pub fn of_channels(channels: u32) -> RowShape {
        RowShape {
            channels,
            ..RowShape::default()
        }
    }

    /// Fault words of a row: bits for the channels and outputs for which the status has none.
    #[inline]
    pub fn fault_words(self) -> u64 {
        let steps = u64::from(self.channels) + u64::from(self.outputs);
        steps.saturating_sub(u64::from(STATUS_FAULTS)).div_ceil(64)
    }

    /// Words of a row, without padding.
    #[inline]
    pub fn words(self) -> u64 {
        let behind = self.fault_words() + u64::from(self.skipped);
        ROW_HEADER_WORDS as u64 + u64::from(self.channels) + behind
    }

    /// Bytes of a row, without padding.
    pub fn bytes(self) -> u64 {
        8 * self.words()
    }

    /// The bits of the header's `incompat` that say so.
    pub fn incompat(self) -> u32 {
        let faults = u32::from(self.fault_words() > 0) * INCOMPAT_FAULTS;
        faults | (u32::from(self.skipped) * INCOMPAT_SKIPPED)
    }
}

/// The channels and outputs that failed in a row. Channels have the first numbers, in the order of the
/// values; then come the outputs, in the order of the run's steps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Faults<'a> {
    pub(crate) first: u32,
    pub(crate) others: &'a [u64],
}

impl<'a> Faults<'a> {
    /// Whether this channel or output failed. None failed that the row does not have.
    #[inline]
    pub fn failed(&self, index: usize) -> bool {
        match index.checked_sub(STATUS_FAULTS as usize) {
            None => self.first >> index & 1 != 0,
            Some(bit) => {
                (self.others.get(bit / 64)).is_some_and(|word| word >> (bit % 64) & 1 != 0)
            }
        }
    }

    /// Whether nothing failed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.others.iter().all(|&word| word == 0)
    }

    /// How many failed.
    pub fn count(&self) -> usize {
        let others = self.others.iter().map(|word| word.count_ones());
        (self.first.count_ones() + others.sum::<u32>()) as usize
    }

    /// Those that failed, in their order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + 'a {
        let others = (STATUS_FAULTS as usize..).step_by(64).zip(self.others);
        bits(0, u64::from(self.first)).chain(others.flat_map(|(at, &word)| bits(at, word)))
    }
}

impl fmt::Debug for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The numbers of the bits that are set, from `at` on.
fn bits(at: usize, mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| at + word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}
