// SPDX-License-Identifier: MIT OR Apache-2.0
//! The default endpoint of a channel as a node, in both contexts that messages arrive in. The channel is given to the driver
//! by name; rpmsg_virtio has it bound by its service.
// lab: --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::thread;

use libc::{EAGAIN, EBUSY, EINVAL, EPIPE, O_NONBLOCK, POLLERR, POLLHUP, POLLIN};
use strobe_cases::machine::slowness;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{asleep_in, references, set_flags, until};
use strobe_cases::rpmsg::*;

const CHANNELS: &str = "channels=strobe_rpmsg,rpmsg-raw";
const CHANNEL: &str = "lab_rpmsg.rpmsg-raw.-1.1025";
const NODE: &str = "/dev/strobe_rpmsg_ept0";

/// The channel, given to the driver.
fn bind() {
    let bus = Path::new("/sys/bus/rpmsg");
    let name = bus.join("devices").join(CHANNEL).join("driver_override");
    fs::write(name, "strobe_rpmsg_raw").expect("its driver's name");
    fs::write(bus.join("drivers_probe"), CHANNEL).expect("bound");
    assert!(Path::new(NODE).exists(), "{NODE}");
}

fn node() -> OwnedFd {
    open(NODE).expect("the node")
}

#[test]
fn a_default_endpoint_is_a_node_that_has_the_channels_addresses_and_cannot_be_destroyed() {
    let _reloaded = Reloaded::with("", CHANNELS);
    for _processor in contexts() {
        if !Path::new(NODE).exists() {
            bind();
        }
        let sysfs = |name| {
            let file = format!("/sys/class/strobe_rpmsg/strobe_rpmsg_ept0/{name}");
            fs::read_to_string(file).expect("an attribute")
        };
        assert_eq!(
            (sysfs("name"), sysfs("dst")),
            ("rpmsg-raw\n".into(), "0x401\n".into())
        );
        let endpoint = node();
        let again = open(NODE).map(drop).map_err(|why| why.raw_os_error());
        assert_eq!(again, Err(Some(EBUSY)), "one at a time");
        let said = stats(&endpoint).expect("stats");
        assert_eq!(
            (format!("{:#x}\n", said.address), said.dst),
            (sysfs("src"), 0x401)
        );
        for n in 0..1000u32 {
            assert_eq!(send(&endpoint, &n.to_le_bytes()), Ok(4));
            assert_eq!(receive(&endpoint).as_deref(), Ok(&n.to_le_bytes()[..]));
        }
        assert_eq!(destroy(&endpoint), Err(EINVAL));
        send(&endpoint, b"for this file alone").expect("sent");
        until("it", || state(&endpoint) & POLLIN != 0);
        drop(endpoint);
        let next = node();
        set_flags(&next, O_NONBLOCK);
        assert_eq!(
            receive(&next),
            Err(EAGAIN),
            "what was for another is forgotten"
        );
        // It is there while nobody has it open: who talks to it is heard.
        let said = stats(&next).expect("stats");
        drop(next);
        let other = endpoint_to(said.address);
        send(&other, b"early").expect("sent");
        let next = node();
        assert_eq!(receive(&next).as_deref(), Ok(&b"early"[..]));
    }
}

/// An endpoint that sends to that address.
fn endpoint_to(address: u32) -> OwnedFd {
    endpoint(ANY, address, 0)
}

#[test]
fn a_default_endpoint_goes_with_its_channel_and_who_has_it_open_learns_it() {
    let _reloaded = Reloaded::with("", CHANNELS);
    let rounds = if slowness() == 1 { 50 } else { 10 };
    for processor in contexts() {
        let before = references("strobe_rpmsg");
        for round in 0..rounds {
            if !Path::new(NODE).exists() {
                bind();
            }
            let endpoint = node();
            thread::scope(|scope| {
                let (_, read) = asleep_in(scope, libc::SYS_read, || receive(&endpoint));
                if round % 2 == 0 {
                    send(&endpoint, b"wake").expect("sent");
                    assert_eq!(
                        read.join().expect("the reader").as_deref(),
                        Ok(&b"wake"[..])
                    );
                    send(&endpoint, b"last").expect("sent");
                    until("it", || state(&endpoint) & POLLIN != 0);
                    processor.pull();
                    assert_eq!(receive(&endpoint).as_deref(), Ok(&b"last"[..]));
                } else {
                    processor.pull();
                    assert_eq!(read.join().expect("the reader"), Err(EPIPE));
                }
            });
            assert_eq!(state(&endpoint), POLLHUP | POLLERR);
            assert_eq!(receive(&endpoint), Err(EPIPE));
            assert_eq!(send(&endpoint, b"x"), Err(EPIPE));
            assert!(!Path::new(NODE).exists());
            assert!(endpoint.as_raw_fd() > 0);
            drop(endpoint);
            assert_eq!(references("strobe_rpmsg"), before);
            processor.plug();
        }
    }
}
