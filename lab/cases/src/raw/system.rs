// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls, and what the tests make of them: memory, polling, processes, signals, fds that
//! travel.

use std::ffi::CString;
use std::fs;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc::channel;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// What a call answers: a value, or an errno.
pub type Answer = Result<usize, i32>;

/// Any system call.
pub fn sys(number: libc::c_long, args: &[usize]) -> Answer {
    let a = |i: usize| args.get(i).copied().unwrap_or(0);
    // SAFETY: an address among the arguments is of memory that the caller holds for this call, or
    // wrong on purpose: then the kernel refuses it, which is what the tests are about.
    let answer = unsafe { libc::syscall(number, a(0), a(1), a(2), a(3), a(4), a(5)) };
    usize::try_from(answer).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// A structure of integers: every pattern of bits is a value of it.
///
/// # Safety
/// That must be so.
pub unsafe trait Plain: Copy {}
// SAFETY: integers.
unsafe impl Plain for u8 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}

/// Memory that is mapped until it is dropped.
#[derive(Debug)]
pub struct Map {
    /// Where.
    pub address: usize,
    /// Bytes.
    pub length: usize,
}

impl Map {
    /// mmap().
    pub fn new(fd: RawFd, length: usize, prot: i32, flags: i32, offset: usize) -> Result<Map, i32> {
        let args = [
            0,
            length,
            prot as usize,
            flags as usize,
            fd as usize,
            offset,
        ];
        sys(libc::SYS_mmap, &args).map(|address| Map { address, length })
    }

    /// Memory of our own.
    pub fn pages(count: usize, prot: i32) -> Map {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Map::new(-1, count * 4096, prot, flags, 0).expect("memory")
    }

    /// mprotect() of all of it.
    pub fn protect(&self, prot: i32) -> Answer {
        sys(
            libc::SYS_mprotect,
            &[self.address, self.length, prot as usize],
        )
    }

    fn place<T: Plain>(&self, offset: usize) -> *mut T {
        assert!(
            offset + size_of::<T>() <= self.length,
            "outside the mapping"
        );
        (self.address + offset) as *mut T
    }

    /// Stores a value.
    pub fn put<T: Plain>(&self, offset: usize, value: T) {
        // SAFETY: inside the mapping, which nobody else in this process has an alias of.
        unsafe { self.place::<T>(offset).write_unaligned(value) }
    }

    /// Loads a value; words that are aligned are loaded at once, however often they change.
    pub fn get<T: Plain>(&self, offset: usize) -> T {
        // SAFETY: inside the mapping; every pattern of bits is a value; volatile, since a
        // producer may be writing.
        let value = unsafe { self.place::<T>(offset).read_volatile() };
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        value
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = sys(libc::SYS_munmap, &[self.address, self.length]);
    }
}

/// Takes an fd that the kernel has just made.
pub fn adopt(fd: i32) -> OwnedFd {
    assert!(fd >= 0, "the kernel has made an fd");
    // SAFETY: it has just been made for us; nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// poll() of one fd: its revents; 0 after the timeout, even if poll(), which looks again then,
/// finds that it should have been woken.
pub fn poll(fd: &impl AsRawFd, timeout_ms: i32) -> Result<i16, i32> {
    let mut one = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let address = std::ptr::from_mut(&mut one) as usize;
    let end = Instant::now() + Duration::from_millis(timeout_ms.unsigned_abs().into());
    sys(libc::SYS_poll, &[address, 1, timeout_ms as usize])?;
    let is_late = timeout_ms > 0 && Instant::now() >= end;
    Ok(if is_late { 0 } else { one.revents })
}

/// An epoll instance that watches one fd.
pub fn epoll(fd: &impl AsRawFd, events: i32) -> OwnedFd {
    let epoll = adopt(sys(libc::SYS_epoll_create1, &[0]).expect("an epoll fd") as i32);
    let mut event = libc::epoll_event {
        events: events as u32,
        u64: 0,
    };
    let address = std::ptr::from_mut(&mut event) as usize;
    let add = libc::EPOLL_CTL_ADD as usize;
    let args = [
        epoll.as_raw_fd() as usize,
        add,
        fd.as_raw_fd() as usize,
        address,
    ];
    sys(libc::SYS_epoll_ctl, &args).expect("the fd can be watched");
    epoll
}

/// epoll_wait() for one event: its bits, 0 after the timeout.
pub fn epoll_wait(epoll: &impl AsRawFd, timeout_ms: i32) -> Result<u32, i32> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let address = std::ptr::from_mut(&mut event) as usize;
    let args = [epoll.as_raw_fd() as usize, address, 1, timeout_ms as usize];
    sys(libc::SYS_epoll_wait, &args).map(|count| if count == 0 { 0 } else { event.events })
}

pub use crate::account::until;

/// Sets the flags of an open file, such as O_NONBLOCK, and clears the others.
pub fn set_flags(fd: &OwnedFd, flags: i32) {
    let args = [
        fd.as_raw_fd() as usize,
        libc::F_SETFL as usize,
        flags as usize,
    ];
    sys(libc::SYS_fcntl, &args).expect("fcntl");
}

/// Id of this thread.
pub fn thread_id() -> usize {
    sys(libc::SYS_gettid, &[]).expect("every thread has an id")
}

/// Waits until a thread of this process sleeps in a system call.
pub fn until_asleep(thread: usize, call: libc::c_long) {
    until("the thread sleeps in the call", || {
        let file = |name| fs::read_to_string(format!("/proc/self/task/{thread}/{name}"));
        let call_now = file("syscall").unwrap_or_default();
        call_now.split(' ').next() == Some(&call.to_string())
            && file("stat").unwrap_or_default().contains(") S ")
    });
}

/// A thread, its id first, which does `work` and sleeps in that call when this comes back.
pub fn asleep_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    call: libc::c_long,
    work: impl FnOnce() -> T + Send + 'scope,
) -> (usize, ScopedJoinHandle<'scope, T>) {
    let (tell, told) = channel();
    let thread = scope.spawn(move || {
        tell.send(thread_id()).expect("told");
        work()
    });
    let id = told.recv().expect("its id");
    until_asleep(id, call);
    (id, thread)
}

/// A process that does `work`, which answers its exit status.
pub fn fork(work: impl FnOnce() -> i32) -> usize {
    // SAFETY: tests run one at a time, and no other thread is alive at a fork, so that no lock is
    // held in the child for ever.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(101);
        let _ = sys(libc::SYS_exit_group, &[status as usize]);
    }
    pid as usize
}

/// How a process ended: its exit status, or minus the signal.
pub fn wait(pid: usize) -> i32 {
    let mut status: i32 = 0;
    let address = std::ptr::from_mut(&mut status) as usize;
    sys(libc::SYS_wait4, &[pid, address, 0, 0]).expect("a child");
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        -libc::WTERMSIG(status)
    }
}

/// Makes the process an ordinary user's; only for a child.
pub fn become_user() {
    become_member(&[]);
}

/// The same, of one who is a member of these groups.
pub fn become_member(groups: &[u32]) {
    let args = [groups.len(), groups.as_ptr() as usize];
    sys(libc::SYS_setgroups, &args).expect("setgroups");
    sys(libc::SYS_setresgid, &[1000, 1000, 1000]).expect("setresgid");
    sys(libc::SYS_setresuid, &[1000, 1000, 1000]).expect("setresuid");
}

/// Lets SIGUSR1 interrupt calls, and do nothing else.
pub fn allow_interruption(flags: i32) {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: all zeros are a value of it, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

/// Sends SIGUSR1 to a thread of this process.
pub fn interrupt(thread: usize) {
    let args = [std::process::id() as usize, thread, libc::SIGUSR1 as usize];
    sys(libc::SYS_tgkill, &args).expect("the thread is there");
}

/// Sends an fd through a socket, with one byte.
pub fn send_fd(socket: &impl AsRawFd, fd: &impl AsRawFd) {
    with_message(|message, slot| {
        // SAFETY: the slot is the message's own room for one fd.
        unsafe { slot.write_unaligned(fd.as_raw_fd()) };
        let address = std::ptr::from_mut(message) as usize;
        sys(
            libc::SYS_sendmsg,
            &[socket.as_raw_fd() as usize, address, 0],
        )
        .expect("sent");
    });
}

/// Receives an fd.
pub fn receive_fd(socket: &impl AsRawFd) -> OwnedFd {
    with_message(|message, slot| {
        let address = std::ptr::from_mut(message) as usize;
        let flags = libc::MSG_CMSG_CLOEXEC as usize;
        sys(
            libc::SYS_recvmsg,
            &[socket.as_raw_fd() as usize, address, flags],
        )
        .expect("received");
        // SAFETY: as above; the kernel has stored an fd there.
        adopt(unsafe { slot.read_unaligned() })
    })
}

fn with_message<T>(work: impl FnOnce(&mut libc::msghdr, *mut i32) -> T) -> T {
    let mut byte = 0u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut room = [0u64; 3]; // a header of 16 bytes, one fd, padding
    // SAFETY: all zeros are a value of it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&room) as _;
    // SAFETY: the room is large enough for a header and one fd.
    let slot = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header).cast::<i32>()
    };
    work(&mut message, slot)
}

/// delete_module(), without waiting.
pub fn unload(module: &str) -> Answer {
    let name = CString::new(module).expect("a name");
    sys(
        libc::SYS_delete_module,
        &[name.as_ptr() as usize, libc::O_NONBLOCK as usize],
    )
}
