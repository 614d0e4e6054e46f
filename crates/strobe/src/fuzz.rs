// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rubbish for parsers: bytes that are like what is right. `STROBE_FUZZ` says how many for each.

use std::hint::black_box;

/// Inputs for each parser.
pub fn inputs() -> u32 {
    let said = std::env::var("STROBE_FUZZ").ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(100_000)
}

/// The same numbers each time (xorshift).
pub struct Numbers(u64);

impl Default for Numbers {
    fn default() -> Self {
        Numbers(0x5EED)
    }
}

impl Numbers {
    /// One below this.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    /// What is right, in parts, twice, mixed with each other and with what should not be there.
    pub fn rubbish(&mut self, right: &[&[u8]]) -> Vec<u8> {
        let mut bytes = right[self.below(right.len())].to_vec();
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..end, ODD[self.below(ODD.len())].bytes())),
                3 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                4 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                _ => {
                    let other = right[self.below(right.len())];
                    bytes.splice(at..end, other[self.below(other.len())..].iter().copied());
                }
            }
        }
        bytes
    }
}

const ODD: [&str; 24] = [
    "",
    "\0",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "=",
    "&",
    "%",
    "%00",
    "\n",
    "#",
    "..",
    "/",
    "-1",
    "18446744073709551616",
    "1e999",
    "null",
    "\u{fffd}",
    "é",
    "\u{202e}",
    "file:",
];

/// Has all of it parsed; `parse` answers whether it was understood.
pub fn bytes(right: &[&[u8]], mut parse: impl FnMut(&[u8]) -> bool) {
    let mut numbers = Numbers::default();
    let understood = (0..inputs()).filter(|_| parse(black_box(&numbers.rubbish(right))));
    let understood = understood.count() as u32;
    // If nothing were understood, nothing would be tried but the first look.
    assert!(understood > inputs() / 100, "{understood}");
    assert!(understood < inputs(), "all of it");
    let most = peak();
    assert!(most < MEMORY, "{most} KiB were in use at some moment");
}

/// What this process, with all its tests, may have had in memory, KiB: a length that is believed would be more.
const MEMORY: u64 = 1 << 20;

/// The most that this process has had in memory, KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("VmHWM")
}

/// The same with texts.
pub fn texts(right: &[&str], mut parse: impl FnMut(&str) -> bool) {
    let right: Vec<&[u8]> = right.iter().map(|text| text.as_bytes()).collect();
    bytes(&right, |bytes| parse(&String::from_utf8_lossy(bytes)));
}
