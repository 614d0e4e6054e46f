// SPDX-License-Identifier: MIT OR Apache-2.0
//! A container, made of what every container is made of, by a user without privilege.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use crate::raw::{fork, sys, wait};

/// Where it is mounted, by itself and seen by nobody else; then it is its root.
const ROOT: &str = "/mnt";

/// Does `work` in a container whose file system is empty but for these device nodes, and answers its exit status.
///
/// In namespaces of its own: users, mounts, processes, network. It is of the user and the groups that this process is of,
/// without any capability. Only for a child.
pub fn contained(nodes: &[&str], work: impl FnOnce() -> i32) -> i32 {
    // Who has become another user may not write its own maps otherwise.
    let dumpable = libc::PR_SET_DUMPABLE as usize;
    sys(libc::SYS_prctl, &[dumpable, 1, 0, 0, 0]).expect("prctl");
    let apart = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET;
    sys(libc::SYS_unshare, &[apart as usize]).expect("namespaces");
    for (map, line) in [
        ("uid_map", "1000 1000 1"),
        ("setgroups", "deny"),
        ("gid_map", "1000 1000 1"),
    ] {
        fs::write(Path::new("/proc/self").join(map), line).expect(map);
    }
    mount("tmpfs", ROOT, "tmpfs", 0);
    fs::create_dir(format!("{ROOT}/dev")).expect("a directory");
    for node in nodes {
        let inside = format!("{ROOT}{node}");
        fs::write(&inside, "").expect("a place for it");
        mount(node, &inside, "", libc::MS_BIND);
    }
    let root = text(ROOT);
    sys(libc::SYS_chroot, &[root.as_ptr() as usize]).expect("chroot");
    std::env::set_current_dir("/").expect("its root");
    // Only a child is in the new namespace of processes.
    wait(fork(|| {
        assert_eq!(std::process::id(), 1, "the first one");
        give_up_capabilities();
        work()
    }))
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

/// mount(), which must succeed.
pub fn mount(what: &str, place: &str, kind: &str, flags: libc::c_ulong) {
    let [from, to, of] = [what, place, kind].map(text);
    let [from, to, of] = [&from, &to, &of].map(|it| it.as_ptr() as usize);
    let done = sys(libc::SYS_mount, &[from, to, of, flags as usize, 0]);
    done.unwrap_or_else(|errno| panic!("mount {what} {place}: {errno}"));
}

/// Those that the maker of a namespace of users has in that.
fn give_up_capabilities() {
    // _LINUX_CAPABILITY_VERSION_3, of this process; twice effective, permitted, inheritable.
    let (head, none) = ([0x2008_0522u32, 0], [0u32; 6]);
    let args = [head.as_ptr() as usize, none.as_ptr() as usize];
    sys(libc::SYS_capset, &args).expect("capset");
}
