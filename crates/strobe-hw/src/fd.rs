// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors of which this process knows a number only: those that it has inherited, and those that a call has made.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

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
