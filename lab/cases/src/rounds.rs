// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that do something many times: how often, and what must be there afterwards as before.

use std::collections::BTreeMap;
use std::{env, fs};

use crate::machine::slowness;

/// `$STROBE_ROUNDS`; else so many, or `slow` on a kernel with sanitizers.
pub fn rounds(usual: u64, slow: u64) -> u64 {
    let usual = if slowness() > 1 { slow } else { usual };
    let text = env::var("STROBE_ROUNDS").ok();
    text.map_or(usual, |text| text.parse().expect("a number of rounds"))
}

/// What can be counted: fds and mappings of this process, devices and runs of strobe, mappings of its modules.
pub fn held() -> BTreeMap<&'static str, usize> {
    let lines = |path: &str, word: &str| {
        let text = fs::read_to_string(path).unwrap_or_else(|why| panic!("{path}: {why}"));
        text.lines().filter(|line| line.contains(word)).count()
    };
    // A class that no module has made has no devices.
    let entries = |path: &str| fs::read_dir(path).map_or(0, Iterator::count);
    BTreeMap::from([
        ("fds", entries("/proc/self/fd")),
        (
            "mappings of hardware",
            lines("/proc/self/maps", "/devices/"),
        ),
        ("devices and runs", entries("/sys/class/strobe")),
        (
            "mappings of the kernel",
            lines("/proc/vmallocinfo", "[strobe"),
        ),
        ("cards", entries("/sys/bus/pci/devices")),
        ("UIO devices", entries("/sys/class/uio")),
    ])
}
