// SPDX-License-Identifier: MIT OR Apache-2.0
//! As many runs as somebody gets.

use std::fs;
use std::os::fd::OwnedFd;

use crate::raw::{READ, create, request, step};

/// Runs that read these, until one is refused, or there are `most`: the runs, and why there are no more.
pub fn runs(
    control: &OwnedFd,
    channels: &[&str],
    capacity: u64,
    most: usize,
) -> (Vec<OwnedFd>, Option<i32>) {
    let steps: Vec<_> = channels.iter().map(|name| step(READ, name, 0)).collect();
    let mut made = Vec::new();
    while made.len() < most {
        match create(control, &request("soft", 0, capacity, &steps)) {
            Ok((owner, _)) => made.push(owner),
            Err(errno) => return (made, Some(errno)),
        }
    }
    (made, None)
}

/// Threads of the kernel that belong to runs.
pub fn threads() -> usize {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let names = processes.filter_map(|it| fs::read_to_string(it.path().join("comm")).ok());
    names.filter(|name| name.starts_with("strobe/")).count()
}
