// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every allocation of every call of strobe_rpmsg fails in turn: the call says so, has changed nothing, and the next one
//! works. What is lost nevertheless, kmemleak finds when the guest ends.
// kernels: debug
// lab: --module strobe_rpmsg --module lab_rpmsg

use std::fs;

use libc::{EADDRINUSE, ENOMEM};
use strobe_cases::failslab::{Allocations, MANY};
use strobe_cases::raw::references;
use strobe_cases::raw::rpmsg::*;
use strobe_cases::rpmsg::*;

/// What a call that fails must not change: references to the driver, open fds, nodes.
fn census() -> (i64, usize, usize) {
    let count = |path| fs::read_dir(path).expect(path).count();
    (
        references("strobe_rpmsg"),
        count("/proc/self/fd"),
        count("/sys/class/strobe_rpmsg"),
    )
}

/// `call`, with each of its allocations failing in turn, until it makes no more: how many it makes, and its answer.
fn each<T>(what: &str, refusal: i32, mut call: impl FnMut() -> Result<T, i32>) -> (usize, T) {
    let allocations = Allocations::of_this_thread();
    let before = census();
    for nth in 1..MANY {
        let (answer, has_failed) = allocations.fail(nth, &mut call);
        match answer {
            Ok(good) if !has_failed => {
                println!("{what}: {} allocations", nth - 1);
                return (nth - 1, good);
            }
            // What the kernel can do without.
            Ok(good) => drop(good),
            Err(errno) => {
                assert!(has_failed, "{what}: fails by itself, errno {errno}");
                assert!(
                    [ENOMEM, refusal].contains(&errno),
                    "{what}, allocation {nth}: {errno}"
                );
            }
        }
        assert_eq!(
            census(),
            before,
            "{what}: allocation {nth} has left something"
        );
    }
    panic!("{what}: {MANY} allocations and no end");
}

#[test]
fn creating_an_endpoint_fails_whole_whichever_allocation_fails() {
    for _processor in contexts() {
        let control = control();
        // A transport does not say why it makes no endpoint: of an address that was chosen, that it is taken.
        for (src, refusal) in [(ANY, ENOMEM), (77, EADDRINUSE)] {
            let (count, endpoint) = each(&format!("CREATE {src:#x}"), refusal, || {
                create(&control, &mut asked(src, ANY, NONBLOCK))
            });
            // The endpoint with its queue, its file, and what the transport has of it.
            assert!(count >= 4, "only {count} allocations failed");
            send(&endpoint, b"it works").expect("sent");
            assert_eq!(receive(&endpoint).as_deref(), Ok(&b"it works"[..]));
        }
    }
}

/// A node that has been made.
struct Node(());

impl Drop for Node {
    fn drop(&mut self) {
        let endpoint = open("/dev/strobe_rpmsg_ept0").expect("the node opens");
        destroy(&endpoint).expect("destroyed");
    }
}

#[test]
fn a_node_is_made_whole_or_not_at_all_whichever_allocation_fails() {
    for _processor in contexts() {
        let control = control();
        let (count, _node) = each("CREATE_EPT", ENOMEM, || {
            create_node(&control, ANY, ANY).map(|_| Node(()))
        });
        assert!(count >= 5, "only {count} allocations failed");
    }
}

#[test]
fn a_message_is_sent_or_not_whichever_allocation_fails() {
    for _processor in contexts() {
        let endpoint = endpoint(ANY, ANY, 0);
        let (count, _) = each("write", ENOMEM, || send(&endpoint, b"message"));
        assert!(count >= 1, "its copy: {count}");
        let said = stats(&endpoint).expect("stats");
        assert_eq!(
            (said.received, said.dropped),
            (said.sent, 0),
            "none is lost"
        );
        let (_, message) = each("read", ENOMEM, || receive(&endpoint));
        assert_eq!(message, b"message");
    }
}
