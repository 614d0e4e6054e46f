// SPDX-License-Identifier: MIT OR Apache-2.0
//! UIO devices: drivers that are ordinary programs.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::time::Duration;

use strobe::uio::{Device, MappedMemory, Uio};

use crate::call::{self, Failure, call, held, place, seen, text};

/// An open UIO device. One thread at a time may use it; its memory may be used by all.
pub struct strobe_uio {
    device: Device,
    maps: BTreeMap<u32, MappedMemory>,
}

impl strobe_uio {
    fn map(&mut self, number: u32) -> call::Result<&MappedMemory> {
        if !self.maps.contains_key(&number) {
            let map = self.device.map(number).map_err(Failure::text)?;
            self.maps.insert(number, map);
        }
        let none = || Failure::new("UIO device", "no such map", "see `strobe uio list`");
        self.maps.get(&number).ok_or_else(none)
    }
}

/// Opens the device of this name: as its driver calls it, or `uioN`. NULL if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_open(name: *const c_char) -> *mut strobe_uio {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let name = unsafe { text(name, "name of a UIO device") }?;
        let device = Uio::find(name).and_then(|uio| uio.open());
        Ok(call::handle(strobe_uio {
            device: device.map_err(Failure::text)?,
            maps: BTreeMap::new(),
        }))
    })
}

/// Closes it; its memory is not mapped any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_free(uio: *mut strobe_uio) {
    // SAFETY: as the header demands.
    unsafe { call::free(uio) };
}

/// Its descriptor, which is ready to be read when an interrupt has come; read it by `strobe_uio_wait` with a timeout of 0.
/// It belongs to the device. -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_fd(uio: *const strobe_uio) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        Ok(unsafe { seen(uio, "UIO device") }?
            .device
            .as_fd()
            .as_raw_fd())
    })
}

/// Waits for an interrupt, so many milliseconds at most; -1: as long as it takes. `*count` is the kernel's count of the
/// device's interrupts, `*missed` how many came before this one that no call has seen; both may be NULL. Answers 1, 0 if
/// none came in time, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_wait(
    uio: *mut strobe_uio,
    timeout_ms: c_int,
    count: *mut u32,
    missed: *mut u32,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let device = &mut unsafe { held(uio, "UIO device") }?.device;
        let interrupt = match u64::try_from(timeout_ms) {
            Ok(ms) => device.wait_timeout(Duration::from_millis(ms)),
            Err(_) => device.wait().map(Some),
        };
        let Some(interrupt) = interrupt.map_err(Failure::text)? else {
            return Ok(0);
        };
        for (to, value) in [(count, interrupt.count), (missed, interrupt.missed)] {
            if let Some(to) = NonNull::new(to) {
                // SAFETY: as the header demands.
                unsafe { to.write(value) };
            }
        }
        Ok(1)
    })
}

/// Lets it interrupt (1), or keeps it from that (0). Some drivers need it before the first interrupt, and after each.
/// 0, or -1 if it failed, as of a driver that has no such thing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_enable(uio: *const strobe_uio, on: c_int) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let device = &unsafe { seen(uio, "UIO device") }?.device;
        let done = match on {
            0 => device.disable(),
            _ => device.enable(),
        };
        done.map_err(Failure::text)?;
        Ok(0)
    })
}

/// The memory of one of its maps, to be read and written, from where the device's memory begins; `*size` (may be NULL) is
/// how many bytes there are. It is mapped until the device is freed. If the device goes away, it reads as all ones. NULL if
/// it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_map(
    uio: *mut strobe_uio,
    map: u32,
    size: *mut usize,
) -> *mut c_void {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let memory = unsafe { held(uio, "UIO device") }?.map(map)?;
        if let Some(to) = NonNull::new(size) {
            // SAFETY: as the header demands.
            unsafe { to.write(memory.bytes() as usize) };
        }
        Ok(memory.start().cast())
    })
}

/// Reads a register of 1, 2, 4 or 8 bytes at an offset of a map, by one access. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_read(
    uio: *mut strobe_uio,
    map: u32,
    offset: u64,
    bytes: u32,
    value: *mut u64,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let uio = unsafe { held(uio, "UIO device") }?;
        let to = place(value, "the place for the value")?;
        let read = register(uio, map, offset, bytes)?.read();
        // SAFETY: as the header demands.
        unsafe { to.write(read) };
        Ok(0)
    })
}

/// Writes such a register. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_uio_write(
    uio: *mut strobe_uio,
    map: u32,
    offset: u64,
    bytes: u32,
    value: u64,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let uio = unsafe { held(uio, "UIO device") }?;
        register(uio, map, offset, bytes)?.write(value);
        Ok(0)
    })
}

fn register(
    uio: &mut strobe_uio,
    map: u32,
    offset: u64,
    bytes: u32,
) -> call::Result<strobe::map::Register> {
    let memory = uio.map(map)?;
    let width = u8::try_from(bytes).unwrap_or(0);
    memory.register(offset, width).ok_or_else(|| {
        let object = format!("register of {bytes} bytes at {offset:#x} of map {map}");
        let why = format!(
            "it is not within the {:#x} bytes of the map",
            memory.bytes()
        );
        Failure::new(
            &object,
            why,
            "a register has 1, 2, 4 or 8 bytes, and begins at a multiple of that",
        )
    })
}
