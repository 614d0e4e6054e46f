// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters: perf_event_open(2).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The first 64 bytes of `struct perf_event_attr`, which is all that these counters need
/// (perf_event_open(2), PERF_ATTR_SIZE_VER0).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

/// Counters of the processor, PERF_TYPE_HARDWARE.
pub const HARDWARE: u32 = 0;
/// Counters of the kernel, PERF_TYPE_SOFTWARE.
pub const SOFTWARE: u32 = 1;

/// A counter of one thread.
#[derive(Debug)]
pub struct Counter(OwnedFd);

impl Counter {
    /// A counter of the calling thread, which counts from now on.
    ///
    /// # Errors
    /// This machine does not count that, or not for everybody.
    pub fn open(kind: u32, number: u64) -> io::Result<Counter> {
        open(kind, number).map(Counter)
    }

    /// What it has counted.
    ///
    /// # Errors
    /// It could not be put on the processor.
    pub fn read(&self) -> io::Result<u64> {
        let mut value = [0; 8];
        match rustix::io::read(&self.0, &mut value)? {
            8 => Ok(u64::from_ne_bytes(value)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn open(kind: u32, number: u64) -> io::Result<OwnedFd> {
    /// Not in the hypervisor: few users may see that, and it is not ours.
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    /// Not in the kernel, if that is for root only.
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    let mut attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config: number,
        flags: EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    match call(&attributes) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            attributes.flags |= EXCLUDE_KERNEL;
            call(&attributes)
        }
        result => result,
    }
}

fn call(attributes: &Attributes) -> io::Result<OwnedFd> {
    const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the pointer is to a structure that says how long it is, and lives throughout the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes,
            this_thread,
            any_cpu,
            no_group,
            FLAG_CLOEXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the call has just made this descriptor for us.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
