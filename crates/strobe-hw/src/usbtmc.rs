// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of a USB instrument's device file, `linux/usb/tmc.h`.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io;
use rustix::ioctl::{NoArg, Opcode, Setter, ioctl, opcode};

const GROUP: u8 = 91;
const CLEAR: Opcode = opcode::none(GROUP, 2);
const SET_TIMEOUT: Opcode = opcode::write::<u32>(GROUP, 10);

/// The driver takes no shorter time.
pub const SHORTEST: Duration = Duration::from_millis(100);

/// How long each transfer of a read or a write by this file may take from now on: whole milliseconds, rounded up, and at least
/// [`SHORTEST`]. A file begins with 5 s, and [`clear`] always has that.
///
/// # Errors
/// Those of the driver.
pub fn set_timeout(instrument: impl AsFd, timeout: Duration) -> io::Result<()> {
    let timeout = timeout.max(SHORTEST).as_nanos().div_ceil(1_000_000);
    let timeout = u32::try_from(timeout).unwrap_or(u32::MAX);
    // SAFETY: the driver reads a u32.
    unsafe { ioctl(instrument, Setter::<SET_TIMEOUT, u32>::new(timeout)) }
}

/// The instrument throws away what it was told and not done, and what it would have answered.
///
/// # Errors
/// Those of the driver; PERM: the instrument refused.
pub fn clear(instrument: impl AsFd) -> io::Result<()> {
    // SAFETY: the call has no argument.
    unsafe { ioctl(instrument, NoArg::<CLEAR>::new()) }
}
