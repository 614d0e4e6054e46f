// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run is tuned on a CPU that is busy, in time that is made of instructions: the rows come as fast as they are asked for.

use strobe_cases::tuned::tuned;
use strobe_cases::{Engine, Kernel, User};

#[test]
fn each_change_is_in_the_rows_of_a_run_of_the_kernel_that_misses_next_to_nothing() {
    let end = tuned(&Kernel::open(), 300);
    assert!(end.missed() < end.triggers / 100, "{end:?}");
}

#[test]
fn each_change_is_in_the_rows_of_a_run_of_a_thread_that_misses_little() {
    let end = tuned(&User::open(), 300);
    assert!(end.missed() < end.triggers / 10, "{end:?}");
}
