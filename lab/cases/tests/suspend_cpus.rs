// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs over suspend to RAM, one of them on a processor that the kernel takes away meanwhile.
// kernels: amd64
// lab: --wake --device lab-counter

use crate::suspend::runs;

#[test]
fn a_timer_whose_processor_was_taken_away_in_a_suspend_goes_on_there() {
    runs::go_on(1);
}
