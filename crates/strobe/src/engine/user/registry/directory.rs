// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of the sockets. Only its owner may write there.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdir, open, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;

use super::Error;

/// How long others may hold the lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// An open directory whose owner is the only one to write there.
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    /// Whether that is this user.
    is_own: bool,
}

/// The directory in which others do the same, while this is held, wait or give up.
pub struct Lock<'a>(&'a OwnedFd);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // It goes with the descriptor, at the latest.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// The directory that somebody has named for this process.
pub fn named() -> Option<PathBuf> {
    let path = std::env::var_os("STROBE_RUNTIME_DIR").map(PathBuf::from);
    path.filter(|path| !path.as_os_str().is_empty())
}

/// Where the runs of this user are, if nobody says otherwise.
pub fn usual() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let uid = geteuid().as_raw();
    let is_own = |path: &PathBuf| {
        let about = std::fs::metadata(path);
        path.is_absolute() && about.is_ok_and(|about| about.is_dir() && about.uid() == uid)
    };
    // After `su` the variable is that of somebody else.
    let session = variable("XDG_RUNTIME_DIR").filter(is_own);
    let session = session.or_else(|| Some(format!("/run/user/{uid}").into()).filter(is_own));
    match session {
        Some(session) => session.join("strobe"),
        None => format!("/tmp/strobe-{uid}").into(),
    }
}

impl Directory {
    /// The directory, made if it was not there.
    pub fn make(path: PathBuf) -> Result<Self, Error> {
        match mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(system(&path, errno)),
        }
        let directory = Self::find(path.clone(), false)?;
        directory.ok_or_else(|| system(&path, Errno::NOENT))
    }

    /// The directory, if it is there. To look at the runs of `others`, it need not be our own.
    pub fn find(path: PathBuf, others: bool) -> Result<Option<Self>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(system(&path, errno)),
        };
        let about = fstat(&fd).map_err(|errno| system(&path, errno))?;
        let me = geteuid().as_raw();
        let is_own = about.st_uid == me;
        if !is_own && !others {
            let uid = about.st_uid;
            return Err(Error::Owner { path, uid, me });
        }
        if about.st_mode & 0o022 != 0 {
            let mode = about.st_mode & 0o777;
            return Err(Error::Mode { path, mode });
        }
        Ok(Some(Directory { fd, path, is_own }))
    }

    /// What it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its descriptor.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Numbers of the sockets there are.
    pub fn numbers(&self) -> Result<Vec<u32>, Error> {
        let entries = Dir::read_from(&self.fd).map_err(|errno| self.failed(errno))?;
        let mut numbers: Vec<u32> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let name = entry.file_name().to_str().ok()?;
                name.strip_suffix(".sock")?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The address of the socket of this number. By the descriptor: then it is not too long, and it is in the
    /// directory that was looked at.
    pub fn address(&self, run: u32) -> Result<SocketAddrUnix, Errno> {
        let fd = self.fd.as_raw_fd();
        SocketAddrUnix::new(format!("/proc/self/fd/{fd}/{}", name(run)))
    }

    /// Waits until nobody else holds the lock, but not for long.
    pub fn lock(&self) -> Result<Lock<'_>, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_lock() {
                Ok(lock) => return Ok(lock),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(Error::Locked(self.path.clone()));
                }
                Err(errno) => return Err(self.failed(errno)),
            }
        }
    }

    fn try_lock(&self) -> Result<Lock<'_>, Errno> {
        flock(&self.fd, FlockOperation::NonBlockingLockExclusive).map(|()| Lock(&self.fd))
    }

    /// Removes the socket of an owner that was killed. Whoever is about to claim a number has the lock; then
    /// nothing is removed, and the next one who looks will do it.
    pub fn remove_stale(&self, run: u32) {
        // Those of others are theirs to remove.
        let lock = self.is_own.then(|| self.try_lock());
        let Some(Ok(_lock)) = lock else { return };
        if !is_alive(self, run) {
            self.remove(run);
        }
    }

    /// Removes a socket.
    pub fn remove(&self, run: u32) {
        // If that is not possible, it is recognised as stale later on.
        let _ = unlinkat(&self.fd, name(run), AtFlags::empty());
    }

    /// The words for an error in this directory.
    pub fn failed(&self, errno: Errno) -> Error {
        system(&self.path, errno)
    }
}

/// Whether somebody listens at the socket of this number, or may do so.
pub fn is_alive(directory: &Directory, run: u32) -> bool {
    !matches!(call(directory, run), Err(Errno::CONNREFUSED | Errno::NOENT))
}

/// A connection to the owner of a run.
///
/// # Errors
/// Those of connect(2).
pub fn call(directory: &Directory, run: u32) -> Result<OwnedFd, Errno> {
    // An owner that is stopped does not accept: its backlog may be full, and then a blocking one would wait.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&fd, &directory.address(run)?)?;
    Ok(fd)
}

/// Name of the socket of a run.
pub fn name(run: u32) -> String {
    format!("{run}.sock")
}

fn system(path: &Path, errno: Errno) -> Error {
    Error::Directory {
        path: path.to_owned(),
        source: errno.into(),
    }
}
