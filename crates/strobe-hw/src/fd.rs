// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors of which this process knows a number only: those that it has inherited, and those that a call has made.

use std::env;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Another descriptor of the same file.
///
/// # Errors
/// There is none of this number, or no more may be open.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: it is used for one call, which fails if nothing is open there. Should another thread close it meanwhile,
    // that call takes what has the number then, and looks after its own copy of it.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    inherited.try_clone_to_owned()
}

/// Number of the first descriptor that a service manager hands over.
const FIRST_HANDED_OVER: RawFd = 3;

/// The descriptors that the service manager has started this process with, and their names, as sd_listen_fds(3) says. They
/// are handed out once: to who asks first.
pub fn handed_over() -> Vec<(String, OwnedFd)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    let is_mine = number("LISTEN_PID") == Some(std::process::id());
    if !is_mine || TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).min(4096);
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').map(str::to_owned);
    let numbers = FIRST_HANDED_OVER..FIRST_HANDED_OVER + count as RawFd;
    let named = numbers.filter_map(|number| {
        let name = names.next().unwrap_or_default();
        // SAFETY: it is used for two calls, which fail if nothing is open there.
        let handed_over = unsafe { BorrowedFd::borrow_raw(number) };
        let flags = fcntl_getfd(handed_over).ok()?;
        fcntl_setfd(handed_over, flags | FdFlags::CLOEXEC).ok()?;
        // SAFETY: it was open when the process began, and meant for it (LISTEN_PID); nobody else in the process takes
        // it, for this is done once.
        Some((name, unsafe { OwnedFd::from_raw_fd(number) }))
    });
    named.collect()
}

/// The file that a call to a driver of ours has just made, if it has made one.
pub(crate) fn adopt(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the kernel has made it for this call, so nobody else in the process knows or closes it.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_number_that_no_file_has_is_refused() {
        for number in [-1, -2, i32::MAX] {
            let error = duplicate(number).expect_err("no file").raw_os_error();
            assert_eq!(error, Some(libc::EBADF), "{number}");
        }
        assert!(adopt(-1).is_none(), "a driver that has made none");
        let copy = duplicate(std::io::stdin().as_raw_fd());
        assert!(copy.is_ok_and(|copy| copy.as_raw_fd() > 2));
    }
}
