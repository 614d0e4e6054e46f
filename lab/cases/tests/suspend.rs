// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs over suspend to RAM. The kernels with sanitizers cannot suspend; and with two processors QEMU 7.2 does not bring
//! Debian's PREEMPT_RT kernel back a second time, and 7.3 not once, with no module of ours loaded either.
// kernels: amd64 rt
// lab: --wake --device lab-counter --cpus 1

pub mod runs;

#[test]
fn runs_go_on_after_a_suspend_with_a_gap_that_is_named_and_cards_that_are_set_up() {
    runs::go_on(0);
}
