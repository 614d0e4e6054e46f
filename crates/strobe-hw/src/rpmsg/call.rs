// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structures and calls of `include/uapi/strobe_rpmsg.h`, one to one, and two of the stock driver; their layout is compared with the header by the
//! guest tests.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io;
use rustix::ioctl::{NoArg, Opcode, Setter, Updater, ioctl, opcode};

use crate::fd;

/// Bytes of a service's name, its NUL included.
pub const NAME_SIZE: usize = 32;
/// Any address will do.
pub const ANY: u32 = u32::MAX;

/// Flags of [`RawCreate`]: STROBE_RPMSG_READ and STROBE_RPMSG_WRITE.
const READ_WRITE: u32 = 1 | 2;

/// `struct strobe_rpmsg_create`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RawCreate {
    pub size: u32,
    pub flags: u32,
    pub name: [u8; NAME_SIZE],
    pub src: u32,
    pub dst: u32,
    pub reserved: u32,
    pub fd: i32,
    pub address: u32,
    pub mtu: u32,
}

/// `struct strobe_rpmsg_stats`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RawStats {
    pub size: u32,
    pub state: u32,
    pub address: u32,
    pub dst: u32,
    pub mtu: u32,
    pub queued: u32,
    pub received: u64,
    pub dropped: u64,
    pub sent: u64,
}

/// `struct rpmsg_endpoint_info`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Info {
    pub name: [u8; NAME_SIZE],
    pub src: u32,
    pub dst: u32,
}

const CREATE_NODE: Opcode = opcode::write::<Info>(0xb5, 1);
const DESTROY: Opcode = opcode::none(0xb5, 2);
const CREATE: Opcode = opcode::none(0xda, 0x20);
const GET_STATS: Opcode = opcode::none(0xda, 0x21);

/// STROBE_RPMSG_CREATE, on a control node: an endpoint to read and to write, and its address.
pub fn create(control: BorrowedFd<'_>, info: Info) -> io::Result<(OwnedFd, u32)> {
    let mut create = RawCreate {
        size: std::mem::size_of::<RawCreate>() as u32,
        flags: READ_WRITE,
        name: info.name,
        src: info.src,
        dst: info.dst,
        fd: -1,
        ..RawCreate::default()
    };
    // SAFETY: the call takes this structure, which says its size, and writes into nothing else.
    unsafe { ioctl(control, Updater::<CREATE, RawCreate>::new(&mut create))? };
    let fd = fd::adopt(create.fd).ok_or(io::Errno::BADF)?;
    Ok((fd, create.address))
}

/// RPMSG_CREATE_EPT_IOCTL, on a control node: the stock driver's way, to a node.
pub fn create_node(control: BorrowedFd<'_>, info: Info) -> io::Result<()> {
    // SAFETY: the call only reads this structure.
    unsafe { ioctl(control, Setter::<CREATE_NODE, Info>::new(info)) }
}

/// RPMSG_DESTROY_EPT_IOCTL, on an endpoint.
pub fn destroy(endpoint: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no argument.
    unsafe { ioctl(endpoint, NoArg::<DESTROY>::new()) }
}

/// STROBE_RPMSG_STATS, on an endpoint; ENOTTY on any other file.
pub fn stats(endpoint: BorrowedFd<'_>) -> io::Result<RawStats> {
    let mut stats = RawStats {
        size: std::mem::size_of::<RawStats>() as u32,
        ..RawStats::default()
    };
    // SAFETY: the call takes this structure, which says its size, and writes into nothing else.
    unsafe { ioctl(endpoint, Updater::<GET_STATS, RawStats>::new(&mut stats))? };
    Ok(stats)
}
