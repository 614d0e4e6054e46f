// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal to one thread, for tests of what a signal ends.

use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

extern "C" fn nothing(_: libc::c_int) {}

/// Sends SIGUSR1 to a thread of this process. Nothing is done about it, but a system call that it sleeps in ends.
pub fn interrupt<T>(thread: &JoinHandle<T>) {
    let handler = nothing as extern "C" fn(libc::c_int);
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    // SAFETY: the thread was not joined, for its handle is there; so its number is valid.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
}
