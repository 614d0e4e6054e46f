// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses registers of the module lab_ioctl one way or another, and marks each access.
//!
//! `access WAY COUNT`; the ways are below. Each checks what it has read or written by another way.
#![allow(unsafe_code)]

use std::arch::asm;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use strobe::map::{Region, Register};

const DEVICE: &str = "/dev/lab_ioctl";
const PAGE: u64 = 4096;
const MANY: usize = 10;
/// Where the register is; many begin here.
const OFFSET: u32 = 64;
const FIRST: u64 = 0x1234_5670;

/// Of lab/modules/lab_ioctl.h.
#[repr(C)]
struct One {
    offset: u32,
    value: u32,
}

/// Of lab/modules/lab_ioctl.h.
#[repr(C)]
struct Many {
    offset: u32,
    count: u32,
    values: [u32; MANY],
}

const READ: u64 = request(3, 1, size_of::<One>());
const WRITE: u64 = request(1, 2, size_of::<One>());
const READ_MANY: u64 = request(3, 3, size_of::<Many>());

/// The number of an ioctl, as the kernel's headers make it: 1 copies to the kernel, 3 both ways.
const fn request(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | (b'L' as u64) << 8 | number
}

/// A no-op that bench/plugin/insncount.c recognises; see there.
macro_rules! mark {
    ($id:literal) => {
        // SAFETY: one no-op; nothing is touched.
        unsafe {
            asm!(concat!(
                ".byte 0x0f, 0x1f, 0x84, 0x00, ",
                $id,
                ", 0x00, 0xed, 0x5e"
            ))
        }
    };
}

/// Does it so many times, each marked as span 2, all together a window. Answers the sum of what it gives.
#[inline(always)]
fn measure(count: u64, access: impl Fn(u64) -> u64) -> u64 {
    let (mut sum, mut turn) = (0, 0);
    mark!("0x01");
    while turn < count {
        mark!("0x14");
        let given = access(turn);
        mark!("0x15");
        // Behind the mark: what the compiler may know of the next turn, it prepares before it.
        sum += black_box(given);
        turn = black_box(turn) + 1;
    }
    mark!("0x02");
    sum
}

/// One register by an ioctl: its value then.
#[inline(always)]
fn ioctl_one(file: &File, request: u64, value: u64) -> u64 {
    let mut one = One {
        offset: OFFSET,
        value: value as u32,
    };
    // SAFETY: the module reads and writes exactly this struct, which lives longer than the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request, &mut one) };
    u64::from(one.value) | u64::from(done != 0) << 63
}

/// All of them by one ioctl: their sum.
#[inline(always)]
fn ioctl_many(file: &File) -> u64 {
    let mut many = Many {
        offset: OFFSET,
        count: MANY as u32,
        values: [0; MANY],
    };
    // SAFETY: as above.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), READ_MANY, &mut many) };
    let sum: u64 = many.values.iter().map(|value| u64::from(*value)).sum();
    sum | u64::from(done != 0) << 63
}

/// The page, mapped without the library.
fn plain(file: &File) -> io::Result<*mut u32> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing that exists.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE as usize,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(page.cast::<u32>().wrapping_add(OFFSET as usize / 4))
}

/// Does what is asked for; whether each access has done what it should.
fn run(way: &str, count: u64) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).write(true).open(DEVICE)?;
    let region = Region::map(&file, 0, PAGE, true)?;
    let registers: Option<Vec<Register>> = (0..MANY as u64)
        .map(|n| region.register(u64::from(OFFSET) + 4 * n, 4))
        .collect();
    let registers = registers.ok_or(io::ErrorKind::InvalidData)?;
    let (register, plain) = (&registers[0], plain(&file)?);
    for (number, register) in (0..).zip(&registers) {
        register.write(FIRST + number);
    }
    let all: u64 = (0..MANY as u64).map(|number| FIRST + number).sum();
    // SAFETY: `plain` is the first of ten registers in a mapping of this process that nobody undoes.
    let load = |n: usize| u64::from(unsafe { plain.wrapping_add(n).read_volatile() });
    let store = |value: u64| {
        // SAFETY: as above.
        unsafe { plain.write_volatile(value as u32) };
        0
    };
    let store_checked = |value: u64| {
        black_box(register).write(value);
        0
    };
    let sum = match way {
        "nothing" => measure(count, |_| 0),
        "plain-read" => measure(count, |_| load(0)),
        // A program that has many registers cannot know the width of each while it is compiled.
        "checked-read" => measure(count, |_| black_box(register).read()),
        "ioctl-read" => measure(count, |_| ioctl_one(&file, READ, 0)),
        "plain-write" => measure(count, store),
        "checked-write" => measure(count, store_checked),
        "ioctl-write" => measure(count, |turn| ioctl_one(&file, WRITE, turn) - turn),
        "plain-ten" => measure(count, |_| (0..MANY).map(load).sum()),
        "checked-ten" => measure(count, |_| {
            black_box(&registers).iter().map(Register::read).sum()
        }),
        "ioctl-ten" => measure(count, |_| ioctl_many(&file)),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let (_, what) = way.split_once('-').unwrap_or_default();
    Ok(match what {
        "read" => sum == FIRST * count,
        "write" => sum == 0 && register.read() == count - 1,
        "ten" => sum == all * count,
        _ => sum == 0,
    })
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [way, count] = &words[..] else {
        eprintln!("access WAY COUNT");
        return ExitCode::from(2);
    };
    let count = count.parse().unwrap_or(0).max(1);
    match run(way, count) {
        Ok(true) => {
            println!("accesses {count}");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            eprintln!("access {way}: a register has a wrong value");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("access {way}: {why}");
            ExitCode::FAILURE
        }
    }
}
