// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the service manager is told, and what it keeps: sd_notify(3), and files that outlive the daemon.
//!
//! A run of the kernel engine lives for as long as its owner fd is open anywhere. So the manager gets a copy of it
//! (`FDSTORE=1`), and hands it over again when the daemon is started anew. Without a manager, nobody keeps anything.

use std::env;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sendmsg_addr, socket_with,
};

/// Tells the manager something, in words of sd_notify(3). Nothing without one.
///
/// # Errors
/// It cannot be reached.
pub fn notify(words: &str) -> io::Result<()> {
    send(words, None)
}

/// How often the manager wants to hear from the daemon, if it does.
pub fn watchdog() -> Option<Duration> {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let pid = number("WATCHDOG_PID");
    let is_mine = pid.is_none_or(|pid| pid == u64::from(std::process::id()));
    let patience = Duration::from_micros(number("WATCHDOG_USEC").filter(|_| is_mine)?);
    Some((patience / 3).max(Duration::from_millis(10)))
}

/// A run that the manager keeps alive. It does no longer when this is dropped.
pub struct Kept {
    name: Option<String>,
}

impl Kept {
    /// Gives the manager a copy of a run's owner fd. `None` without a manager, or one that keeps nothing.
    pub fn give(id: u32, run: u32, owner: BorrowedFd<'_>) -> Option<Kept> {
        let is_manager = env::var_os("NOTIFY_SOCKET").is_some() && keeps_files();
        let name = is_manager.then(|| name(id, run))?;
        let words = format!("FDSTORE=1\nFDPOLL=0\nFDNAME={name}");
        send(&words, Some(owner)).ok()?;
        Some(Kept { name: Some(name) })
    }

    /// The one that was handed over.
    pub fn again(id: u32, run: u32) -> Kept {
        Kept {
            name: Some(name(id, run)),
        }
    }

    /// It is to outlive this process.
    pub fn leave(mut self) {
        self.name = None;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = notify(&format!("FDSTOREREMOVE=1\nFDNAME={name}"));
        }
    }
}

/// Whether the manager says that it keeps files; old ones do not say.
fn keeps_files() -> bool {
    env::var("FDSTORE").map_or(true, |limit| limit != "0")
}

/// A run of this number in the daemon, and that in the kernel.
fn name(id: u32, run: u32) -> String {
    format!("run-{id}-{run}")
}

/// What was handed over.
#[derive(Default)]
pub struct HandedOver {
    /// Owner fds: number of the run in the daemon, and in the kernel.
    pub runs: Vec<(u32, u32, OwnedFd)>,
    /// Sockets, by the name of their unit.
    pub sockets: Vec<(String, OwnedFd)>,
}

impl HandedOver {
    /// By the manager, to who asks first.
    pub fn take() -> Self {
        let mut found = HandedOver::default();
        for (name, fd) in strobe_hw::fd::handed_over() {
            match run(&name) {
                Some((id, run)) => found.runs.push((id, run, fd)),
                None => found.sockets.push((name, fd)),
            }
        }
        found
    }
}

fn run(name: &str) -> Option<(u32, u32)> {
    let (id, run) = name.strip_prefix("run-")?.split_once('-')?;
    Some((id.parse().ok()?, run.parse().ok()?))
}

fn send(words: &str, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let path = path.as_encoded_bytes();
    let to = match path.strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => SocketAddrUnix::new(path)?,
    };
    let kind = (AddressFamily::UNIX, SocketType::DGRAM);
    let socket = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut room);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    if !files.is_empty() {
        with.push(SendAncillaryMessage::ScmRights(&files));
    }
    let text = [IoSlice::new(words.as_bytes())];
    sendmsg_addr(socket.as_fd(), &to, &text, &mut with, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_again_by_the_name_of_its_file() {
        assert_eq!(run(&name(7, 12)), Some((7, 12)));
        for other in ["http", "run-", "run-1", "run-x-2", "run-1-2-3", "stored"] {
            assert_eq!(run(other), None, "{other}");
        }
    }
}
