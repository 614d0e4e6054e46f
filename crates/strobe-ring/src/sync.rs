// SPDX-License-Identifier: MIT OR Apache-2.0
//! The atomics of the ring: the real ones, or those of the model checker.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
