// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring has as many pages as its maker wants. Where nothing interrupts the kernel but what it allows, giving them back
//! keeps nobody off the CPU. (A kernel that is preemptible throughout has no such places.)
// kernels: amd64
// lab: --memory 3072

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strobe::rt::{Policy, set_up_thread};
use strobe_cases::raw::{Parameter, control, soft};

/// Of a ring: so many rows of 64 bytes are half a GiB.
const ROWS: u64 = 1 << 23;
/// What a row may keep a CPU for.
const MOST: Duration = Duration::from_millis(1);

/// How late a thread that comes before all others is at the most, while `work` is done.
fn latest_beside(work: impl FnOnce()) -> Duration {
    const SLEEP: Duration = Duration::from_micros(200);
    let going = AtomicBool::new(true);
    thread::scope(|scope| {
        let urgent = scope.spawn(|| {
            set_up_thread(None, Policy::Fifo(99));
            let mut latest = Duration::ZERO;
            while going.load(Ordering::Relaxed) {
                let begin = Instant::now();
                thread::sleep(SLEEP);
                latest = latest.max(begin.elapsed() - SLEEP);
            }
            latest
        });
        thread::sleep(Duration::from_millis(10));
        work();
        thread::sleep(Duration::from_millis(10));
        going.store(false, Ordering::Relaxed);
        urgent.join().expect("its thread")
    })
}

#[test]
fn a_large_ring_that_is_given_back_keeps_nobody_off_the_cpu() {
    let _bytes = Parameter::set("ring_bytes_max", 1u64 << 30);
    let control = control();
    let (owner, _) = soft(&control, ROWS, 0);
    let mut took = Duration::ZERO;
    let closed = latest_beside(|| {
        let begin = Instant::now();
        drop(owner);
        took = begin.elapsed();
    });
    println!("{closed:?} late while it was given back, which took {took:?}");
    assert!(took > 4 * MOST, "{took:?}: that could not fail");
    assert!(closed < MOST, "{closed:?} late while it was given back");
}
