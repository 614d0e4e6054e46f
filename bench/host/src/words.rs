// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that are moved: ten values each, which say which row they belong to.

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use strobe::map::{Region, Register};
use strobe::ring::layout::ROW_HEADER_WORDS;

/// Values of a row.
pub const CHANNELS: usize = 10;
/// Values of a narrow one.
pub const NARROW_CHANNELS: usize = 6;
/// Words of a row, as they lie in the ring and go through the pipe.
pub const ROW_WORDS: usize = ROW_HEADER_WORDS + CHANNELS;
/// Rows of the ring.
pub const RING_ROWS: u64 = 8192;

/// A value of a row.
#[inline]
pub fn value(row: u64, channel: usize) -> u64 {
    row.wrapping_mul(CHANNELS as u64 + 1) + channel as u64
}

/// The values of a row.
#[inline]
pub fn values(row: u64) -> [u64; CHANNELS] {
    std::array::from_fn(|channel| value(row, channel))
}

/// Whether these are the values of this row, or of a narrow one.
#[inline]
pub fn are_of(row: u64, values: &[u64]) -> bool {
    // Of a known length the compiler makes one long step of it.
    match values.len() {
        CHANNELS => all_are_of::<CHANNELS>(row, values),
        _ => all_are_of::<NARROW_CHANNELS>(row, values),
    }
}

#[inline]
fn all_are_of<const VALUES: usize>(row: u64, values: &[u64]) -> bool {
    let first = row.wrapping_mul(CHANNELS as u64 + 1);
    values.len() == VALUES
        && values
            .iter()
            .zip(first..)
            .fold(0, |wrong, (value, right)| wrong | (value ^ right))
            == 0
}

/// Some words of memory behind a file, mapped as registers are.
pub struct Memory {
    pub file: File,
    region: Region,
}

impl Memory {
    /// Of one page, all 0.
    pub fn new() -> io::Result<Memory> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = File::from(rustix::fs::memfd_create("strobe-bench", flags)?);
        file.set_len(4096)?;
        let region = Region::map(&file, 0, 4096, true)?;
        Ok(Memory { file, region })
    }

    /// One of its words.
    pub fn word(&self, index: usize) -> Result<Register, Box<dyn Error>> {
        let word = self.region.register(8 * index as u64, 8);
        word.ok_or_else(|| "a page has no such word".into())
    }
}

/// A descriptor of this process that was inherited, once more.
pub fn inherited(fd: i32, writable: bool) -> io::Result<File> {
    let path = format!("/proc/self/fd/{fd}");
    File::options()
        .read(true)
        .write(writable)
        .open(Path::new(&path))
}

/// Lets children have this descriptor; answers its number.
pub fn inherit(fd: impl AsFd) -> io::Result<i32> {
    let fd = fd.as_fd();
    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
    Ok(fd.as_raw_fd())
}
