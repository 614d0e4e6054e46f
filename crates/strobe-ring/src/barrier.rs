// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ordering of the ring: every barrier with its letter, its partner, and what breaks without it.
//! The same letters are in the kernel's sources, in `litmus/` and in `docs/design/ring.md`.
//!
//! ```text
//!   producer (writer.rs, kernel row.c)           reader (reader.rs)
//!
//!   head = i, earlier                            load state, barrier           (G)
//!   barrier                           (A)        load head, barrier            (C)
//!   store the words of row i                     load the words of rows
//!   store head = i + 1, release       (B)        barrier, load head            (D)
//!                                                drop what is older than "oldest"
//!   at the end: store state, release  (G)
//!
//!   to wake: store wake, release      (H)        load wake, barrier; read; sleep if nothing came (H)
//!   new ring: barrier, store magic    (I)        load magic, barrier; load the constants         (I)
//! ```
//!
//! A pairs with D, B with C; G, H and I each with itself. E and F are the kernel's own.
//!
//! A reader's memory may be mapped read-only, where only relaxed loads are sure not to fault: hence
//! "relaxed load, then fence", never `load(Acquire)`.
//!
//! In a loom build a test can break any [`Rule`], and so shows that it is needed.

use crate::layout::{RING_MAGIC, RingHeader, State};
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering, fence};
use std::mem::offset_of;

const MAGIC: usize = offset_of!(RingHeader, magic);
const HEAD: usize = offset_of!(RingHeader, head);
const STATE: usize = offset_of!(RingHeader, state);
const WAKE: usize = offset_of!(RingHeader, wake);

/// (A) Before the first word of row i, producer. Pairs with D: who has seen a word of row i sees
/// `head >= i` after D, and knows then that row i - capacity is gone. Without A a reader may take words
/// of row i for row i - capacity.
#[inline]
pub(crate) fn before_row() {
    release_fence(Rule::A);
}

/// (B) Publishes a row, producer. Pairs with C: who sees `head > i` sees row i whole. Without the
/// release a row may be counted before all of its words are there.
#[inline]
pub(crate) fn publish(head: &AtomicU64, rows: u64) {
    head.store(rows, release(Rule::B));
}

/// (G) Enters a state, producer, after the last head and all else that belongs to it. Pairs with the
/// fence after the state in [`state_then_head`]: who sees a final state sees the last head. Without the
/// release a run may look ended while its last rows are not to be seen.
pub(crate) fn enter(memory: &Memory, state: State) {
    memory
        .half(STATE)
        .store(state.to_raw(), release(Rule::EndRelease));
}

/// (G, C) The state, and then how many rows there are. In this order, or a run that ends in between looks
/// ended with its last rows missing. C is the second fence: without it words may be loaded that are older
/// than the head that counts them.
#[inline]
pub(crate) fn state_then_head(memory: &Memory) -> (State, u64) {
    if !keeps(Rule::StateFirst) {
        let head = head_now(memory);
        fence(Ordering::Acquire);
        return (state_now(memory), head);
    }
    let state = state_now(memory);
    acquire_fence(Rule::EndAcquire);
    let head = head_now(memory);
    acquire_fence(Rule::C);
    (state, head)
}

/// (D) How many rows there are now that rows have been copied, reader. Pairs with A. Without the fence
/// the head may be one from before the copy, and a row that was overwritten meanwhile looks whole.
#[inline]
pub(crate) fn head_after_copy(memory: &Memory) -> u64 {
    acquire_fence(Rule::D);
    head_now(memory)
}

/// The rows before the head that cannot be read although they are in the ring: one, for the producer may
/// be in the oldest.
#[inline]
pub(crate) fn guard_rows() -> u64 {
    u64::from(keeps(Rule::Guard))
}

/// (H) Changes the wake word after head and state, producer. Pairs with [`wake_value`]. Who loads the new
/// value and then reads finds the rows; who loaded the old one and found none is not put to sleep by
/// FUTEX_WAIT, or is woken. Without the release a reader may see the new value, but not yet the rows, and
/// sleep although the wake-up is over.
pub(crate) fn change_wake(memory: &Memory, value: u32) {
    memory.half(WAKE).store(value, release(Rule::WakeRelease));
}

/// (H) The wake word, reader, before it looks for state and rows. Without the fence these may be older
/// than the word, and the reader sleeps although the wake-up is over.
pub(crate) fn wake_value(memory: &Memory) -> u32 {
    let value = memory.half(WAKE).load(Ordering::Relaxed);
    acquire_fence(Rule::WakeAcquire);
    value
}

/// (I) Makes a new ring known, producer, after all of its header. Pairs with [`magic`]: who sees the magic
/// sees the whole header.
pub(crate) fn make_known(memory: &Memory) {
    release_fence(Rule::MagicRelease);
    memory.word(MAGIC).store(RING_MAGIC, Ordering::Relaxed);
}

/// (I) The magic, reader, before the rest of the header. Without the fence the rest may be older.
pub(crate) fn magic(memory: &Memory) -> u64 {
    let magic = memory.word(MAGIC).load(Ordering::Relaxed);
    acquire_fence(Rule::MagicAcquire);
    magic
}

#[inline]
fn head_now(memory: &Memory) -> u64 {
    memory.word(HEAD).load(Ordering::Relaxed)
}

#[inline]
fn state_now(memory: &Memory) -> State {
    State::from_raw(memory.half(STATE).load(Ordering::Relaxed))
}

#[inline]
fn release_fence(rule: Rule) {
    if keeps(rule) {
        fence(Ordering::Release);
    }
}

#[inline]
fn acquire_fence(rule: Rule) {
    if keeps(rule) {
        fence(Ordering::Acquire);
    }
}

#[inline]
fn release(rule: Rule) -> Ordering {
    if keeps(rule) {
        Ordering::Release
    } else {
        Ordering::Relaxed
    }
}

/// What the ring rests upon. A loom test can break one of these rules to see that it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The barrier before a row.
    A,
    /// The release of the head.
    B,
    /// The fence after the first load of the head.
    C,
    /// The fence before the second load of the head.
    D,
    /// The row before the oldest is not accepted.
    Guard,
    /// G: the state is loaded before the head.
    StateFirst,
    /// G: the state is stored with release.
    EndRelease,
    /// G: there is a fence between the loads of state and head.
    EndAcquire,
    /// H: the wake word is stored with release.
    WakeRelease,
    /// H: there is a fence after the load of the wake word.
    WakeAcquire,
    /// I: there is a fence before the magic is stored.
    MagicRelease,
    /// I: there is a fence after the load of the magic.
    MagicAcquire,
}

#[cfg(not(loom))]
#[inline(always)]
fn keeps(_: Rule) -> bool {
    true
}

#[cfg(loom)]
fn keeps(rule: Rule) -> bool {
    BROKEN.get() != Some(rule)
}

#[cfg(loom)]
std::thread_local! {
    // All threads of a loom model are coroutines of one thread of the test.
    static BROKEN: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

/// Makes the ring break a rule, for this test.
#[cfg(loom)]
pub fn break_rule(rule: Option<Rule>) {
    BROKEN.set(rule);
}
