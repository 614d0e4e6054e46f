// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor's cycle counter.

/// The cycle counter, if programs may read it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn read() -> Option<u64> {
    // SAFETY: every processor of this architecture has it, and Linux lets programs read it.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The cycle counter, if programs may read it.
#[cfg(not(target_arch = "x86_64"))]
pub fn read() -> Option<u64> {
    None
}
