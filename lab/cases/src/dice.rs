// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers by chance, the same in each run.

use crate::raw::named;

/// SplitMix64: the same seed, the same sequence.
pub struct Dice(pub u64);

impl Dice {
    /// Any word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound.max(1) as u64) as usize
    }

    /// Once in so many times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len())]
    }

    /// `right`, or now and then a number at some edge, or any.
    pub fn spoil(&mut self, right: u64) -> u64 {
        const EDGES: [u64; 12] = [
            0,
            1,
            2,
            63,
            64,
            4095,
            4097,
            i32::MAX as u64,
            u32::MAX as u64,
            i64::MAX as u64,
            u64::MAX - 1,
            u64::MAX,
        ];
        match self.below(40) {
            0 => self.of(&EDGES),
            1 => right.wrapping_add(1),
            2 => right.wrapping_sub(1),
            3 => right ^ (1 << self.below(64)),
            4 => self.word(),
            _ => right,
        }
    }

    /// The same of 32 bits.
    pub fn spoil32(&mut self, right: u32) -> u32 {
        self.spoil(right.into()) as u32
    }

    /// An address of `right`, or now and then one where nothing is, or the kernel.
    pub fn address(&mut self, right: u64) -> u64 {
        const WRONG: [u64; 5] = [0, 0x1000, 0xffff_8880_0000_0000, 1 << 63, u64::MAX - 7];
        if self.one_in(40) {
            self.of(&WRONG)
        } else {
            right
        }
    }

    /// One of these names, or now and then one of nothing.
    pub fn name(&mut self, right: &[&str]) -> [u8; 64] {
        const WRONG: [&str; 5] = ["", ".", "sim.", "sim.nothing", "nothing.counter"];
        if self.one_in(60) {
            return [b'x'; 64];
        }
        let name = if self.one_in(30) {
            self.of(&WRONG)
        } else {
            self.of(right)
        };
        named(name)
    }
}
