// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of the HPET's driver, `linux/hpet.h`.

use std::os::fd::AsFd;

use rustix::io;
use rustix::ioctl::{IntegerSetter, NoArg, Opcode, ioctl, opcode};

const HPET_IE_ON: Opcode = opcode::none(b'h', 1);
const HPET_IE_OFF: Opcode = opcode::none(b'h', 2);
const HPET_EPI: Opcode = opcode::none(b'h', 4);
const HPET_IRQFREQ: Opcode = opcode::write::<usize>(b'h', 6);

/// How many interrupts a second this timer is to have.
///
/// # Errors
/// EACCES: more than everybody may have.
pub fn set_frequency(timer: impl AsFd, hertz: usize) -> io::Result<()> {
    // SAFETY: the driver takes the frequency itself as the argument, and no pointer.
    unsafe { ioctl(timer, IntegerSetter::<HPET_IRQFREQ>::new_usize(hertz)) }
}

/// Its interrupts come again and again.
///
/// # Errors
/// This timer cannot do that.
pub fn set_periodic(timer: impl AsFd) -> io::Result<()> {
    call::<HPET_EPI>(timer)
}

/// Interrupts come.
///
/// # Errors
/// They come already.
pub fn enable(timer: impl AsFd) -> io::Result<()> {
    call::<HPET_IE_ON>(timer)
}

/// Interrupts come no more.
///
/// # Errors
/// They do not come.
pub fn disable(timer: impl AsFd) -> io::Result<()> {
    call::<HPET_IE_OFF>(timer)
}

fn call<const CODE: Opcode>(timer: impl AsFd) -> io::Result<()> {
    // SAFETY: the three calls that are made here have no argument.
    unsafe { ioctl(timer, NoArg::<CODE>::new()) }
}
