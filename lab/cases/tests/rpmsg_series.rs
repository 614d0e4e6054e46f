// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of the program that the kernel's series on endpoints as files was introduced with, on the stock virtio bus:
//! beside a channel rpmsg-raw that the remote announces, and beside one that the host makes by RPMSG_CREATE_DEV_IOCTL; with
//! the stock drivers, which have nodes only, and with strobe_rpmsg by the stock names, by the series' call and by its own.
// lab: --module virtio_rpmsg_bus

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use strobe_cases::machine::{command, slowness};
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::until;
use strobe_cases::rpmsg::*;

/// The first node, which is a channel's default endpoint if there is one; then that of the program's is the next.
const DEFAULT: &str = "/dev/rpmsg0";
const NEXT: &str = "/dev/rpmsg1";
/// Addresses of a channel of the host's own.
const OWN: (u32, u32) = (600, REMOTE + 7);

/// Drivers, and a remote that announces services for them; both go when this is dropped.
struct Bus(&'static [&'static str]);

impl Bus {
    fn new(drivers: &'static [&'static str], services: &str) -> Bus {
        for line in drivers {
            assert!(command(&format!("modprobe {line}")), "{line}");
        }
        let line = format!("modprobe lab_virtio_rpmsg services={services}");
        assert!(command(&line), "{line}");
        until("the control node", || Path::new(STOCK_CONTROL).exists());
        Bus(drivers)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let modules = self.0.iter().rev().map(|line| line.split(' ').next());
        for module in [Some("lab_virtio_rpmsg")].into_iter().chain(modules) {
            let module = module.expect("a name");
            let gone = command(&format!("rmmod {module}"));
            assert!(gone || std::thread::panicking(), "{module} can go");
        }
    }
}

const STOCK: &[&str] = &["rpmsg_char", "rpmsg_ctrl"];
const STROBE_ONLY: &[&str] = &["strobe_rpmsg stock_names=1"];

/// What the program says, and complains of.
fn run(node: &str, way: &str) -> (String, String) {
    let rounds = (1000 / slowness()).to_string();
    let done = Command::new("rpmsg_series")
        .args([rounds.as_str(), STOCK_CONTROL, node, way])
        .output()
        .expect("the program");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&done.stdout).replace(&rounds, "all");
    (said, text(&done.stderr))
}

/// The program has all of its endpoints by this way.
fn succeeds(node: &str, way: &str) {
    let files = if way == "none" { "0" } else { "all" };
    let said = format!("all nodes, {files} files, 0 failures\n");
    assert_eq!(run(node, way), (said, String::new()), "{way}");
    assert!(!Path::new(node).exists(), "it leaves no node");
}

/// The channel's default endpoint, which comes and goes with it, talks to the remote.
fn talks(endpoint: &OwnedFd) {
    assert_eq!(send(endpoint, b"hello"), Ok(5));
    assert_eq!(receive(endpoint).as_deref(), Ok(&b"hello"[..]));
}

/// Does `work` beside the default endpoint of a channel that the host makes.
fn beside_a_channel_of_the_hosts_own(work: impl FnOnce()) {
    let control = open(STOCK_CONTROL).expect("the control node");
    assert_eq!(
        channel(&control, CREATE_DEV, "rpmsg-raw", OWN.0, OWN.1),
        Ok(0)
    );
    let endpoint = open(DEFAULT).expect("its default endpoint");
    talks(&endpoint);
    work();
    talks(&endpoint);
    drop(endpoint);
    assert_eq!(
        channel(&control, RELEASE_DEV, "rpmsg-raw", OWN.0, OWN.1),
        Ok(0)
    );
    assert!(!Path::new(DEFAULT).exists());
}

/// Does `work` beside the default endpoint of a channel that the remote announces.
fn beside_an_announced_channel(work: impl FnOnce()) {
    until("its node", || Path::new(DEFAULT).exists());
    let endpoint = open(DEFAULT).expect("its default endpoint");
    talks(&endpoint);
    work();
    talks(&endpoint);
}

#[test]
fn the_stock_drivers_have_its_nodes_beside_rpmsg_raw_and_no_files() {
    let _bus = Bus::new(STOCK, "rpmsg-raw");
    beside_an_announced_channel(|| {
        succeeds(NEXT, "none");
        let (said, complaint) = run(NEXT, "series");
        assert!(
            complaint.contains("RPMSG_CREATE_EPT_FD_IOCTL: "),
            "{said}{complaint}"
        );
    });
}

#[test]
fn the_stock_drivers_have_its_nodes_beside_a_channel_of_the_hosts_own() {
    let _bus = Bus::new(STOCK, "nothing");
    succeeds(DEFAULT, "none");
    beside_a_channel_of_the_hosts_own(|| succeeds(NEXT, "none"));
}

#[test]
fn strobe_has_its_nodes_and_files_beside_rpmsg_raw() {
    let _bus = Bus::new(STROBE_ONLY, "strobe_rpmsg,rpmsg-raw");
    beside_an_announced_channel(|| {
        for way in ["series", "strobe"] {
            succeeds(NEXT, way);
        }
    });
}

#[test]
fn strobe_has_its_nodes_and_files_beside_a_channel_of_the_hosts_own() {
    let _bus = Bus::new(STROBE_ONLY, "strobe_rpmsg");
    for way in ["series", "strobe"] {
        succeeds(DEFAULT, way);
    }
    beside_a_channel_of_the_hosts_own(|| {
        for way in ["series", "strobe"] {
            succeeds(NEXT, way);
        }
    });
}

#[test]
fn a_default_endpoint_that_has_the_name_of_the_programs_node_cannot_be_destroyed_by_it() {
    for (drivers, services) in [
        (STOCK, "rpmsg-raw"),
        (STROBE_ONLY, "strobe_rpmsg,rpmsg-raw"),
    ] {
        let _bus = Bus::new(drivers, services);
        until("its node", || Path::new(DEFAULT).exists());
        let (said, complaint) = run(DEFAULT, "none");
        assert_eq!(
            complaint, "rpmsg_series: RPMSG_DESTROY_EPT_IOCTL: Invalid argument\n",
            "{said}"
        );
    }
}
