// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the service manager is told, and what it keeps: sd_notify(3), and files that outlive the daemon.
//!
//! A run of the kernel engine lives for as long as its owner fd is open anywhere. So the manager gets a copy of it
//! (`FDSTORE=1`), and hands it over again when the daemon is started anew. Without a manager, nobody keeps anything.

use std::env;
use std::fmt;
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

/// A run that the manager keeps alive, whatever happens to this process: until it is told otherwise, by [`FdStoreEntry::end`] and
/// by nothing else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdStoreEntry {
    /// Its number in the daemon.
    pub id: u32,
    /// Its number in the kernel.
    pub run: u32,
    /// When it was made: both numbers may be those of another run, in another folder.
    pub made: u64,
}

impl FdStoreEntry {
    /// Gives the manager a copy of the run's owner fd. `None` without a manager, or one that keeps nothing.
    pub fn give(self, owner: BorrowedFd<'_>) -> Option<FdStoreEntry> {
        let limit = env::var("FDSTORE").ok();
        let is_manager = env::var_os("NOTIFY_SOCKET").is_some() && keeps(limit.as_deref());
        let words = format!("FDSTORE=1\nFDPOLL=0\nFDNAME={self}");
        is_manager
            .then(|| send(&words, Some(owner)))
            .and_then(Result::ok)?;
        Some(self)
    }

    /// It is not to outlive this process: the manager lets go of it.
    pub fn end(&self) {
        let _ = notify(&format!("FDSTOREREMOVE=1\nFDNAME={self}"));
    }

    /// That of this name.
    fn of(name: &str) -> Option<FdStoreEntry> {
        let mut numbers = name.strip_prefix("run-")?.split('-');
        let kept = FdStoreEntry {
            id: numbers.next()?.parse().ok()?,
            run: numbers.next()?.parse().ok()?,
            made: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(kept)
    }
}

/// The name of its file.
impl fmt::Display for FdStoreEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run-{}-{}-{}", self.id, self.run, self.made)
    }
}

/// Whether a manager that says this keeps files. One that says nothing keeps none, or is too old to say it: then its unit
/// does.
fn keeps(limit: Option<&str>) -> bool {
    limit
        .and_then(|limit| limit.parse::<u32>().ok())
        .is_some_and(|limit| limit > 0)
}

/// What was handed over.
#[derive(Default)]
pub struct HandedOver {
    /// Runs that outlived the daemon, and their owner fds.
    pub runs: Vec<(FdStoreEntry, OwnedFd)>,
    /// Sockets, by the name of their unit.
    pub sockets: Vec<(String, OwnedFd)>,
}

impl HandedOver {
    /// By the manager, to who asks first.
    pub fn take() -> Self {
        let mut found = HandedOver::default();
        for (name, fd) in strobe_hw::fd::handed_over() {
            match FdStoreEntry::of(&name) {
                Some(kept) => found.runs.push((kept, fd)),
                None => found.sockets.push((name, fd)),
            }
        }
        found
    }
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
        let kept = FdStoreEntry {
            id: 7,
            run: 12,
            made: 1_700_000_000_000_000_000,
        };
        assert_eq!(FdStoreEntry::of(&kept.to_string()), Some(kept));
        for other in [
            "http",
            "run-",
            "run-1-2",
            "run-x-2-3",
            "run-1-2-3-4",
            "stored",
        ] {
            assert_eq!(FdStoreEntry::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_manager_that_does_not_say_that_it_keeps_files_keeps_none() {
        assert!(keeps(Some("256")));
        for limit in [None, Some("0"), Some(""), Some("yes")] {
            assert!(!keeps(limit), "{limit:?}");
        }
    }
}
