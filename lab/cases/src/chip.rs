// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of runs with a board of the name `chip`.

use strobe::plan::Step;

/// Reads a channel of it.
pub fn read(name: &str) -> Step {
    Step::Read(format!("chip.{name}"))
}

/// Writes this to an output of it.
pub fn write(name: &str, value: u64) -> Step {
    Step::Write {
        output: format!("chip.{name}"),
        value,
    }
}
