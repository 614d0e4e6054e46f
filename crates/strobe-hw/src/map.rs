// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of hardware, mapped into this process: map N of a UIO device, a PCI resource file, any file.
//!
//! Bounds, alignment and width are checked once, when a [`Register`] is made; an access is one load or store
//! of exactly that width, which the compiler neither leaves out nor merges.

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::rt;

mod gone;

/// A mapped block of registers. Clones are the same mapping, which lives as long as one of them, or a
/// register of it.
#[derive(Debug, Clone)]
pub struct Region(Arc<Mapping>);

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    writable: bool,
    /// Taken out before the mapping is undone.
    watch: Option<gone::Watch>,
}

// SAFETY: a mapping belongs to the process; the struct only remembers where it is. Accesses are volatile and of
// one word each; that two threads may hit the same register is the nature of hardware.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.watch = None;
        // SAFETY: `Region::map` has made exactly this mapping, and the last one who could use it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

impl Region {
    /// Maps `bytes` bytes of a file from `offset`, which has to be a multiple of the page size.
    ///
    /// If what is behind the file goes away, the region reads as all ones from then on, as a bus does where
    /// no card is, and [`Region::is_gone`] says so. (This program handles SIGBUS for that.)
    ///
    /// # Errors
    /// Those of mmap; EINVAL for no bytes at all; ENOMEM for more than 256 regions.
    pub fn map(file: &File, offset: u64, bytes: u64, writable: bool) -> io::Result<Region> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        let access = match writable {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing that exists.
        let start = unsafe { mmap(anywhere, bytes, access, MapFlags::SHARED, file, offset) };
        let start = start.map_err(|errno| rt::lock_limit(errno.into(), bytes as u64))?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let watch = gone::Watch::new(start.as_ptr() as usize, bytes);
        let mapping = Mapping {
            start,
            bytes,
            writable,
            watch,
        };
        match mapping.watch {
            Some(_) => Ok(Region(Arc::new(mapping))),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Whether an access found that what was mapped has gone away.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.0.watch.as_ref().is_some_and(gone::Watch::is_gone)
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.0.bytes as u64
    }

    /// Where it is, for who accesses it by pointers: good as long as the region, or a clone of it, is there.
    pub fn start(&self) -> *mut u8 {
        self.0.start.as_ptr()
    }

    /// Whether its registers may be written.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// The register of `width` bytes (1, 2, 4 or 8) at `offset` bytes from the start; `None` if it lies
    /// outside, or is not aligned to its width.
    pub fn register(&self, offset: u64, width: u8) -> Option<Register> {
        let offset = usize::try_from(offset).ok()?;
        let wide = usize::from(width);
        let fits = offset
            .checked_add(wide)
            .is_some_and(|end| end <= self.0.bytes);
        if !matches!(width, 1 | 2 | 4 | 8) || !fits || offset % wide != 0 {
            return None;
        }
        // SAFETY: the offset lies inside of the mapping, as just checked.
        let address = unsafe { self.0.start.add(offset) };
        Some(Register {
            address,
            width,
            region: self.clone(),
        })
    }
}

/// A register, ready to be accessed.
#[derive(Debug, Clone)]
pub struct Register {
    address: NonNull<u8>,
    width: u8,
    region: Region,
}

// SAFETY: as of `Mapping`, which the register keeps alive.
unsafe impl Send for Register {}

impl Register {
    /// The region it lies in.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Bytes it has.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// One load.
    #[inline]
    pub fn read(&self) -> u64 {
        let address = self.address.as_ptr();
        // SAFETY: inside of a mapping that may be read, aligned, of this width: `Region::register` has seen to
        // it, and `region` keeps the mapping.
        unsafe {
            match self.width {
                1 => u64::from(address.read_volatile()),
                2 => u64::from(address.cast::<u16>().read_volatile()),
                4 => u64::from(address.cast::<u32>().read_volatile()),
                _ => address.cast::<u64>().read_volatile(),
            }
        }
    }

    /// One store of as many of the lower bits as the register has.
    ///
    /// # Panics
    /// If the region was not mapped to be written: see [`Region::is_writable`].
    #[inline]
    pub fn write(&self, value: u64) {
        assert!(self.region.is_writable(), "mapped to be read only");
        let address = self.address.as_ptr();
        // SAFETY: as in `read`, and the mapping may be written.
        unsafe {
            match self.width {
                1 => address.write_volatile(value as u8),
                2 => address.cast::<u16>().write_volatile(value as u16),
                4 => address.cast::<u32>().write_volatile(value as u32),
                _ => address.cast::<u64>().write_volatile(value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn region(writable: bool) -> (tempfile::NamedTempFile, Region) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let bytes: Vec<u8> = (0..=255).cycle().take(8192).collect();
        file.write_all(&bytes).expect("to write");
        let region = Region::map(file.as_file(), 4096, 4096, writable).expect("a region");
        (file, region)
    }

    #[test]
    fn a_register_is_read_and_written_in_its_width() {
        let (file, region) = region(true);
        for (width, value) in [
            (1, 0x08),
            (2, 0x0908),
            (4, 0x0b0a_0908),
            (8, 0x0f0e_0d0c_0b0a_0908),
        ] {
            let register = region.register(8, width).expect("a register");
            assert_eq!(register.read(), value);
            register.write(!value);
            assert_eq!(
                register.read(),
                !value & (u64::MAX >> (64 - 8 * u32::from(width)))
            );
            register.write(value);
        }
        drop(region.clone());
        let last = region.register(4088, 8).expect("the last register");
        drop(region);
        last.write(7);
        assert_eq!(std::fs::read(file.path()).expect("the file")[8184], 7);
    }

    #[test]
    fn what_lies_outside_or_is_not_aligned_is_no_register() {
        let (_file, region) = region(false);
        assert_eq!((region.bytes(), region.is_writable()), (4096, false));
        for (offset, width) in [
            (4096, 1),
            (4095, 2),
            (4093, 4),
            (2, 4),
            (4, 8),
            (1, 2),
            (u64::MAX, 1),
            (u64::MAX - 7, 8),
            (0, 0),
            (0, 3),
            (0, 16),
        ] {
            assert!(
                region.register(offset, width).is_none(),
                "{width} bytes at {offset}"
            );
        }
        assert!(region.register(4095, 1).is_some());
    }
}
