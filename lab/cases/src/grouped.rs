// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control device for a group, and a user who may be in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

const DEVICE: &str = "/dev/strobe";
/// A user, and its own group.
pub const USER: u32 = 1000;
/// The group of the device.
pub const GROUP: u32 = 900;

/// The device belongs to that group, as the installed rules have it; to root alone again when this is dropped.
pub struct Grouped(fs::Permissions);

impl Grouped {
    /// It does from now on.
    #[must_use]
    pub fn begin() -> Grouped {
        let mode = fs::metadata(DEVICE).expect(DEVICE).permissions();
        chown(DEVICE, Some(0), Some(GROUP)).expect("a group");
        fs::set_permissions(DEVICE, fs::Permissions::from_mode(0o660)).expect("a mode");
        Grouped(mode)
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        let _ = chown(DEVICE, Some(0), Some(0));
        let _ = fs::set_permissions(DEVICE, self.0.clone());
    }
}
