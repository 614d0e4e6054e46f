// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rpmsg bus of the lab, and the two ways to an endpoint on it: the stock driver's nodes, and strobe_rpmsg's files.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use libc::O_NONBLOCK;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::until;
use strobe_cases::rpmsg::*;

/// A node that the stock driver makes.
const STOCK_NODE: &str = "/dev/rpmsg0";

#[test]
fn a_message_comes_back_over_the_stock_drivers() {
    let _processor = Processor::new(false);
    let control = open(STOCK_CONTROL).expect("the stock driver");
    create_node(&control, ANY, ANY).expect("a node");
    until("the node", || open(STOCK_NODE).is_ok());
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
        until("the echo", || state(&endpoint) & libc::POLLIN != 0);
        assert_eq!(receive(&endpoint).as_deref(), Ok(&b"hello"[..]));
        assert_eq!(receive(&endpoint), Err(libc::EAGAIN));
    }
}
