// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine itself takes to bring memory from one CPU to another: what a ring cannot do without.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use strobe::ring::layout::ROW_HEADER_WORDS;
use strobe::rt::{self, Policy};

use crate::words::{NARROW_CHANNELS, RING_ROWS};

/// One CPU writes a word that the other waits for; and so back.
pub const LINE: &str = "a word to another CPU, no row";
/// One CPU writes as much as a ring's rows, and only then the other reads it.
pub const TURNS: &str = "80 bytes written, then read by another CPU";

/// Times that the word goes there and back.
const EXCHANGES: u64 = 100_000;
/// Times that the memory is written and read.
const PASSES: u64 = 100;
/// Words of a narrow row.
const WORDS: u64 = (ROW_HEADER_WORDS + NARROW_CHANNELS) as u64;

/// Whose turn it is, in a cache line of its own. Even: of who writes, and stores the next odd number when it has
/// written; odd: of who reads, and stores the next even number when it has read.
#[repr(align(128))]
struct Turn(AtomicU64);

/// Nanoseconds of one exchange, and of one row's bytes. The caller's thread, on its CPU, is the one that writes.
pub fn both(to: usize) -> (f64, f64) {
    let memory: Vec<AtomicU64> = (0..WORDS * RING_ROWS).map(AtomicU64::new).collect();
    let exchanges = in_turns(EXCHANGES, to, &[]);
    let passes = in_turns(PASSES, to, &memory);
    (
        exchanges / (2 * EXCHANGES) as f64,
        passes / (PASSES * RING_ROWS) as f64,
    )
}

/// Writes these words so often, each time after the other CPU has read them; nanoseconds of it all.
fn in_turns(times: u64, to: usize, words: &[AtomicU64]) -> f64 {
    let turn = Turn(AtomicU64::new(0));
    // The other thread begins on this CPU with this priority, and goes to its own by itself: who spun here meanwhile would keep
    // it from that for ever. So wait asleep.
    let ready = Barrier::new(2);
    let wait = |number| {
        while turn.0.load(Ordering::Acquire) != number {
            spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            rt::set_up_thread(Some(to), Policy::Fifo(50));
            ready.wait();
            for time in 0..times {
                wait(2 * time + 1);
                let sum = words.iter().fold(0, |sum: u64, word| {
                    sum.wrapping_add(word.load(Ordering::Relaxed))
                });
                std::hint::black_box(sum);
                turn.0.store(2 * time + 2, Ordering::Release);
            }
        });
        ready.wait();
        let begun = Instant::now();
        for time in 0..times {
            for word in words {
                word.store(time, Ordering::Relaxed);
            }
            turn.0.store(2 * time + 1, Ordering::Release);
            wait(2 * time + 2);
        }
        begun.elapsed().as_nanos() as f64
    })
}
