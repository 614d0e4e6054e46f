// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end: a connection to the owner of a run. Nothing here waits longer than it was told to.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;

use super::attached_run::{AttachedRun, Owner};
use super::directory::{Directory, call, is_alive};
use super::message::{BYTES_MAX, Message};
use crate::engine::user::connection::receive_with;

/// Why there is no run.
#[derive(Debug)]
pub enum Error {
    /// Nor a socket.
    NoRun,
    /// Only its socket is left.
    Gone,
    /// It was there, and has closed the connection.
    HungUp(i32),
    /// It is there, but does not say anything of use.
    Silent { pid: i32, why: String },
}

/// A connection, on which nothing was said yet.
pub struct Handshake {
    fd: OwnedFd,
    owner: Owner,
}

impl Error {
    /// What is left to say of who has hung up: it shows the door to this user, unless it has just ended.
    pub fn or_ended(self, directory: &Directory, run: u32) -> Self {
        match self {
            Error::HungUp(_) if !is_alive(directory, run) => Error::NoRun,
            Error::HungUp(pid) => {
                silent(pid, "does not answer this user; it belongs to another one")
            }
            error => error,
        }
    }
}

impl Handshake {
    /// To the owner of this run.
    pub fn to(directory: &Directory, run: u32) -> Result<Self, Error> {
        let fd = call(directory, run).map_err(|errno| match errno {
            Errno::NOENT => Error::NoRun,
            Errno::CONNREFUSED => Error::Gone,
            Errno::AGAIN => silent(0, "does not answer: its program is stopped"),
            errno => silent(0, &format!("cannot be reached: {errno}")),
        })?;
        let peer = socket_peercred(&fd).map_err(|errno| silent(0, &errno.to_string()))?;
        let owner = Owner {
            pid: peer.pid.as_raw_nonzero().get(),
            uid: peer.uid.as_raw(),
        };
        Ok(Handshake { fd, owner })
    }

    /// What the owner says, and its ring.
    pub fn receive(self, until: Instant) -> Result<AttachedRun, Error> {
        let pid = self.owner.pid;
        let (message, ring) = self.message(until)?;
        let message = Message::parse(&message).map_err(|why| silent(pid, &why))?;
        let attached = AttachedRun::new(message, self.owner, ring, self.fd);
        attached.map_err(|why| silent(pid, &why))
    }

    fn message(&self, until: Instant) -> Result<(Vec<u8>, OwnedFd), Error> {
        let pid = self.owner.pid;
        let (mut message, mut rings) = (Vec::new(), Vec::new());
        let mut part = vec![0; 64 * 1024];
        while message.last() != Some(&b'\n') {
            self.wait(until)?;
            let count = match receive_with(&self.fd, &mut part, &mut rings) {
                Ok(0) | Err(Errno::CONNRESET) => return Err(Error::HungUp(pid)),
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(errno) => return Err(silent(pid, &errno.to_string())),
            };
            message.extend(part.iter().take(count));
            if message.len() > BYTES_MAX {
                return Err(silent(pid, "sent a longer answer than expected"));
            }
        }
        let ring = rings.into_iter().next();
        let ring = ring.ok_or_else(|| silent(pid, "does not hand out its ring"))?;
        Ok((message, ring))
    }

    /// Until there is something to receive.
    fn wait(&self, until: Instant) -> Result<(), Error> {
        let pid = self.owner.pid;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&left)) {
                Ok(0) => {
                    return Err(silent(
                        pid,
                        "does not answer: its program is stopped or very busy",
                    ));
                }
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(silent(pid, &errno.to_string())),
            }
        }
    }
}

fn silent(pid: i32, why: &str) -> Error {
    let why = match pid {
        0 => why.to_owned(),
        pid => format!("{why} (process {pid})"),
    };
    Error::Silent { pid, why }
}
