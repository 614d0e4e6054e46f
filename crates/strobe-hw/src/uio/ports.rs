// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O ports of a device. They cannot be mapped: a thread that has the right to them (CAP_SYS_RAWIO) asks the kernel for
//! them by ioperm(2), and reads and writes them by instructions of the processor. /dev/port needs the same right, and knows
//! bytes only.

use std::marker::PhantomData;

use rustix::io::Errno;

use super::{Error, Uio};

/// I/O ports, which only the thread that has opened them can use.
#[derive(Debug)]
pub struct Ports {
    start: u16,
    size: u16,
    /// The kernel gives them to a thread.
    _of_this_thread: PhantomData<*const ()>,
}

impl Uio {
    /// A block of its I/O ports, for this thread.
    ///
    /// # Errors
    /// There is no such block, it is of another kind than x86 has, or the thread has no right to ports.
    pub fn ports(&self, number: u32) -> Result<Ports, Error> {
        let name = || self.name.clone();
        let Some(port) = self.ports.iter().find(|port| port.number == number) else {
            return Err(Error::NoPorts {
                name: name(),
                number,
                there: self.ports.iter().map(|port| port.number).collect(),
            });
        };
        let bounds = u16::try_from(port.start)
            .ok()
            .zip(u16::try_from(port.size).ok());
        let bounds =
            bounds.filter(|(start, size)| start.checked_add(size.saturating_sub(1)).is_some());
        let Some((start, size)) = bounds.filter(|_| port.kind == "port_x86") else {
            return Err(Error::PortKind {
                name: name(),
                number,
                kind: port.kind.clone(),
            });
        };
        match x86::permit(start, size, true) {
            Ok(()) => Ok(Ports {
                start,
                size,
                _of_this_thread: PhantomData,
            }),
            Err(error) => Err(match Errno::from_io_error(&error) {
                Some(Errno::PERM) => Error::PortPermission {
                    name: name(),
                    number,
                },
                _ => Error::Io {
                    name: name(),
                    doing: "asking for its I/O ports",
                    source: error,
                },
            }),
        }
    }
}

impl Ports {
    /// How many there are.
    pub fn size(&self) -> u64 {
        self.size.into()
    }

    /// Reads `width` ports (1, 2 or 4) by one access, from the `offset`th on; `None` if they are not there, or `offset` is
    /// no multiple of the width.
    pub fn read(&self, offset: u64, width: u8) -> Option<u32> {
        let port = self.port(offset, width)?;
        Some(x86::read(port, width))
    }

    /// Writes `width` ports; as [`Ports::read`].
    pub fn write(&self, offset: u64, width: u8, value: u32) -> Option<()> {
        let port = self.port(offset, width)?;
        x86::write(port, width, value);
        Some(())
    }

    fn port(&self, offset: u64, width: u8) -> Option<u16> {
        let offset = u16::try_from(offset).ok()?;
        let end = offset.checked_add(width.into())?;
        let fits = matches!(width, 1 | 2 | 4) && end <= self.size && offset % u16::from(width) == 0;
        fits.then(|| self.start.wrapping_add(offset))
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // To give up what one has needs no right.
        let _ = x86::permit(self.start, self.size, false);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::io;

    /// Lets this thread use these ports, or not any more.
    pub(super) fn permit(start: u16, size: u16, on: bool) -> io::Result<()> {
        let (start, size) = (libc::c_ulong::from(start), libc::c_ulong::from(size));
        // SAFETY: it changes which ports the thread may use, and no memory.
        match unsafe { libc::syscall(libc::SYS_ioperm, start, size, libc::c_int::from(on)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn read(port: u16, width: u8) -> u32 {
        let mut value: u32 = 0;
        // SAFETY: reads a port that `Ports` has, of this thread; no memory is touched, and without the right to it the
        // processor refuses.
        unsafe {
            match width {
                1 => {
                    asm!("in al, dx", in("dx") port, inout("eax") value, options(nomem, nostack, preserves_flags))
                }
                2 => {
                    asm!("in ax, dx", in("dx") port, inout("eax") value, options(nomem, nostack, preserves_flags))
                }
                _ => {
                    asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags))
                }
            }
        }
        value
    }

    pub(super) fn write(port: u16, width: u8, value: u32) {
        // SAFETY: as in `read`.
        unsafe {
            match width {
                1 => {
                    asm!("out dx, al", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
                }
                2 => {
                    asm!("out dx, ax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
                }
                _ => {
                    asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
                }
            }
        }
    }
}

/// Other processors have no such ports.
#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use std::io;

    pub(super) fn permit(_: u16, _: u16, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn read(_: u16, _: u8) -> u32 {
        0
    }

    pub(super) fn write(_: u16, _: u8, _: u32) {}
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    #[test]
    fn ports_that_are_not_there_or_of_another_kind_are_refused() {
        let fake = Fake::new();
        fake.device(0, "card", 0);
        fake.port(0, 0, "lines", 0, 8, "port_gpio");
        fake.port(0, 1, "far", 0xffff, 2, "port_x86");
        let card = Uio::find_in(&fake.roots, "card").expect("the device");
        let said = |number| card.ports(number).expect_err("no ports").to_string();
        assert_eq!(said(7), "UIO device card: no ports 7; it has 0, 1");
        assert!(said(0).contains("port_gpio"), "{}", said(0));
        assert!(said(1).contains("port_x86"), "{}", said(1));
    }

    #[test]
    fn what_lies_outside_or_is_not_aligned_is_no_port() {
        let ports = Ports {
            start: 0x80,
            size: 6,
            _of_this_thread: PhantomData,
        };
        for (offset, width, port) in [
            (0, 1, Some(0x80)),
            (5, 1, Some(0x85)),
            (4, 2, Some(0x84)),
            (0, 4, Some(0x80)),
            (6, 1, None),
            (4, 4, None),
            (3, 2, None),
            (0, 3, None),
            (0, 8, None),
            (u64::MAX, 1, None),
        ] {
            assert_eq!(ports.port(offset, width), port, "{width} at {offset}");
        }
        // The right to them was never asked for.
        std::mem::forget(ports);
    }
}
