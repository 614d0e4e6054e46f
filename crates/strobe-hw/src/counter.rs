// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of a counter's device file, `linux/counter.h`: what is watched, and what is read.

use std::os::fd::AsFd;

use rustix::io;
use rustix::ioctl::{NoArg, Opcode, Setter, ioctl, opcode};

const GROUP: u8 = 0x3E;
const ADD_WATCH: Opcode = opcode::write::<Watch>(GROUP, 0);
const ENABLE: Opcode = opcode::none(GROUP, 1);
const DISABLE: Opcode = opcode::none(GROUP, 2);
/// Bytes of a [`Record`], as the driver gives them.
pub const RECORD: usize = 24;
/// [`Watch::component`] of nothing: only the event itself is told.
pub const NOTHING: [u8; 4] = [0; 4];

/// What the driver is to tell at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Watch {
    /// Type, scope, parent and number of what is read then.
    pub component: [u8; 4],
    /// Which event.
    pub event: u8,
    /// Which of the counter's channels of events.
    pub channel: u8,
}

/// The component of a count: what it is, and that it is one of a count.
pub fn count(number: u8) -> [u8; 4] {
    [2, 2, number, 0]
}

/// What was told at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When, ns on CLOCK_MONOTONIC.
    pub time: u64,
    /// What was read.
    pub value: u64,
    /// What it is of.
    pub watch: Watch,
    /// 0, or the errno with which it was not read.
    pub errno: u8,
}

impl Record {
    /// That of these bytes.
    pub fn of(bytes: &[u8; RECORD]) -> Record {
        let [
            t0,
            t1,
            t2,
            t3,
            t4,
            t5,
            t6,
            t7,
            v0,
            v1,
            v2,
            v3,
            v4,
            v5,
            v6,
            v7,
            rest @ ..,
        ] = *bytes;
        let [kind, scope, parent, id, event, channel, errno, _] = rest;
        Record {
            time: u64::from_ne_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            value: u64::from_ne_bytes([v0, v1, v2, v3, v4, v5, v6, v7]),
            watch: Watch {
                component: [kind, scope, parent, id],
                event,
                channel,
            },
            errno,
        }
    }
}

/// From the next [`enable`] on, this is told.
///
/// # Errors
/// EINVAL: the counter does not have that.
pub fn add_watch(counter: impl AsFd, watch: Watch) -> io::Result<()> {
    // SAFETY: the driver reads a struct of this form, and keeps no pointer to it.
    unsafe { ioctl(counter, Setter::<ADD_WATCH, Watch>::new(watch)) }
}

/// What was added is told from now on, and nothing else.
///
/// # Errors
/// Those of the driver.
pub fn enable(counter: impl AsFd) -> io::Result<()> {
    // SAFETY: the call has no argument.
    unsafe { ioctl(counter, NoArg::<ENABLE>::new()) }
}

/// Nothing is told any more.
///
/// # Errors
/// Those of the driver.
pub fn disable(counter: impl AsFd) -> io::Result<()> {
    // SAFETY: the call has no argument.
    unsafe { ioctl(counter, NoArg::<DISABLE>::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_records_are_those_of_the_kernels_header() {
        // As a C program that includes linux/counter.h prints them.
        assert_eq!([ADD_WATCH, ENABLE, DISABLE], [0x4006_3E00, 0x3E01, 0x3E02]);
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&5_u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&7_u64.to_ne_bytes());
        bytes[16..].copy_from_slice(&[2, 2, 1, 0, 3, 4, 19, 0xee]);
        let watch = Watch {
            component: count(1),
            event: 3,
            channel: 4,
        };
        let record = Record {
            time: 5,
            value: 7,
            watch,
            errno: 19,
        };
        assert_eq!(Record::of(&bytes), record);
    }
}
