// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody else: a process of an ordinary user, who has been given the control device, and what we tell each other.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use super::{control, fork, sys, wait};

/// Our end, or the other's, of what is said. Dropped by one, it ends the other's listening.
pub struct Talk(UnixStream);

impl Talk {
    /// Says a number.
    pub fn say(&mut self, number: u64) {
        self.0.write_all(&number.to_ne_bytes()).expect("said");
    }

    /// The next number that was said; none if the other is gone.
    pub fn hear(&mut self) -> Option<u64> {
        let mut bytes = [0; 8];
        let heard = self.0.read_exact(&mut bytes);
        heard.ok().map(|()| u64::from_ne_bytes(bytes))
    }

    /// Whether the other is still there, and has said nothing.
    pub fn is_quiet(&self) -> bool {
        self.0.set_nonblocking(true).expect("to look only");
        let look = (&self.0).read(&mut [0; 8]);
        self.0.set_nonblocking(false).expect("to wait again");
        look.is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// A process of user `uid`, without privileges. It ends when this is dropped.
pub struct OtherUser {
    talk: Option<Talk>,
    pid: usize,
    /// How it is to end.
    end: i32,
}

impl OtherUser {
    /// It does `work` and ends. No other thread of ours may be alive.
    pub fn new(uid: usize, work: impl FnOnce(&OwnedFd, &mut Talk)) -> OtherUser {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let mut theirs = Some(theirs);
        let control = control();
        // What the process takes or closes here, is its own copy.
        let pid = fork(|| {
            let kept = [
                control.as_raw_fd(),
                theirs.as_ref().expect("its end").as_raw_fd(),
            ];
            close_all_but(&kept);
            limit(libc::RLIMIT_NOFILE as usize, 8192);
            sys(libc::SYS_setgroups, &[0, 0]).expect("setgroups");
            sys(libc::SYS_setresgid, &[uid, uid, uid]).expect("setresgid");
            sys(libc::SYS_setresuid, &[uid, uid, uid]).expect("setresuid");
            work(&control, &mut Talk(theirs.take().expect("its end")));
            0
        });
        drop(theirs);
        OtherUser {
            talk: Some(Talk(ours)),
            pid,
            end: 0,
        }
    }

    /// Our end.
    pub fn talk(&mut self) -> &mut Talk {
        self.talk
            .as_mut()
            .expect("it is there until this is dropped")
    }

    /// Kills it, and waits until nothing is left of it.
    pub fn kill(mut self) {
        self.end = -libc::SIGKILL;
        sys(libc::SYS_kill, &[self.pid, libc::SIGKILL as usize]).expect("it is alive");
    }
}

/// Else the ends of all that we talk to would stay open as long as this one lives.
fn close_all_but(kept: &[RawFd]) {
    for fd in (3..1024).filter(|fd| !kept.contains(fd)) {
        let _ = sys(libc::SYS_close, &[fd as usize]);
    }
}

/// Sets both limits of a resource.
pub fn limit(resource: usize, value: u64) {
    let new = [value, value];
    sys(
        libc::SYS_prlimit64,
        &[0, resource, new.as_ptr() as usize, 0],
    )
    .expect("a limit");
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        // It hears that we are gone.
        self.talk = None;
        let status = wait(self.pid);
        if !std::thread::panicking() {
            assert_eq!(status, self.end, "what the other user did");
        }
    }
}
