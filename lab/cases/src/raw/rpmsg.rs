// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of `<linux/rpmsg.h>`, of the series in `include/compat`, and of `include/uapi/strobe_rpmsg.h`, with nothing in between.

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{Answer, Plain, adopt, ioctl, ioctl_at, sys};

structures! {
    /// `struct rpmsg_endpoint_info`.
    EptInfo = 40 { name: [u8; 32], src: u32, dst: u32 }
    /// `struct rpmsg_endpoint_fd_info`.
    EptFdInfo = 48 { name: [u8; 32], src: u32, dst: u32, flags: u32, fd: i32 }
    /// `struct strobe_rpmsg_create`.
    Create = 64 {
        size: u32, flags: u32, name: [u8; 32], src: u32, dst: u32, reserved: u32, fd: i32, address: u32,
        mtu: u32
    }
    /// `struct strobe_rpmsg_stats`.
    EptStats = 48 {
        size: u32, state: u32, address: u32, dst: u32, mtu: u32, queued: u32, received: u64,
        dropped: u64, sent: u64
    }
    /// A structure of a later version.
    Words = 128 { words: [u64; 16] }
}

numbers! {
    ANY: u32 = u32::MAX,
    CREATE_EPT: u32 = 0x4028_B501, DESTROY_EPT: u32 = 0xB502, CREATE_DEV: u32 = 0x4028_B503,
    RELEASE_DEV: u32 = 0x4028_B504,
    GET_FLOW: u32 = 0x8004_B505, SET_FLOW: u32 = 0x8004_B506, CREATE_EPT_FD: u32 = 0xC030_B507,
    CREATE: u32 = 0xDA20, GET_STATS: u32 = 0xDA21,
    // Flags of CREATE.
    READ: u32 = 1, WRITE: u32 = 2, NONBLOCK: u32 = 4,
    // State of an endpoint.
    GONE: u32 = 1, PAUSED: u32 = 2,
    // Messages that an endpoint holds.
    QUEUE: u64 = 256,
}

/// Text in an array that NULs fill up.
pub fn service(text: &str) -> [u8; 32] {
    let mut name = [0; 32];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

/// A request of STROBE_RPMSG_CREATE that is right.
pub fn asked(src: u32, dst: u32, flags: u32) -> Create {
    Create {
        size: size_of::<Create>() as u32,
        flags: READ | WRITE | flags,
        name: service("test"),
        src,
        dst,
        fd: -1,
        ..Create::zero()
    }
}

/// STROBE_RPMSG_CREATE; the answer stays in `info`.
pub fn create(control: &impl AsRawFd, info: &mut Create) -> Result<OwnedFd, i32> {
    ioctl(control, CREATE, info).map(|_| adopt(info.fd))
}

/// A request of the series' call that is right.
pub fn wanted(src: u32, dst: u32, flags: i32) -> EptFdInfo {
    EptFdInfo {
        name: service("test"),
        src,
        dst,
        flags: flags as u32,
        fd: -1,
    }
}

/// RPMSG_CREATE_EPT_FD_IOCTL; the answer stays in `info`.
pub fn create_fd(control: &impl AsRawFd, info: &mut EptFdInfo) -> Result<OwnedFd, i32> {
    ioctl(control, CREATE_EPT_FD, info).map(|_| adopt(info.fd))
}

/// RPMSG_CREATE_EPT_IOCTL.
pub fn create_node(control: &impl AsRawFd, src: u32, dst: u32) -> Answer {
    let name = service("test");
    ioctl(control, CREATE_EPT, &mut EptInfo { name, src, dst })
}

/// RPMSG_CREATE_DEV_IOCTL or RPMSG_RELEASE_DEV_IOCTL.
pub fn channel(control: &impl AsRawFd, call: u32, name: &str, src: u32, dst: u32) -> Answer {
    let name = service(name);
    ioctl(control, call, &mut EptInfo { name, src, dst })
}

/// RPMSG_DESTROY_EPT_IOCTL.
pub fn destroy(endpoint: &impl AsRawFd) -> Answer {
    ioctl_at(endpoint.as_raw_fd(), DESTROY_EPT, 0)
}

/// STROBE_RPMSG_STATS.
pub fn stats(endpoint: &impl AsRawFd) -> Result<EptStats, i32> {
    let mut stats = EptStats {
        size: size_of::<EptStats>() as u32,
        ..EptStats::zero()
    };
    ioctl(endpoint, GET_STATS, &mut stats).map(|_| stats)
}

/// read(): one message, of which so many bytes have room.
pub fn receive_up_to(endpoint: &impl AsRawFd, room: usize) -> Result<Vec<u8>, i32> {
    let mut bytes = vec![0u8; room];
    let args = [
        endpoint.as_raw_fd() as usize,
        bytes.as_mut_ptr() as usize,
        room,
    ];
    let length = sys(libc::SYS_read, &args)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// read(): one message.
pub fn receive(endpoint: &impl AsRawFd) -> Result<Vec<u8>, i32> {
    receive_up_to(endpoint, 1024)
}

/// write(): one message.
pub fn send(endpoint: &impl AsRawFd, bytes: &[u8]) -> Answer {
    let args = [
        endpoint.as_raw_fd() as usize,
        bytes.as_ptr() as usize,
        bytes.len(),
    ];
    sys(libc::SYS_write, &args)
}

/// poll() for some: its revents.
pub fn poll_for(endpoint: &impl AsRawFd, events: i16, timeout_ms: i32) -> Result<i16, i32> {
    let mut one = libc::pollfd {
        fd: endpoint.as_raw_fd(),
        events,
        revents: 0,
    };
    let address = std::ptr::from_mut(&mut one) as usize;
    sys(libc::SYS_poll, &[address, 1, timeout_ms as usize])?;
    Ok(one.revents)
}

/// poll() for everything: its revents, without waiting.
pub fn state(endpoint: &impl AsRawFd) -> i16 {
    let all = libc::POLLIN | libc::POLLOUT | libc::POLLPRI;
    poll_for(endpoint, all, 0).expect("poll")
}
