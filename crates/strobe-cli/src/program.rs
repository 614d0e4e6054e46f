// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that are a program: what is computed from a row, and whether it is kept.

use strobe::program::ProgramText;

#[derive(clap::Args)]
// Its name would be that of the arguments it is a part of.
#[group(skip)]
pub struct Args {
    /// Compute a column: 'speed = diff(enc.pos) / diff(clock.time)'; may be given
    /// several times
    #[arg(long, value_name = "NAME = EXPRESSION")]
    pub derive: Vec<String>,

    /// Keep only rows that meet this condition: 'adc.a > 2.5 V && io.in & 1'; of
    /// several conditions, all must be met. Rows left out count as skipped
    #[arg(long, value_name = "CONDITION")]
    pub keep: Vec<String>,

    /// Keep only every Nth of these rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub every: Option<u64>,
}

impl Args {
    /// What was given comes before what there is.
    pub fn change(&self, program: &mut ProgramText) {
        for (given, list) in [
            (&self.derive, &mut program.derive),
            (&self.keep, &mut program.keep),
        ] {
            if !given.is_empty() {
                list.clone_from(given);
            }
        }
        program.every = self.every.or(program.every);
    }
}
