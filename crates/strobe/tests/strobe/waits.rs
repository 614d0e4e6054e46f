// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a reader's wait: a program that is told to end by a signal must not go on waiting.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe_hw::interrupt::interrupt;

/// How long a wait for a row that never comes takes if signals come; the longest time there is counts as for ever.
fn wait_and_signal(reader: RunReader) -> Option<Duration> {
    let (to_us, done) = channel();
    let (begins, has_begun) = channel();
    let waiting = thread::spawn(move || {
        let begun = Instant::now();
        let _ = begins.send(());
        let result = reader.wait(1, Duration::MAX);
        let _ = to_us.send(result.map(|()| begun.elapsed()));
    });
    has_begun.recv().expect("a thread that waits");
    // One may come before it sleeps.
    for _ in 0..200 {
        if let Ok(result) = done.recv_timeout(Duration::from_millis(50)) {
            return Some(result.expect("no error"));
        }
        interrupt(&waiting);
    }
    None
}

#[test]
fn a_signal_ends_a_wait_and_the_longest_time_is_no_error() {
    let run = User::default().create(&Plan::new("soft".parse().expect("an event")));
    let run = run.expect("a run");
    run.start().expect("a start");
    let waited = wait_and_signal(run.reader().expect("a reader"));
    let waited = waited.expect("a wait that ends");
    assert!(
        waited >= Duration::from_millis(40),
        "nothing but a signal ends it: {waited:?}"
    );
}

#[test]
fn a_signal_ends_the_wait_for_a_run_that_was_attached_to() {
    let run = User::default().create(&Plan::new("soft".parse().expect("an event")));
    let run = run.expect("a run");
    run.start().expect("a start");
    let attached = crate::attached(&run);
    let waited = wait_and_signal(attached.reader().expect("a reader"));
    assert!(waited.expect("a wait that ends") >= Duration::from_millis(40));
}
