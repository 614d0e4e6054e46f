// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of a run: it belongs to the process that has bound its socket.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, chmodat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use super::Error;
use super::directory::{Directory, is_alive, name};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// A number, and the socket at which its owner can be reached. It is free again when this is dropped.
pub struct Claim {
    directory: Directory,
    run: u32,
    /// Everybody who can reach the socket may read the ring.
    shared: bool,
    socket: OwnedFd,
}

impl Claim {
    /// Takes the smallest number that is free.
    pub fn new(directory: Directory, shared: bool) -> Result<Self, Error> {
        let lock = directory.lock()?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|errno| directory.failed(errno))?;
        let mut run = 1;
        while !take(&directory, &socket, run).map_err(|errno| directory.failed(errno))? {
            run += 1;
        }
        let everybody = Mode::ROTH | Mode::WOTH | Mode::RGRP | Mode::WGRP;
        let others = if shared { everybody } else { Mode::empty() };
        let mode = Mode::RUSR | Mode::WUSR | others;
        // Until it listens, nobody can connect; and whoever takes it for stale needs the lock.
        let ready = chmodat(directory.fd(), name(run), mode, AtFlags::empty())
            .and_then(|()| listen(&socket, BACKLOG));
        if let Err(errno) = ready {
            directory.remove(run);
            return Err(directory.failed(errno));
        }
        drop(lock);
        Ok(Claim {
            directory,
            run,
            shared,
            socket,
        })
    }

    /// The number.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// Whether other users may connect.
    pub fn shared(&self) -> bool {
        self.shared
    }

    /// Where connections arrive.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The directory it is in, for people.
    pub fn place(&self) -> String {
        self.directory.path().display().to_string()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Before the socket is closed: so this is the one that was bound here.
        self.directory.remove(self.run);
    }
}

/// Binds the socket to this number, unless it is in use. The caller holds the lock.
fn take(directory: &Directory, socket: &OwnedFd, run: u32) -> Result<bool, Errno> {
    let address = directory.address(run)?;
    match bind(socket, &address) {
        Ok(()) => return Ok(true),
        Err(Errno::ADDRINUSE) if is_alive(directory, run) => return Ok(false),
        Err(Errno::ADDRINUSE) => directory.remove(run),
        Err(errno) => return Err(errno),
    }
    match bind(socket, &address) {
        Ok(()) => Ok(true),
        // It could not be removed.
        Err(Errno::ADDRINUSE) => Ok(false),
        Err(errno) => Err(errno),
    }
}
