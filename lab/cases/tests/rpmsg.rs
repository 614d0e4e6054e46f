// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rpmsg bus of the lab, and the ways to an endpoint on it: the stock driver's nodes, strobe_rpmsg's files, and nodes of
//! strobe_rpmsg for programs that know no files.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::process::Command;

use libc::{EADDRINUSE, EBUSY, EPIPE, O_NONBLOCK, O_RDWR, POLLERR, POLLHUP, POLLIN};
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::until;
use strobe_cases::rpmsg::*;

/// The first node of the stock driver, and of strobe_rpmsg.
const STOCK_NODE: &str = "/dev/rpmsg0";
const NODE: &str = "/dev/strobe_rpmsg_ept0";

fn errno(path: &str) -> Option<i32> {
    open(path).err().and_then(|why| why.raw_os_error())
}

#[test]
fn a_message_comes_back_over_the_stock_drivers() {
    let _processor = Processor::new(false);
    let control = open(STOCK_CONTROL).expect("the stock driver");
    create_node(&control, ANY, ANY).expect("a node");
    let endpoint = open(STOCK_NODE).expect("an endpoint");
    assert_eq!(send(&endpoint, b"hello"), Ok(5));
    assert_eq!(receive(&endpoint).as_deref(), Ok(&b"hello"[..]));
    destroy(&endpoint).expect("destroyed");
}

#[test]
fn a_message_comes_back_to_an_endpoint_that_is_a_file() {
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, O_NONBLOCK);
        assert_eq!(send(&endpoint, b"hello"), Ok(5));
        until("the echo", || state(&endpoint) & POLLIN != 0);
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"hello"[..]));
        assert_eq!(receive(&endpoint), Err(libc::EAGAIN));
    }
}

#[test]
fn endpoints_of_both_drivers_talk_to_each_other() {
    // In process context: in the other one the stock driver takes locks that sleep on PREEMPT_RT.
    let _processor = Processor::new(false);
    create_node(&open(STOCK_CONTROL).expect("the stock driver"), 600, 601).expect("a node");
    let (stock, ours) = (
        open(STOCK_NODE).expect("an endpoint"),
        endpoint(601, 600, 0),
    );
    for n in 0..1000u32 {
        send(&stock, &n.to_le_bytes()).expect("sent");
        let message = receive(&ours).expect("a message");
        assert_eq!(message, n.to_le_bytes());
        send(&ours, &message).expect("sent");
        assert_eq!(receive(&stock).as_deref(), Ok(&n.to_le_bytes()[..]));
    }
    destroy(&stock).expect("destroyed");
}

#[test]
fn a_node_is_an_endpoint_while_it_is_open() {
    for _processor in contexts() {
        let control = control();
        create_node(&control, 77, ANY).expect("a node");
        let sysfs =
            |name| fs::read_to_string(format!("/sys/class/strobe_rpmsg/strobe_rpmsg_ept0/{name}"));
        let shown = ["name", "src", "dst"].map(|name| sysfs(name).expect("an attribute"));
        assert_eq!(shown, ["test\n", "0x4d\n", "0xffffffff\n"]);
        drop(endpoint(77, ANY, 0));
        let endpoint = open(NODE).expect("the node");
        assert_eq!(errno(NODE), Some(EBUSY), "one at a time");
        let second = create_fd(&control, &mut wanted(77, ANY, O_RDWR)).map(drop);
        assert_eq!(second, Err(EADDRINUSE));
        send(&endpoint, b"hello").expect("sent");
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"hello"[..]));
        assert_eq!(stats(&endpoint).map(|said| said.address), Ok(77));
        drop(endpoint);
        drop(self::endpoint(77, ANY, 0));
        let endpoint = open(NODE).expect("it opens again");
        destroy(&endpoint).expect("destroyed");
        assert_eq!(errno(NODE), Some(libc::ENOENT), "the node has gone");
        assert_eq!(receive(&endpoint), Err(EPIPE));
        create_node(&control, 77, ANY).expect("a node");
        let next = open(NODE).expect("the name is free, though the old file is open");
        destroy(&next).expect("destroyed");
    }
}

#[test]
fn nodes_go_with_the_remote_and_what_is_open_says_so() {
    for processor in contexts() {
        let control = control();
        for _ in 0..2 {
            create_node(&control, ANY, ANY).expect("a node");
        }
        let endpoint = open(NODE).expect("an endpoint");
        send(&endpoint, b"last").expect("sent");
        until("it", || state(&endpoint) & POLLIN != 0);
        processor.pull();
        assert_eq!(
            fs::read_dir("/sys/class/strobe_rpmsg")
                .expect("sysfs")
                .count(),
            0
        );
        assert_eq!(state(&endpoint), POLLIN | POLLHUP | POLLERR);
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"last"[..]));
        assert_eq!(receive(&endpoint), Err(EPIPE));
        assert_eq!(destroy(&endpoint), Ok(0), "it is harmless");
    }
}

#[test]
fn a_channel_is_bound_by_the_name_of_its_service_too() {
    let _reloaded = Reloaded::with("", "channels=another,@strobe_rpmsg");
    let bound = fs::read_dir("/sys/bus/rpmsg/drivers/strobe_rpmsg").expect("the driver");
    let bound = bound.filter_map(|entry| entry.expect("an entry").file_name().into_string().ok());
    let bound: Vec<_> = bound.filter(|name| name.starts_with("lab_rpmsg")).collect();
    assert_eq!(bound, ["lab_rpmsg.strobe_rpmsg.-1.1025"]);
    let endpoint = endpoint(ANY, ANY, 0);
    send(&endpoint, b"hello").expect("sent");
    assert_eq!(receive(&endpoint).as_deref(), Ok(&b"hello"[..]));
}

#[test]
fn a_program_for_the_stock_driver_finds_its_names_and_both_ways() {
    let _reloaded = Reloaded::with("stock_names=1", "channels=strobe_rpmsg");
    for program in ["rpmsg_ways", "rpmsg32", "rpmsg_series32"] {
        let done = Command::new(program).arg("100").output().expect(program);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            done.status.success() && errors.is_empty(),
            "{program}: {text}{errors}"
        );
        assert!(text.contains("as a file: "), "{program}: {text}");
    }
}
