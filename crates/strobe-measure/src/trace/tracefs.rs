// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the tracefs is. Where it is nowhere it is mounted for this program alone: nobody else sees that, and it goes
//! with the program.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::Error;

/// Where systems mount it.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The tracefs of the machine.
#[derive(Debug)]
pub struct Tracefs {
    dir: PathBuf,
    /// It is mounted as long as this is open.
    mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds it, or mounts it.
    ///
    /// # Errors
    /// There is none, or it cannot be mounted.
    pub fn find() -> Result<Tracefs, Error> {
        let here = PLACES.iter().map(Path::new).find(|dir| is_tracefs(dir));
        if let Some(dir) = here {
            return Ok(Tracefs {
                dir: dir.to_owned(),
                mount: None,
            });
        }
        let mount = mount().map_err(|errno| match errno {
            Errno::NODEV => Error::None,
            errno => Error::NotMounted(io::Error::from(errno)),
        })?;
        Ok(Tracefs {
            // No place in the tree of files, so only by way of the descriptor.
            dir: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
            mount: Some(mount),
        })
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it was mounted for this program alone.
    pub fn is_own_mount(&self) -> bool {
        self.mount.is_some()
    }
}

/// An empty directory may be in its place. What this user may not look into is there, and making an instance says what
/// is wrong.
fn is_tracefs(dir: &Path) -> bool {
    match dir.join("instances").try_exists() {
        Ok(is_there) => is_there,
        Err(error) => {
            error.kind() == io::ErrorKind::PermissionDenied && dir == Path::new(PLACES[0])
        }
    }
}

fn mount() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
