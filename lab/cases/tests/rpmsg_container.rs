// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may have endpoints: a member of the group, a container that was given the control node, and who was given an endpoint.
//! The sanitizers' kernels are small: what a container is made of is not in them.
// kernels: amd64 rt
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::{EACCES, EPIPE, O_RDWR, POLLERR, POLLHUP, POLLIN};
use serde_json::Value;
use strobe_cases::container::contained;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{become_member, become_user, fork, receive_fd, send_fd, wait};
use strobe_cases::rpmsg::*;

/// Sends messages, which come back.
fn talk(endpoint: &OwnedFd) {
    for n in 0..100u32 {
        assert_eq!(send(endpoint, &n.to_le_bytes()), Ok(4));
        assert_eq!(receive(endpoint).as_deref(), Ok(&n.to_le_bytes()[..]));
    }
}

/// Sleeps until the remote has gone, and sees all there is to see of that.
fn mourn(endpoint: &OwnedFd) {
    assert_eq!(poll_for(endpoint, POLLIN, -1), Ok(POLLHUP | POLLERR));
    assert_eq!(receive(endpoint), Err(EPIPE));
    assert_eq!(send(endpoint, b"x"), Err(EPIPE));
}

/// A word from one process to another.
fn tell(mut socket: &UnixStream) {
    socket.write_all(b"!").expect("told");
}

fn hear(mut socket: &UnixStream) {
    let mut word = [0];
    socket.read_exact(&mut word).expect("a word");
}

/// Names in /dev.
fn devices() -> Vec<String> {
    let all = fs::read_dir("/dev").expect("/dev");
    let names = all.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_member_of_the_group_may_have_endpoints_and_another_user_may_not() {
    for processor in contexts() {
        // As it comes, too, and not only as it was when the machine started.
        processor.pull();
        processor.plug();
        let member = fork(|| {
            become_member(&[STROBE]);
            talk(&endpoint(ANY, ANY, 0));
            0
        });
        assert_eq!(wait(member), 0);
        let another = fork(|| {
            become_user();
            let refused = open(CONTROL).map_err(|why| why.raw_os_error()).map(drop);
            assert_eq!(refused, Err(Some(EACCES)));
            0
        });
        assert_eq!(wait(another), 0);
    }
}

#[test]
fn a_container_with_nothing_but_the_control_node_has_endpoints_and_learns_that_the_remote_has_gone()
{
    for processor in contexts() {
        let (here, there) = UnixStream::pair().expect("sockets");
        let container = fork(|| {
            become_member(&[STROBE]);
            contained(&[CONTROL], || {
                assert_eq!(devices(), ["strobe_rpmsg0"]);
                assert!(!Path::new("/sys").exists() && !Path::new("/proc").exists());
                let control = control();
                let first = create_fd(&control, &mut wanted(77, ANY, O_RDWR)).expect("an endpoint");
                let second = create_fd(&control, &mut wanted(ANY, ANY, O_RDWR)).expect("another");
                talk(&first);
                talk(&second);
                tell(&there);
                mourn(&first);
                mourn(&second);
                let late = create_fd(&control, &mut wanted(ANY, ANY, O_RDWR)).map(drop);
                assert_eq!(late, Err(libc::ENETRESET));
                0
            })
        });
        hear(&here);
        processor.pull();
        assert_eq!(wait(container), 0);
    }
}

#[test]
fn a_container_without_any_node_has_the_endpoint_it_was_given_though_the_giver_has_gone() {
    for processor in contexts() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let (here, there) = UnixStream::pair().expect("sockets");
        let container = fork(|| {
            become_user();
            contained(&[], || {
                assert_eq!(devices(), [""; 0]);
                let endpoint = receive_fd(&far);
                hear(&there);
                talk(&endpoint);
                assert_eq!(stats(&endpoint).map(|said| said.address), Ok(77));
                tell(&there);
                mourn(&endpoint);
                0
            })
        });
        let giver = fork(|| {
            become_member(&[STROBE]);
            send_fd(&near, &endpoint(77, ANY, 0));
            0
        });
        assert_eq!(wait(giver), 0);
        tell(&here);
        hear(&here);
        processor.pull();
        assert_eq!(wait(container), 0);
        processor.plug();
        drop(endpoint(77, ANY, 0));
    }
}

/// The same, with what a shell has, around the program.
const CONTAINER: &str = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/dev /mnt/lib && touch /mnt/dev/strobe_rpmsg0 && \
                         mount -o bind /dev/strobe_rpmsg0 /mnt/dev/strobe_rpmsg0 && \
                         cp -r /usr/local/bin/strobe /lib64 /mnt && cp -r /lib/x86_64-linux-gnu /mnt/lib && \
                         exec chroot /mnt /strobe rpmsg ping --count 100 --json";

#[test]
fn in_a_container_the_node_that_it_was_given_is_found_without_sysfs() {
    for _processor in contexts() {
        let output = Command::new("unshare")
            .args(["-U", "-r", "-m", "-n", "-p", "-f", "sh", "-c", CONTAINER])
            .uid(1000)
            .gid(STROBE)
            .output()
            .expect("unshare, of busybox");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!((&said["sent"], &said["back"]), (&100.into(), &100.into()));
    }
}

#[test]
fn a_member_of_the_group_makes_so_many_nodes_and_no_more_and_root_as_many_as_it_wants() {
    const LIMIT: usize = 64;
    let nodes = || {
        let all = fs::read_dir("/sys/class/strobe_rpmsg").expect("the class");
        let names = all.map(|entry| entry.expect("an entry").file_name());
        names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| name.starts_with("strobe_rpmsg_ept"))
            .collect::<Vec<String>>()
    };
    for processor in contexts() {
        let made = |wanted: usize, answer: Result<usize, i32>| {
            let member = fork(|| {
                become_member(&[STROBE]);
                let control = control();
                for n in 0..wanted {
                    assert_eq!(create_node(&control, ANY, ANY), Ok(0), "node {n}");
                }
                assert_eq!(create_node(&control, ANY, ANY), answer);
                0
            });
            assert_eq!(wait(member), 0);
        };
        made(LIMIT, Err(libc::EUSERS));
        assert_eq!(nodes().len(), LIMIT, "they stay when their maker has gone");
        made(0, Err(libc::EUSERS));
        // Another user's are counted by themselves, and root's not at all.
        for _ in 0..LIMIT + 1 {
            create_node(&control(), ANY, ANY).expect("root's node");
        }
        let first = open(&format!("/dev/{}", nodes()[0])).expect("a node");
        destroy(&first).expect("destroyed");
        drop(first);
        processor.pull();
        processor.plug();
        assert_eq!(nodes().len(), 0, "they go with the channel");
        made(LIMIT, Err(libc::EUSERS));
        processor.pull();
    }
}
